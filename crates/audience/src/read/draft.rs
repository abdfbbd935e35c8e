//! The rules of one row: what a file says about one recipient becomes a [`Row`], or mistakes.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use stampede_guests::Place;

use super::columns::{Meaning, address_rank, field_name, plain_meaning};
use super::{
    BadAddress, Error, LONGEST_FIELD, LONGEST_MESSAGE, MOST_FIELDS, MOST_NAMES, Reading, Row,
};
use crate::normalise;

/// Mistakes in the keys of one row that are told.
const MOST_MISTAKES: usize = 20;
/// Bytes of an invalid address that are kept.
const SHOWN: usize = 256;

/// A value of a row before it is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// Nothing, or no visible character.
    Absent,
    /// A text.
    Is(String),
    /// Something that breaks this rule, whatever the field.
    Wrong(String),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        match text.trim() {
            "" => Self::Absent,
            text => Self::Is(text.to_owned()),
        }
    }
}

/// A row before it is checked.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// The address with its name in the file, and how well that name fits.
    address: Option<(u8, String, Value)>,
    message: Option<Value>,
    time_zone: Option<Value>,
    fields: BTreeMap<String, Value>,
    /// Mistakes of the row as a whole, and of its keys.
    wrong: Vec<(String, String)>,
}

impl Draft {
    /// Sets the value of a column.
    pub(super) fn set(&mut self, meaning: &Meaning, name: &str, value: Value) {
        match meaning {
            Meaning::Address => self.address = Some((0, name.to_owned(), value)),
            Meaning::Message => self.message = Some(value),
            Meaning::TimeZone => self.time_zone = Some(value),
            Meaning::Field(field) => {
                self.fields.insert(field.clone(), value);
            }
        }
    }

    /// Sets the value of a key of a JSON object, whose meaning is found by its name. A second address that fits worse is a field.
    pub(super) fn set_key(&mut self, reading: &Reading<'_>, key: &str, value: Value) {
        let rank = address_rank(key, reading.rules.kind);
        if rank == 0 {
            return match plain_meaning(key) {
                Meaning::Message if self.message.is_some() => self.twice(key),
                Meaning::TimeZone if self.time_zone.is_some() => self.twice(key),
                Meaning::Field(_) => self.set_field(key, value),
                meaning => self.set(&meaning, key, value),
            };
        }
        match self.address.take() {
            None => self.address = Some((rank, key.to_owned(), value)),
            Some((before, name, old)) if name == key => {
                self.address = Some((before, name, old));
                self.twice(key);
            }
            Some((before, name, old)) => {
                let is_better = rank > before && value != Value::Absent || old == Value::Absent;
                let (kept, other) = match is_better {
                    true => ((rank, key.to_owned(), value), (name, old)),
                    false => ((before, name, old), (key.to_owned(), value)),
                };
                self.address = Some(kept);
                self.set_field(&other.0, other.1);
            }
        }
    }

    /// Sets a field by the name that it has in the file.
    pub(super) fn set_field(&mut self, key: &str, value: Value) {
        let name = field_name(key);
        if name.is_empty() {
            self.note(key, "is no name of a field; give it letters".to_owned());
        } else if self.fields.len() == MOST_FIELDS && !self.fields.contains_key(&name) {
            if !self.wrong.iter().any(|(_, told)| told.starts_with("has more")) {
                self.note("", format!("has more than {MOST_FIELDS} fields"));
            }
        } else if self.fields.insert(name, value).is_some() {
            self.twice(key);
        }
    }

    fn twice(&mut self, key: &str) {
        // Readers disagree which of the two counts.
        self.note(key, "is given twice".to_owned());
    }

    /// Notes a mistake of the row.
    pub(super) fn wrong(&mut self, message: impl Into<String>) {
        self.note("", message.into());
    }

    /// Notes a mistake of a key. An object may repeat a key without end, so only the first mistakes of a row are told.
    fn note(&mut self, key: &str, message: String) {
        if self.wrong.len() < MOST_MISTAKES {
            self.wrong.push((key.chars().take(40).collect(), message));
        }
    }
}

/// A row whose values keep the rules. Its address is not normalised yet.
#[derive(Debug)]
pub(super) struct Checked {
    /// The address; `None`: it is missing or breaks a rule.
    pub(super) address: Option<String>,
    /// The address is missing, although there should be one.
    pub(super) is_missing: bool,
    /// The name of the address in the file.
    pub(super) name: String,
    pub(super) message: Option<String>,
    pub(super) time_zone: Option<String>,
    pub(super) fields: BTreeMap<String, String>,
}

impl Draft {
    /// Checks all values; returns the mistakes, too, each with its field.
    pub(super) fn check(self, needs_address: bool) -> (Checked, Vec<(String, String)>) {
        let Self { address, message, time_zone, fields, wrong } = self;
        let mut check = Check { mistakes: wrong };
        let (name, address) = match address {
            Some((_, name, value)) => (name, check.text(value, "address", LONGEST_FIELD)),
            None => ("address".to_owned(), None),
        };
        let is_missing = address.is_none() && needs_address && check.mistakes.is_empty();
        let message = message.and_then(|value| check.text(value, "message", LONGEST_MESSAGE));
        let time_zone = time_zone.and_then(|value| check.text(value, "timeZone", LONGEST_FIELD));
        if let Some(zone) = &time_zone
            && TimeZone::get(zone).is_err()
        {
            let shown: String = zone.chars().take(40).collect();
            check.mistakes.push((
                "timeZone".to_owned(),
                format!("{shown:?} is no time zone; write one such as Europe/Berlin"),
            ));
        }
        let mut kept = BTreeMap::new();
        for (field, value) in fields {
            let text = check.text(value, &field, LONGEST_FIELD);
            kept.insert(field, text.unwrap_or_default());
        }
        (Checked { address, is_missing, name, message, time_zone, fields: kept }, check.mistakes)
    }
}

impl Reading<'_> {
    /// Counts the row at a place, from 1, and refuses the file if it is one too many.
    pub(super) fn count(&self, rows: usize) -> Result<(), Error> {
        let most = self.rules.most;
        if rows > most { Err(Error::TooMany(most)) } else { Ok(()) }
    }

    /// Notes a mistake about a whole row.
    pub(super) fn note(&mut self, place: Place, message: impl std::fmt::Display) {
        self.report.mistakes.note(place, "", message);
    }

    /// Checks a row and keeps it.
    pub(super) fn add(&mut self, place: Place, line: u64, draft: Draft) -> Result<(), Error> {
        let (row, mistakes) = draft.check(self.has_address);
        let Checked { address, is_missing, name, message, time_zone, fields } = row;
        // A row without an address is one whose address is none: normalising says so.
        let address = address.or_else(|| is_missing.then(String::new));
        let address = address.map(|given| {
            let address = normalise(self.rules.kind, &given, self.rules.country);
            address.map_err(|why| BadAddress { given: shortened(&given), why })
        });
        let is_wrong = !mistakes.is_empty();
        for (field, message) in mistakes {
            self.report.mistakes.note(place, &field, message);
        }
        if let Some(Err(bad)) = &address {
            self.report.mistakes.note(place, &name, &bad.why);
        }
        let is_kept = !is_wrong && self.header.is_empty();
        let Some(address) = address.filter(|_| is_kept) else { return Ok(()) };
        self.report.invalid += usize::from(address.is_err());
        self.report.rows += 1;
        self.report.messages += usize::from(message.is_some());
        for (field, text) in &fields {
            let count = u64::from(!text.is_empty());
            if let Some(rows) = self.report.fields.get_mut(field) {
                *rows += count;
            } else if self.report.fields.len() < MOST_NAMES {
                self.report.fields.insert(field.clone(), count);
            }
        }
        (self.keep)(Row { line, address, fields, message, time_zone })?;
        Ok(())
    }
}

/// Checks the values of one row.
struct Check {
    mistakes: Vec<(String, String)>,
}

impl Check {
    fn text(&mut self, value: Value, field: &str, longest: usize) -> Option<String> {
        let mistake = match value {
            Value::Absent => return None,
            Value::Wrong(message) => message,
            Value::Is(text) if text.len() > longest => {
                format!("is longer than {longest} bytes, has {}", text.len())
            }
            Value::Is(text) => match text.chars().find(|c| is_unsafe(*c)) {
                None => return Some(text),
                Some(c) => format!("contains U+{:04X}; remove it", u32::from(c)),
            },
        };
        self.mistakes.push((field.to_owned(), mistake));
        None
    }
}

/// Control characters but line breaks and tabs: databases and providers refuse them.
fn is_unsafe(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t')
}

/// The beginning of an address, cut at a letter.
fn shortened(address: &str) -> String {
    let mut kept = String::new();
    for c in address.chars() {
        if kept.len() + c.len_utf8() > SHOWN {
            break;
        }
        kept.push(c);
    }
    kept
}
