//! Recipients of campaigns: read from files, with normalised addresses; and the texts that they get.
//!
//! ```text
//! bytes ──▶ read: rows of CSV, NDJSON, JSON ──▶ address: E.164, mail, chat ──▶ Row      (one after the other)
//! Template ──▶ content: scanned, checked, compiled ──▶ Compiled ──fill(fields)──▶ Filled ──▶ segments: parts of an SMS
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `address.rs` | addresses of every kind, normalised |
//! | `read.rs` | recipients from files, with all mistakes and their lines |
//! | `content.rs` | templates in Liquid: guard, compilation, filling |
//! | `segments.rs` | how many segments an SMS has |
//! | `visible.rs` | what people see of a text |
//!
//! Everything here is pure: it does no IO of its own and knows neither HTTP nor the store.

mod address;
mod content;
mod read;
mod segments;
mod visible;

pub use self::address::{Invalid, check_country, normalise};
pub use self::content::{
    BUILT_INS, BuiltIns, Compiled, Filled, LONGEST_TEMPLATE, MOST_TAGS, Mistake, NotFilled,
    check_template,
};
pub use self::read::{
    BadAddress, Column, Error, Format, LONGEST_FIELD, LONGEST_MESSAGE, MOST_FIELDS, MOST_NAMES,
    RecipientRow, Report, Row, Rules, read,
};
pub use self::segments::{Alphabet, Segments, segments};
pub use self::visible::{is_blank, visible};
// The parts of `read` that come from guest lists.
pub use stampede_guests::{Charset, Delimiter, Mistakes};
