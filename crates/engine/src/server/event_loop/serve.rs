//! Serving one connection: read, run, reply.
//!
//! ```text
//!   flush output ─▶ run_requests ─▶ read ─▶ run_requests ─▶ … ─▶ until no request, blocked, closed or round over
//!                     └▶ run_buffer (executor's lock) ─▶ send, or hold until the end of the round
//! ```

use std::io;

use bytes::{Bytes, BytesMut};

use super::loop_state::token;
use super::{EXECUTOR_PAUSE, EventLoop, PAUSE_BYTES, READ_BYTES, ROUND};
use crate::server::connection::{Connection, RunState};
use crate::server::executor::Next;
use crate::server::shared::Shared;

/// The maximum size of buffered input.
const MAX_INPUT_BYTES: usize = 1 << 30;
/// The number of reads from one socket before other connections are served.
const READS_AT_ONCE: usize = 16;

/// The clock is read once for this many commands of one client.
const CLOCK_EVERY: usize = 4;

/// Whether a connection stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Served {
    KeepOpen,
    Close,
}

/// Why no more requests were run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// No complete request, or the next one cannot run now.
    NoRequest,
    /// The replies so far must be sent first.
    OutputFull,
    /// The round ends first: replies to the commands so far are due.
    RoundOver,
    /// The connection must be closed.
    Close,
}

impl EventLoop {
    /// Serves one connection as far as possible now.
    pub(super) fn serve(&mut self, connection: &mut Connection, index: usize) -> Served {
        match self.try_serve(connection, index) {
            Ok(served) => served,
            Err(error) => {
                tracing::trace!(client = connection.client, %error, "a connection failed");
                Served::Close
            }
        }
    }

    fn try_serve(&mut self, connection: &mut Connection, index: usize) -> io::Result<Served> {
        if std::mem::take(&mut connection.ready.writable) {
            connection.flush(|depends_on| self.shared.may_send(depends_on))?;
        }
        // Also replies that the loop's own thread has held before it began a script that runs too long: the watchdog
        // sends them.
        if connection.awaits_journal() {
            self.note_held(index);
        }
        if connection.run_state == RunState::Closing {
            return self.close_when_sent(connection, index);
        }
        self.stops_early = false;
        let mut served = self.run_requests(connection, index)?;
        let mut reads = 0;
        while served == Served::KeepOpen
            && connection.has_more()
            && !self.stops_early
            && reads < READS_AT_ONCE
        {
            reads += 1;
            match connection.stream.read(&mut self.read) {
                // The client may have closed only its writing half: replies of this round still leave.
                Ok(0) if connection.awaits_journal() => served = Served::Close,
                Ok(0) => return Ok(Served::Close),
                Ok(count) => {
                    // A short read has emptied the socket, and the kernel reports later input. Only
                    // an end of stream that is already reported must still be read.
                    connection.ready.readable =
                        count == self.read.len() || connection.ready.read_closed;
                    if connection.input.len() + count > MAX_INPUT_BYTES {
                        tracing::warn!(
                            client = connection.client,
                            "a request exceeded 1 GiB; the client was disconnected"
                        );
                        return Ok(Served::Close);
                    }
                    let buffer = if connection.input.is_empty() {
                        &mut self.input
                    } else {
                        &mut connection.input
                    };
                    buffer.extend_from_slice(&self.read[..count]);
                    served = self.run_requests(connection, index)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    connection.ready.readable = false;
                }
                Err(error) => return Err(error),
            }
        }
        if connection.run_state == RunState::Blocked && connection.ready.read_closed {
            if !connection.awaits_journal() {
                return Ok(Served::Close);
            }
            // A disconnected client must not take an element that another blocked client waits for. Replies to its
            // earlier commands still leave.
            self.end_session(connection.client);
            served = Served::Close;
        }
        if served == Served::Close {
            connection.run_state = RunState::Closing;
            return self.close_when_sent(connection, index);
        }
        connection.watch_writable(&self.registry, token(index))?;
        Ok(Served::KeepOpen)
    }

    /// Closes a connection once all output is sent, or the peer has closed and nothing waits for the journal.
    fn close_when_sent(&self, connection: &mut Connection, index: usize) -> io::Result<Served> {
        let gone = connection.ready.read_closed && !connection.awaits_journal();
        if connection.pending() == 0 || gone {
            return Ok(Served::Close);
        }
        connection.watch_writable(&self.registry, token(index))?;
        Ok(Served::KeepOpen)
    }

    /// Runs the requests that have arrived and sends the replies.
    fn run_requests(&mut self, connection: &mut Connection, index: usize) -> io::Result<Served> {
        let mut buffer = if self.input.is_empty() {
            std::mem::take(&mut connection.input)
        } else {
            std::mem::take(&mut self.input)
        };
        let served = loop {
            let idle = buffer.is_empty() && connection.run_state == RunState::Running;
            let parked = matches!(connection.run_state, RunState::Blocked | RunState::Closing)
                || connection.pending() >= PAUSE_BYTES;
            if idle || parked {
                break Served::KeepOpen;
            }
            let stop = self.run_buffer(connection, index, &mut buffer);
            self.send(connection, index)?;
            match stop {
                Stop::OutputFull => {}
                Stop::RoundOver => {
                    self.stops_early = true;
                    // The next round goes on with the rest; `send_held` sees to it if replies are held.
                    connection.ready.writable |= !connection.awaits_journal();
                    break Served::KeepOpen;
                }
                Stop::NoRequest => break Served::KeepOpen,
                Stop::Close => break Served::Close,
            }
        };
        if buffer.is_empty() {
            if buffer.capacity() <= 4 * READ_BYTES {
                self.input = buffer;
            }
        } else if buffer.len() < READ_BYTES && !self.stops_early {
            // Copied, because a slice would keep the whole buffer alive.
            connection.input = BytesMut::from(&buffer[..]);
            buffer.clear();
            self.input = buffer;
        } else {
            connection.input = buffer;
        }
        Ok(served)
    }

    /// Runs requests until none is complete, one cannot run, or much output is pending.
    fn run_buffer(
        &mut self,
        connection: &mut Connection,
        index: usize,
        buffer: &mut BytesMut,
    ) -> Stop {
        let shared = self.shared.clone();
        let (mut lock, mut commands) = (None, 0);
        if shared.is_stopping() {
            return Stop::Close;
        }
        while self.reply.len() < PAUSE_BYTES {
            match std::mem::replace(&mut connection.run_state, RunState::Running) {
                RunState::Held(args) => self.args = args,
                _ => match connection.reader.next(buffer, connection.auth_state, &mut self.args) {
                    Ok(true) => {}
                    Ok(false) => return Stop::NoRequest,
                    Err(error) => {
                        self.reply.error_bytes(error.to_string().as_bytes());
                        return Stop::Close;
                    }
                },
            }
            let executor = match &mut lock {
                Some(executor) => executor,
                None => match shared.executor_for(self.index, self.driver, EXECUTOR_PAUSE) {
                    Some(executor) => lock.insert(executor),
                    None if shared.is_busy() => {
                        match shared.reply_busy(connection, &self.args, &mut self.reply) {
                            Next::Close => return Stop::Close,
                            _ => continue,
                        }
                    }
                    None => {
                        // The script has just ended: the loop's own thread runs this request.
                        connection.run_state = RunState::Held(std::mem::take(&mut self.args));
                        connection.ready.writable = true;
                        return Stop::NoRequest;
                    }
                },
            };
            if !connection.has_session {
                self.create_session(connection, index, executor);
            }
            if !connection.deferred.is_empty() {
                let deferred = std::mem::take(&mut connection.deferred);
                executor.apply_deferred(connection.client, deferred);
            }
            let (before, reveals) = (executor.position, reveals_data(&self.args));
            let next = executor.run(connection.client, &self.args, &mut self.reply);
            let standing = executor.standing(connection.client);
            connection.auth_state = standing.auth_state;
            connection.in_transaction = standing.in_transaction;
            if reveals {
                self.depends_on.seen = executor.position;
            }
            if executor.position > before {
                self.depends_on.written = executor.position;
            }
            commands += 1;
            match next {
                Next::Go if commands % CLOCK_EVERY == 0 && self.is_round_over(buffer, &shared) => {
                    return Stop::RoundOver;
                }
                Next::Go => {}
                Next::Block => {
                    connection.run_state = RunState::Blocked;
                    return Stop::NoRequest;
                }
                Next::Hold => {
                    connection.run_state = RunState::Held(std::mem::take(&mut self.args));
                    self.loop_queue.await_journal(index);
                    return Stop::NoRequest;
                }
                Next::Close => return Stop::Close,
            }
        }
        Stop::OutputFull
    }

    /// Whether the rest of the input should wait, because replies to a part of it are due.
    fn is_round_over(&self, rest: &BytesMut, shared: &Shared) -> bool {
        !rest.is_empty() && self.round_began.elapsed() >= ROUND && shared.has_unwritten()
    }

    /// Sends held replies whose records are safe now; the others wait for the journal.
    pub(super) fn send_held(
        &self,
        connection: &mut Connection,
        index: usize,
    ) -> io::Result<Served> {
        connection.flush(|depends_on| self.shared.may_send(depends_on))?;
        if connection.gives_up(self.shared.refusal()) {
            tracing::warn!(
                client = connection.client,
                "a connection was closed: its writes are not recorded, because the journal refuses writes"
            );
            return Ok(Served::Close);
        }
        if connection.awaits_journal() {
            self.loop_queue.await_journal(index);
        } else if connection.run_state == RunState::Running && !connection.input.is_empty() {
            // Requests that may have waited for the output to become smaller.
            connection.ready.writable = true;
        }
        if connection.run_state == RunState::Closing {
            return self.close_when_sent(connection, index);
        }
        connection.watch_writable(&self.registry, token(index))?;
        Ok(Served::KeepOpen)
    }

    /// Sends the replies, or holds them until the round's records are safe.
    fn send(&mut self, connection: &mut Connection, index: usize) -> io::Result<()> {
        self.args.clear();
        let depends_on = std::mem::take(&mut self.depends_on);
        if self.reply.is_empty() {
            return Ok(());
        }
        // Nothing is handed to the kernel here: while a thread waits for the disk, no connection is in use.
        let sent = if self.shared.may_send(depends_on) {
            connection.send(self.reply.as_bytes())
        } else {
            connection.hold(depends_on, Bytes::copy_from_slice(self.reply.as_bytes()));
            self.note_held(index);
            Ok(())
        };
        if self.reply.len() > 4 * READ_BYTES {
            self.reply.take();
        } else {
            self.reply.truncate(0);
        }
        sent
    }
}

/// Whether a reply may tell of data. The reply to a command that tells of none does not wait for records of others, so
/// that a client finds the server alive while the disk is slow.
fn reveals_data(args: &[Bytes]) -> bool {
    let name = args.first().map(|name| &name[..]).unwrap_or_default();
    let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
    let tells_nothing = name.len() <= 6
        && [&b"PING"[..], b"ECHO", b"TIME", b"AUTH", b"HELLO", b"SELECT", b"CLIENT"]
            .into_iter()
            .any(is);
    !tells_nothing
}
