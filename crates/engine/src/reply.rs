//! Replies, written as RESP bytes.
//!
//! Commands write into a [`Reply`] and never into a socket, so that the same command serves
//! clients, transactions and scripts. Scripts parse the RESP bytes into Lua values, as in Redis.

use bytes::BytesMut;

/// The protocol version of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// RESP 2; the default, also of scripts.
    Resp2,
    /// RESP 3, since Redis 6: maps, sets, doubles, booleans, nulls and pushes have their own types.
    Resp3,
}

/// A reply being written.
#[derive(Debug)]
pub(crate) struct Reply {
    bytes: BytesMut,
    protocol: Protocol,
}

impl Reply {
    /// An empty reply.
    pub(crate) fn new(protocol: Protocol) -> Self {
        Self { bytes: BytesMut::new(), protocol }
    }

    /// The protocol of the reply.
    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Switches the protocol for the following values.
    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// The number of bytes written so far.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether no bytes were written.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Removes all bytes after the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// The bytes written so far.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the bytes and leaves an empty reply.
    pub(crate) fn take(&mut self) -> BytesMut {
        self.bytes.split()
    }

    /// Appends values that were written into another reply of the same protocol.
    pub(crate) fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
    }

    /// `+OK`.
    pub(crate) fn ok(&mut self) {
        self.bytes.extend_from_slice(b"+OK\r\n");
    }

    /// A simple string.
    pub(crate) fn status(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error; `text` begins with its code (`ERR …`, `WRONGTYPE …`).
    pub(crate) fn error(&mut self, text: &str) {
        self.line(b'-', text.as_bytes());
    }

    /// An error that may quote a client's bytes; line breaks become spaces.
    pub(crate) fn error_bytes(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(b"-");
        let plain = |byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte };
        self.bytes.extend(text.iter().map(plain));
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A double; a bulk string in RESP 2.
    pub(crate) fn double(&mut self, value: f64) {
        let text = crate::number::format_float(value);
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => self.line(b',', text.as_bytes()),
        }
    }

    /// An integer.
    pub(crate) fn int(&mut self, value: i64) {
        self.line(b':', itoa::Buffer::new().format(value).as_bytes());
    }

    /// A boolean; 1 or 0 in RESP 2.
    pub(crate) fn boolean(&mut self, value: bool) {
        match self.protocol {
            Protocol::Resp2 => self.int(value.into()),
            Protocol::Resp3 => self.line(b'#', if value { b"t" } else { b"f" }),
        }
    }

    /// A bulk string.
    pub(crate) fn bulk(&mut self, value: &[u8]) {
        self.line(b'$', itoa::Buffer::new().format(value.len()).as_bytes());
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A verbatim text; a bulk string in RESP 2.
    pub(crate) fn verbatim(&mut self, text: &str) {
        self.verbatim_as(b"txt", text.as_bytes());
    }

    /// A verbatim text with a format of three letters; a bulk string in RESP 2.
    pub(crate) fn verbatim_as(&mut self, format: &[u8], text: &[u8]) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                self.line(b'=', itoa::Buffer::new().format(text.len() + 4).as_bytes());
                let padded = format.iter().chain(b"   ").take(3);
                self.bytes.extend(padded.chain(b":").chain(text).chain(b"\r\n"));
            }
        }
    }

    /// A big number, as text; a bulk string in RESP 2.
    pub(crate) fn big_number(&mut self, text: &[u8]) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => self.line(b'(', text),
        }
    }

    /// A null.
    pub(crate) fn nil(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// A null array.
    pub(crate) fn nil_array(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The header of an array of `len` elements.
    pub(crate) fn array(&mut self, len: usize) {
        self.line(b'*', itoa::Buffer::new().format(len).as_bytes());
    }

    /// The header of a map of `pairs` entries; an array of twice that length in RESP 2.
    pub(crate) fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(pairs * 2),
            Protocol::Resp3 => self.line(b'%', itoa::Buffer::new().format(pairs).as_bytes()),
        }
    }

    /// The header of a set; an array in RESP 2.
    pub(crate) fn set(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(len),
            Protocol::Resp3 => self.line(b'~', itoa::Buffer::new().format(len).as_bytes()),
        }
    }

    /// The header of a push message; an array in RESP 2.
    pub(crate) fn push(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(len),
            Protocol::Resp3 => self.line(b'>', itoa::Buffer::new().format(len).as_bytes()),
        }
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.bytes.extend_from_slice(&[kind]);
        self.bytes.extend_from_slice(text);
        self.bytes.extend_from_slice(b"\r\n");
    }
}
