//! Events of a queue.
//!
//! Clients in all languages write an event to the stream `events` of a queue for everything they do with a job.
//! [`QueueEvents`] reads the stream on a connection of its own, and continues where it was after an outage.

use std::collections::HashMap;
use std::time::Duration;

use redis::streams::{StreamRangeReply, StreamReadReply};
use redis::{FromRedisValue, cmd, pipe};
use serde_json::Value;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::link::Link;
use crate::{Error, Queue};

/// Events kept for a slow subscriber.
const KEPT: usize = 1_000;
/// Events read in one call.
const AT_ONCE: usize = 500;
/// How long one call waits for the next event.
const BLOCK: Duration = Duration::from_secs(5);
/// Pause after a failed call.
const PAUSE: Duration = Duration::from_millis(300);
/// How often the job itself is read while its end is awaited: old events are trimmed.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Reads the events of a queue until it is dropped. One is enough for many subscribers.
pub struct QueueEvents {
    queue: Queue,
    heard: broadcast::Sender<QueueEvent>,
    _task: AbortOnDropHandle<()>,
}

/// Something that happened to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueEvent {
    /// BullMQ's name of the event: `added`, `waiting`, `active`, `progress`, `completed`, `failed`, `delayed`, …
    pub name: String,
    /// The id of the job; empty for events of the queue itself.
    pub job_id: String,
    /// Other fields, such as `returnvalue` or `failedReason`.
    pub fields: HashMap<String, String>,
}

/// How a job has ended.
#[derive(Debug, Clone, PartialEq)]
pub enum JobResult {
    /// Completed, with this result.
    Completed(Value),
    /// Failed permanently, for this reason.
    Failed(String),
}

impl Queue {
    /// Reads events from now on.
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
    pub async fn ended(&self, job_id: &str) -> Result<Option<JobResult>, Error> {
        let key = self.keys().part(job_id);
        let mut look = pipe();
        // One transaction: a job that is retried must not be taken for one that has ended.
        look.atomic();
        look.zscore(self.keys().part("completed"), job_id);
        look.zscore(self.keys().part("failed"), job_id);
        look.hmget(&key, &["returnvalue", "failedReason"]).exists(&key);
        type Looked = (Option<f64>, Option<f64>, (Option<String>, Option<String>), bool);
        let (completed, failed, (result, reason), exists): Looked =
            look.query_async(&mut self.broker().redis()).await?;
        if completed.is_some() {
            return Ok(Some(JobResult::completed(result.as_deref())));
        }
        if failed.is_some() {
            return Ok(Some(JobResult::Failed(reason.unwrap_or_default())));
        }
        if exists { Ok(None) } else { Err(Error::UnknownJob { id: job_id.to_owned() }) }
    }
}

impl JobResult {
    fn completed(result: Option<&str>) -> Self {
        let result = result.unwrap_or("null");
        Self::Completed(serde_json::from_str(result).unwrap_or_else(|_| result.into()))
    }

    /// The result that an event reports.
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
    /// All events from now on. A slow subscriber misses the oldest and is told so.
    pub fn subscribe(&self) -> broadcast::Receiver<QueueEvent> {
        self.heard.subscribe()
    }

    /// Waits for the end of a job, also through outages of Redis; `None`: it took longer than `patience`. For a job
    /// that is removed when it ends, this must be called before it ends.
    pub async fn ended(
        &self,
        job_id: &str,
        patience: Duration,
    ) -> Result<Option<JobResult>, Error> {
        // Before the first read: an event in between must not be missed.
        let mut heard = self.heard.subscribe();
        let waiting = async {
            loop {
                match self.queue.ended(job_id).await {
                    Ok(Some(ended)) => return Ok(ended),
                    Ok(None) => {}
                    Err(error) if error.is_outage() => sleep(PAUSE).await,
                    // The job may have ended since it was last read, and was removed.
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

/// Waits for the event that reports the end of a job. `None`: events were missed.
async fn told(heard: &mut broadcast::Receiver<QueueEvent>, job_id: &str) -> Option<JobResult> {
    loop {
        match heard.recv().await {
            Ok(event) if event.job_id == job_id => {
                if let Some(ended) = JobResult::told_by(&event) {
                    return Some(ended);
                }
            }
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return None,
            // The reader lives as long as its subscribers.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// The end of a job, if one of the events received so far reports it.
fn told_meanwhile(heard: &mut broadcast::Receiver<QueueEvent>, job_id: &str) -> Option<JobResult> {
    std::iter::from_fn(|| heard.try_recv().ok())
        .filter(|event| event.job_id == job_id)
        .find_map(|event| JobResult::told_by(&event))
}

/// Reads all events after the one with the id `last`, and passes them to the subscribers.
async fn listen(queue: Queue, heard: broadcast::Sender<QueueEvent>, mut last: String) {
    let mut connection = None;
    loop {
        match read(&queue, &mut connection, &last).await {
            Ok(events) => {
                for (id, event) in events {
                    last = id;
                    // Fails only when there is no subscriber.
                    let _ = heard.send(event);
                }
            }
            Err(error) => {
                tracing::debug!(%error, queue = queue.name(), "cannot read the events of a queue");
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
