//! The sizes of many queues, and how long their jobs have waited, for metrics: a few round trips, however many queues.

use std::collections::HashMap;
use std::time::Duration;

use redis::{cmd, pipe};
use serde_json::Value;

use super::inspect::State;
use crate::queue::names::check_queue_name;
use crate::queue::redis_keys::Keys;
use crate::{Broker, Error};

/// Queues in one round trip.
const AT_ONCE: usize = 50;
/// Numbers that are read of each queue: one a state, its dead letters, whether it is paused.
const NUMBERS: usize = State::ALL.len() + 2;
/// What BullMQ multiplies a priority with to get a score.
const PRIORITY: f64 = 4_294_967_296.0;

/// The size of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueFigures {
    /// Its name.
    pub queue: String,
    /// Jobs in each state.
    pub jobs: [(State, u64); State::ALL.len()],
    /// Dead letters that wait for an operator.
    pub dead_letters: u64,
    /// The queue is paused.
    pub is_paused: bool,
    /// How long the job has waited that has waited longest. Of jobs with a priority, the next one and the oldest one of the lowest
    /// priority are looked at.
    pub oldest_waiting: Duration,
}

impl QueueFigures {
    fn count(&self, state: State) -> u64 {
        self.jobs.iter().filter(|(other, _)| *other == state).map(|(_, count)| count).sum()
    }
}

/// A job that waits: its queue, by position, and the key of its hash.
struct Waiting {
    queue: usize,
    key: String,
}

impl Broker {
    /// What these queues look like now.
    pub async fn figures(&self, queues: &[String]) -> Result<Vec<QueueFigures>, Error> {
        let mut figures = Vec::with_capacity(queues.len());
        for queues in queues.chunks(AT_ONCE) {
            let mut some = self.sizes(queues).await?;
            let waiting = self.longest_waiting(&some).await?;
            self.note_waits(&mut some, &waiting).await?;
            figures.append(&mut some);
        }
        Ok(figures)
    }

    async fn sizes(&self, queues: &[String]) -> Result<Vec<QueueFigures>, Error> {
        let mut asked = pipe();
        for name in queues {
            check_queue_name(name)?;
            let keys = Keys::new(self.prefix(), name);
            for state in State::ALL {
                let key = keys.part(state.key());
                match state {
                    State::Waiting | State::Active => asked.llen(key),
                    _ => asked.zcard(key),
                };
            }
            asked.llen(keys.dead().part("wait")).hexists(keys.part("meta"), "paused");
        }
        if queues.is_empty() {
            return Ok(Vec::new());
        }
        let numbers: Vec<u64> = asked.query_async(&mut self.redis()).await?;
        let of_queues = queues.iter().zip(numbers.chunks_exact(NUMBERS));
        Ok(of_queues.map(|(name, numbers)| read_sizes(name, numbers)).collect())
    }

    /// The jobs of each queue that may have waited longest.
    async fn longest_waiting(&self, figures: &[QueueFigures]) -> Result<Vec<Waiting>, Error> {
        let busy: Vec<(usize, Keys)> = figures
            .iter()
            .enumerate()
            .filter(|(_, queue)| State::WAITING.iter().any(|state| queue.count(*state) > 0))
            .map(|(at, queue)| (at, Keys::new(self.prefix(), &queue.queue)))
            .collect();
        if busy.is_empty() {
            return Ok(Vec::new());
        }
        let mut asked = pipe();
        for (_, keys) in &busy {
            let (wait, prioritized) = (keys.part("wait"), keys.part("prioritized"));
            asked.cmd("LRANGE").arg(wait).arg(-1).arg(-1);
            asked.cmd("ZRANGE").arg(&prioritized).arg(0).arg(0);
            asked.cmd("ZRANGE").arg(prioritized).arg(-1).arg(-1).arg("WITHSCORES");
        }
        let found: Vec<Vec<Vec<u8>>> = asked.query_async(&mut self.redis()).await?;
        let (mut waiting, mut lowest) = (Vec::new(), Vec::new());
        for ((queue, keys), found) in busy.iter().zip(found.chunks_exact(3)) {
            let ids = found[0].first().into_iter().chain(found[1].first());
            waiting.extend(ids.map(|id| Waiting { queue: *queue, key: key_of(keys, id) }));
            if let Some(score) = found[2].get(1) {
                lowest.push((*queue, keys, lowest_score(score)));
            }
        }
        waiting.append(&mut self.oldest_of_lowest(&lowest).await?);
        Ok(waiting)
    }

    /// The oldest job of the lowest priority of each queue.
    async fn oldest_of_lowest(
        &self,
        lowest: &[(usize, &Keys, f64)],
    ) -> Result<Vec<Waiting>, Error> {
        if lowest.is_empty() {
            return Ok(Vec::new());
        }
        let mut asked = pipe();
        for (_, keys, score) in lowest {
            let from = asked.cmd("ZRANGEBYSCORE").arg(keys.part("prioritized")).arg(*score);
            from.arg("+inf").arg("LIMIT").arg(0).arg(1);
        }
        let found: Vec<Vec<Vec<u8>>> = asked.query_async(&mut self.redis()).await?;
        let ids = lowest.iter().zip(found);
        let first = ids.filter_map(|((queue, keys, _), ids)| {
            Some(Waiting { queue: *queue, key: key_of(keys, ids.first()?) })
        });
        Ok(first.collect())
    }

    /// Reads when jobs could begin, by the clock of Redis.
    async fn note_waits(
        &self,
        figures: &mut [QueueFigures],
        waiting: &[Waiting],
    ) -> Result<(), Error> {
        if waiting.is_empty() {
            return Ok(());
        }
        let mut asked = pipe();
        for job in waiting {
            asked.cmd("HMGET").arg(&job.key).arg("timestamp").arg("opts").arg("processedOn");
        }
        let times: Vec<Vec<Option<Vec<u8>>>> = asked.query_async(&mut self.redis()).await?;
        let (seconds, micros): (u64, u64) = self.ask_home(cmd("TIME")).await?;
        let now_ms = seconds * 1_000 + micros / 1_000;
        for (job, times) in waiting.iter().zip(times) {
            let wait = could_begin(&times).map(|ms| now_ms.saturating_sub(ms)).unwrap_or_default();
            let oldest = &mut figures[job.queue].oldest_waiting;
            *oldest = (*oldest).max(Duration::from_millis(wait));
        }
        Ok(())
    }
}

fn read_sizes(name: &str, numbers: &[u64]) -> QueueFigures {
    let mut jobs = State::ALL.map(|state| (state, 0));
    for ((_, count), number) in jobs.iter_mut().zip(numbers) {
        *count = *number;
    }
    let rest = &numbers[State::ALL.len()..];
    QueueFigures {
        queue: name.to_owned(),
        jobs,
        dead_letters: rest[0],
        is_paused: rest[1] > 0,
        oldest_waiting: Duration::ZERO,
    }
}

fn key_of(keys: &Keys, id: &[u8]) -> String {
    keys.part(&String::from_utf8_lossy(id))
}

/// The lowest score of a job with the priority of this one.
fn lowest_score(score: &[u8]) -> f64 {
    let score = std::str::from_utf8(score).ok().and_then(|text| text.parse::<f64>().ok());
    (score.unwrap_or_default() / PRIORITY).floor() * PRIORITY
}

/// When a job could begin, in milliseconds since 1970: after its delay, and after its run before. How long it was delayed after a
/// run is not known any more.
fn could_begin(times: &[Option<Vec<u8>>]) -> Option<u64> {
    let number = |at: usize| {
        let text = std::str::from_utf8(times.get(at)?.as_deref()?).ok()?;
        Some(text.parse::<f64>().ok()? as u64)
    };
    let options = times.get(1).and_then(Option::as_deref).unwrap_or_default();
    let options: HashMap<String, Value> = serde_json::from_slice(options).unwrap_or_default();
    let delay = options.get("delay").and_then(Value::as_f64).unwrap_or_default() as u64;
    Some((number(0)? + delay).max(number(2).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_waits_since_it_could_begin() {
        let times = |timestamp: &str, options: &str, processed: Option<&str>| {
            let texts = [Some(timestamp), Some(options), processed];
            could_begin(&texts.map(|text| text.map(|text| text.as_bytes().to_vec())))
        };
        assert_eq!(times("1000", "{}", None), Some(1_000));
        assert_eq!(times("1000", r#"{"delay":500,"attempts":3}"#, None), Some(1_500));
        assert_eq!(times("1000", "not json", Some("9000.5")), Some(9_000));
        assert_eq!(times("?", "{}", None), None);
        assert_eq!(could_begin(&[None, None, None]), None, "the job is gone");
    }

    #[test]
    fn the_lowest_score_of_a_priority_is_that_of_its_oldest_job() {
        assert_eq!(lowest_score(b"4294967301"), PRIORITY);
        assert_eq!(lowest_score(b"8589934592"), 2.0 * PRIORITY);
        assert_eq!(lowest_score(b"nan?"), 0.0);
    }

    #[test]
    fn numbers_are_read_in_their_order() {
        let read = read_sizes("mails", &[1, 2, 3, 4, 5, 6, 7, 8, 1]);
        assert_eq!((read.count(State::Waiting), read.count(State::Failed)), (1, 7));
        assert_eq!((read.dead_letters, read.is_paused), (8, true));
    }
}
