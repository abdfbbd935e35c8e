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
//! - Jobs that are completed at the same time are so in one call (`finisher.rs`).
//! - A job that fails for good becomes a dead letter with the same breath ([`crate::DeadLetters`]).
//! - Whoever runs a job hears of its cancellation (`cancel.rs`).
//! - Stopping has three verbs: *quiet* takes no new jobs, *stop* waits for the running ones up to a
//!   deadline and hands back the rest, *kill* hands everything back at once.

mod cancel;
mod context;
mod ending;
mod fetch;
mod finisher;
mod handle;
mod locks;
mod marker;
mod outages;
mod panics;
mod slot;

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use self::fetch::Taking;
use self::finisher::{Completed, Finisher};
use self::handle::Events;
use self::locks::HeldLocks;
use self::marker::{Marker, Woken};
use self::outages::Outages;
use crate::backoff::RetryPolicy;
use crate::connection::Link;
use crate::limits::Rate;
use crate::reclaim::{belongs_to, slot_token};
use crate::scripts::Claim;
use crate::{Job, Outcome, Queue};

pub use self::cancel::Cancelled;
pub use self::context::JobContext;
pub use self::handle::{ConsumerHandle, Event, EventKind};

/// How long an answer of Redis that is on its way is waited for at the end.
const LAST_ANSWER: Duration = Duration::from_secs(1);
/// How long giving jobs back may take at the end; then their locks have to expire.
const FAREWELL: Duration = Duration::from_secs(3);

/// How long an idle consumer waits for a marker before it looks by itself.
const IDLE: Duration = Duration::from_secs(5);
/// Pauses after a failed call: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// How a consumer behaves.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    /// Shown as `processedBy` in Bull Board.
    pub name: String,
    /// Unique for every start of a worker; whoever knows it can reclaim what a crash left behind.
    pub token: String,
    /// Jobs worked on at the same time; [`ConsumerHandle::resize`] changes it.
    pub slots: usize,
    /// A job whose lock was not renewed for this long may be taken by others.
    pub lock: Duration,
    /// How often to look for such jobs.
    pub stalled_interval: Duration,
    /// How long running jobs may take to end once stopped; then they are handed back.
    pub drain: Duration,
    /// Jobs begun by all consumers of this queue together, unless the limit `queue:<name>` is set
    /// ([`crate::Limits::set`]).
    pub limit: Option<Rate>,
}

impl ConsumerConfig {
    /// So many slots, a token of its own, no limit, and the times that suit most.
    pub fn new(name: impl Into<String>, slots: usize) -> Self {
        Self {
            name: name.into(),
            token: Uuid::now_v7().to_string(),
            slots,
            lock: Duration::from_secs(15),
            stalled_interval: Duration::from_secs(5),
            drain: Duration::from_secs(30),
            limit: None,
        }
    }
}

/// What holds for all jobs of a type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobPolicy {
    /// An attempt that takes longer is given up: its handler is dropped, and it counts as failed.
    pub timeout: Option<Duration>,
    /// For jobs whose own options do not say.
    pub retry: RetryPolicy,
}

/// What to do with jobs.
pub trait Handler: Send + Sync + 'static {
    /// Does the work. May run more than once for the same job; must have the same effect as once.
    /// Dropped in the middle when the job's lock is lost, it is cancelled or its time is up.
    fn run(&self, job: &Job, context: &JobContext) -> impl Future<Output = Outcome> + Send;

    /// Called before a job fails for good. Until this answers `Ok`, it does not.
    fn exhausted(
        &self,
        _job: &Job,
        _reason: &str,
    ) -> impl Future<Output = Result<(), String>> + Send {
        async { Ok(()) }
    }

    /// Called when a job has become a dead letter: the place to raise an alarm.
    fn dead_lettered(&self, _job: &Job, _reason: &str) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// What holds for jobs of this name.
    fn policy(&self, _job_name: &str) -> JobPolicy {
        JobPolicy::default()
    }

    /// The pause of a back-off that a job calls by a name of its own; a second where nobody knows it.
    fn custom_backoff(&self, _strategy: &str, _job: &Job) -> Duration {
        Duration::from_secs(1)
    }
}

/// Consumes one queue.
pub struct Consumer<H> {
    shared: Arc<Shared<H>>,
    completed: Completed,
}

struct Shared<H> {
    config: ConsumerConfig,
    queue: Queue,
    handler: H,
    held: HeldLocks,
    finisher: Finisher,
    outages: Outages,
    events: Events,
    /// How many slots there should be.
    slots: watch::Sender<usize>,
    /// Set when no more jobs may be taken.
    quiet: CancellationToken,
    /// Set when running jobs may not even end.
    kill: CancellationToken,
    /// There may be a rate limit for this queue.
    limited: AtomicBool,
}

impl<H: Handler> Consumer<H> {
    /// A consumer of `queue`. Nothing happens before [`Consumer::run`].
    pub fn new(config: ConsumerConfig, queue: Queue, handler: H) -> Self {
        panics::keep_traces();
        let (finisher, completed) = Finisher::new();
        let shared = Shared {
            held: HeldLocks::default(),
            finisher,
            outages: Outages::new(config.lock),
            events: Events::new(),
            slots: watch::Sender::new(config.slots.max(1)),
            quiet: CancellationToken::new(),
            kill: CancellationToken::new(),
            // Until it is known that there is none: a limit must not be missed by those who start.
            limited: AtomicBool::new(true),
            config,
            queue,
            handler,
        };
        Self { shared: Arc::new(shared), completed }
    }

    /// Steers and watches the consumer while it runs.
    pub fn handle(&self) -> ConsumerHandle {
        let Shared { slots, quiet, kill, events, .. } = &*self.shared;
        ConsumerHandle::new(slots.clone(), quiet.clone(), kill.clone(), events.clone())
    }

    /// Works until `stop`, then drains; returns when everything it started has ended.
    ///
    /// Dropping the future is like a crash: all work stops, and the jobs wait until their locks expire
    /// or somebody reclaims them.
    pub async fn run(self, stop: CancellationToken) {
        let shared = self.shared;
        let stop = stop.child_token();
        let ended = CancellationToken::new();
        let renewing = spawn(locks::renew(shared.clone(), ended.clone()));
        let rescuing = spawn(locks::rescue_stalled(shared.clone(), stop.clone()));
        let listening = spawn(cancel::listen(shared.clone(), ended.clone()));
        let finishing = spawn(finisher::finish(shared.clone(), self.completed, ended.clone()));
        let mut slots = JoinSet::new();

        tokio::select! {
            () = shared.fill_slots(&mut slots, &stop) => {}
            () = shared.kill.cancelled() => stop.cancel(),
            // A Redis that hangs does not put off the end; a job in an answer that is lost now is
            // given back below.
            () = async { stop.cancelled().await; tokio::time::sleep(LAST_ANSWER).await } => {}
        }

        shared.quiet.cancel();
        let drained = async { while slots.join_next().await.is_some() {} };
        tokio::select! {
            () = drained => {}
            () = tokio::time::sleep(shared.config.drain) => {}
            () = shared.kill.cancelled() => {}
        }
        if tokio::time::timeout(LAST_ANSWER, slots.shutdown()).await.is_err() {
            tracing::error!(
                "handlers that never wait for anything cannot be stopped; their jobs go back"
            );
        }
        // Nobody works on them: jobs that did not end in time, and jobs given to us in a lost answer.
        let ours = |lock: &str| belongs_to(lock, &shared.config.token);
        match tokio::time::timeout(FAREWELL, shared.queue.hand_back(ours)).await {
            Ok(Ok(jobs)) if jobs.is_empty() => {}
            Ok(Ok(jobs)) => tracing::warn!(?jobs, "gave back jobs that did not end in time"),
            Ok(Err(error)) => {
                tracing::error!(%error, "could not give back jobs; their locks will expire")
            }
            Err(_) => {
                tracing::error!("Redis hangs: could not give back jobs; their locks will expire")
            }
        }
        // In a queue that allows no more at a time, others may wait for the places that were ours.
        let _ = tokio::time::timeout(PAUSE.0, shared.queue.set_marker()).await;
        ended.cancel();
        // They end by themselves; a panic in one of them has been reported already.
        let all = async { tokio::join!(renewing, rescuing, listening, finishing) };
        // Those that wait for an answer of Redis end here.
        let _ = tokio::time::timeout(LAST_ANSWER, all).await;
    }
}

/// Starts a task that ends with whoever waits for it.
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(task))
}

/// A slot without a job.
struct FreeSlot {
    number: usize,
    left: Left,
}

/// What may still be locked for a slot that has no job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    /// An answer of Redis did not arrive; it may have given this slot a job.
    Perhaps,
    /// A job that could not be ended as it should. It goes back, and if that happens to it again and
    /// again, it is failed.
    Culprit,
}

/// The slots there are, busy or free. Their numbers are small: they are part of lock tokens.
#[derive(Default)]
struct Slots {
    numbers: BTreeSet<usize>,
    free: Vec<FreeSlot>,
}

impl Slots {
    /// Makes new slots up to `count` and lets go of free ones beyond it.
    fn resize(&mut self, count: usize) {
        for number in (0..count).rev() {
            if self.numbers.insert(number) {
                self.free.push(FreeSlot { number, left: Left::Nothing });
            }
        }
        // One that may have been given a job stays until that is known.
        let (keep, go) = std::mem::take(&mut self.free)
            .into_iter()
            .partition(|slot| slot.number < count || slot.left != Left::Nothing);
        self.free = keep;
        let go: Vec<FreeSlot> = go;
        for slot in go {
            self.numbers.remove(&slot.number);
        }
    }
}

impl<H: Handler> Shared<H> {
    /// Keeps the slots busy until `stop`.
    async fn fill_slots(self: &Arc<Self>, busy: &mut JoinSet<FreeSlot>, stop: &CancellationToken) {
        let mut wanted = self.slots.subscribe();
        let mut slots = Slots::default();
        let mut marker = Marker::new(self.queue.clone(), &self.config.name);
        let mut pause = PAUSE.0;
        // Others see who works here, also if there is never a moment to wait.
        tokio::select! {
            () = marker.open() => {}
            () = stop.cancelled() => {}
        }
        while !stop.is_cancelled() {
            slots.resize(*wanted.borrow_and_update());
            let mut idle = IDLE;
            if !slots.free.is_empty() && !self.quiet.is_cancelled() {
                match self.fetch(&mut slots).await {
                    Ok(Taking::Job(slot, admitted)) => {
                        self.outages.worked();
                        pause = PAUSE.0;
                        busy.spawn(self.clone().work(slot, admitted));
                        continue;
                    }
                    Ok(Taking::Nothing(until)) => {
                        self.outages.worked();
                        pause = PAUSE.0;
                        idle = until;
                    }
                    Ok(Taking::NotNow(until)) => {
                        tokio::select! {
                            () = tokio::time::sleep(until) => {}
                            () = stop.cancelled() => {}
                        }
                        continue;
                    }
                    Err(error) => {
                        self.failed();
                        if !error.is_outage() {
                            tracing::warn!(%error, retry_in = ?pause, "cannot take jobs");
                        }
                        tokio::select! {
                            () = tokio::time::sleep(pause) => {}
                            () = stop.cancelled() => {}
                        }
                        pause = (pause * 2).min(PAUSE.1);
                        continue;
                    }
                }
            }
            let may_take = !slots.free.is_empty() && !self.quiet.is_cancelled();
            tokio::select! {
                Some(ended) = busy.join_next() => match ended {
                    Ok(slot) => slots.free.push(slot),
                    Err(error) => tracing::error!(%error, "a slot ended in an unexpected way"),
                },
                woken = marker.wait(idle), if may_take || marker.is_waiting() => {
                    if woken == Woken::ByMarker && (!may_take || stop.is_cancelled()) {
                        marker.pass_on().await;
                    }
                }
                // The consumer itself holds the other end.
                Ok(()) = wanted.changed() => {}
                () = self.quiet.cancelled(), if !self.quiet.is_cancelled() => {}
                () = stop.cancelled() => {}
            }
            while let Some(Ok(slot)) = busy.try_join_next() {
                slots.free.push(slot);
            }
        }
        marker.close().await;
    }

    fn claim(&self, slot: usize) -> Claim {
        Claim {
            token: slot_token(&self.config.token, slot),
            name: self.config.name.clone(),
            lock_ms: self.config.lock.as_millis() as u64,
        }
    }

    fn redis(&self) -> Link {
        self.queue.broker().redis()
    }

    /// A call has failed.
    fn failed(&self) {
        self.outages.failed();
        self.queue.broker().suspect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_grow_and_shrink_and_keep_their_numbers_small() {
        let mut slots = Slots::default();
        slots.resize(3);
        let taken = slots.free.pop().unwrap();
        assert_eq!(taken.number, 0);
        slots.resize(1);
        assert!(slots.free.is_empty(), "what is free goes, what is busy ends first");
        slots.free.push(taken);
        slots.resize(2);
        let numbers: Vec<usize> = slots.free.iter().map(|slot| slot.number).collect();
        assert_eq!(numbers, [0, 1]);
        slots.free.push(FreeSlot { number: 7, left: Left::Perhaps });
        slots.numbers.insert(7);
        slots.resize(0);
        assert_eq!(slots.free.len(), 1, "one that may hold a job stays until that is known");
    }
}
