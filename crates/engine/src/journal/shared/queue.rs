//! The queue between the appender and the writer's thread, behind the lock of [`Shared`](super::Shared).

use std::{collections::VecDeque, sync::Arc, time::Instant};

use crate::journal::{Fsync, State, handoff::Handoff, log::Chunk, manifest::SnapshotEntry};

/// Work for the writer's thread, in order.
#[derive(Debug)]
pub(in crate::journal) enum Work {
    Write(Chunk),
    Rotate(Arc<Handoff>),
    Install(SnapshotEntry, Arc<Handoff>),
}

/// The events that end the writer's wait, apart from its deadline and a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::journal) enum Wait {
    /// New work, or a request to sync.
    ForWork,
    /// Nothing else: the writer waits before it retries.
    ForRetry,
}

/// The requests that ended the writer's wait.
#[derive(Debug)]
pub(in crate::journal) struct Calls {
    pub(in crate::journal) sync_wanted: bool,
    pub(in crate::journal) stop: bool,
}

/// The state behind the lock.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) queue: VecDeque<Work>,
    pub(super) tail: Vec<u8>,
    pub(super) tail_since: Instant,
    pub(super) queued: usize,
    pub(super) last: u64,
    pub(super) fsync: Fsync,
    pub(super) sync_wanted: bool,
    /// Whether an event loop has left something to the writer.
    pub(super) called: bool,
    pub(super) stop: bool,
    /// The writer sleeps until this many bytes are queued.
    pub(super) wake_at: usize,
    pub(super) state: State,
    pub(super) handoff: Option<Arc<Handoff>>,
    pub(super) spare: Vec<Vec<u8>>,
    pub(super) progress: Instant,
}

impl Inner {
    pub(super) fn new(fsync: Fsync, last: u64) -> Self {
        Self {
            queue: VecDeque::new(),
            tail: Vec::new(),
            tail_since: Instant::now(),
            queued: 0,
            last,
            fsync,
            sync_wanted: false,
            called: false,
            stop: false,
            wake_at: usize::MAX,
            state: State::Ready,
            handoff: None,
            spare: Vec::new(),
            progress: Instant::now(),
        }
    }

    /// Queues the tail as a chunk.
    pub(super) fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            let bytes = std::mem::take(&mut self.tail);
            self.queue.push_back(Work::Write(Chunk::new(bytes, self.last, self.tail_since)));
        }
    }
}
