//! Strings: a [`Blob`](crate::blob::Blob), and the rules for ranges and encodings.
//!
//! Redis stores integers as numbers; here they stay text, and the encoding is derived from the
//! text.

use crate::number::parse_int;

/// The maximum length of a string (Redis's `proto-max-bulk-len`).
pub(crate) const MAX_LEN: usize = 512 * 1024 * 1024;

/// The encoding Redis would use for this text.
pub(crate) fn encoding(text: &[u8]) -> &'static str {
    if parse_int(text).is_some() {
        "int"
    } else if text.len() <= 44 {
        "embstr"
    } else {
        "raw"
    }
}

/// The bytes from `start` to `end`, both inclusive; negative positions count from the end.
pub(crate) fn range(text: &[u8], start: i64, end: i64) -> &[u8] {
    let len = text.len() as i64;
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let start = from_end(start, len).max(0);
    let end = from_end(end, len).max(0).min(len - 1);
    if start > end || len == 0 { &[] } else { &text[start as usize..=end as usize] }
}

/// Overwrites bytes at an offset; a gap is filled with zeros.
pub(crate) fn overwrite(text: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if text.len() < end {
        text.resize(end, 0);
    }
    text[offset..end].copy_from_slice(bytes);
}

fn from_end(index: i64, len: i64) -> i64 {
    if index < 0 { index.saturating_add(len) } else { index }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_count_from_both_ends() {
        let text = b"This is a string";
        for (start, end, expected) in [
            (0, 3, &b"This"[..]),
            (-3, -1, b"ing"),
            (0, -1, text),
            (10, 100, b"string"),
            (5, 3, b""),
            (-1, -5, b""),
            (-100, 3, b"This"),
            (0, -100, b"T"),
        ] {
            assert_eq!(range(text, start, end), expected, "{start} {end}");
        }
    }
}
