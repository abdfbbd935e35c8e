//! One client's socket, and the bytes on their way in and out of it.
//!
//! An idle connection keeps no buffers: input is read into a buffer of its event loop, and only what is
//! left of a request that has not arrived whole is kept here; output is kept only when the socket does
//! not take it, or when the journal has not yet made durable what it tells of.

use std::collections::VecDeque;
use std::io::{self, Read, Write};

use bytes::{Buf, Bytes, BytesMut};
use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

use super::event_loop::PAUSE_BYTES;
use super::mail::ClientId;
use super::request::{Reader, Trust};
use super::shared::Tells;

/// A socket of either kind.
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

    /// The addresses of both ends, as `CLIENT LIST` shows them.
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

/// Why a connection runs no commands, if so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pace {
    /// It runs what arrives.
    Running,
    /// Its command waits for a key; mail will say when it goes on.
    Waiting,
    /// This command waits for room in the journal.
    Held(Vec<Bytes>),
    /// It runs nothing more, and ends when everything is sent.
    Leaving,
}

/// What the kernel has said about a socket and nobody has acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Readiness {
    pub(super) readable: bool,
    /// The other end has closed its half: nothing comes after what can still be read.
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

/// A connected client, as its event loop sees it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: Stream,
    pub(super) client: ClientId,
    pub(super) reader: Reader,
    /// The beginning of a request that has not arrived whole, or requests that may not run yet.
    pub(super) input: BytesMut,
    pub(super) pace: Pace,
    pub(super) trust: Trust,
    /// Whether the executor knows it.
    pub(super) introduced: bool,
    /// Whether a command was answered with `BUSY`, which spoils a transaction.
    pub(super) told_busy: bool,
    pub(super) ready: Readiness,
    /// Bytes that the socket has not taken.
    output: BytesMut,
    /// Bytes that may not be sent before the journal is durable up to what they tell of.
    held: VecDeque<(Tells, Bytes)>,
    held_bytes: usize,
    /// Whether the kernel was asked to say when the socket takes more.
    watches_writable: bool,
}

impl Connection {
    pub(super) fn new(stream: Stream, client: ClientId, trust: Trust) -> Self {
        Self {
            stream,
            client,
            reader: Reader::default(),
            input: BytesMut::new(),
            pace: Pace::Running,
            trust,
            introduced: false,
            told_busy: false,
            ready: Readiness::default(),
            output: BytesMut::new(),
            held: VecDeque::new(),
            held_bytes: 0,
            watches_writable: false,
        }
    }

    /// Whether there is more to read that may run.
    pub(super) fn has_more(&self) -> bool {
        self.ready.readable && self.pace == Pace::Running && self.pending() < PAUSE_BYTES
    }

    /// Bytes that wait to be sent.
    pub(super) fn pending(&self) -> usize {
        self.output.len() + self.held_bytes
    }

    /// Whether some of them wait for the journal.
    pub(super) fn awaits_journal(&self) -> bool {
        !self.held.is_empty()
    }

    /// Adds bytes that wait for the journal.
    pub(super) fn hold(&mut self, tells: Tells, bytes: Bytes) {
        self.held_bytes += bytes.len();
        self.held.push_back((tells, bytes));
    }

    /// Sends bytes, or keeps what the socket does not take now.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.held.is_empty() {
            // Never overtake what waits.
            let (last, _) = self.held[self.held.len() - 1];
            self.hold(last, Bytes::copy_from_slice(bytes));
            return Ok(());
        }
        let mut rest = bytes;
        if self.output.is_empty() {
            while !rest.is_empty() {
                match self.stream.write(rest) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => rest = &rest[written..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
        self.output.extend_from_slice(rest);
        Ok(())
    }

    /// Sends what waited, as far as the socket and the journal, by `may_send`, allow.
    pub(super) fn flush(&mut self, may_send: impl Fn(Tells) -> bool) -> io::Result<()> {
        loop {
            while !self.output.is_empty() {
                match self.stream.write(&self.output) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => self.output.advance(written),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
            self.output = BytesMut::new();
            while let Some((tells, _)) = self.held.front()
                && may_send(*tells)
                && let Some((_, bytes)) = self.held.pop_front()
            {
                self.held_bytes -= bytes.len();
                self.output.extend_from_slice(&bytes);
            }
            if self.output.is_empty() {
                return Ok(());
            }
        }
    }

    /// Asks the kernel to say when the socket takes more, or no longer to.
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
