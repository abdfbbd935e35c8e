//! An event loop: a thread that reads requests, runs them under the executor's lock, and replies.
//!
//! ```text
//!   poll ─▶ ready sockets ─▶ for each: read ─▶ run its requests (executor's lock) ─▶ write ─┐
//!     ▲                                                                                    │
//!     └── timers ◀── messages from other loops and from commands ◀─────────────────────────┘
//! ```
//!
//! A loop's state is behind a lock, which the loop's thread releases while it serves one connection.
//! That connection is then *in use*; all others can be served by another thread. So when a script runs
//! too long, the watchdog (`watchdog.rs`) can drive the loop and answer its other clients. While it
//! does (`watchdog_active`), the loop's own thread waits; a watchdog turn is short. A loop that waits for
//! the executor times out when a script runs too long, and answers its clients `BUSY` itself.
//!
//! The kernel reports readiness once (edge-triggered). Readiness that cannot be handled at once is kept
//! in [`Readiness`](super::connection::Readiness), also for a connection that is in use.
//!
//! - `event_loop/loop_state.rs` sockets and slots · `accept.rs` opens and closes connections
//! - `event_loop/messages.rs` handles messages from other threads · `serve.rs` serves one connection

mod arrivals;
mod places;
mod post;
mod serving;

use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use mio::{Registry, Token};

use self::serving::Fate;
use super::mail::Mailbox;
use super::shared::{ExecutorGuard, Shared, Tells};
use crate::reply::{Protocol, Reply};

pub(super) use self::places::{Listener, LoopState};

/// The token of the loop's waker.
pub(super) const WAKE: Token = Token(0);

/// The number of bytes read from a socket at once.
const READ_BYTES: usize = 64 << 10;
/// A client with more pending output than this runs no commands until it has read some.
pub(super) const PAUSE_BYTES: usize = 1 << 20;
/// A subscriber with more pending output than this is disconnected, as Redis does.
pub(super) const MAX_MESSAGE_BYTES: usize = 32 << 20;
/// A thread that waits for the executor checks at this interval for a script that runs too long.
const EXECUTOR_PAUSE: Duration = Duration::from_millis(20);
/// Connections that wait for the journal are checked at least this often.
const JOURNAL_PAUSE: Duration = Duration::from_millis(5);
/// The retry interval after `accept` failed, for instance for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Which thread drives a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The loop's own thread.
    Own,
    /// The watchdog, while a script runs too long.
    Watchdog,
}

/// A loop and the buffers of the thread that drives it.
pub(super) struct EventLoop {
    shared: Arc<Shared>,
    index: usize,
    mailbox: Arc<Mailbox>,
    registry: Registry,
    turn: Turn,
    read: Vec<u8>,
    inbox: BytesMut,
    reply: Reply,
    args: Vec<Bytes>,
    /// The journal positions that the replies in `reply` depend on.
    tells: Tells,
}

type State<'a> = MutexGuard<'a, LoopState>;

impl EventLoop {
    pub(super) fn new(shared: Arc<Shared>, index: usize, turn: Turn, registry: Registry) -> Self {
        let mailbox = shared.loops[index].mailbox.clone();
        Self {
            shared,
            index,
            mailbox,
            registry,
            turn,
            read: vec![0; READ_BYTES],
            inbox: BytesMut::new(),
            reply: Reply::new(Protocol::Resp2),
            args: Vec::new(),
            tells: Tells::default(),
        }
    }

    /// The loop's thread: iterates until the server stops.
    pub(super) fn run(mut self, shared: &Shared) -> io::Result<()> {
        let mut timeout = None;
        while !shared.is_stopping() {
            let mut state = self.enter(shared);
            // Computed under the lock: the watchdog may have polled and received events meanwhile.
            timeout = [timeout, self.next_look(shared, &state)].into_iter().flatten().min();
            state.poll(timeout)?;
            // The state is not locked here: waiting for the executor can take long.
            drop(self.work(shared, state));
            timeout = match self.executor() {
                Some(mut executor) => executor.tick(),
                None => Some(EXECUTOR_PAUSE),
            };
        }
        Ok(())
    }

    /// The longest time the loop may sleep for its own reasons; `None`: until it is woken.
    fn next_look(&self, shared: &Shared, state: &LoopState) -> Option<Duration> {
        if !state.ready.is_empty() || !self.mailbox.is_empty() || shared.is_stopping() {
            return Some(Duration::ZERO);
        }
        let journal = self.mailbox.has_awaiting().then_some(JOURNAL_PAUSE);
        let accept = state.accepts.then_some(ACCEPT_PAUSE);
        [journal, accept].into_iter().flatten().min()
    }

    /// One iteration by the watchdog: serves clients that need no executor.
    pub(super) fn stand_in(
        &mut self,
        shared: &Shared,
        mut state: State<'_>,
        timeout: Duration,
    ) -> io::Result<()> {
        state.visited = true;
        let polled = state.poll(Some(timeout));
        self.work(shared, state).visited = false;
        polled
    }

    /// Locks the loop's state, once the watchdog is done with it.
    fn enter<'s>(&self, shared: &'s Shared) -> State<'s> {
        loop {
            let state = shared.loops[self.index].lock();
            if !state.visited || self.turn == Turn::Watchdog || shared.is_stopping() {
                return state;
            }
            drop(state);
            std::thread::yield_now();
        }
    }

    /// Accepts connections, handles messages, and serves each ready connection once.
    fn work<'s>(&mut self, shared: &'s Shared, mut state: State<'s>) -> State<'s> {
        if state.accepts {
            self.accept(&mut state);
        }
        self.read_mail(&mut state);
        for _ in 0..state.ready.len() {
            // The script has ended: the loop's own thread does the rest.
            if self.turn == Turn::Watchdog && !shared.is_busy() {
                return state;
            }
            let Some(index) = state.ready.pop_front() else { break };
            let Some(mut connection) = state.take(index) else { continue };
            drop(state);
            let fate = self.serve(&mut connection, index);
            match fate {
                Fate::Ends => {
                    self.goodbye(*connection);
                    state = self.enter(shared);
                    state.release(index);
                }
                Fate::Lives => {
                    state = self.enter(shared);
                    state.give_back(index, connection);
                }
            }
        }
        self.read_mail(&mut state);
        state
    }

    /// Locks the executor. `None` while a script runs too long, and always for the watchdog: it
    /// must not run commands, because no other thread would watch them.
    fn executor(&self) -> Option<ExecutorGuard<'_>> {
        self.shared.executor_for(self.index, self.turn, EXECUTOR_PAUSE)
    }
}
