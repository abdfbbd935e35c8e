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
//! [`Readiness`], also for a connection that is away.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use mio::net::{TcpListener, UnixListener};
use mio::{Events, Interest, Poll, Registry, Token};

use super::connection::{Connection, Pace, Readiness, Stream};
use super::executor::{Executor, Next};
use super::mail::{Mail, Mailbox, Slot, Then};
use super::request::Trust;
use super::shared::{ExecutorGuard, Shared, Tells};
use crate::journal::Position;
use crate::reply::{Protocol, Reply};

/// The loop is woken through this token; listeners come after it, then connections.
pub(super) const WAKE: Token = Token(0);
const FIRST_LISTENER: usize = 1;
const FIRST_CONNECTION: usize = 64;

/// How much is read from a socket at once.
const READ_BYTES: usize = 64 << 10;
/// A client with more than this to be sent runs nothing until it has taken some.
pub(super) const PAUSE_BYTES: usize = 1 << 20;
/// A subscriber with more than this to be sent is disconnected, as Redis does.
pub(super) const MAX_MESSAGE_BYTES: usize = 32 << 20;
/// A request may have this many bytes.
const MAX_INPUT_BYTES: usize = 1 << 30;
/// How often a socket is read before the others have their turn.
const READS_AT_ONCE: usize = 16;
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

#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    fn accept(&self) -> io::Result<Stream> {
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

/// A place for a connection.
#[derive(Debug)]
enum Place {
    Free,
    Here(Box<Connection>),
    /// Some thread works for it; this is what the kernel said meanwhile.
    Away(Readiness),
}

/// What the lock of a loop protects.
#[derive(Debug)]
pub(super) struct LoopState {
    poll: Poll,
    events: Events,
    listeners: Vec<Listener>,
    accepts: bool,
    places: Vec<Place>,
    free: Vec<usize>,
    /// Connections to look after. They stay here until their turn: whoever takes the next turn of
    /// this loop must find them.
    ready: VecDeque<usize>,
    /// Whether the watchdog is at work here, also while it has given up the lock.
    visited: bool,
}

impl LoopState {
    pub(super) fn new(poll: Poll, mut listeners: Vec<Listener>) -> io::Result<Self> {
        for (index, listener) in listeners.iter_mut().enumerate() {
            let source: &mut dyn mio::event::Source = match listener {
                Listener::Tcp(listener) => listener,
                Listener::Unix(listener) => listener,
            };
            poll.registry().register(source, Token(FIRST_LISTENER + index), Interest::READABLE)?;
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(1024),
            listeners,
            accepts: false,
            places: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            visited: false,
        })
    }

    /// Sleeps until something happens, and notes it.
    fn poll(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in &self.events {
            let Token(token) = event.token();
            if (FIRST_LISTENER..FIRST_CONNECTION).contains(&token) {
                self.accepts = true;
            } else if let Some(index) = token.checked_sub(FIRST_CONNECTION) {
                let news = Readiness {
                    readable: event.is_readable() || event.is_read_closed() || event.is_error(),
                    read_closed: event.is_read_closed() || event.is_error(),
                    writable: event.is_writable(),
                };
                match self.places.get_mut(index) {
                    Some(Place::Here(connection)) => {
                        connection.ready.merge(news);
                        self.ready.push_back(index);
                    }
                    Some(Place::Away(ready)) => ready.merge(news),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, index: usize) -> Option<Box<Connection>> {
        let place = self.places.get_mut(index)?;
        match std::mem::replace(place, Place::Away(Readiness::default())) {
            Place::Here(connection) => Some(connection),
            other => {
                *place = other;
                None
            }
        }
    }

    fn give_back(&mut self, index: usize, mut connection: Box<Connection>) {
        if let Place::Away(news) = self.places[index] {
            connection.ready.merge(news);
            let left = connection.ready.writable || connection.has_more();
            if news != Readiness::default() || left {
                self.ready.push_back(index);
            }
        }
        self.places[index] = Place::Here(connection);
    }

    fn release(&mut self, index: usize) {
        self.places[index] = Place::Free;
        self.free.push(index);
    }

    fn place(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::Free);
            self.places.len() - 1
        })
    }
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

/// Why no more requests were run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// There is none, or the next one cannot run now.
    Starved,
    /// What was answered is to be sent first.
    Full,
    /// The connection is to be closed.
    Ended,
}

type State<'a> = MutexGuard<'a, LoopState>;

/// Whether a connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lives,
    Ends,
}

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

    fn read_mail(&self, state: &mut State<'_>) {
        for mail in self.mailbox.take() {
            self.deliver(state, mail);
        }
        for index in self.mailbox.take_awaiting() {
            match state.places.get_mut(index) {
                Some(Place::Here(connection)) => {
                    connection.ready.writable = true;
                    state.ready.push_back(index);
                }
                Some(Place::Away(ready)) => ready.writable = true,
                _ => {}
            }
        }
    }

    fn accept(&self, state: &mut State<'_>) {
        state.accepts = false;
        loop {
            let mut refused = None;
            let accepted: Vec<Stream> = state
                .listeners
                .iter()
                .flat_map(|listener| {
                    std::iter::from_fn(|| {
                        loop {
                            match listener.accept() {
                                Ok(stream) => return Some(stream),
                                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                                    return None;
                                }
                                // It has gone again; the next one may be there.
                                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                                Err(error) => {
                                    refused = Some(error);
                                    return None;
                                }
                            }
                        }
                    })
                    .take(128)
                    .collect::<Vec<_>>()
                })
                .collect();
            if let Some(error) = refused {
                state.accepts = true;
                tracing::warn!(%error, "a connection could not be accepted");
            }
            if accepted.is_empty() {
                return;
            }
            for stream in accepted {
                let owner = self.shared.next_loop();
                // The watchdog keeps it: the owner may be the one who is stuck.
                if owner == self.index || self.turn == Turn::Watchdog {
                    self.welcome(state, stream);
                } else {
                    self.shared.loops[owner]
                        .mailbox
                        .post(Mail::Connected(stream), Some(self.index));
                }
            }
        }
    }

    fn welcome(&self, state: &mut State<'_>, mut stream: Stream) {
        let clients = self.shared.counters.clients.fetch_add(1, Ordering::Relaxed);
        if clients >= self.shared.counters.max_clients.load(Ordering::Relaxed) {
            self.shared.counters.clients.fetch_sub(1, Ordering::Relaxed);
            self.shared.counters.rejected.fetch_add(1, Ordering::Relaxed);
            // As much as fits: nobody waits for a client that is not welcome.
            let _ = stream.write(b"-ERR max number of clients reached\r\n");
            return;
        }
        let index = state.place();
        let token = Token(index + FIRST_CONNECTION);
        if let Err(error) = self.registry.register(stream.source(), token, Interest::READABLE) {
            tracing::warn!(%error, "a connection could not be registered");
            self.shared.counters.clients.fetch_sub(1, Ordering::Relaxed);
            return state.release(index);
        }
        let trust = if self.shared.password.is_some() { Trust::Stranger } else { Trust::Known };
        let mut connection = Box::new(Connection::new(stream, self.shared.next_client(), trust));
        // Otherwise it is introduced with its first command: nothing may wait for the executor here.
        if let Some(mut executor) = self.shared.executor.try_lock() {
            self.introduce(&mut connection, index, &mut executor);
        }
        state.places[index] = Place::Here(connection);
    }

    fn introduce(&self, connection: &mut Connection, index: usize, executor: &mut Executor) {
        let slot = Slot { index, client: connection.client };
        let addresses = connection.stream.addresses();
        executor.connect(&self.mailbox, slot, addresses, connection.trust);
        connection.introduced = true;
    }

    /// A connection has ended.
    fn goodbye(&self, mut connection: Connection) {
        self.shared.counters.clients.fetch_sub(1, Ordering::Relaxed);
        let _ = self.registry.deregister(connection.stream.source());
        match self.executor() {
            Some(mut executor) => executor.disconnect(connection.client),
            None => self.shared.counters.note_gone(connection.client),
        }
    }

    /// The executor; `None` while a script keeps it for too long, and always for the watchdog, who
    /// must not run anything: nobody would watch over that.
    fn executor(&self) -> Option<ExecutorGuard<'_>> {
        self.shared.executor_for(self.index, self.turn, EXECUTOR_PAUSE)
    }

    fn deliver(&self, state: &mut State<'_>, mail: Mail) {
        let to = match &mail {
            Mail::Connected(_) => None,
            Mail::Bytes { to, .. } | Mail::Close { to } => Some(*to),
        };
        let place = to.and_then(|to| state.places.get_mut(to.index));
        match (mail, place) {
            (Mail::Connected(stream), _) => self.welcome(state, stream),
            (Mail::Bytes { to, bytes, position, then }, Some(Place::Here(connection)))
                if connection.client == to.client =>
            {
                let too_much = connection.pending() + bytes.len() > MAX_MESSAGE_BYTES;
                if then == Then::GoOn && too_much {
                    tracing::warn!(
                        client = to.client,
                        pending = connection.pending(),
                        "a subscriber that does not read its messages was disconnected"
                    );
                    connection.ready.read_closed = true;
                    connection.input.clear();
                    connection.pace = Pace::Waiting;
                } else {
                    // An answer to a client that waited tells of its own write; a message is news.
                    let written = if then == Then::Resume { position } else { Position(0) };
                    let tells = Tells { written, seen: position };
                    if self.shared.must_hold(tells) {
                        connection.hold(tells, bytes);
                    } else if connection.send(&bytes).is_err() {
                        connection.ready.read_closed = true;
                    }
                    if then == Then::Resume {
                        connection.pace = Pace::Running;
                    }
                    connection.ready.writable = true;
                }
                state.ready.push_back(to.index);
            }
            (Mail::Close { to }, Some(Place::Here(connection)))
                if connection.client == to.client =>
            {
                // As if the other end had closed while it waits: at once, whatever it sends.
                connection.pace = Pace::Waiting;
                connection.ready.read_closed = true;
                state.ready.push_back(to.index);
            }
            // The loop's own thread works for it, and looks into its mailbox afterwards.
            (mail, Some(Place::Away(_))) => self.mailbox.post(mail, Some(self.index)),
            // The client has gone.
            _ => {}
        }
    }

    /// Does for one connection what can be done now.
    fn serve(&mut self, connection: &mut Connection, index: usize) -> Fate {
        match self.try_serve(connection, index) {
            Ok(fate) => fate,
            Err(error) => {
                tracing::trace!(client = connection.client, %error, "a connection broke");
                Fate::Ends
            }
        }
    }

    fn try_serve(&mut self, connection: &mut Connection, index: usize) -> io::Result<Fate> {
        if std::mem::take(&mut connection.ready.writable) {
            connection.flush(|tells| self.shared.may_send(tells))?;
            if connection.awaits_journal() {
                self.mailbox.await_journal(index);
            }
        }
        if connection.pace == Pace::Leaving {
            return self.take_leave(connection, index);
        }
        let mut fate = self.run_requests(connection, index)?;
        let mut reads = 0;
        while fate == Fate::Lives && connection.has_more() && reads < READS_AT_ONCE {
            reads += 1;
            match connection.stream.read(&mut self.read) {
                Ok(0) => return Ok(Fate::Ends),
                Ok(count) => {
                    // A short read has emptied the socket; the kernel reports what comes later. Only
                    // the end of the stream, already reported, is still to be seen.
                    connection.ready.readable =
                        count == self.read.len() || connection.ready.read_closed;
                    if connection.input.len() + count > MAX_INPUT_BYTES {
                        tracing::warn!(client = connection.client, "a request was too large");
                        return Ok(Fate::Ends);
                    }
                    let buffer = if connection.input.is_empty() {
                        &mut self.inbox
                    } else {
                        &mut connection.input
                    };
                    buffer.extend_from_slice(&self.read[..count]);
                    fate = self.run_requests(connection, index)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    connection.ready.readable = false;
                }
                Err(error) => return Err(error),
            }
        }
        if connection.pace == Pace::Waiting && connection.ready.read_closed {
            // Whoever has gone must not take what others wait for.
            return Ok(Fate::Ends);
        }
        if fate == Fate::Ends {
            connection.pace = Pace::Leaving;
            return self.take_leave(connection, index);
        }
        connection.watch_writable(&self.registry, Token(index + FIRST_CONNECTION))?;
        Ok(Fate::Lives)
    }

    /// Ends a connection when it has been sent everything, or does not take it.
    fn take_leave(&self, connection: &mut Connection, index: usize) -> io::Result<Fate> {
        if connection.pending() == 0 || connection.ready.read_closed {
            return Ok(Fate::Ends);
        }
        connection.watch_writable(&self.registry, Token(index + FIRST_CONNECTION))?;
        Ok(Fate::Lives)
    }

    /// Runs the requests that have arrived and sends the answers.
    fn run_requests(&mut self, connection: &mut Connection, index: usize) -> io::Result<Fate> {
        let mut buffer = if self.inbox.is_empty() {
            std::mem::take(&mut connection.input)
        } else {
            std::mem::take(&mut self.inbox)
        };
        let fate = loop {
            let idle = buffer.is_empty() && connection.pace == Pace::Running;
            let parked = matches!(connection.pace, Pace::Waiting | Pace::Leaving)
                || connection.pending() >= PAUSE_BYTES;
            if idle || parked {
                break Fate::Lives;
            }
            let stop = self.run_buffer(connection, index, &mut buffer);
            self.send(connection, index)?;
            match stop {
                Stop::Full => {}
                Stop::Starved => break Fate::Lives,
                Stop::Ended => break Fate::Ends,
            }
        };
        if buffer.is_empty() {
            if buffer.capacity() <= 4 * READ_BYTES {
                self.inbox = buffer;
            }
        } else if buffer.len() < READ_BYTES {
            // Kept by itself: a slice would keep all of the buffer.
            connection.input = BytesMut::from(&buffer[..]);
            buffer.clear();
            self.inbox = buffer;
        } else {
            connection.input = buffer;
        }
        Ok(fate)
    }

    /// Runs requests until there is none left, one cannot go on, or there is much to send.
    fn run_buffer(
        &mut self,
        connection: &mut Connection,
        index: usize,
        buffer: &mut BytesMut,
    ) -> Stop {
        let shared = self.shared.clone();
        let mut lock = None;
        if shared.is_stopping() {
            return Stop::Ended;
        }
        while self.reply.len() < PAUSE_BYTES {
            match std::mem::replace(&mut connection.pace, Pace::Running) {
                Pace::Held(args) => self.args = args,
                _ => match connection.reader.next(buffer, connection.trust, &mut self.args) {
                    Ok(true) => {}
                    Ok(false) => return Stop::Starved,
                    Err(error) => {
                        self.reply.error_bytes(error.to_string().as_bytes());
                        return Stop::Ended;
                    }
                },
            }
            let executor = match &mut lock {
                Some(executor) => executor,
                None => match shared.executor_for(self.index, self.turn, EXECUTOR_PAUSE) {
                    Some(executor) => lock.insert(executor),
                    None if shared.is_busy() => {
                        match shared.answer_busy(connection, &self.args, &mut self.reply) {
                            Next::Close => return Stop::Ended,
                            _ => continue,
                        }
                    }
                    None => {
                        // The script has just ended: this is for the loop's own thread.
                        connection.pace = Pace::Held(std::mem::take(&mut self.args));
                        connection.ready.writable = true;
                        return Stop::Starved;
                    }
                },
            };
            if !connection.introduced {
                self.introduce(connection, index, executor);
            }
            if std::mem::take(&mut connection.told_busy)
                && let Some(session) = executor.sessions.get_mut(&connection.client)
            {
                session.spoil_transaction();
            }
            let before = executor.position;
            let next = executor.run(connection.client, &self.args, &mut self.reply);
            connection.trust = executor.trust(connection.client);
            self.tells.seen = executor.position;
            if executor.position > before {
                self.tells.written = executor.position;
            }
            match next {
                Next::Go => {}
                Next::Wait => {
                    connection.pace = Pace::Waiting;
                    return Stop::Starved;
                }
                Next::Hold => {
                    connection.pace = Pace::Held(std::mem::take(&mut self.args));
                    self.mailbox.await_journal(index);
                    return Stop::Starved;
                }
                Next::Close => return Stop::Ended,
            }
        }
        Stop::Full
    }

    /// Sends the answers that were written, or keeps them until the journal allows it.
    fn send(&mut self, connection: &mut Connection, index: usize) -> io::Result<()> {
        self.args.clear();
        let tells = std::mem::take(&mut self.tells);
        if self.reply.is_empty() {
            return Ok(());
        }
        if self.shared.must_hold(tells) {
            connection.hold(tells, self.reply.take().freeze());
            self.mailbox.await_journal(index);
            return Ok(());
        }
        let sent = connection.send(self.reply.as_bytes());
        if self.reply.len() > 4 * READ_BYTES {
            self.reply.take();
        } else {
            self.reply.truncate(0);
        }
        sent
    }
}
