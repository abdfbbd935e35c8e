//! Names of files: relative paths that every storage understands in the same way.

use object_store::path::Path as Key;

use crate::Error;

/// Most bytes of a name; S3 allows 1,024 with its prefix.
const MAX_NAME_BYTES: usize = 900;

/// Most bytes between two slashes; file systems allow 255, and a temporary name is longer than the name.
const MAX_SEGMENT_BYTES: usize = 200;

/// Checks a name. One name stands for one file: a second spelling of it is refused.
pub(crate) fn key(name: &str) -> Result<Key, Error> {
    let is_valid = name.len() <= MAX_NAME_BYTES && name.split('/').all(is_valid_segment);
    match Key::parse(name) {
        Ok(key) if is_valid && key.as_ref() == name => Ok(key),
        _ => Err(Error::Name(name.chars().take(100).collect())),
    }
}

fn is_valid_segment(segment: &str) -> bool {
    // A folder keeps half-written files as `name#1`.
    let is_odd = |c: char| c.is_control() || matches!(c, '\\' | '#');
    !matches!(segment, "" | "." | "..")
        && segment.len() <= MAX_SEGMENT_BYTES
        && !segment.contains(is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tickets_and_of_any_language_are_valid() {
        for name in [
            "tickets/ticket-01890a5d-ac96-774b-bcce-b302099a8057.pdf",
            "a",
            ".hidden",
            "ü/билет.pdf",
            "50% off?",
        ] {
            assert!(key(name).is_ok(), "{name}");
        }
    }
}
