//! Guest lists: a file with one guest a row is read as one ticket a row, and tickets are written as such a file.
//!
//! ```text
//! bytes ──▶ text.rs: UTF-8 ──▶ csv.rs │ ndjson.rs │ json.rs ──▶ row.rs: rules ──▶ one Guest after the other
//!           (BOM, charset)     (records.rs, columns.rs)
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `text.rs` | any encoding as UTF-8; the guess which one it is |
//! | `records.rs` | records of a CSV file, each with its line, in bounded memory |
//! | `lines.rs` | lines of an NDJSON file, each with its number, in bounded memory |
//! | `columns.rs` | the delimiter and the meaning of the columns, found by looking at the header |
//! | `csv.rs`, `ndjson.rs`, `json.rs` | the three formats |
//! | `row.rs` | the rules of one row |
//! | `mistakes.rs` | mistakes: the first thousand listed, all counted |
//! | `written.rs` | tickets as CSV that spreadsheets do not take for formulas |
//!
//! Recipients of campaigns are read with the same parts: [`Utf8`], [`Records`], [`Lines`], [`look`], [`Mistakes`].
//!
//! A file is read once, a row at a time: its size does not show in memory. A mistake in a row does not end the reading, so
//! that a person learns all mistakes at once. This crate does no IO of its own and knows neither HTTP nor the store.

mod bounded;
mod columns;
mod csv;
mod json;
mod lines;
mod mistakes;
mod ndjson;
mod records;
mod row;
mod text;
mod written;

use std::io::{self, BufReader, Read, Seek};

use stampede_model::{Currency, Money};

pub use self::columns::{
    CHAT_NAMES, Column, Delimiter, Looked, MAIL_NAMES, PHONE_NAMES, look, plain_name,
};
pub use self::lines::{Line, Lines, not_json};
pub use self::mistakes::{Ignored, Mistake, Mistakes, Place, Remark, shown, unknown};
pub use self::records::{Cell, KEPT, MOST_CELLS, Record, Records};
pub use self::row::Guest;
pub use self::text::{Charset, NOT_TEXT, Utf8, guessed, other_than_utf8};
pub use self::written::{Mark, Written};

/// The form of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table with a header; `None`: the delimiter is found by looking.
    Csv(Option<Delimiter>),
    /// One JSON object a line.
    Ndjson,
    /// One JSON object with a list of `holders`.
    Json,
}

impl Format {
    /// The media type.
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
pub struct Rules {
    /// The currency of all prices.
    pub currency: Currency,
    /// Most rows.
    pub most: usize,
}

/// Values for all guests who have none of their own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Defaults {
    /// The address.
    pub email: Option<String>,
    /// The telephone number.
    pub phone: Option<String>,
    /// The chat of Telegram.
    pub chat: Option<String>,
    /// Seat, row or class.
    pub seat: Option<String>,
    /// The price.
    pub price: Option<Money>,
}

/// What a file says besides its guests.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Rows without mistakes.
    pub guests: usize,
    /// Mistakes of all other rows.
    pub mistakes: Mistakes,
    /// Columns and fields that were ignored.
    pub remarks: Vec<Remark>,
    /// The encoding, by its usual name.
    pub encoding: &'static str,
    /// The delimiter of a CSV file.
    pub delimiter: Option<Delimiter>,
    /// The columns of a CSV file, each with its meaning.
    pub columns: Vec<Column>,
    /// The sum of the guests' own prices; `None`: no guest has one.
    pub price: Option<Money>,
    /// Guests without a price of their own.
    pub without_price: usize,
    /// The values that a JSON file gives for all guests.
    pub defaults: Defaults,
    /// The `strict` of a JSON file.
    pub strict: Option<bool>,
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
    /// The file has more rows than allowed.
    #[error("the file has more than {0} rows; send the rest as another order")]
    TooMany(usize),
    /// The bytes of the file could not be read, or its guests not be kept.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<text::NotText>()) {
            Some(wrong) => Self::Unreadable(wrong.to_string()),
            None => Self::Io(error),
        }
    }
}

/// Reads a file; every guest goes to `keep` in the order of the file.
pub fn read<R: Read + Seek>(
    mut source: R,
    format: Format,
    charset: Option<Charset>,
    rules: Rules,
    keep: &mut dyn FnMut(Guest) -> io::Result<()>,
) -> Result<Report, Error> {
    let text = text::Utf8::begin(&mut source, charset, format.media_type())?;
    let encoding = text.encoding();
    let is_declared = charset.is_some();
    let text = BufReader::new(text);
    let read = match format {
        Format::Csv(delimiter) => csv::read(text, delimiter, rules, keep),
        Format::Ndjson => ndjson::read(text, rules, keep),
        Format::Json => json::read(text, rules, keep),
    };
    match read {
        Ok(report) => Ok(Report { encoding, ..report }),
        // The first byte that is no UTF-8 ends the reading; the whole file tells what it is instead.
        Err(Error::Unreadable(told)) if told.starts_with(text::NOT_TEXT) && !is_declared => {
            Err(Error::Unreadable(text::guessed(&mut source, told, format.media_type())?))
        }
        Err(error) => Err(error),
    }
}
