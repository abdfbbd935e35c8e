//! A loop's listeners, connection slots and ready queue.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use mio::event::Source;
use mio::net::{TcpListener, UnixListener};
use mio::{Events, Interest, Poll, Token};

use crate::server::connection::{Connection, Readiness, Stream};

/// Token 0 is the waker; listeners come next, then connections.
const FIRST_LISTENER: usize = 1;
const FIRST_CONNECTION: usize = 64;

#[derive(Debug)]
pub(in crate::server) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    pub(super) fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Self::Unix(listener) => Ok(Stream::Unix(listener.accept()?.0)),
        }
    }
}

/// The state of one connection slot.
#[derive(Debug)]
pub(super) enum SlotState {
    Free,
    Idle(Box<Connection>),
    /// A thread serves the connection; the readiness reported meanwhile is kept here.
    InUse(Readiness),
}

/// The part of a loop that its lock protects.
#[derive(Debug)]
pub(in crate::server) struct LoopState {
    poll: Poll,
    events: Events,
    pub(super) listeners: Vec<Listener>,
    pub(super) accept_pending: bool,
    pub(super) slots: Vec<SlotState>,
    free: Vec<usize>,
    /// Slots of ready connections. A slot stays queued until it is served, because the thread that
    /// drives the loop may change.
    pub(super) ready: VecDeque<usize>,
    /// Whether the watchdog drives this loop, even while it has released the lock.
    pub(super) watchdog_active: bool,
    /// Whether a stand-in drives this loop, even while it has released the lock.
    pub(super) stand_in_active: bool,
}

impl LoopState {
    pub(in crate::server) fn new(poll: Poll, mut listeners: Vec<Listener>) -> io::Result<Self> {
        for (index, listener) in listeners.iter_mut().enumerate() {
            let source: &mut dyn Source = match listener {
                Listener::Tcp(listener) => listener,
                Listener::Unix(listener) => listener,
            };
            poll.registry().register(source, Token(FIRST_LISTENER + index), Interest::READABLE)?;
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(1024),
            listeners,
            accept_pending: false,
            slots: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            watchdog_active: false,
            stand_in_active: false,
        })
    }

    /// Polls, and records readiness.
    pub(super) fn poll(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in &self.events {
            let Token(token) = event.token();
            if (FIRST_LISTENER..FIRST_CONNECTION).contains(&token) {
                self.accept_pending = true;
            } else if let Some(index) = token.checked_sub(FIRST_CONNECTION) {
                let news = Readiness {
                    readable: event.is_readable() || event.is_read_closed() || event.is_error(),
                    read_closed: event.is_read_closed() || event.is_error(),
                    writable: event.is_writable(),
                };
                match self.slots.get_mut(index) {
                    Some(SlotState::Idle(connection)) => {
                        connection.ready.merge(news);
                        self.ready.push_back(index);
                    }
                    Some(SlotState::InUse(ready)) => ready.merge(news),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    pub(super) fn take(&mut self, index: usize) -> Option<Box<Connection>> {
        let place = self.slots.get_mut(index)?;
        match std::mem::replace(place, SlotState::InUse(Readiness::default())) {
            SlotState::Idle(connection) => Some(connection),
            other => {
                *place = other;
                None
            }
        }
    }

    pub(super) fn give_back(&mut self, index: usize, mut connection: Box<Connection>) {
        if let SlotState::InUse(news) = self.slots[index] {
            connection.ready.merge(news);
            let left = connection.ready.writable || connection.has_more();
            if news != Readiness::default() || left {
                self.ready.push_back(index);
            }
        }
        self.slots[index] = SlotState::Idle(connection);
    }

    /// Marks every connection with held replies as ready.
    pub(super) fn serve_awaiting(&mut self) {
        let awaits =
            |slot: &SlotState| matches!(slot, SlotState::Idle(one) if one.awaits_journal());
        let indexes = (0..self.slots.len()).filter(|index| awaits(&self.slots[*index]));
        self.ready.extend(indexes);
    }

    pub(super) fn release(&mut self, index: usize) {
        self.slots[index] = SlotState::Free;
        self.free.push(index);
    }

    pub(super) fn allocate_slot(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(SlotState::Free);
            self.slots.len() - 1
        })
    }
}

/// The poll token of a slot.
pub(super) fn token(index: usize) -> Token {
    Token(index + FIRST_CONNECTION)
}
