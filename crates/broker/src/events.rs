//! What happens on a queue, whoever does it.
//!
//! Clients in all languages write what they do with a job to the stream `events` of its queue. This reads
//! it, on a connection of its own, and remembers where it was when Redis goes away.

use std::collections::HashMap;
use std::time::Duration;

use redis::streams::{StreamRangeReply, StreamReadReply};
use redis::{FromRedisValue, cmd, pipe};
use serde_json::Value;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::connection::Link;
use crate::{Error, Queue};

/// Events kept for somebody who is slow to hear them.
const KEPT: usize = 1_000;
/// Events in one answer.
const AT_ONCE: usize = 500;
/// How long Redis is asked to wait for the next one.
const BLOCK: Duration = Duration::from_secs(5);
/// Pause after a failed call.
const PAUSE: Duration = Duration::from_millis(300);
/// How often to look at a job itself while waiting for its end: events are kept only so long.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Listens to a queue until it is dropped. One is enough for many who wait.
pub struct QueueEvents {
    queue: Queue,
    heard: broadcast::Sender<QueueEvent>,
    _task: AbortOnDropHandle<()>,
}

/// Something that happened to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueEvent {
    /// BullMQ's word for it: `added`, `waiting`, `active`, `progress`, `completed`, `failed`, `delayed`, …
    pub name: String,
    /// Which job; empty for what happens to the queue itself.
    pub job_id: String,
    /// What else is told, such as `returnvalue` or `failedReason`.
    pub fields: HashMap<String, String>,
}

/// How a job has ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// With this result.
    Completed(Value),
    /// For good, for this reason.
    Failed(String),
}

impl Queue {
    /// Listens to what happens from now on.
    pub async fn events(&self) -> Result<QueueEvents, Error> {
        let last: StreamRangeReply = cmd("XREVRANGE")
            .arg(self.keys().part("events"))
            .arg(&["+", "-", "COUNT", "1"])
            .query_async(&mut self.broker().redis())
            .await?;
        let last = last.ids.into_iter().next().map_or_else(|| "0-0".to_owned(), |event| event.id);
        let heard = broadcast::Sender::new(KEPT);
        let listening = listen(self.clone(), heard.clone(), last);
        let task = AbortOnDropHandle::new(tokio::spawn(listening));
        Ok(QueueEvents { queue: self.clone(), heard, _task: task })
    }

    /// How a job has ended; `None`: not yet.
    pub async fn ended(&self, job_id: &str) -> Result<Option<Ended>, Error> {
        let key = self.keys().part(job_id);
        let mut look = pipe();
        // At the same moment: a job that is retried is not taken for one that has ended.
        look.atomic();
        look.zscore(self.keys().part("completed"), job_id);
        look.zscore(self.keys().part("failed"), job_id);
        look.hmget(&key, &["returnvalue", "failedReason"]).exists(&key);
        type Looked = (Option<f64>, Option<f64>, (Option<String>, Option<String>), bool);
        let (completed, failed, (result, reason), exists): Looked =
            look.query_async(&mut self.broker().redis()).await?;
        if completed.is_some() {
            return Ok(Some(Ended::completed(result.as_deref())));
        }
        if failed.is_some() {
            return Ok(Some(Ended::Failed(reason.unwrap_or_default())));
        }
        if exists { Ok(None) } else { Err(Error::UnknownJob { id: job_id.to_owned() }) }
    }
}

impl Ended {
    fn completed(result: Option<&str>) -> Self {
        let result = result.unwrap_or("null");
        Self::Completed(serde_json::from_str(result).unwrap_or_else(|_| result.into()))
    }

    /// What an event says about a job's end.
    fn told_by(event: &QueueEvent) -> Option<Self> {
        let field = |name| event.fields.get(name).map(String::as_str);
        match event.name.as_str() {
            "completed" => Some(Self::completed(field("returnvalue"))),
            "failed" => Some(Self::Failed(field("failedReason").unwrap_or_default().to_owned())),
            _ => None,
        }
    }
}

impl QueueEvents {
    /// All events from now on. Who is slow misses the oldest and is told so.
    pub fn subscribe(&self) -> broadcast::Receiver<QueueEvent> {
        self.heard.subscribe()
    }

    /// Waits for the end of a job, also through outages of Redis; `None`: it took longer than `patience`.
    /// A job that is not kept when it ends must be waited for before it does.
    pub async fn ended(&self, job_id: &str, patience: Duration) -> Result<Option<Ended>, Error> {
        // Before the look: what happens in between is heard.
        let mut heard = self.heard.subscribe();
        let waiting = async {
            loop {
                match self.queue.ended(job_id).await {
                    Ok(Some(ended)) => return Ok(ended),
                    Ok(None) => {}
                    Err(error) if error.is_outage() => sleep(PAUSE).await,
                    // It may have ended since it was last looked at, and is not kept.
                    Err(error) => return told_meanwhile(&mut heard, job_id).ok_or(error),
                }
                if let Ok(Some(ended)) = timeout(LOOK_EVERY, told(&mut heard, job_id)).await {
                    return Ok(ended);
                }
            }
        };
        match timeout(patience, waiting).await {
            Ok(ended) => ended.map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// The end of a job, when it is told. `None`: events were missed.
async fn told(heard: &mut broadcast::Receiver<QueueEvent>, job_id: &str) -> Option<Ended> {
    loop {
        match heard.recv().await {
            Ok(event) if event.job_id == job_id => {
                if let Some(ended) = Ended::told_by(&event) {
                    return Some(ended);
                }
            }
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return None,
            // The listener never ends before those who hold it.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// The end of a job among the events that were heard already.
fn told_meanwhile(heard: &mut broadcast::Receiver<QueueEvent>, job_id: &str) -> Option<Ended> {
    std::iter::from_fn(|| heard.try_recv().ok())
        .filter(|event| event.job_id == job_id)
        .find_map(|event| Ended::told_by(&event))
}

/// Tells all events after the one with the id `last`.
async fn listen(queue: Queue, heard: broadcast::Sender<QueueEvent>, mut last: String) {
    let mut connection = None;
    loop {
        match read(&queue, &mut connection, &last).await {
            Ok(events) => {
                for (id, event) in events {
                    last = id;
                    // Nobody may be there to hear it.
                    let _ = heard.send(event);
                }
            }
            Err(error) => {
                tracing::debug!(%error, queue = queue.name(), "cannot listen to its events");
                queue.broker().suspect();
                connection = None;
                sleep(PAUSE).await;
            }
        }
    }
}

async fn read(
    queue: &Queue,
    connection: &mut Option<Link>,
    last: &str,
) -> Result<Vec<(String, QueueEvent)>, Error> {
    let link = match connection {
        Some(link) => link,
        None => {
            let name = queue.client_name(":qe");
            connection.insert(queue.broker().blocking_connection(BLOCK, &name).await?)
        }
    };
    let mut read = cmd("XREAD");
    read.arg("COUNT").arg(AT_ONCE).arg("BLOCK").arg(BLOCK.as_millis() as u64);
    read.arg("STREAMS").arg(queue.keys().part("events")).arg(last);
    let answer: Option<StreamReadReply> = read.query_async(link).await?;
    let events = answer.into_iter().flat_map(|answer| answer.keys).flat_map(|stream| stream.ids);
    let events = events.map(|entry| {
        let text = |value| String::from_redis_value(value).unwrap_or_default();
        let fields = entry.map.into_iter().map(|(name, value)| (name, text(value)));
        let mut fields: HashMap<String, String> = fields.collect();
        let name = fields.remove("event").unwrap_or_default();
        let job_id = fields.remove("jobId").unwrap_or_default();
        (entry.id, QueueEvent { name, job_id, fields })
    });
    Ok(events.collect())
}
