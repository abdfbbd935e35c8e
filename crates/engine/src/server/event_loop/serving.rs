//! Serving one connection: read, run, reply.
//!
//! ```text
//!   flush output ─▶ run_requests ─▶ read ─▶ run_requests ─▶ … ─▶ until no request, blocked or closed
//!                     └▶ run_buffer (executor's lock) ─▶ send
//! ```

use std::io;

use bytes::BytesMut;

use super::places::token;
use super::{EXECUTOR_PAUSE, EventLoop, PAUSE_BYTES, READ_BYTES};
use crate::server::connection::{Connection, Pace};
use crate::server::executor::Next;

/// The maximum size of buffered input.
const MAX_INPUT_BYTES: usize = 1 << 30;
/// The number of reads from one socket before other connections are served.
const READS_AT_ONCE: usize = 16;

/// Whether a connection stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Lives,
    Ends,
}

/// Why no more requests were run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// No complete request, or the next one cannot run now.
    Starved,
    /// The replies so far must be sent first.
    Full,
    /// The connection must be closed.
    Ended,
}

impl EventLoop {
    /// Serves one connection as far as possible now.
    pub(super) fn serve(&mut self, connection: &mut Connection, index: usize) -> Fate {
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
                    // A short read has emptied the socket, and the kernel reports later input. Only
                    // an end of stream that is already reported must still be read.
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
            // A disconnected client must not take an element that another blocked client waits for.
            return Ok(Fate::Ends);
        }
        if fate == Fate::Ends {
            connection.pace = Pace::Leaving;
            return self.take_leave(connection, index);
        }
        connection.watch_writable(&self.registry, token(index))?;
        Ok(Fate::Lives)
    }

    /// Closes a connection once all output is sent, or the peer has closed.
    fn take_leave(&self, connection: &mut Connection, index: usize) -> io::Result<Fate> {
        if connection.pending() == 0 || connection.ready.read_closed {
            return Ok(Fate::Ends);
        }
        connection.watch_writable(&self.registry, token(index))?;
        Ok(Fate::Lives)
    }

    /// Runs the requests that have arrived and sends the replies.
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
            // Copied, because a slice would keep the whole buffer alive.
            connection.input = BytesMut::from(&buffer[..]);
            buffer.clear();
            self.inbox = buffer;
        } else {
            connection.input = buffer;
        }
        Ok(fate)
    }

    /// Runs requests until none is complete, one cannot run, or much output is pending.
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
                        // The script has just ended: the loop's own thread runs this request.
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

    /// Sends the replies, or queues them until the journal has synced.
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
