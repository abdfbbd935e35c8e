//! An event loop: the thread that reads requests, takes the executor's lock to run them, and answers.
//!
//! ```text
//!   sleep ─▶ who is ready? ─▶ for each: read ─▶ run its requests (executor's lock) ─▶ write ─┐
//!     ▲                                                                                     │
//!     └── what is due by time ◀── mail from other loops and from commands ◀─────────────────┘
//! ```
//!
//! A loop's state is behind a lock that its thread gives up while it works for one connection. So
//! when a script runs too long, the watchdog (`watchdog.rs`) can take the loop's turn and tell the
//! others: the connection that is being worked for is *away*, and all else is there. While it does,
//! it is a *visitor*: the loop's own thread waits until it has gone, which is soon. Loops that only
//! wait for the executor do not wait for ever either; they tell their clients themselves.
//!
//! The kernel reports readiness once (edge-triggered): what is not acted on at once is remembered in
//! [`Readiness`](super::connection::Readiness), also for a connection that is away.
//!
//! - `event_loop/places.rs` the loop's state · `arrivals.rs` connections come and go · `post.rs` mail
//! - `event_loop/serving.rs` what is done for one connection

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

/// The loop is woken through this token.
pub(super) const WAKE: Token = Token(0);

/// How much is read from a socket at once.
const READ_BYTES: usize = 64 << 10;
/// A client with more than this to be sent runs nothing until it has taken some.
pub(super) const PAUSE_BYTES: usize = 1 << 20;
/// A subscriber with more than this to be sent is disconnected, as Redis does.
pub(super) const MAX_MESSAGE_BYTES: usize = 32 << 20;
/// Whoever waits for the executor looks this often whether a script keeps it for too long.
const EXECUTOR_PAUSE: Duration = Duration::from_millis(20);
/// Whoever waits for the journal looks at least this often.
const JOURNAL_PAUSE: Duration = Duration::from_millis(5);
/// After the system has refused a connection, for want of files say, it is asked again after this.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Who takes a loop's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Its own thread.
    Own,
    /// The watchdog, while a script keeps the executor.
    Watchdog,
}

/// A loop, and the buffers of the thread that takes its turn.
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
    /// What the answers in `reply` tell of.
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

    /// The loop's thread: turns until the server stops.
    pub(super) fn run(mut self, shared: &Shared) -> io::Result<()> {
        let mut timeout = None;
        while !shared.is_stopping() {
            let mut state = self.enter(shared);
            // Looked at under the lock: the watchdog may have been here and taken the kernel's news.
            timeout = [timeout, self.next_look(shared, &state)].into_iter().flatten().min();
            state.poll(timeout)?;
            // Not with the state locked: the executor may be taken for long.
            drop(self.work(shared, state));
            timeout = match self.executor() {
                Some(mut executor) => executor.tick(),
                None => Some(EXECUTOR_PAUSE),
            };
        }
        Ok(())
    }

    /// How long the loop may sleep for all that it knows of; `None` if until it is woken.
    fn next_look(&self, shared: &Shared, state: &LoopState) -> Option<Duration> {
        if !state.ready.is_empty() || !self.mailbox.is_empty() || shared.is_stopping() {
            return Some(Duration::ZERO);
        }
        let journal = self.mailbox.has_awaiting().then_some(JOURNAL_PAUSE);
        let accept = state.accepts.then_some(ACCEPT_PAUSE);
        [journal, accept].into_iter().flatten().min()
    }

    /// The watchdog's turn: answers those who can be answered without the executor.
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

    /// The loop's state, once the watchdog has gone.
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

    /// Accepts, reads mail and does for each connection what can be done now.
    fn work<'s>(&mut self, shared: &'s Shared, mut state: State<'s>) -> State<'s> {
        if state.accepts {
            self.accept(&mut state);
        }
        self.read_mail(&mut state);
        for _ in 0..state.ready.len() {
            // What is left is the own thread's again.
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

    /// The executor; `None` while a script keeps it for too long, and always for the watchdog, who
    /// must not run anything: nobody would watch over that.
    fn executor(&self) -> Option<ExecutorGuard<'_>> {
        self.shared.executor_for(self.index, self.turn, EXECUTOR_PAUSE)
    }
}
