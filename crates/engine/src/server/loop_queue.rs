//! The queue of messages for an event loop.
//!
//! A command may produce output for another client: a reply to a blocked command, a pub/sub message, a
//! request to close its connection. The executor pushes it onto the queue of that client's event loop.
//! A loop reads its own queue before it sleeps; a push from another thread wakes it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use mio::Waker;

use super::connection::Stream;
use super::shared::DependsOn;

/// A client's id, never reused; `CLIENT ID` returns it.
pub(super) type ClientId = u64;

/// A message for an event loop.
#[derive(Debug)]
pub(super) enum LoopMessage {
    /// A new connection that this loop owns from now on.
    Connected(Stream),
    /// Bytes for a client, sent once the records that they depend on are safe.
    Send { to: Slot, bytes: Bytes, depends_on: DependsOn, kind: SendKind },
    /// A request to disconnect the client.
    Close { to: Slot },
}

/// The kind of bytes sent to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendKind {
    /// A pub/sub message: the client's state does not change.
    PubSub,
    /// The reply to its blocked command: the client runs its next command.
    Unblock,
}

/// A client's slot in its loop; the client id detects a slot that was reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) index: usize,
    pub(super) client: ClientId,
}

/// The message queue of one event loop.
#[derive(Debug)]
pub(super) struct LoopQueue {
    /// The index of the loop that reads this queue.
    pub(super) owner: usize,
    messages: Mutex<Vec<LoopMessage>>,
    /// Slots of connections that wait for the journal.
    awaiting: Mutex<Vec<usize>>,
    waker: Waker,
}

impl LoopQueue {
    pub(super) fn new(owner: usize, waker: Waker) -> Self {
        Self { owner, messages: Mutex::default(), awaiting: Mutex::default(), waker }
    }

    /// Pushes a message from loop `sender`; the owner reads its own queue without being woken.
    pub(super) fn push(&self, message: LoopMessage, sender: Option<usize>) {
        let mut all = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let first = all.is_empty();
        all.push(message);
        drop(all);
        if first && sender != Some(self.owner) {
            self.wake();
        }
    }

    /// Wakes the loop.
    pub(super) fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            tracing::error!(%error, "an event loop could not be woken");
        }
    }

    /// Notes that a connection waits for the journal.
    pub(super) fn await_journal(&self, index: usize) {
        self.awaiting().push(index);
    }

    /// Takes the slots of connections that waited for the journal, to try them again.
    pub(super) fn take_awaiting(&self) -> Vec<usize> {
        std::mem::take(&mut *self.awaiting())
    }

    /// Whether a connection waits for the journal.
    pub(super) fn has_awaiting(&self) -> bool {
        !self.awaiting().is_empty()
    }

    /// Wakes the loop if one of its connections waits for the journal.
    pub(super) fn wake_if_awaiting(&self) {
        if self.has_awaiting() {
            self.wake();
        }
    }

    fn awaiting(&self) -> std::sync::MutexGuard<'_, Vec<usize>> {
        self.awaiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Takes all messages.
    pub(super) fn take(&self) -> Vec<LoopMessage> {
        std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The loop and slot of a client.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) loop_queue: Arc<LoopQueue>,
    pub(super) slot: Slot,
}
