//! Steering and watching a consumer while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::Tallies;

/// Events kept for a reader that is slow; then the oldest are dropped, never the consumer held up.
const EVENTS: usize = 1024;

/// Something happened to a job here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Which job.
    pub job_id: String,
    /// What.
    pub kind: EventKind,
}

/// What happened to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// Its handler begins.
    Started,
    /// It is done.
    Completed,
    /// It failed for good, for this reason, and is a dead letter now.
    Failed(String),
    /// An attempt failed; there will be another.
    Retried(String),
    /// It comes back later and has used up no attempt.
    Snoozed,
    /// Somebody else has it now, or has ended it, or it is gone: what was done here does not count.
    LockLost,
    /// Its worker had vanished; it waits again.
    Stalled,
}

/// Where events go, and how many jobs run.
#[derive(Clone)]
pub(super) struct Events {
    sender: broadcast::Sender<Event>,
    running: Arc<AtomicUsize>,
    ended: Arc<Ended>,
}

/// Jobs that ended, counted whether or not anybody reads events.
#[derive(Default)]
struct Ended {
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
            let _ = self.sender.send(Event { job_id: job_id.to_owned(), kind });
        }
    }

    /// Counts a job as running until the guard is dropped.
    pub(super) fn running(&self) -> Running {
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(self.running.clone())
    }
}

/// A job that is being worked on.
pub(super) struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Steers and watches a consumer. Cheap to clone; outlives it without harm.
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

    /// Changes how many jobs are worked on at the same time. Running ones are left to end. With 0 it pauses
    /// until there are slots again.
    pub fn resize(&self, slots: usize) {
        self.slots.send_replace(slots);
    }

    /// How many jobs may be worked on at the same time.
    pub fn slots(&self) -> usize {
        *self.slots.borrow()
    }

    /// How many are worked on now.
    pub fn running(&self) -> usize {
        self.events.running.load(Ordering::Relaxed)
    }

    /// How many jobs have ended here, by how.
    pub fn tallies(&self) -> Tallies {
        let Ended { completed, failed, stalled } = &*self.events.ended;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Tallies { completed: load(completed), failed: load(failed), stalled: load(stalled) }
    }

    /// Takes no more jobs, for good; those that run go on. The consumer still has to be stopped.
    pub fn quiet(&self) {
        self.quiet.cancel();
    }

    /// Ends the consumer at once: running jobs are dropped and handed back to others.
    pub fn kill(&self) {
        self.kill.cancel();
    }

    /// What happens from now on. A reader that is slow misses the oldest events.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.events.sender.subscribe()
    }
}
