//! One client's socket with its input and output buffers.
//!
//! An idle connection keeps no buffers. Input is read into a buffer of the event loop; only an
//! incomplete request is kept here. Output is kept here only if the socket is full, or if the reply
//! depends on records that are not safe yet: written to the kernel, or synced under `appendfsync always`.
//!
//! A write that the disk refuses (full, failing) has happened in memory and is not recorded. Its reply is neither a
//! success nor a failure, so it is held while the journal retries. After [`HELD_LIMIT`] the connection is closed: the
//! client learns, as after a crash, that the outcome is unknown. Later writes are refused with `MISCONF`.
//!
//! ```text
//!              command blocks                     reply or timeout
//!   Running ──────────────────▶ Blocked ──────────────────────────▶ Running
//!      │  ▲
//!      │  └── the journal accepts writes again ──┐
//!      ├── a write while the journal is full ──▶ Held(command)
//!      └── QUIT, CLIENT KILL, protocol error ──▶ Closing ──all output sent──▶ closed
//! ```

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

use super::busy::Deferred;
use super::event_loop::PAUSE_BYTES;
use super::loop_queue::ClientId;
use super::request::{AuthState, Reader};
use super::shared::{DependsOn, Refusal};

/// How long replies to a client's own writes are held while the journal refuses writes.
const HELD_LIMIT: Duration = Duration::from_secs(5);

/// A TCP or unix stream.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match self {
                Self::Tcp(stream) => stream.read(into),
                Self::Unix(stream) => stream.read(into),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let written = match self {
                Self::Tcp(stream) => stream.write(bytes),
                Self::Unix(stream) => stream.write(bytes),
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    pub(super) fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
        }
    }

    /// The peer and local addresses, as `CLIENT LIST` shows them.
    pub(super) fn addresses(&self) -> (String, String) {
        match self {
            Self::Tcp(stream) => {
                let text = |address: io::Result<std::net::SocketAddr>| {
                    address.map_or_else(|_| "?:0".to_owned(), |address| address.to_string())
                };
                (text(stream.peer_addr()), text(stream.local_addr()))
            }
            Self::Unix(stream) => {
                let path = stream.local_addr().ok();
                let path = path.and_then(|own| Some(own.as_pathname()?.display().to_string()));
                let path = format!("{}:0", path.unwrap_or_default());
                (path.clone(), path)
            }
        }
    }
}

/// Whether a connection runs commands, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunState {
    /// Runs requests as they arrive.
    Running,
    /// Blocked on a key (`BLPOP` and others) until a
    /// [`LoopMessage`](super::loop_queue::LoopMessage) resumes it.
    Blocked,
    /// This write command waits until the journal has room.
    Held(Vec<Bytes>),
    /// Runs nothing more; closes when all output is sent.
    Closing,
}

/// Readiness reported by the kernel and not handled yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Readiness {
    pub(super) readable: bool,
    /// The peer has closed its writing half: no bytes follow those already in the socket.
    pub(super) read_closed: bool,
    pub(super) writable: bool,
}

impl Readiness {
    pub(super) fn merge(&mut self, other: Self) {
        self.readable |= other.readable;
        self.read_closed |= other.read_closed;
        self.writable |= other.writable;
    }
}

/// A client's connection, owned by its event loop.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: Stream,
    pub(super) client: ClientId,
    pub(super) reader: Reader,
    /// An incomplete request, or requests that may not run yet.
    pub(super) input: BytesMut,
    pub(super) run_state: RunState,
    pub(super) auth_state: AuthState,
    /// Whether the executor has a session for this client.
    pub(super) has_session: bool,
    /// Whether the client is between `MULTI` and `EXEC`.
    pub(super) in_transaction: bool,
    /// Changes of the session that wait until a script has ended.
    pub(super) deferred: Vec<Deferred>,
    pub(super) ready: Readiness,
    /// Bytes that the socket has not accepted yet.
    output: BytesMut,
    /// Replies that wait until the records they depend on are safe.
    held: VecDeque<(DependsOn, Bytes)>,
    held_bytes: usize,
    /// Since when replies are held while the journal refuses writes.
    refused_since: Option<Instant>,
    /// Whether the socket is registered for write readiness.
    watches_writable: bool,
}

impl Connection {
    pub(super) fn new(stream: Stream, client: ClientId, auth_state: AuthState) -> Self {
        Self {
            stream,
            client,
            reader: Reader::default(),
            input: BytesMut::new(),
            run_state: RunState::Running,
            auth_state,
            has_session: false,
            in_transaction: false,
            deferred: Vec::new(),
            ready: Readiness::default(),
            output: BytesMut::new(),
            held: VecDeque::new(),
            held_bytes: 0,
            refused_since: None,
            watches_writable: false,
        }
    }

    /// Whether the socket has more input that may run now.
    pub(super) fn has_more(&self) -> bool {
        self.ready.readable && self.run_state == RunState::Running && self.pending() < PAUSE_BYTES
    }

    /// The number of bytes that wait to be sent.
    pub(super) fn pending(&self) -> usize {
        self.output.len() + self.held_bytes
    }

    /// Whether some replies wait for the journal, and not for the socket.
    pub(super) fn awaits_journal(&self) -> bool {
        !self.held.is_empty() && self.output.is_empty()
    }

    /// Queues a reply that waits for the journal.
    pub(super) fn hold(&mut self, depends_on: DependsOn, bytes: Bytes) {
        self.held_bytes += bytes.len();
        self.held.push_back((depends_on, bytes));
    }

    /// Whether held replies have waited too long for a journal that refuses writes; call it after [`Self::flush`].
    pub(super) fn gives_up(&mut self, refusal: Refusal) -> bool {
        if self.held.is_empty() || refusal == Refusal::None {
            self.refused_since = None;
            return false;
        }
        let since = *self.refused_since.get_or_insert_with(Instant::now);
        refusal == Refusal::Permanent || since.elapsed() >= HELD_LIMIT
    }

    /// Sends bytes; keeps those that the socket does not accept.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.held.is_empty() {
            // Replies stay in order.
            let (last, _) = self.held[self.held.len() - 1];
            self.hold(last, Bytes::copy_from_slice(bytes));
            return Ok(());
        }
        if self.output.is_empty() {
            return self.write_or_keep(bytes);
        }
        self.output.extend_from_slice(bytes);
        Ok(())
    }

    /// Sends queued output as far as the socket and `may_send` (the journal) allow.
    pub(super) fn flush(&mut self, may_send: impl Fn(DependsOn) -> bool) -> io::Result<()> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.output.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        // An idle connection keeps no buffers.
        self.output = BytesMut::new();
        let ready = self.held.iter().take_while(|(depends_on, _)| may_send(*depends_on)).count();
        let bytes = match ready {
            0 => return Ok(()),
            1 => self.held.pop_front().map(|(_, bytes)| bytes).unwrap_or_default(),
            _ => {
                let mut joined = BytesMut::new();
                self.held.drain(..ready).for_each(|(_, bytes)| joined.extend_from_slice(&bytes));
                joined.freeze()
            }
        };
        self.held_bytes -= bytes.len();
        self.write_or_keep(&bytes)
    }

    /// Writes bytes to the socket and keeps those that it does not accept; nothing is queued before them.
    fn write_or_keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.output.extend_from_slice(rest);
        Ok(())
    }

    /// Registers or deregisters the socket for write readiness.
    pub(super) fn watch_writable(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let wanted = !self.output.is_empty();
        if wanted != self.watches_writable {
            let interest =
                if wanted { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
            registry.reregister(self.stream.source(), token, interest)?;
            self.watches_writable = wanted;
        }
        Ok(())
    }
}
