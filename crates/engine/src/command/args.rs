//! Parsing arguments: numbers, words and ranges, with Redis's errors.

use bytes::Bytes;

use crate::error::{Error, NOT_FLOAT, NOT_INTEGER, NOT_POSITIVE, Result, SYNTAX};
use crate::number::{parse_float, parse_int};

/// An integer.
pub(super) fn int(arg: &[u8]) -> Result<i64> {
    parse_int(arg).ok_or(NOT_INTEGER)
}

/// A float.
pub(super) fn float(arg: &[u8]) -> Result<f64> {
    parse_float(arg).ok_or(NOT_FLOAT)
}

/// A count of zero or more.
pub(super) fn count(arg: &[u8]) -> Result<usize> {
    parse_int(arg).and_then(|count| usize::try_from(count).ok()).ok_or(NOT_POSITIVE)
}

/// A count of one or more; otherwise the given error.
pub(super) fn positive_or(arg: &[u8], error: Error) -> Result<usize> {
    match parse_int(arg) {
        Some(count) if count > 0 => Ok(count as usize),
        _ => Err(error),
    }
}

/// A count that may be negative, where the sign has a meaning.
pub(super) fn signed_count(arg: &[u8]) -> Result<i64> {
    let error = || {
        let most = i64::MAX;
        Error::quoting(format!("ERR value is out of range, value must between -{most} and {most}"))
    };
    Some(int(arg)?).filter(|count| *count != i64::MIN).ok_or_else(error)
}

/// Whether an argument equals a word, in any case.
pub(super) fn is(arg: &[u8], word: &str) -> bool {
    arg.eq_ignore_ascii_case(word.as_bytes())
}

/// A reader of options.
#[derive(Debug)]
pub(super) struct Options<'a> {
    rest: &'a [Bytes],
}

impl<'a> Options<'a> {
    pub(super) fn new(rest: &'a [Bytes]) -> Self {
        Self { rest }
    }

    /// The next argument.
    pub(super) fn next(&mut self) -> Option<&'a Bytes> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// The value of an option; a syntax error if it is missing.
    pub(super) fn value(&mut self) -> Result<&'a Bytes> {
        self.next().ok_or(SYNTAX)
    }

    /// The number of remaining arguments.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// The remaining arguments.
    pub(super) fn rest(&self) -> &'a [Bytes] {
        self.rest
    }
}

/// The positions from `start` to `end`, both inclusive; negative positions count from the end.
pub(super) fn positions(start: i64, end: i64, len: usize) -> std::ops::Range<usize> {
    let len = len as i64;
    let start = if start < 0 { start.saturating_add(len).max(0) } else { start };
    let end = if end < 0 { end.saturating_add(len) } else { end.min(len - 1) };
    if start > end || start >= len { 0..0 } else { start as usize..end as usize + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_clamped_to_the_length() {
        for (start, end, expected) in [
            (0, -1, 0..5),
            (-2, -1, 3..5),
            (-100, 100, 0..5),
            (3, 1, 0..0),
            (5, 9, 0..0),
            (0, -6, 0..0),
            (i64::MIN, i64::MAX, 0..5),
            (2, 2, 2..3),
        ] {
            assert_eq!(positions(start, end, 5), expected, "{start} {end}");
        }
    }
}
