//! Controlling and watching a consumer while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::Tallies;

/// Events kept for a slow reader; then the oldest are dropped: the consumer never waits.
const EVENTS: usize = 1024;

/// An event of a job in this consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerEvent {
    /// The id of the job.
    pub job_id: String,
    /// What happened.
    pub kind: EventKind,
}

/// What happened to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// Its handler begins.
    Started,
    /// It is completed.
    Completed,
    /// It failed permanently, for this reason, and is a dead letter now.
    Failed(String),
    /// An attempt failed; there will be another.
    Retried(String),
    /// It comes back later and has used no attempt.
    Snoozed,
    /// Another worker has it or has ended it, or it is gone: the work done here does not count.
    LockLost,
    /// Its worker had disappeared; it waits again.
    Stalled,
}

/// The sender of events, and the number of running jobs.
#[derive(Clone)]
pub(super) struct Events {
    sender: broadcast::Sender<ConsumerEvent>,
    running: Arc<AtomicUsize>,
    ended: Arc<EndedCounters>,
}

/// Jobs that ended, counted also when no reader subscribes to events.
#[derive(Default)]
struct EndedCounters {
    completed: AtomicU64,
    failed: AtomicU64,
    stalled: AtomicU64,
}

impl Events {
    pub(super) fn new() -> Self {
        Self {
            sender: broadcast::Sender::new(EVENTS),
            running: Arc::default(),
            ended: Arc::default(),
        }
    }

    pub(super) fn tell(&self, job_id: &str, kind: EventKind) {
        let counter = match &kind {
            EventKind::Completed => Some(&self.ended.completed),
            EventKind::Failed(_) => Some(&self.ended.failed),
            EventKind::Stalled => Some(&self.ended.stalled),
            _ => None,
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        if self.sender.receiver_count() > 0 {
            // Fails only when the last reader has just gone.
            let _ = self.sender.send(ConsumerEvent { job_id: job_id.to_owned(), kind });
        }
    }

    /// Counts a job as running until the guard is dropped.
    pub(super) fn running(&self) -> Running {
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(self.running.clone())
    }
}

/// A running job.
pub(super) struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Controls and watches a consumer. Cheap to clone; may outlive it.
#[derive(Clone)]
pub struct ConsumerHandle {
    slots: watch::Sender<usize>,
    quiet: CancellationToken,
    kill: CancellationToken,
    events: Events,
}

impl ConsumerHandle {
    pub(super) fn new(
        slots: watch::Sender<usize>,
        quiet: CancellationToken,
        kill: CancellationToken,
        events: Events,
    ) -> Self {
        Self { slots, quiet, kill, events }
    }

    /// Changes how many jobs run at the same time. Running ones may end. With 0 the consumer pauses until there are
    /// slots again.
    pub fn resize(&self, slots: usize) {
        self.slots.send_replace(slots);
    }

    /// How many jobs may run at the same time.
    pub fn slots(&self) -> usize {
        *self.slots.borrow()
    }

    /// How many jobs run now.
    pub fn running(&self) -> usize {
        self.events.running.load(Ordering::Relaxed)
    }

    /// How many jobs have been completed, have failed and were found stalled here.
    pub fn tallies(&self) -> Tallies {
        let EndedCounters { completed, failed, stalled } = &*self.events.ended;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Tallies { completed: load(completed), failed: load(failed), stalled: load(stalled) }
    }

    /// Takes no more jobs from now on; running ones go on. The consumer still has to be stopped.
    pub fn quiet(&self) {
        self.quiet.cancel();
    }

    /// Ends the consumer at once: running jobs are dropped and go back to wait.
    pub fn kill(&self) {
        self.kill.cancel();
    }

    /// Events from now on. A slow reader misses the oldest.
    pub fn events(&self) -> broadcast::Receiver<ConsumerEvent> {
        self.events.sender.subscribe()
    }
}
