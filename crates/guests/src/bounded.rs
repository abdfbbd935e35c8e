//! JSON whose texts and numbers have a greatest length: the parser holds each of them in memory as a whole.

use std::io::{self, Read};

/// Longest text or number, in bytes.
pub(crate) const LONGEST: usize = 64 << 10;

/// Bytes of JSON, which end with an error where a text or number becomes too long.
pub(crate) struct Bounded<R> {
    json: R,
    is_in_text: bool,
    is_escaped: bool,
    /// Bytes of the present text or number.
    length: usize,
}

impl<R: Read> Bounded<R> {
    pub(crate) fn new(json: R) -> Self {
        Self { json, is_in_text: false, is_escaped: false, length: 0 }
    }

    /// Whether the reading ended because of a text or number that is too long.
    pub(crate) fn is_too_long(&self) -> bool {
        self.length > LONGEST
    }

    fn see(&mut self, byte: u8) {
        self.length += 1;
        if self.is_in_text {
            self.is_in_text = byte != b'"' || self.is_escaped;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            return;
        }
        match byte {
            b'"' => (self.is_in_text, self.is_escaped, self.length) = (true, false, 0),
            b'{' | b'}' | b'[' | b']' | b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => {
                self.length = 0
            }
            _ => {}
        }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_too_long() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let count = self.json.read(buffer)?;
        for byte in &buffer[..count] {
            self.see(*byte);
            if self.is_too_long() {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_read(json: &str) -> bool {
        io::copy(&mut Bounded::new(json.as_bytes()), &mut io::sink()).is_ok()
    }

    #[test]
    fn long_texts_and_numbers_end_the_reading_and_long_files_do_not() {
        let long = "x".repeat(LONGEST - 1);
        assert!(is_read(&format!("[{}]", format!("\"{long}\", ").repeat(10))));
        assert!(is_read(&" ".repeat(LONGEST * 2)));
        assert!(!is_read(&format!("[\"{long}xx")));
        assert!(!is_read(&format!("[\"a\\\"{long}xx")), "an escaped quote ends no text");
        assert!(!is_read(&"7".repeat(LONGEST + 1)));
    }
}
