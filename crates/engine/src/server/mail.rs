//! Mail for the threads that talk to clients.
//!
//! A command may have something for another client: an answer it waits for, a message it subscribed
//! to, the end of its connection. The executor posts that to the mailbox of the event loop which has
//! the client; a loop looks into its own mailbox before it sleeps and is woken by others' mail.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use mio::Waker;

use super::connection::Stream;
use crate::journal::Position;

/// A client's number, never used twice; what `CLIENT ID` answers.
pub(super) type ClientId = u64;

/// Something for an event loop.
#[derive(Debug)]
pub(super) enum Mail {
    /// A new client is this loop's.
    Connected(Stream),
    /// Bytes for a client, to be sent once the journal is durable up to the position.
    Bytes { to: Slot, bytes: Bytes, position: Position, then: Then },
    /// The client is to be disconnected.
    Close { to: Slot },
}

/// What a client does after it got bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// What it did before: they were a message.
    GoOn,
    /// Its next command: they were the answer it waited for.
    Resume,
}

/// A client's place in its loop; the number tells whether the place has a new owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) index: usize,
    pub(super) client: ClientId,
}

/// The mailbox of one event loop.
#[derive(Debug)]
pub(super) struct Mailbox {
    /// Which loop.
    pub(super) owner: usize,
    mail: Mutex<Vec<Mail>>,
    /// Connections that cannot go on before the journal does.
    awaiting: Mutex<Vec<usize>>,
    waker: Waker,
}

impl Mailbox {
    pub(super) fn new(owner: usize, waker: Waker) -> Self {
        Self { owner, mail: Mutex::default(), awaiting: Mutex::default(), waker }
    }

    /// Posts mail from loop `sender`; the owner looks into its own mailbox without being woken.
    pub(super) fn post(&self, mail: Mail, sender: Option<usize>) {
        let mut all = self.mail.lock().unwrap_or_else(PoisonError::into_inner);
        let first = all.is_empty();
        all.push(mail);
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

    /// Notes that a connection cannot go on before the journal does.
    pub(super) fn await_journal(&self, index: usize) {
        self.awaiting().push(index);
    }

    /// The connections that may try again.
    pub(super) fn take_awaiting(&self) -> Vec<usize> {
        std::mem::take(&mut *self.awaiting())
    }

    /// Whether a connection cannot go on before the journal does.
    pub(super) fn has_awaiting(&self) -> bool {
        !self.awaiting().is_empty()
    }

    /// The journal has gone on.
    pub(super) fn wake_if_awaiting(&self) {
        if self.has_awaiting() {
            self.wake();
        }
    }

    fn awaiting(&self) -> std::sync::MutexGuard<'_, Vec<usize>> {
        self.awaiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is no mail.
    pub(super) fn is_empty(&self) -> bool {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Takes all mail.
    pub(super) fn take(&self) -> Vec<Mail> {
        std::mem::take(&mut *self.mail.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Where a client lives.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) slot: Slot,
}
