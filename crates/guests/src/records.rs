//! The records of a CSV file, one after the other, each with the line where it begins.
//!
//! Memory is bounded whatever the file is: of a long cell only the beginning is kept, with its length; of a record with very
//! many cells only the first ones. The reader says how much of a cell is kept. Lines are counted as editors count them: `\n`, `\r\n` and `\r` end one, also inside quotes.

use std::io::Read;

use csv_core::{ReadFieldResult, Reader, ReaderBuilder};

use crate::Error;

/// Bytes that are kept of one cell: more than the longest text of a ticket needs.
pub const KEPT: usize = 4 << 10;
/// Cells that are kept of one record.
pub const MOST_CELLS: usize = 1_000;
/// Bytes read at a time.
const CHUNK: usize = 32 << 10;

/// One record.
#[derive(Debug, Default)]
pub struct Record {
    /// The line where it begins.
    pub line: u64,
    cells: Vec<Cell>,
    used: usize,
    /// Cells beyond those that are kept.
    pub beyond: usize,
}

/// One cell.
#[derive(Debug, Default)]
pub struct Cell {
    kept: Vec<u8>,
    /// Bytes of the whole cell.
    pub length: usize,
}

impl Cell {
    fn push(&mut self, bytes: &[u8], most: usize) {
        self.length += bytes.len();
        let room = most.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Its text, cut if it is long. A cut may stand inside a letter.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.kept)
    }

    /// Whether only the beginning was kept.
    pub fn is_cut(&self) -> bool {
        self.length > self.kept.len()
    }

    fn is_blank(&self) -> bool {
        self.length == self.kept.len() && self.kept.iter().all(u8::is_ascii_whitespace)
    }
}

impl Record {
    /// Its cells, up to [`MOST_CELLS`].
    pub fn cells(&self) -> &[Cell] {
        &self.cells[..self.used]
    }

    /// No cell has a visible character.
    pub fn is_blank(&self) -> bool {
        self.beyond == 0 && self.cells().iter().all(Cell::is_blank)
    }

    /// Whether cells after the first `count` have content.
    pub fn has_more_than(&self, count: usize) -> bool {
        self.cells().iter().skip(count).any(|cell| !cell.is_blank())
            || self.beyond > 0 && count <= MOST_CELLS
    }

    fn clear(&mut self, line: u64) {
        (self.line, self.used, self.beyond) = (line, 0, 0);
    }

    /// The next cell, empty; `None`: it is one too many.
    fn next(&mut self) -> Option<&mut Cell> {
        if self.used == MOST_CELLS {
            self.beyond += 1;
            return None;
        }
        if self.used == self.cells.len() {
            self.cells.push(Cell::default());
        }
        self.used += 1;
        let cell = &mut self.cells[self.used - 1];
        cell.kept.clear();
        cell.length = 0;
        Some(cell)
    }
}

/// Reads records.
pub struct Records<R> {
    source: R,
    parser: Reader,
    kept: usize,
    input: Box<[u8]>,
    ready: std::ops::Range<usize>,
    lines: Lines,
}

impl<R: Read> Records<R> {
    /// Records whose first line has this number; [`KEPT`] bytes of each cell are kept.
    pub fn new(source: R, delimiter: u8, first_line: u64) -> Self {
        Self {
            source,
            kept: KEPT,
            parser: ReaderBuilder::new().delimiter(delimiter).build(),
            input: vec![0; CHUNK].into_boxed_slice(),
            ready: 0..0,
            lines: Lines { line: first_line, after_return: false },
        }
    }

    /// Keeps so many bytes of each cell from now on.
    #[must_use]
    pub fn keeping(self, kept: usize) -> Self {
        Self { kept, ..self }
    }

    /// Reads the next record; false at the end. Empty lines are no records.
    pub fn next(&mut self, record: &mut Record) -> Result<bool, Error> {
        loop {
            if self.ready.is_empty() && !self.fill()? {
                return Ok(false);
            }
            match self.input[self.ready.start] {
                end @ (b'\n' | b'\r') => self.lines.count(&[end]),
                _ => break,
            }
            self.ready.start += 1;
        }
        record.clear(self.lines.line);
        while !self.cell(record)? {}
        Ok(true)
    }

    /// Reads one cell; true if it is the last of its record.
    fn cell(&mut self, record: &mut Record) -> Result<bool, Error> {
        let opened = self.lines.line;
        let mut cell = record.next();
        let mut output = [0; KEPT];
        loop {
            let is_over = self.ready.is_empty() && !self.fill()?;
            let input = if is_over { b"\n" } else { &self.input[self.ready.clone()] };
            let (result, read, written) = self.parser.read_field(input, &mut output);
            if is_over {
                // A line break ends every cell but one whose quotes are open.
                return match result {
                    ReadFieldResult::Field { .. } => Ok(true),
                    _ => Err(unclosed(opened)),
                };
            }
            self.lines.count(&input[..read]);
            self.ready.start += read;
            if let Some(cell) = cell.as_mut() {
                cell.push(&output[..written], self.kept);
            }
            match result {
                ReadFieldResult::Field { record_end } => return Ok(record_end),
                ReadFieldResult::End => return Ok(true),
                ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
            }
        }
    }

    fn fill(&mut self) -> Result<bool, Error> {
        self.ready = 0..self.source.read(&mut self.input)?;
        Ok(!self.ready.is_empty())
    }
}

fn unclosed(line: u64) -> Error {
    Error::Unreadable(format!(
        "the quote that opens on line {line} is never closed: close it, or write it twice (\"\") if it is part of a text"
    ))
}

/// Counts lines.
struct Lines {
    line: u64,
    /// The last byte was `\r`, so that `\n` belongs to the same end.
    after_return: bool,
}

impl Lines {
    fn count(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\r' => self.line += 1,
                b'\n' if !self.after_return => self.line += 1,
                _ => {}
            }
            self.after_return = *byte == b'\r';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str) -> Result<Vec<(u64, Vec<String>)>, String> {
        let mut records = Records::new(text.as_bytes(), b',', 1);
        let (mut record, mut all) = (Record::default(), Vec::new());
        while records.next(&mut record).map_err(|error| error.to_string())? {
            let cells = record.cells().iter().map(|cell| cell.text().into_owned()).collect();
            all.push((record.line, cells));
        }
        Ok(all)
    }

    #[test]
    fn every_record_knows_its_line_whatever_ends_lines() {
        for end in ["\n", "\r\n", "\r"] {
            let text = ["a,b", "", "\"x", "y\",\"1\"\"2\"", "c,", "d"].join(end);
            let read = records(&text).unwrap();
            let lines: Vec<u64> = read.iter().map(|(line, _)| *line).collect();
            assert_eq!(lines, [1, 3, 5, 6], "{end:?}");
            assert_eq!(read[1].1, [format!("x{end}y"), "1\"2".to_owned()]);
            assert_eq!((read[2].1.len(), read[3].1.len()), (2, 1));
        }
        assert_eq!(records(""), Ok(vec![]));
        assert_eq!(records("\n\r\n"), Ok(vec![]));
    }

    #[test]
    fn a_quote_that_never_closes_is_named_with_the_line_where_it_opened() {
        for text in ["name\nAnn\n\"Bob\nEve\nMax\n", "name\nAnn\nx,\"Bob", "name\nAnn\n\""] {
            let told = records(text).unwrap_err();
            assert!(told.contains("opens on line 3"), "{text:?}: {told}");
        }
        assert_eq!(records("\"a\"").unwrap()[0].1, ["a"]);
    }

    #[test]
    fn neither_a_long_cell_nor_a_long_record_is_kept_whole() {
        let long = format!("{},b\nc,\"{}\"\n", "x".repeat(10 << 20), "é".repeat(KEPT));
        let mut records = Records::new(long.as_bytes(), b',', 1);
        let mut record = Record::default();
        assert!(records.next(&mut record).unwrap());
        assert_eq!(record.cells()[0].length, 10 << 20);
        assert_eq!(record.cells()[0].text().len(), KEPT);
        assert!(record.cells()[0].is_cut() && !record.cells()[1].is_cut());
        assert!(records.next(&mut record).unwrap() && record.cells()[1].is_cut());
        let wide = ",".repeat(100_000);
        let mut records = Records::new(wide.as_bytes(), b',', 1);
        assert!(records.next(&mut record).unwrap());
        assert_eq!((record.cells().len(), record.beyond), (MOST_CELLS, 100_001 - MOST_CELLS));
        assert!(record.cells.len() <= MOST_CELLS);
    }
}
