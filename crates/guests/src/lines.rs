//! The lines of an NDJSON file, each with its number, in bounded memory. Blank lines are passed over.

use std::io::{self, BufRead, Read};

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'l> {
    /// Its number, from 1.
    pub number: u64,
    /// Its bytes; `None`: it is longer than allowed.
    pub bytes: Option<&'l [u8]>,
}

/// Reads lines.
#[derive(Debug)]
pub struct Lines<R> {
    text: R,
    longest: usize,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// Lines of at most so many bytes.
    pub fn new(text: R, longest: usize) -> Self {
        Self { text, longest, line: Vec::new(), number: 0 }
    }

    /// Reads the next line that is not blank; `None` at the end.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            self.number += 1;
            self.line.clear();
            // One byte more, to tell a line of the greatest length from a longer one.
            let limit = self.longest as u64 + 2;
            if self.text.by_ref().take(limit).read_until(b'\n', &mut self.line)? == 0 {
                return Ok(None);
            }
            if self.line.len() > self.longest && !self.line.ends_with(b"\n") {
                skip_line(&mut self.text)?;
                return Ok(Some(Line { number: self.number, bytes: None }));
            }
            if !self.line.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(Line { number: self.number, bytes: Some(&self.line) }));
            }
        }
    }
}

/// The message about a line that is no JSON.
pub fn not_json(error: &serde_json::Error) -> String {
    // The parser counts lines within this line.
    let told = error.to_string();
    let told = told.split(" at line ").next().unwrap_or_default();
    format!("is not valid JSON: {told}, at column {}", error.column())
}

/// Reads over the rest of a line.
fn skip_line(text: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = text.fill_buf()?;
        let (length, is_over) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        text.consume(length);
        if is_over {
            return Ok(());
        }
    }
}
