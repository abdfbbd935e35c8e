//! Takes jobs from one queue and runs them in a number of slots.
//!
//! ```text
//!            ┌──────────── marker (BZPOPMIN, own connection) ◀─────────────┐
//!            ▼                                                             │ nothing left
//!   fetch into a free slot ──▶ slot: run handler ──▶ finish + fetch next ──┤
//!                                  ▲                        │ next job     │
//!                                  └────────────────────────┘              │
//! ```
//!
//! - Every slot has its own lock token ([`crate::reclaim::slot_token`]).
//! - Locks of all slots are renewed in one call; a lost lock cancels its handler (`locks.rs`).
//! - A finish that meets a Redis outage is retried; it costs no second run (`slot.rs`).
//! - Stopping: no new jobs, wait for the running ones up to a deadline, then hand back the rest.

mod locks;
mod marker;
mod slot;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::aio::ConnectionManager;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::locks::HeldLocks;
use self::marker::{Marker, Woken};
use crate::reclaim::{belongs_to, slot_token};
use crate::scripts::{self, Claim, Fetched};
use crate::{Error, Job, Outcome, Queue};

/// How long an idle consumer waits for a marker before it looks by itself.
const IDLE: Duration = Duration::from_secs(5);
/// Pauses after a failed fetch: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// How a consumer behaves.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    /// Shown as `processedBy` in Bull Board.
    pub name: String,
    /// Unique for every start of a worker; whoever knows it can reclaim what a crash left behind.
    pub token: String,
    /// Jobs worked on at the same time.
    pub slots: usize,
    /// A job whose lock was not renewed for this long may be taken by others.
    pub lock: Duration,
    /// How often to look for such jobs.
    pub stalled_interval: Duration,
    /// How long running jobs may take to end once stopped; then they are handed back.
    pub drain: Duration,
}

/// What to do with jobs.
pub trait Handler: Send + Sync + 'static {
    /// Does the work. May run more than once for the same job; must have the same effect as once.
    /// Dropped in the middle when the job's lock is lost.
    fn run(&self, job: &Job, context: &JobContext) -> impl Future<Output = Outcome> + Send;

    /// Called before a job fails for good. Until this answers `Ok`, it does not.
    fn exhausted(&self, job: &Job, reason: &str)
    -> impl Future<Output = Result<(), String>> + Send;
}

/// What a handler can do besides its work.
#[derive(Clone)]
pub struct JobContext {
    queue: Queue,
    job_id: String,
}

impl JobContext {
    /// Shows how far the job is.
    pub async fn progress(&self, percent: u8) -> Result<(), Error> {
        let mut redis = self.queue.broker().redis();
        scripts::update_progress(&mut redis, self.queue.keys(), &self.job_id, percent).await
    }
}

/// Consumes one queue.
pub struct Consumer<H> {
    shared: Arc<Shared<H>>,
}

struct Shared<H> {
    config: ConsumerConfig,
    queue: Queue,
    handler: H,
    held: HeldLocks,
    /// Set when no more jobs may be taken.
    quiet: CancellationToken,
}

impl<H: Handler> Consumer<H> {
    /// A consumer of `queue`. Nothing happens before [`Consumer::run`].
    pub fn new(config: ConsumerConfig, queue: Queue, handler: H) -> Self {
        let held = HeldLocks::default();
        let quiet = CancellationToken::new();
        Self { shared: Arc::new(Shared { config, queue, handler, held, quiet }) }
    }

    /// Works until `stop`, then drains; returns when everything it started has ended.
    ///
    /// Dropping the future is like a crash: all work stops, and the jobs wait until their locks expire
    /// or somebody reclaims them.
    pub async fn run(self, stop: CancellationToken) {
        let shared = self.shared;
        let ended = CancellationToken::new();
        let renewing = spawn(locks::renew(shared.clone(), ended.clone()));
        let rescuing = spawn(locks::rescue_stalled(shared.clone(), stop.clone()));
        let mut slots = JoinSet::new();

        shared.fill_slots(&mut slots, &stop).await;

        shared.quiet.cancel();
        let drained = async { while slots.join_next().await.is_some() {} };
        if tokio::time::timeout(shared.config.drain, drained).await.is_err() {
            slots.shutdown().await;
        }
        // Nobody works on them: jobs that did not end in time, and jobs given to us in a lost answer.
        let ours = |lock: &str| belongs_to(lock, &shared.config.token);
        match shared.queue.hand_back(ours).await {
            Ok(jobs) if jobs.is_empty() => {}
            Ok(jobs) => tracing::warn!(?jobs, "gave back jobs that did not end in time"),
            Err(error) => {
                tracing::error!(%error, "could not give back jobs; their locks will expire")
            }
        }
        ended.cancel();
        // Both end by themselves; a panic in one of them has been reported already.
        let _ = tokio::join!(renewing, rescuing);
    }
}

/// Starts a task that ends with whoever waits for it.
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(task))
}

/// A slot without a job.
struct FreeSlot {
    number: usize,
    /// An answer of Redis did not arrive; it may have given this slot a job.
    answer_lost: bool,
}

impl<H: Handler> Shared<H> {
    /// Keeps the slots busy until `stop`.
    async fn fill_slots(self: &Arc<Self>, slots: &mut JoinSet<FreeSlot>, stop: &CancellationToken) {
        let numbers = 0..self.config.slots.max(1);
        let mut free: Vec<FreeSlot> =
            numbers.map(|number| FreeSlot { number, answer_lost: false }).collect();
        let mut marker = Marker::new(self.queue.clone());
        let mut pause = PAUSE.0;
        while !stop.is_cancelled() {
            let mut idle = IDLE;
            if let Some(slot) = free.last_mut() {
                match self.fetch(slot).await {
                    Ok(Fetched::Job(job)) => {
                        pause = PAUSE.0;
                        slots.spawn(self.clone().work(slot.number, job));
                        free.pop();
                        continue;
                    }
                    Ok(Fetched::Nothing { due_ms, limited_ms }) => {
                        pause = PAUSE.0;
                        idle = idle_for(due_ms, limited_ms, now_ms());
                    }
                    Err(error) => {
                        tracing::warn!(%error, retry_in = ?pause, "cannot take jobs");
                        tokio::select! {
                            () = tokio::time::sleep(pause) => {}
                            () = stop.cancelled() => {}
                        }
                        pause = (pause * 2).min(PAUSE.1);
                        continue;
                    }
                }
            }
            tokio::select! {
                Some(ended) = slots.join_next() => match ended {
                    Ok(slot) => free.push(slot),
                    Err(error) => tracing::error!(%error, "a slot ended in an unexpected way"),
                },
                woken = marker.wait(idle), if !free.is_empty() || marker.is_waiting() => {
                    if woken == Woken::ByMarker && (free.is_empty() || stop.is_cancelled()) {
                        marker.pass_on().await;
                    }
                }
                () = stop.cancelled() => {}
            }
            while let Some(Ok(slot)) = slots.try_join_next() {
                free.push(slot);
            }
        }
        marker.close().await;
    }

    /// Takes a job for a slot. First, a job it may have been given in a lost answer goes back: nobody
    /// would renew its lock.
    async fn fetch(&self, slot: &mut FreeSlot) -> Result<Fetched, Error> {
        let claim = self.claim(slot.number);
        if slot.answer_lost {
            let jobs = self.queue.hand_back(|lock| lock == claim.token).await?;
            if !jobs.is_empty() {
                tracing::info!(?jobs, "gave back jobs of a lost answer");
            }
        }
        slot.answer_lost = true;
        let keys = self.queue.keys();
        let fetched = scripts::move_to_active(&mut self.redis(), keys, &claim, now_ms()).await?;
        slot.answer_lost = false;
        Ok(fetched)
    }

    fn claim(&self, slot: usize) -> Claim {
        Claim {
            token: slot_token(&self.config.token, slot),
            name: self.config.name.clone(),
            lock_ms: self.config.lock.as_millis() as u64,
        }
    }

    fn redis(&self) -> ConnectionManager {
        self.queue.broker().redis()
    }
}

/// How long to wait for a marker when there was nothing to do.
fn idle_for(due_ms: Option<u64>, limited_ms: u64, now_ms: u64) -> Duration {
    let until_due = due_ms.map(|due| Duration::from_millis(due.saturating_sub(now_ms)));
    let limited = (limited_ms > 0).then(|| Duration::from_millis(limited_ms));
    until_due.into_iter().chain(limited).min().unwrap_or(IDLE).clamp(Duration::from_millis(5), IDLE)
}

/// Milliseconds since 1970, as BullMQ writes times.
fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_consumer_wakes_when_the_next_delayed_job_is_due() {
        let ms = Duration::from_millis;
        assert_eq!(idle_for(None, 0, 1000), IDLE);
        assert_eq!(idle_for(Some(1500), 0, 1000), ms(500));
        assert_eq!(idle_for(Some(900), 0, 1000), ms(5));
        assert_eq!(idle_for(Some(60_000), 0, 1000), IDLE);
        assert_eq!(idle_for(Some(3000), 40, 1000), ms(40));
    }
}
