//! BullMQ jobs from add to completed, with our broker: as fast as it goes, and at a fixed rate.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use stampede_broker::{
    Backoff, Consumer, ConsumerConfig, Handler, Job, JobContext, JobSpec, Outcome, Queue,
};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::servers::Server;
use super::wire::Wire;

/// Nothing takes this long unless something is wrong.
const PATIENCE: Duration = Duration::from_secs(300);
/// The queue keeps no more completed jobs than this (`crates/broker/src/queue.rs`).
const KEPT: u64 = 10_000;
/// Worker processes on a machine with two cores: so many connections take jobs.
const CONSUMERS: usize = 2;

/// A job with about 300 bytes of payload, like a ticket's.
pub(super) fn job(number: u32) -> JobSpec {
    JobSpec {
        id: format!("0199aaaa-7000-7000-8000-{number:012}"),
        attempts: Some(3),
        backoff: Some(Backoff::Exponential(Duration::from_secs(2))),
        ..JobSpec::new("generate-pdf", payload(number))
    }
}

fn payload(number: u32) -> Value {
    json!({
        "v": 1,
        "ticketId": format!("0199aaaa-7000-7000-8000-{number:012}"),
        "batchId": "0199bbbb-7000-7000-8000-000000000001",
        "holder": {
            "name": "Anna Bērziņa",
            "email": format!("guest{number}@example.com"),
            "seat": format!("Row {} · Seat {}", number / 20 + 1, number % 20 + 1),
            "price": "49.90",
        },
        "event": { "name": "Midsummer Night Festival", "location": "Riverside Gardens, Riga" },
    })
}

/// Finishes every job at once and counts.
#[derive(Clone)]
struct Count {
    left: Arc<AtomicU64>,
    all_done: Arc<Notify>,
}

impl Handler for Count {
    async fn run(&self, _: &Job, _: &JobContext) -> Outcome {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.all_done.notify_one();
        }
        Outcome::Done(Value::Null)
    }
}

/// Consumers at work on one queue.
pub(super) struct Workers {
    stop: CancellationToken,
    running: JoinSet<()>,
    all_done: Arc<Notify>,
}

impl Workers {
    /// Workers with so many slots in all; they expect a number of jobs.
    pub(super) async fn start(
        server: &Server,
        queue: &str,
        slots: usize,
        jobs: u64,
    ) -> Result<Self> {
        let stop = CancellationToken::new();
        let handler = Count { left: Arc::new(AtomicU64::new(jobs)), all_done: Arc::default() };
        let mut running = JoinSet::new();
        let consumers = CONSUMERS.min(slots);
        for number in 0..consumers {
            let config = ConsumerConfig::new(format!("bench {number}"), slots / consumers);
            let queue = server.broker().await?.queue(queue).await?;
            running.spawn(Consumer::new(config, queue, handler.clone()).run(stop.clone()));
        }
        Ok(Self { stop, running, all_done: handler.all_done })
    }

    /// Waits until the handlers have seen all jobs.
    async fn all_done(&self, what: &str) -> Result<()> {
        tokio::time::timeout(PATIENCE, self.all_done.notified())
            .await
            .with_context(|| format!("{what}: not all jobs were done after {PATIENCE:?}"))
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        self.running.join_all().await;
    }
}

/// Adds jobs and works on them at the same time; returns jobs a second.
pub(super) async fn whole_lives(
    server: &Server,
    name: &str,
    slots: usize,
    jobs: u32,
) -> Result<f64> {
    let queue = server.broker().await?.queue(name).await?;
    let specs: Vec<JobSpec> = (0..jobs).map(job).collect();
    let workers = Workers::start(server, name, slots, u64::from(jobs)).await?;
    let started = Instant::now();
    queue.enqueue(&specs).await?;
    workers.all_done(name).await?;
    let seconds = started.elapsed().as_secs_f64();
    workers.stop().await;
    check(&queue, u64::from(jobs)).await?;
    Ok(f64::from(jobs) / seconds)
}

/// A server that is fast because it loses jobs is not fast.
async fn check(queue: &Queue, jobs: u64) -> Result<()> {
    let counts = queue.counts().await?;
    let left = counts.waiting + counts.prioritized + counts.active + counts.delayed + counts.failed;
    if left > 0 || counts.completed != jobs.min(KEPT) {
        bail!("of {jobs} jobs not all were completed: {counts:?}");
    }
    Ok(())
}

/// Adds jobs one by one at a fixed rate and returns, for each, milliseconds from the moment when it
/// should have been added to its `completed` event, as a client that waits for it sees it.
pub(super) async fn at_a_rate(server: &Server, rate: u32, seconds: u32) -> Result<Vec<f64>> {
    const QUEUE: &str = "pace";
    let jobs = rate * seconds;
    let queue = server.broker().await?.queue(QUEUE).await?;
    let workers = Workers::start(server, QUEUE, 16, u64::from(jobs)).await?;
    let observer = Observer::start(server.connect()?, QUEUE, jobs as usize);
    let started = Instant::now();
    let due = |number: u32| started + Duration::from_secs_f64(f64::from(number) / f64::from(rate));
    let mut adding = JoinSet::new();
    for number in 0..jobs {
        tokio::time::sleep_until(due(number).into()).await;
        let queue = queue.clone();
        adding.spawn(async move { queue.enqueue(&[job(number)]).await });
    }
    for added in adding.join_all().await {
        added?;
    }
    workers.all_done(QUEUE).await?;
    let seen = observer.finish().await?;
    workers.stop().await;
    check(&queue, u64::from(jobs)).await?;
    let waited = |number: u32| -> Result<f64> {
        let end = seen.get(&job(number).id).context("a job has no completed event")?;
        Ok(end.saturating_duration_since(due(number)).as_secs_f64() * 1000.0)
    };
    (0..jobs).map(waited).collect()
}

/// Reads the events of a queue on a thread of its own and notes when jobs were completed.
struct Observer {
    thread: tokio::task::JoinHandle<Result<HashMap<String, Instant>>>,
    stop: Arc<AtomicBool>,
}

impl Observer {
    fn start(mut wire: Wire, queue: &str, jobs: usize) -> Self {
        let key = format!("bull:{queue}:events");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = tokio::task::spawn_blocking(move || {
            let mut seen = HashMap::with_capacity(jobs);
            let mut last = "0".to_owned();
            let give_up = Instant::now() + PATIENCE;
            while seen.len() < jobs && Instant::now() < give_up && !stopped.load(Ordering::Relaxed)
            {
                let answer =
                    wire.ask(&["XREAD", "COUNT", "1000", "BLOCK", "1000", "STREAMS", &key, &last])?;
                let now = Instant::now();
                // [[key, [[id, [field, value, …]], …]]]
                let streams = answer.list().first().map(|stream| stream.list()).unwrap_or_default();
                for entry in streams.get(1).map(|entries| entries.list()).unwrap_or_default() {
                    let [id, fields] = entry.list() else { continue };
                    last = id.text().to_owned();
                    let field = |name: &str| {
                        let pair = fields.list().chunks(2).find(|pair| pair[0].text() == name)?;
                        pair.get(1).map(|value| value.text().to_owned())
                    };
                    if field("event").as_deref() == Some("completed")
                        && let Some(id) = field("jobId")
                    {
                        seen.insert(id, now);
                    }
                }
            }
            Ok(seen)
        });
        Self { thread, stop }
    }

    async fn finish(self) -> Result<HashMap<String, Instant>> {
        let seen = tokio::time::timeout(PATIENCE, self.thread).await;
        self.stop.store(true, Ordering::Relaxed);
        seen.context("the events of completed jobs do not come")??
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_as_large_as_promised() {
        let bytes = payload(123_456).to_string().len();
        assert!((280..=340).contains(&bytes), "{bytes}");
    }
}
