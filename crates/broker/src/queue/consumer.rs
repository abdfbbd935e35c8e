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
//! - Every slot has its own lock token (`reclaim.rs`).
//! - Locks of all slots are renewed in one call; a lost lock cancels its handler (`locks.rs`).
//! - A finish that meets an outage of Redis is retried; the job does not run twice (`finishing.rs`).
//! - Jobs that end at the same time are completed in one call (`finisher.rs`).
//! - A job that fails permanently becomes a dead letter in the same transaction ([`crate::DeadLetters`]).
//! - A job can be cancelled while it runs (`cancel.rs`).
//! - Every run is told to an observer, for metrics (`observer.rs`).
//! - Stopping has three verbs: *quiet* takes no new jobs, *stop* waits for the running ones up to a
//!   deadline and hands back the rest, *kill* hands everything back at once.

mod cancel;
mod context;
mod disposition;
mod fetch;
mod filling;
mod finish;
mod finisher;
mod finishing;
mod handle;
mod handler;
mod locks;
mod marker;
mod observer;
mod outages;
mod panics;
mod running;
mod slot;
mod slots;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use self::finisher::{Completed, Finisher};
use self::handle::Events;
use self::handler::ErasedHandler;
use self::locks::HeldLocks;
use self::outages::Outages;
use crate::Queue;
use crate::link::Link;
use crate::queue::backoff::RetryPolicy;
use crate::queue::limits::Rate;
use crate::queue::reclaim::{belongs_to, slot_token};
use crate::queue::scripts::Claim;

pub use self::cancel::Cancelled;
pub use self::context::JobContext;
pub use self::handle::{ConsumerEvent, ConsumerHandle, EventKind};
pub use self::handler::Handler;
pub use self::observer::{RunEnd, RunObserver};

/// How long the last answer of Redis is waited for when the consumer stops.
const LAST_ANSWER: Duration = Duration::from_secs(1);
/// How long giving jobs back may take when the consumer stops; then their locks have to expire.
const GIVING_BACK: Duration = Duration::from_secs(3);

/// How long an idle consumer waits for a marker before it looks for jobs.
const IDLE: Duration = Duration::from_secs(5);
/// The pause after the first failed call; it doubles with every further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause after a failed call.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How a consumer behaves.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    /// Shown as `processedBy` in Bull Board.
    pub name: String,
    /// Unique for every start of a worker; with it the jobs of a crashed worker can be reclaimed.
    pub token: String,
    /// Jobs that run at the same time; [`ConsumerHandle::resize`] changes it.
    pub slots: usize,
    /// A job whose lock was not renewed for this long is stalled, and may be taken by other workers.
    pub lock: Duration,
    /// How often to look for stalled jobs.
    pub stalled_interval: Duration,
    /// How long running jobs may take to end once stopped; then they go back to wait.
    pub drain: Duration,
    /// The rate at which all consumers of this queue together begin jobs, unless the limit `queue:<name>` is set
    /// ([`crate::Limits::set`]).
    pub limit: Option<Rate>,
    /// Is told of every run.
    pub observer: Arc<dyn RunObserver>,
}

impl ConsumerConfig {
    /// A consumer with this many slots, a new token, no limit, and times that suit most queues.
    pub fn new(name: impl Into<String>, slots: usize) -> Self {
        Self {
            name: name.into(),
            token: Uuid::now_v7().to_string(),
            slots,
            lock: Duration::from_secs(15),
            stalled_interval: Duration::from_secs(5),
            drain: Duration::from_secs(30),
            limit: None,
            observer: Arc::new(observer::Nobody),
        }
    }
}

/// The policy for all jobs of a type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobPolicy {
    /// The time limit of an attempt: when it is over, the handler is dropped and the attempt has failed.
    pub timeout: Option<Duration>,
    /// Attempts and back-off of jobs whose own options do not name them.
    pub retry: RetryPolicy,
}

/// Consumes one queue.
pub struct Consumer {
    shared: Arc<Shared>,
    completed: Completed,
}

struct Shared {
    config: ConsumerConfig,
    queue: Queue,
    handler: Box<dyn ErasedHandler>,
    held: HeldLocks,
    finisher: Finisher,
    outages: Outages,
    events: Events,
    /// The wanted number of slots.
    slots: watch::Sender<usize>,
    /// Set when no more jobs may be taken.
    quiet: CancellationToken,
    /// Set when running jobs are to be dropped at once.
    kill: CancellationToken,
    /// Whether there may be a rate limit for this queue.
    limited: AtomicBool,
}

impl Consumer {
    /// A consumer of `queue`. Nothing happens before [`Consumer::run`].
    pub fn new(config: ConsumerConfig, queue: Queue, handler: impl Handler) -> Self {
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
            // Until it is known that there is none: a consumer that starts must not miss a limit.
            limited: AtomicBool::new(true),
            config,
            queue,
            handler: Box::new(handler),
        };
        Self { shared: Arc::new(shared), completed }
    }

    /// Controls and watches the consumer while it runs.
    pub fn handle(&self) -> ConsumerHandle {
        let Shared { slots, quiet, kill, events, .. } = &*self.shared;
        ConsumerHandle::new(slots.clone(), quiet.clone(), kill.clone(), events.clone())
    }

    /// Runs jobs until `stop`, then drains; returns when everything it started has ended.
    ///
    /// Dropping the future is like a crash: all work stops, and the jobs wait until their locks expire or are
    /// reclaimed.
    pub fn run(self, stop: CancellationToken) -> BoxFuture<'static, ()> {
        // Boxed: compiled here, once, and not in every crate that awaits it.
        Box::pin(self.run_until(stop))
    }

    async fn run_until(self, stop: CancellationToken) {
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
            // A Redis that hangs does not delay the end; a job in an answer that is lost now is given back below.
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
                "handlers that never await cannot be stopped; their jobs go back to wait"
            );
        }
        // Jobs that did not end in time, and jobs of lost answers.
        let ours = |lock: &str| belongs_to(lock, &shared.config.token);
        match tokio::time::timeout(GIVING_BACK, shared.queue.hand_back(ours)).await {
            Ok(Ok(jobs)) if jobs.is_empty() => {}
            Ok(Ok(jobs)) => tracing::warn!(?jobs, "gave back jobs that did not end in time"),
            Ok(Err(error)) => {
                tracing::error!(%error, "could not give back jobs; their locks will expire")
            }
            Err(_) => {
                tracing::error!("Redis hangs: could not give back jobs; their locks will expire")
            }
        }
        // In a queue with limited concurrency, other workers may wait for our places.
        let _ = tokio::time::timeout(FIRST_PAUSE, shared.queue.set_marker()).await;
        ended.cancel();
        // A panic in one of them has been logged already.
        let all = async { tokio::join!(renewing, rescuing, listening, finishing) };
        // A task that waits for an answer of Redis is aborted here.
        let _ = tokio::time::timeout(LAST_ANSWER, all).await;
    }
}

/// Starts a task that is aborted when its handle is dropped.
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(task))
}

impl Shared {
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

    /// Notes that a call has failed.
    fn failed(&self) {
        self.outages.failed();
        self.queue.broker().suspect();
    }
}
