//! The sizes of queues, and whether they move, in one round trip for each.

use redis::pipe;

use crate::queue::names::check_queue_name;
use crate::queue::redis_keys::Keys;
use crate::{Broker, Error};

/// Events that are searched for the end of a job.
const EVENTS: usize = 100;

/// The id of an event, its fields and their values.
type Event = (String, Vec<Vec<u8>>);

fn is_end((_, fields): &Event) -> bool {
    let mut pairs = fields.chunks_exact(2);
    pairs.any(|pair| pair[0] == b"event" && (pair[1] == b"completed" || pair[1] == b"failed"))
}

/// The size of a queue, and whether it moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Its name.
    pub queue: String,
    /// Jobs that could begin, with and without priority.
    pub waiting: u64,
    /// Jobs being worked on.
    pub active: u64,
    /// Jobs that are done and kept.
    pub completed: u64,
    /// Jobs that failed and are kept.
    pub failed: u64,
    /// The queue is paused.
    pub paused: bool,
    /// Id of the last event that says that a job ended, given by Redis; `None` if none of the last
    /// events does.
    pub last_ended: Option<String>,
}

impl Broker {
    /// What these queues look like now.
    pub async fn levels(&self, queues: &[String]) -> Result<Vec<Level>, Error> {
        let mut levels = Vec::with_capacity(queues.len());
        for name in queues {
            levels.push(self.level(name).await?);
        }
        Ok(levels)
    }

    async fn level(&self, name: &str) -> Result<Level, Error> {
        check_queue_name(name)?;
        let keys = Keys::new(self.prefix(), name);
        let mut asked = pipe();
        asked.llen(keys.part("wait")).zcard(keys.part("prioritized"));
        asked.llen(keys.part("active"));
        asked.zcard(keys.part("completed")).zcard(keys.part("failed"));
        asked.hexists(keys.part("meta"), "paused");
        // Not the kept jobs: their times are those of workers' clocks, and not all are kept.
        asked.cmd("XREVRANGE").arg(keys.part("events")).arg("+").arg("-").arg("COUNT").arg(EVENTS);
        type Answer = (u64, u64, u64, u64, u64, bool, Vec<Event>);
        let answer: Answer = asked.query_async(&mut self.redis()).await?;
        let (waiting, prioritized, active, completed, failed, paused, events) = answer;
        Ok(Level {
            queue: name.to_owned(),
            waiting: waiting + prioritized,
            active,
            completed,
            failed,
            paused,
            last_ended: events.into_iter().find(is_end).map(|(id, _)| id),
        })
    }
}
