//! An event loop: a thread that reads requests, runs them under the executor's lock, and replies.
//!
//! ```text
//!   poll ─▶ ready sockets ─▶ for each: read ─▶ run its requests (executor's lock) ─▶ hold replies ─┐
//!     ▲                                                                                           │
//!     └── timers ◀── messages from loops and commands ◀── send replies ◀── write records (journal)◀┘
//! ```
//!
//! One such turn is a *round*. A reply leaves only when the records that it depends on are safe: the records of a
//! round are handed to the kernel in one write, then the replies of the round are sent. A reply that depends on no
//! new record is sent at once. A round with much to hand over ends early: clients work while the next one runs.
//!
//! A loop's state is behind a lock, which the loop's thread releases while it serves one connection.
//! That connection is then *in use*; all others can be served by another thread. So when a script runs
//! too long, the watchdog (`watchdog.rs`) can drive the loop and answer its other clients. While it
//! does (`watchdog_active`), the loop's own thread waits; a watchdog turn is short. A loop that waits for
//! the executor times out when a script runs too long, and answers its clients `BUSY` itself.
//!
//! The loop's own thread also waits for the disk without that lock. If that takes long, a *stand-in* (`watchdog.rs`) drives
//! the loop with all rights but one: it leaves records to the journal's thread and never waits for the disk.
//!
//! The kernel reports readiness once (edge-triggered). Readiness that cannot be handled at once is kept
//! in [`Readiness`](super::connection::Readiness), also for a connection that is in use.
//!
//! - `event_loop/loop_state.rs` sockets and slots · `accept.rs` opens and closes connections
//! - `event_loop/messages.rs` handles messages from other threads · `serve.rs` serves one connection

mod accept;
mod loop_state;
mod messages;
mod serve;

use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use mio::{Registry, Token};

use self::serve::Served;
use super::connection::Connection;
use super::loop_queue::LoopQueue;
use super::shared::{DependsOn, ExecutorGuard, Shared};
use crate::journal::Position;
use crate::reply::{Protocol, Reply};

pub(super) use self::loop_state::{Listener, LoopState};

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
/// The longest sleep of a stand-in: the loop's own thread does not wake it when it comes back.
const STAND_IN_PAUSE: Duration = Duration::from_millis(5);
/// A round with held replies ends after this time: a client that waits for a reply does no work meanwhile, and
/// `write(2)` costs a few microseconds.
const ROUND: Duration = Duration::from_micros(100);
/// Connections that wait for the journal are checked at least this often.
const JOURNAL_PAUSE: Duration = Duration::from_millis(5);
/// The retry interval after `accept` failed, for instance for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Which thread drives a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    /// The loop's own thread.
    Own,
    /// The watchdog, while a script runs too long.
    Watchdog,
    /// A stand-in, while the loop's own thread waits for the disk.
    StandIn,
}

/// A loop and the buffers of the thread that drives it.
pub(super) struct EventLoop {
    shared: Arc<Shared>,
    index: usize,
    loop_queue: Arc<LoopQueue>,
    registry: Registry,
    driver: Driver,
    read: Vec<u8>,
    input: BytesMut,
    reply: Reply,
    args: Vec<Bytes>,
    /// The journal positions that the replies in `reply` depend on.
    depends_on: DependsOn,
    /// Slots of connections with replies that wait for the end of this round.
    held: Vec<usize>,
    /// Whether the connection being served has more requests, which wait for the next round.
    stops_early: bool,
    /// When the round began, or the last time that it has handed over records.
    round_began: Instant,
    /// The last safe record when connections that wait for the journal were tried last.
    checked_safe: Position,
}

type State<'a> = MutexGuard<'a, LoopState>;

impl EventLoop {
    pub(super) fn new(
        shared: Arc<Shared>,
        index: usize,
        driver: Driver,
        registry: Registry,
    ) -> Self {
        let loop_queue = shared.loops[index].loop_queue.clone();
        Self {
            shared,
            index,
            loop_queue,
            registry,
            driver,
            read: vec![0; READ_BYTES],
            input: BytesMut::new(),
            reply: Reply::new(Protocol::Resp2),
            args: Vec::new(),
            depends_on: DependsOn::default(),
            held: Vec::new(),
            stops_early: false,
            round_began: Instant::now(),
            checked_safe: Position::default(),
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
        if !state.ready.is_empty() || !self.loop_queue.is_empty() || shared.is_stopping() {
            return Some(Duration::ZERO);
        }
        let awaiting = self.loop_queue.has_awaiting();
        if awaiting && shared.safe() > self.checked_safe {
            // The journal's message may have come before the connection was noted.
            return Some(Duration::ZERO);
        }
        let journal = awaiting.then_some(JOURNAL_PAUSE);
        let accept = state.accept_pending.then_some(ACCEPT_PAUSE);
        [journal, accept].into_iter().flatten().min()
    }

    /// The thread of a stand-in: iterates until the loop's own thread comes back from the disk.
    pub(super) fn stand_in(mut self, shared: &Shared) -> io::Result<()> {
        let index = self.index;
        let is_needed = || shared.is_stuck(index, Duration::ZERO) && !shared.is_stopping();
        let (mut timeout, mut is_first) = (None, true);
        while is_needed() {
            let mut state = self.enter(shared);
            if !is_needed() {
                break;
            }
            state.stand_in_active = true;
            if std::mem::take(&mut is_first) {
                // Replies that the loop's own thread has held when it went to the disk.
                state.serve_awaiting();
            }
            let own = [timeout, self.next_look(shared, &state), Some(STAND_IN_PAUSE)];
            timeout = own.into_iter().flatten().min();
            let polled = state.poll(timeout);
            state = self.work(shared, state);
            state.stand_in_active = false;
            drop(state);
            polled?;
            timeout = match self.executor() {
                Some(mut executor) => executor.tick(),
                None => Some(EXECUTOR_PAUSE),
            };
        }
        Ok(())
    }

    /// One iteration by the watchdog: serves clients that need no executor.
    pub(super) fn serve_as_watchdog(
        &mut self,
        shared: &Shared,
        mut state: State<'_>,
        timeout: Duration,
    ) -> io::Result<()> {
        state.watchdog_active = true;
        let polled = state.poll(Some(timeout));
        // The loop's own thread may have held replies before it began the script.
        state.serve_awaiting();
        self.work(shared, state).watchdog_active = false;
        polled
    }

    /// Locks the loop's state, once the watchdog is done with it.
    fn enter<'s>(&self, shared: &'s Shared) -> State<'s> {
        loop {
            let state = shared.loops[self.index].lock();
            let is_free = match self.driver {
                Driver::Watchdog => true,
                Driver::StandIn => !state.watchdog_active,
                Driver::Own => !state.watchdog_active && !state.stand_in_active,
            };
            if is_free || shared.is_stopping() {
                return state;
            }
            drop(state);
            std::thread::yield_now();
        }
    }

    /// One round: accepts connections, handles messages, serves each ready connection once, makes the records safe
    /// and sends the replies.
    fn work<'s>(&mut self, shared: &'s Shared, mut state: State<'s>) -> State<'s> {
        if state.accept_pending {
            self.accept(&mut state);
        }
        self.take_messages(&mut state);
        self.take_awaiting(&mut state);
        self.round_began = Instant::now();
        for _ in 0..state.ready.len() {
            // The script has ended: the loop's own thread does the rest.
            if self.driver == Driver::Watchdog && !shared.is_busy() {
                break;
            }
            let Some(index) = state.ready.pop_front() else { break };
            let Some(mut connection) = state.take(index) else { continue };
            drop(state);
            let served = self.serve(&mut connection, index);
            state = self.put_back(shared, index, connection, served);
            if self.ends_round(shared) {
                state = self.end_round(shared, state);
            }
        }
        state = self.end_round(shared, state);
        self.take_messages(&mut state);
        state
    }

    /// Whether held replies should leave before all ready connections were served.
    fn ends_round(&self, shared: &Shared) -> bool {
        !self.held.is_empty() && self.round_began.elapsed() >= ROUND && shared.has_unwritten()
    }

    /// Hands the round's records to the kernel, then sends the replies that waited for that.
    fn end_round<'s>(&mut self, shared: &'s Shared, mut state: State<'s>) -> State<'s> {
        if self.held.is_empty() {
            return state;
        }
        drop(state);
        shared.write_out(self.index, self.driver);
        self.checked_safe = shared.safe();
        let mut held = std::mem::take(&mut self.held);
        state = self.enter(shared);
        for index in held.drain(..) {
            let Some(mut connection) = state.take(index) else { continue };
            drop(state);
            let served = self.send_held(&mut connection, index).unwrap_or(Served::Close);
            state = self.put_back(shared, index, connection, served);
        }
        self.held = held;
        self.round_began = Instant::now();
        state
    }

    /// Notes that a connection holds replies until the end of the round.
    fn note_held(&mut self, index: usize) {
        if self.held.last() != Some(&index) {
            self.held.push(index);
        }
    }

    /// Gives a connection back to its slot, or closes it.
    fn put_back<'s>(
        &self,
        shared: &'s Shared,
        index: usize,
        connection: Box<Connection>,
        served: Served,
    ) -> State<'s> {
        match served {
            Served::Close => {
                self.close_connection(*connection);
                let mut state = self.enter(shared);
                state.release(index);
                state
            }
            Served::KeepOpen => {
                let mut state = self.enter(shared);
                state.give_back(index, connection);
                state
            }
        }
    }

    /// Locks the executor. `None` while a script runs too long, and always for the watchdog: it
    /// must not run commands, because no other thread would watch them.
    fn executor(&self) -> Option<ExecutorGuard<'_>> {
        self.shared.executor_for(self.index, self.driver, EXECUTOR_PAUSE)
    }
}
