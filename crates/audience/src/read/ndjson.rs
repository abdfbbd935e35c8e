//! Recipients of an NDJSON file: one JSON object a line.

use std::io::BufRead;

use serde::de::DeserializeSeed;
use stampede_guests::{Lines, Place, not_json};

use super::json::{NO_OBJECT, RowOf};
use super::{Error, LONGEST_FIELD, LONGEST_MESSAGE, MOST_FIELDS, Reading};

/// Longest line, in bytes: every letter may be written as `\u0000`.
const LONGEST_LINE: usize = 2 * (LONGEST_MESSAGE + (MOST_FIELDS + 2) * LONGEST_FIELD);

pub(super) fn read(text: impl BufRead, reading: &mut Reading<'_>) -> Result<(), Error> {
    let (mut lines, mut rows) = (Lines::new(text, LONGEST_LINE), 0);
    while let Some(line) = lines.next_line()? {
        rows += 1;
        reading.count(rows)?;
        let place = Place::Line(line.number);
        let Some(bytes) = line.bytes else {
            reading.note(place, format!("is longer than {LONGEST_LINE} bytes"));
            continue;
        };
        let number = line.number;
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let row = RowOf(reading).deserialize(&mut json);
        match row.and_then(|row| json.end().map(|()| row)) {
            Ok(Some(draft)) => reading.add(place, number, draft)?,
            Ok(None) => reading.note(place, NO_OBJECT),
            Err(error) => reading.note(place, not_json(&error)),
        }
    }
    if rows == 0 {
        return Err(Error::Unreadable(
            "the file is empty; it needs one JSON object a line".to_owned(),
        ));
    }
    Ok(())
}
