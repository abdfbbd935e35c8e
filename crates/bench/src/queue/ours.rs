//! Our side of the measurements: jobs added and processed by our broker.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use stampede_broker::{
    Backoff, Broker, Config, Consumer, ConsumerConfig, Handler, Job, JobContext, JobSpec, Outcome,
    Queue,
};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::{CHUNK, PATIENCE};

/// A connection of our own to the Redis behind a unix socket.
pub(super) async fn connect(url: &str) -> Result<Broker> {
    Ok(Broker::connect(&Config::new(url)).await?)
}

fn job(number: u32, payload: &Value) -> JobSpec {
    let mut data = payload.clone();
    data["number"] = json!(number);
    JobSpec {
        id: format!("job-{number}"),
        attempts: Some(3),
        backoff: Some(Backoff::Exponential(Duration::from_secs(2))),
        ..JobSpec::new("job", data)
    }
}

/// Adds jobs one by one, so many at a time; returns seconds.
pub(super) async fn add(queue: &Queue, jobs: u32, at_once: u32, payload: &Value) -> Result<f64> {
    let next = Arc::new(AtomicU64::new(0));
    let mut lanes = JoinSet::new();
    let started = Instant::now();
    for _ in 0..at_once {
        let (next, queue, payload) = (next.clone(), queue.clone(), payload.clone());
        lanes.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= u64::from(jobs) {
                    return anyhow::Ok(());
                }
                queue.enqueue(&[job(number as u32, &payload)]).await?;
            }
        });
    }
    for lane in lanes.join_all().await {
        lane?;
    }
    Ok(started.elapsed().as_secs_f64())
}

/// Adds jobs in bulk; returns seconds.
pub(super) async fn bulk(queue: &Queue, jobs: u32, payload: &Value) -> Result<f64> {
    let started = Instant::now();
    for from in (0..jobs).step_by(CHUNK as usize) {
        let specs: Vec<JobSpec> =
            (from..jobs.min(from + CHUNK)).map(|number| job(number, payload)).collect();
        queue.enqueue(&specs).await?;
    }
    Ok(started.elapsed().as_secs_f64())
}

/// Adds jobs one by one, each at its time, with the moment of its addition in its data.
pub(super) async fn pace(queue: &Queue, rate: u32, seconds: u32, payload: &Value) -> Result<()> {
    let started = Instant::now();
    let mut adding = JoinSet::new();
    let mut number = 0;
    while number < rate * seconds {
        let due = (started.elapsed().as_secs_f64() * f64::from(rate)) as u32;
        while number < due.min(rate * seconds) {
            let mut spec = job(number, payload);
            spec.data["addedAt"] = json!(now_ms());
            let queue = queue.clone();
            adding.spawn(async move { queue.enqueue(&[spec]).await });
            number += 1;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for added in adding.join_all().await {
        added?;
    }
    Ok(())
}

/// Milliseconds since 1970, with fractions, as Node's side counts them.
pub(super) fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1000.0
}

/// Finishes every job at once and notes when it began.
#[derive(Clone, Default)]
struct Note {
    jobs: u64,
    seen: Arc<AtomicU64>,
    first: Arc<OnceLock<f64>>,
    waits: Arc<Mutex<Vec<f64>>>,
    done: Arc<Notify>,
}

impl Handler for Note {
    async fn run(&self, job: &Job, _: &JobContext) -> Outcome {
        let now = now_ms();
        self.first.get_or_init(|| now);
        if let (Some(added), Ok(mut waits)) = (job.data["addedAt"].as_f64(), self.waits.lock()) {
            waits.push(now - added);
        }
        if self.seen.fetch_add(1, Ordering::Relaxed) + 1 == self.jobs {
            self.done.notify_one();
        }
        Outcome::Done(Value::Null)
    }
}

/// A consumer at work.
pub(super) struct Work {
    note: Note,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

/// When the first job began, and how long jobs waited.
pub(super) struct Seen {
    pub(super) first_ms: f64,
    pub(super) waits_ms: Vec<f64>,
}

impl Work {
    /// One consumer with so many slots, as one Node worker has.
    pub(super) fn start(queue: Queue, slots: usize, jobs: u32) -> Self {
        let note = Note { jobs: u64::from(jobs), ..Note::default() };
        let stop = CancellationToken::new();
        // As often as Node looks for jobs that have stalled.
        let looked_for = Duration::from_secs(30);
        let config = ConsumerConfig {
            lock: looked_for,
            stalled_interval: looked_for,
            ..ConsumerConfig::new("bench", slots)
        };
        let consumer = Consumer::new(config, queue, note.clone());
        Self { note, running: tokio::spawn(consumer.run(stop.clone())), stop }
    }

    /// Waits until it has begun all its jobs.
    pub(super) async fn seen(&self) -> Result<Seen> {
        tokio::time::timeout(PATIENCE, self.note.done.notified())
            .await
            .context("our consumer has not seen all jobs")?;
        let waits_ms = self.note.waits.lock().map(|waits| waits.clone()).unwrap_or_default();
        Ok(Seen { first_ms: self.note.first.get().copied().unwrap_or_default(), waits_ms })
    }

    /// Stops it.
    pub(super) async fn rest(self) -> Result<()> {
        self.stop.cancel();
        Ok(self.running.await?)
    }
}
