//! Recipients from files: CSV, NDJSON and JSON, one recipient a row.
//!
//! ```text
//! bytes ──▶ UTF-8 ──▶ csv.rs │ ndjson.rs │ json.rs ──▶ draft.rs: rules of one row ──▶ one Row after the other
//! ```
//!
//! A file is read twice if its encoding is not known: first to see whether it is UTF-8. It is never held in memory. No row
//! disappears: each is kept, or is a mistake with its line. A row whose address is invalid is kept *and* told: the ledger shows it
//! as skipped.
//!
//! A recipient of a request keeps the rules of a row, too: `given.rs`.
//!
//! The encodings, the records of CSV with their lines, and the lines of NDJSON are those of the crate `guests`.

mod columns;
mod csv;
mod draft;
mod given;
mod json;
mod ndjson;

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use stampede_guests::{Charset, Delimiter, Mistake, Mistakes, Utf8, guessed, other_than_utf8};
use stampede_model::campaign::AddressKind;

pub use self::given::RecipientRow;
use crate::Invalid;

/// Most fields of one recipient.
pub const MOST_FIELDS: usize = 16;
/// Most different names of fields that are told of a file: more are hardly columns.
pub const MOST_NAMES: usize = 1_000;
/// Longest value of a field, in bytes.
pub const LONGEST_FIELD: usize = 4 << 10;
/// Longest message of one recipient, in bytes.
pub const LONGEST_MESSAGE: usize = 32 << 10;

/// The form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table with a header; `None`: the delimiter is found by looking.
    Csv(Option<Delimiter>),
    /// One JSON object a line.
    Ndjson,
    /// A JSON list of objects, or an object with a list of `recipients`; its other fields are passed over.
    Json,
}

impl Format {
    fn media_type(self) -> &'static str {
        match self {
            Self::Csv(_) => "text/csv",
            Self::Ndjson => "application/x-ndjson",
            Self::Json => "application/json",
        }
    }
}

/// The rules that the rows of a file must keep.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'r> {
    /// What addresses are.
    pub kind: AddressKind,
    /// The country of telephone numbers without a country's code, such as `DE`.
    pub country: Option<&'r str>,
    /// Most rows.
    pub most: usize,
}

/// An address that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadAddress {
    /// The address as it was given, up to 256 bytes; empty if there was none.
    pub given: String,
    /// Why it is none.
    pub why: Invalid,
}

/// One recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The line of the file where the row begins, or the place in the list of a JSON file, from 1.
    pub line: u64,
    /// The address, normalised.
    pub address: Result<String, BadAddress>,
    /// The fields that fill a template.
    pub fields: BTreeMap<String, String>,
    /// The recipient's own message.
    pub message: Option<String>,
    /// The recipient's own time zone.
    pub time_zone: Option<String>,
}

/// A column of a CSV file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name in the header, as it is shown.
    pub name: String,
    /// What it holds: `address`, `message`, `timeZone`, or the name of a field as templates use it.
    pub field: String,
}

/// What a file says besides its rows.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Rows that were kept, those with an invalid address or without one too.
    pub rows: usize,
    /// Rows that were kept with an invalid address, or without one.
    pub invalid: usize,
    /// Mistakes of all rows: the first thousand listed, all counted. Rows with an invalid address have one as well.
    pub mistakes: Mistakes,
    /// The encoding, by its usual name.
    pub encoding: &'static str,
    /// The delimiter of a CSV file.
    pub delimiter: Option<Delimiter>,
    /// The columns of a CSV file, in their order.
    pub columns: Vec<Column>,
    /// The fields, each with the number of rows that have it with a visible character: fewer than `rows` means that it is empty in some.
    /// No more than [`MOST_NAMES`].
    pub fields: BTreeMap<String, u64>,
    /// Rows with a message of their own.
    pub messages: usize,
}

/// Why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A person has to change the file, or how it is sent.
    #[error("{0}")]
    Unreadable(String),
    /// It is no JSON.
    #[error("the body is not valid JSON: {0}")]
    NotJson(String),
    /// It is refused as a whole, and rows that could be read have mistakes as well.
    #[error("{told}")]
    Refused {
        /// What a person has to change before the file can be read.
        told: String,
        /// The mistakes, those of the file first.
        report: Box<Report>,
    },
    /// The file has more rows than allowed.
    #[error("the file has more than {0} recipients; send the rest to another campaign")]
    TooMany(usize),
    /// The bytes of the file could not be read, or its rows not be kept.
    #[error(transparent)]
    Io(io::Error),
}

impl From<stampede_guests::Error> for Error {
    fn from(error: stampede_guests::Error) -> Self {
        use stampede_guests::Error as Guests;
        match error {
            Guests::Unreadable(told) => Self::Unreadable(told),
            Guests::NotJson(told) => Self::NotJson(told),
            Guests::TooMany(most) => Self::TooMany(most),
            Guests::Io(error) => Self::Io(error),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        stampede_guests::Error::from(error).into()
    }
}

/// Reads a file; every row goes to `keep` in the order of the file.
///
/// `charset` is the declared encoding. Without one, and without a byte order mark, a file that is not UTF-8 is read as
/// windows-1251 if it looks like it; other encodings are refused with their name, because a guess must not decide how people are
/// addressed.
pub fn read<R: Read + Seek>(
    mut source: R,
    format: Format,
    charset: Option<Charset>,
    rules: &Rules<'_>,
    keep: &mut dyn FnMut(Row) -> io::Result<()>,
) -> Result<Report, Error> {
    let found = match charset {
        Some(_) => None,
        None => other_than_utf8(&mut source)?.filter(|found| found.name() == CYRILLIC),
    };
    if found.is_some() && is_mixed(&mut source)? {
        return Err(Error::Unreadable(
            "the file has lines in UTF-8 and lines in windows-1251; save it in one encoding, best UTF-8".to_owned(),
        ));
    }
    let text = Utf8::begin(&mut source, charset.or(found), format.media_type())?;
    let encoding = text.encoding();
    let text = BufReader::new(text);
    let report = Report { encoding, ..Report::default() };
    let mut reading = Reading { rules, keep, report, header: Vec::new(), has_address: true };
    let read = match format {
        Format::Csv(delimiter) => csv::read(text, delimiter, &mut reading),
        Format::Ndjson => ndjson::read(text, &mut reading),
        Format::Json => json::read(text, &mut reading),
    };
    let Reading { report, header, .. } = reading;
    let broken = match read {
        Ok(()) if header.is_empty() => return Ok(report),
        Ok(()) => None,
        Err(Error::Unreadable(told))
            if told.starts_with(stampede_guests::NOT_TEXT) && charset.is_none() =>
        {
            Some(Error::Unreadable(guessed(&mut source, told, format.media_type())?))
        }
        Err(error @ (Error::Unreadable(_) | Error::NotJson(_))) => Some(error),
        Err(error) => return Err(error),
    };
    Err(refused(report, header, broken))
}

/// The error of a file that cannot be used, with all mistakes that were found until then: a person learns them at once.
fn refused(mut report: Report, header: Vec<String>, broken: Option<Error>) -> Error {
    let broken = match broken {
        Some(error) if report.mistakes.count == 0 => return error,
        broken => broken.map(|error| error.to_string()),
    };
    if let Some(message) = broken.clone() {
        report.mistakes.count += 1;
        report.mistakes.listed.insert(0, Mistake { line: None, field: String::new(), message });
    }
    let told = header.into_iter().chain(broken).collect::<Vec<_>>().join("; ");
    Error::Refused { told, report: Box::new(report) }
}

/// The encoding in which Russian spreadsheets write CSV.
const CYRILLIC: &str = "windows-1251";

/// Whether a file that seems to be windows-1251 has more Cyrillic letters of UTF-8 than chance explains: two files were put
/// together, and half of the names would be rubbish. In windows-1251 such a pair of bytes is a capital Р or С before `ё` or a
/// sign, which is rare. The source stands at its beginning afterwards.
fn is_mixed(source: &mut (impl Read + Seek)) -> io::Result<bool> {
    let (mut letters, mut others, mut before) = (0_u64, 0_u64, 0);
    for byte in BufReader::new(&mut *source).bytes() {
        let byte = byte?;
        match (before, byte) {
            (0xD0 | 0xD1, 0x80..=0xBF) => letters += 1,
            (_, 0x80..=0xCF | 0xD2..=0xFF) => others += 1,
            _ => {}
        }
        before = byte;
    }
    source.seek(SeekFrom::Start(0))?;
    Ok(letters >= 4 && letters * 20 > others)
}

/// One reading of a file.
struct Reading<'k> {
    rules: &'k Rules<'k>,
    keep: &'k mut dyn FnMut(Row) -> io::Result<()>,
    report: Report,
    /// What is wrong with the header of a table: no row is kept, but all are checked.
    header: Vec<String>,
    /// Rows can have an address: a table without such a column tells it once.
    has_address: bool,
}

#[cfg(test)]
mod tests;
