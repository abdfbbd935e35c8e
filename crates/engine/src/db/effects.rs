//! Effects: the writes of a command, as commands that give the same result whenever they are replayed.
//!
//! Effects are appended to one buffer. A client's command, a transaction or a script takes all of its
//! effects at once, as one record for the journal; so it is replayed whole or not at all.
//!
//! ```text
//!   record = effect …      effect = database (1 byte) · count · (length · bytes) …
//! ```
//!
//! Counts and lengths are LEB128. Replay runs with the clock at 0, where no key expires.
//!
//! A record has a size limit. A command that could exceed it is refused before it changes a key
//! ([`Effects::has_room`]): a change that the journal cannot hold would be lost.

use bytes::{Buf, Bytes};

/// The most bytes that the encoding adds to an argument, and a rewritten effect to its command.
const ARGUMENT_OVERHEAD: usize = 10;
const EFFECT_OVERHEAD: usize = 128;

/// Effects that have not been taken yet.
#[derive(Debug)]
pub(crate) struct Effects {
    bytes: Vec<u8>,
    off: bool,
    limit: usize,
}

impl Default for Effects {
    fn default() -> Self {
        Self { bytes: Vec::new(), off: false, limit: crate::journal::MAX_RECORD }
    }
}

/// A record that does not decode; the engine never writes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a record of effects ends in the middle of an effect, or holds an effect that this version does not know"
)]
pub(crate) struct Malformed;

impl Effects {
    /// Adds an effect on a database.
    pub(crate) fn push<T: AsRef<[u8]>>(&mut self, db: usize, args: &[T]) {
        if self.off {
            return;
        }
        self.bytes.push(db as u8);
        number(&mut self.bytes, args.len());
        for arg in args {
            number(&mut self.bytes, arg.as_ref().len());
            self.bytes.extend_from_slice(arg.as_ref());
        }
    }

    /// Whether there are no effects.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The size limit of one record.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Sets the size limit of one record.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Whether an effect with these arguments fits into the record.
    pub(crate) fn has_room<T: AsRef<[u8]>>(&self, args: &[T]) -> bool {
        self.fits(Self::size_of(args))
    }

    /// Whether effects of this size, as [`Effects::size_of`] counts it, fit into the record.
    pub(crate) fn fits(&self, size: usize) -> bool {
        self.off
            || self.bytes.len().saturating_add(size).saturating_add(EFFECT_OVERHEAD) <= self.limit
    }

    /// The most bytes that an effect takes in a record.
    pub(crate) fn size_of<T: AsRef<[u8]>>(args: &[T]) -> usize {
        args.iter().map(|arg| arg.as_ref().len() + ARGUMENT_OVERHEAD).sum()
    }

    /// All effects as one record; call [`Effects::clear`] after copying it.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes all effects as one record; the executor appends [`Effects::as_bytes`] without a copy.
    #[cfg(test)]
    pub(crate) fn take(&mut self) -> Bytes {
        let record = Bytes::copy_from_slice(&self.bytes);
        self.clear();
        record
    }

    /// Clears all effects.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > 1 << 20 {
            self.bytes = Vec::new();
        }
    }

    /// Stops recording: without a journal, or during its replay.
    pub(crate) fn pause(&mut self) {
        self.off = true;
    }

    /// Resumes recording.
    pub(crate) fn resume(&mut self) {
        self.off = false;
    }
}

/// Decodes a record: the database and arguments of each effect.
pub(crate) fn decode(
    record: &Bytes,
) -> impl Iterator<Item = Result<(usize, Vec<Bytes>), Malformed>> {
    let mut rest = record.clone();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let effect = read_effect(&mut rest);
        if effect.is_none() {
            rest.clear();
        }
        Some(effect.ok_or(Malformed))
    })
}

fn read_effect(rest: &mut Bytes) -> Option<(usize, Vec<Bytes>)> {
    let db = usize::from(rest.try_get_u8().ok()?);
    let count = read_number(rest)?;
    let mut args = Vec::with_capacity(count.min(1024));
    for _ in 0..count {
        let len = read_number(rest)?;
        args.push((len <= rest.len()).then(|| rest.split_to(len))?);
    }
    Some((db, args))
}

fn number(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn read_number(rest: &mut Bytes) -> Option<usize> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let byte = rest.try_get_u8().ok()?;
        value |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_come_back_as_they_were_written() {
        let mut effects = Effects::default();
        let long = vec![b'x'; 70_000];
        effects.push(0, &[&b"SET"[..], b"k", &long]);
        effects.push(15, &[&b"DEL"[..], b""]);
        let record = effects.take();
        let decoded: Vec<_> = decode(&record).collect();
        let expected = [
            Ok((0, vec![Bytes::from_static(b"SET"), Bytes::from_static(b"k"), long.into()])),
            Ok((15, vec![Bytes::from_static(b"DEL"), Bytes::new()])),
        ];
        assert_eq!(decoded, expected);
        assert!(effects.is_empty());
    }

    #[test]
    fn a_cut_record_is_an_error_and_not_a_panic() {
        let mut effects = Effects::default();
        effects.push(3, &[&b"SET"[..], b"key", b"value"]);
        let record = effects.take();
        for len in 1..record.len() {
            assert_eq!(decode(&record.slice(..len)).last(), Some(Err(Malformed)), "{len}");
        }
    }
}
