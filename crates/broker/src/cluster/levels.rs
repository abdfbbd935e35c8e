//! How full queues are, and whether they move, in one round trip for each.

use redis::pipe;

use crate::keys::Keys;
use crate::names::check_queue_name;
use crate::{Broker, Error};

/// What a queue looks like now.
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
    /// Nobody may take jobs.
    pub paused: bool,
    /// Changes whenever a job ends.
    pub last_ended: String,
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
        for ended in ["completed", "failed"] {
            asked.cmd("ZREVRANGE").arg(keys.part(ended)).arg(0).arg(0).arg("WITHSCORES");
        }
        type Answer = (u64, u64, u64, u64, u64, bool, Vec<String>, Vec<String>);
        let answer: Answer = asked.query_async(&mut self.redis()).await?;
        let (waiting, prioritized, active, completed, failed, paused, done, broken) = answer;
        Ok(Level {
            queue: name.to_owned(),
            waiting: waiting + prioritized,
            active,
            completed,
            failed,
            paused,
            last_ended: format!("{} {}", done.join(" "), broken.join(" ")),
        })
    }
}
