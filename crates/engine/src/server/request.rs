//! Parsing requests: arrays of bulk strings, or inline commands for people with `nc`.
//!
//! ```text
//!   start ──'*' count──▶ arguments ──'$' length──▶ bytes ──▶ … ──▶ request
//!     └──── any other byte ──▶ inline line ──▶ request
//! ```
//!
//! The reader keeps its position in an incomplete request, so no argument is parsed twice. Announced
//! counts and lengths reserve no memory: memory grows only with bytes that have arrived. Limits and error
//! texts are those of Redis 7. After a protocol error the connection is closed.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

/// The maximum length of a line: an inline request, a count, a length.
const MAX_LINE: usize = 64 << 10;
/// The maximum length of an argument.
pub(super) const MAX_BULK: usize = 512 << 20;
/// Limits of a request before authentication.
const MAX_UNAUTHENTICATED_ARGS: i64 = 10;
const MAX_UNAUTHENTICATED_BULK: i64 = 16 << 10;

/// A protocol error; the text is the error reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ERR Protocol error: {0}")]
pub(super) struct BadRequest(String);

/// Whether a client is authenticated, or needs no password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthState {
    Unauthenticated,
    Authenticated,
}

/// The position in an incomplete request that begins at the first byte of the buffer.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The offset of the next byte to parse.
    at: usize,
    /// The number of arguments still missing; 0 between requests.
    missing: i64,
    /// The length of the argument that begins at `at`, once known.
    bulk: Option<usize>,
    args: Vec<Range<usize>>,
}

impl Reader {
    /// Takes the next complete request out of `buffer` into `args`; `false` if it is incomplete.
    pub(super) fn next(
        &mut self,
        buffer: &mut BytesMut,
        auth_state: AuthState,
        args: &mut Vec<Bytes>,
    ) -> Result<bool, BadRequest> {
        args.clear();
        loop {
            if self.missing == 0 {
                match buffer.first() {
                    None => return Ok(false),
                    Some(b'*') => {}
                    Some(_) => match inline(buffer, args)? {
                        Line::Missing => return Ok(false),
                        Line::Empty => continue,
                        Line::Request => return Ok(true),
                    },
                }
                let Some(line) = self.line(buffer, 1, "too big mbulk count string")? else {
                    return Ok(false);
                };
                self.missing = number(&buffer[line], i64::from(i32::MAX))
                    .ok_or_else(|| bad("invalid multibulk length"))?;
                if auth_state == AuthState::Unauthenticated
                    && self.missing > MAX_UNAUTHENTICATED_ARGS
                {
                    return Err(bad("unauthenticated multibulk length"));
                }
                if self.missing <= 0 {
                    let _ = buffer.split_to(self.at);
                    *self = Self::default();
                    continue;
                }
            }
            if !self.arguments(buffer, auth_state)? {
                return Ok(false);
            }
            let request = buffer.split_to(self.at).freeze();
            args.extend(self.args.drain(..).map(|range| request.slice(range)));
            self.at = 0;
            return Ok(true);
        }
    }

    /// Parses the missing arguments; `false` if they have not arrived.
    fn arguments(&mut self, buffer: &BytesMut, auth_state: AuthState) -> Result<bool, BadRequest> {
        while self.missing > 0 {
            let len = match self.bulk {
                Some(len) => len,
                None => {
                    match buffer.get(self.at) {
                        None => return Ok(false),
                        Some(b'$') => {}
                        Some(other) => {
                            let other = char::from(*other);
                            return Err(BadRequest(format!("expected '$', got '{other}'")));
                        }
                    }
                    let start = self.at + 1;
                    let Some(line) = self.line(buffer, start, "too big bulk count string")? else {
                        return Ok(false);
                    };
                    let len = number(&buffer[line], MAX_BULK as i64)
                        .filter(|len| *len >= 0)
                        .ok_or_else(|| bad("invalid bulk length"))?;
                    if auth_state == AuthState::Unauthenticated && len > MAX_UNAUTHENTICATED_BULK {
                        return Err(bad("unauthenticated bulk length"));
                    }
                    *self.bulk.insert(len as usize)
                }
            };
            if buffer.len() < self.at + len + 2 {
                return Ok(false);
            }
            self.args.push(self.at..self.at + len);
            self.at += len + 2;
            self.missing -= 1;
            self.bulk = None;
        }
        Ok(true)
    }

    /// The line that begins at `start`, without its line end; moves `at` behind it.
    fn line(
        &mut self,
        buffer: &BytesMut,
        start: usize,
        too_long: &str,
    ) -> Result<Option<Range<usize>>, BadRequest> {
        match memchr::memchr(b'\r', &buffer[start..]) {
            Some(len) if buffer.len() >= start + len + 2 => {
                self.at = start + len + 2;
                Ok(Some(start..start + len))
            }
            Some(_) => Ok(None),
            None if buffer.len() - start > MAX_LINE => Err(bad(too_long)),
            None => Ok(None),
        }
    }
}

enum Line {
    Missing,
    Empty,
    Request,
}

fn inline(buffer: &mut BytesMut, args: &mut Vec<Bytes>) -> Result<Line, BadRequest> {
    let Some(end) = memchr::memchr(b'\n', buffer) else {
        let too_long = buffer.len() > MAX_LINE;
        return if too_long { Err(bad("too big inline request")) } else { Ok(Line::Missing) };
    };
    let line = buffer.split_to(end + 1);
    let line = &line[..end];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let words = split(line).ok_or_else(|| bad("unbalanced quotes in request"))?;
    args.extend(words.into_iter().map(Bytes::from));
    Ok(if args.is_empty() { Line::Empty } else { Line::Request })
}

/// Splits a line into words as a shell does: `"a\n\x20b" 'c d' e`; `None` if a quote is not closed.
fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        let start = rest.iter().position(|byte| !is_space(*byte)).unwrap_or(rest.len());
        rest = &rest[start..];
        if rest.is_empty() {
            return Some(words);
        }
        let mut word = Vec::new();
        loop {
            match rest {
                [] => break,
                [space, ..] if is_space(*space) || *space == 0 => break,
                [quote @ (b'"' | b'\''), tail @ ..] => {
                    rest = quoted(*quote, tail, &mut word)?;
                    // A closing quote must be followed by a space or the end of the line.
                    if rest.first().is_some_and(|byte| !is_space(*byte)) {
                        return None;
                    }
                    break;
                }
                [byte, tail @ ..] => {
                    word.push(*byte);
                    rest = tail;
                }
            }
        }
        // For Redis a NUL ends the line; without this the loop would not end.
        if let [0, ..] = rest {
            rest = &[];
        }
        words.push(word);
    }
}

/// Like C's `isspace`.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// Reads up to the closing quote; returns the rest behind it.
fn quoted<'a>(quote: u8, mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [end, tail @ ..] if *end == quote => return Some(tail),
            [b'\\', b'\'', tail @ ..] if quote == b'\'' => {
                word.push(b'\'');
                tail
            }
            [b'\\', b'x', high, low, tail @ ..]
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push((hex(*high) << 4) | hex(*low));
                tail
            }
            [b'\\', escaped, tail @ ..] if quote == b'"' => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                tail
            }
            [byte, tail @ ..] => {
                word.push(*byte);
                tail
            }
        };
    }
}

fn hex(digit: u8) -> u8 {
    char::from(digit).to_digit(16).unwrap_or_default() as u8
}

/// A decimal number up to `most`, without leading zeros or a plus sign.
fn number(text: &[u8], most: i64) -> Option<i64> {
    crate::number::parse_int(text).filter(|value| *value <= most)
}

fn bad(text: &str) -> BadRequest {
    BadRequest(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], piece: usize) -> (Vec<Vec<Bytes>>, Option<String>) {
        let (mut reader, mut buffer, mut args) = (Reader::default(), BytesMut::new(), Vec::new());
        let mut requests = Vec::new();
        for piece in bytes.chunks(piece) {
            buffer.extend_from_slice(piece);
            loop {
                match reader.next(&mut buffer, AuthState::Authenticated, &mut args) {
                    Ok(true) => requests.push(args.clone()),
                    Ok(false) => break,
                    Err(error) => return (requests, Some(error.to_string())),
                }
            }
        }
        (requests, None)
    }

    #[test]
    fn requests_are_the_same_however_they_arrive() {
        let bytes = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n\r\nPING  a\r\n*0\r\n*-1\r\n*1\r\n$0\r\n\r\n\
                      set k \"a b\\x41\\n\" 'c\\'d'\n";
        let whole = all(bytes, bytes.len());
        assert_eq!(whole.1, None);
        let expected: [&[&[u8]]; 4] =
            [&[b"GET", b"k"], &[b"PING", b"a"], &[b""], &[b"set", b"k", b"a bA\n", b"c'd"]];
        assert_eq!(whole.0, expected);
        for piece in 1..bytes.len() {
            assert_eq!(all(bytes, piece), whole, "in pieces of {piece}");
        }
    }

    #[test]
    fn what_is_not_a_request_is_refused_in_the_words_of_redis() {
        for (bytes, error) in [
            (&b"*1\r\n+3\r\n"[..], "expected '$', got '+'"),
            (b"*x\r\n", "invalid multibulk length"),
            (b"*2147483648\r\n", "invalid multibulk length"),
            (b"*1\r\n$-1\r\n", "invalid bulk length"),
            (b"*1\r\n$1073741824\r\n", "invalid bulk length"),
            (b"*1\r\n$03\r\n", "invalid bulk length"),
            (b"get \"k\r\n", "unbalanced quotes in request"),
            (b"get 'k'x\r\n", "unbalanced quotes in request"),
            (&[b'a'; MAX_LINE + 1], "too big inline request"),
            (&[[b'*'; 1], [b'1'; 1]].concat().repeat(MAX_LINE), "too big mbulk count string"),
        ] {
            let found = all(bytes, bytes.len()).1;
            assert_eq!(found, Some(format!("ERR Protocol error: {error}")));
        }
    }

    #[test]
    fn a_stranger_may_send_little() {
        let (mut reader, mut args) = (Reader::default(), Vec::new());
        let mut next = |bytes: &[u8]| {
            reader = Reader::default();
            reader.next(&mut BytesMut::from(bytes), AuthState::Unauthenticated, &mut args)
        };
        assert_eq!(next(b"*11\r\n"), Err(bad("unauthenticated multibulk length")));
        assert_eq!(next(b"*1\r\n$16385\r\n"), Err(bad("unauthenticated bulk length")));
        assert_eq!(next(b"*1\r\n$4\r\nPING\r\n"), Ok(true));
    }

    #[test]
    fn an_announced_length_costs_no_memory() {
        let (mut reader, mut args) = (Reader::default(), Vec::new());
        let mut buffer = BytesMut::from(&b"*2000000000\r\n$536870912\r\nabc"[..]);
        assert_eq!(reader.next(&mut buffer, AuthState::Authenticated, &mut args), Ok(false));
        assert!(buffer.capacity() < 1000 && reader.args.capacity() < 100);
    }

    #[test]
    fn random_bytes_neither_panic_nor_loop() {
        let mut random = fastrand::Rng::with_seed(7);
        let alphabet = b"*$0123456789-+\r\n\"'\\x \0abPING";
        for _ in 0..20_000 {
            let len = random.usize(..60);
            let bytes: Vec<u8> =
                (0..len).map(|_| alphabet[random.usize(..alphabet.len())]).collect();
            let piece = random.usize(1..=len.max(1));
            let whole = all(&bytes, len.max(1));
            let pieces = all(&bytes, piece);
            assert_eq!(whole, pieces, "{}", bytes.escape_ascii());
        }
    }
}
