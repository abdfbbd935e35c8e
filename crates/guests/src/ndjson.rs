//! Guests of an NDJSON file: one JSON object a line.

use std::fmt;
use std::io::{self, BufRead};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::columns::KNOWN;
use crate::lines::{Lines, not_json};
use crate::mistakes::{Ignored, Place};
use crate::row::{Row, Value};
use crate::{Error, Guest, Report, Rules};

/// Longest line, in bytes.
const LONGEST_LINE: usize = 64 << 10;

pub(crate) fn read(
    text: impl BufRead,
    rules: Rules,
    keep: &mut dyn FnMut(Guest) -> io::Result<()>,
) -> Result<Report, Error> {
    let (mut report, mut ignored) = (Report::default(), Ignored::default());
    let (mut lines, mut rows) = (Lines::new(text, LONGEST_LINE), 0);
    while let Some(line) = lines.next_line()? {
        rows += 1;
        if rows > rules.most {
            return Err(Error::TooMany(rules.most));
        }
        let (place, Some(line)) = (Place::Line(line.number), line.bytes) else {
            let message = format!("is longer than {LONGEST_LINE} bytes");
            report.mistakes.note(Place::Line(line.number), "", message);
            continue;
        };
        let mut json = serde_json::Deserializer::from_slice(line);
        let row = RowOf(&mut ignored).deserialize(&mut json);
        match row.and_then(|row| json.end().map(|()| row)) {
            Ok(Some(row)) => {
                let checked = row.check(place, rules.currency, &mut report.mistakes);
                if let Some((guest, price)) = checked {
                    report.count(price)?;
                    keep(guest)?;
                }
            }
            Ok(None) => report.mistakes.note(place, "", NO_OBJECT),
            Err(error) => {
                report.mistakes.note(place, "", not_json(&error));
            }
        }
    }
    if rows == 0 {
        return Err(Error::Unreadable(
            "the file is empty; it needs one JSON object a line".to_owned(),
        ));
    }
    report.remarks = ignored.remarks(&KNOWN);
    Ok(report)
}

/// The message about a row that is no object.
pub(crate) const NO_OBJECT: &str = "must be an object with name, email, seat and price";

/// Reads one row from JSON; `None`: it is no object.
pub(crate) struct RowOf<'i>(pub(crate) &'i mut Ignored);

impl<'de> DeserializeSeed<'de> for RowOf<'_> {
    type Value = Option<Row>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Option<Row>, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RowOf<'_> {
    type Value = Option<Row>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Option<Row>, A::Error> {
        let mut row = Row::default();
        let mut given = [false; KNOWN.len()];
        while let Some(name) = object.next_key::<String>()? {
            let Some(index) = KNOWN.iter().position(|known| *known == name) else {
                self.0.note(&name);
                object.next_value::<IgnoredAny>()?;
                continue;
            };
            let takes = match KNOWN[index] {
                "price" => AnyValue::Amount,
                "phoneNumber" | "chatId" => AnyValue::Contact,
                _ => AnyValue::Text,
            };
            let mut value = object.next_value_seed(takes)?;
            if std::mem::replace(&mut given[index], true) {
                // Readers disagree which of the two counts.
                value = Value::Wrong("is given twice".to_owned());
            }
            *row.field(index) = value;
        }
        Ok(Some(row))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Option<Row>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Option<Row>, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<Row>, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Option<Row>, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Option<Row>, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Option<Row>, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Option<Row>, E> {
        Ok(None)
    }
}

/// Reads the value of a field.
pub(crate) enum AnyValue {
    /// A text.
    Text,
    /// A decimal number, or a text that is one.
    Amount,
    /// A telephone number or a chat: a text or a number.
    Contact,
}

impl AnyValue {
    fn wrong(&self) -> Value {
        let rule = match self {
            Self::Text => "must be a text",
            Self::Amount => "must be a decimal number such as 49.90",
            Self::Contact => "must be a text or a number",
        };
        Value::Wrong(rule.to_owned())
    }

    fn number(&self, text: String) -> Value {
        match self {
            Self::Text => self.wrong(),
            Self::Amount | Self::Contact => Value::Is(text),
        }
    }
}

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Absent)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(self.wrong())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(self.number(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(self.number(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        let number = serde_json::Number::from_f64(number).map(|number| number.to_string());
        Ok(self.number(number.unwrap_or_default()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Is(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.wrong())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self.wrong())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use stampede_model::Currency;

    use super::*;
    use crate::{Format, read as read_any};

    fn guests(text: &[u8]) -> Result<(Vec<Guest>, Report), Error> {
        let mut guests = Vec::new();
        let rules = Rules { currency: Currency::USD, most: 10 };
        let report = read_any(Cursor::new(text), Format::Ndjson, None, rules, &mut |guest| {
            guests.push(guest);
            Ok(())
        })?;
        Ok((guests, report))
    }

    fn told(report: &Report) -> Vec<String> {
        let told = report.mistakes.listed.iter();
        told.map(|m| format!("{} {} {}", m.line.unwrap_or(0), m.field, m.message)).collect()
    }

    #[test]
    fn every_line_is_a_guest() {
        let text = "{\"name\":\"Ann\",\"price\":49.9,\"phoneNumber\":79991234567,\"chatId\":-42}\r\n\n {\"name\":\"Zoë\",\"email\":null,\"seat\":\"VIP\",\"price\":\"5\"}";
        let (guests, report) = guests(text.as_bytes()).unwrap();
        assert_eq!((guests.len(), report.mistakes.count), (2, 0));
        assert_eq!((guests[0].line, guests[0].price.as_deref()), (1, Some("49.90")));
        let contacts = (guests[0].phone.as_deref(), guests[0].chat.as_deref());
        assert_eq!(contacts, (Some("79991234567"), Some("-42")));
        assert_eq!((guests[1].line, guests[1].seat.as_deref()), (3, Some("VIP")));
        assert_eq!(report.price.unwrap().amount(), "54.90");
    }

    #[test]
    fn every_bad_line_is_told_with_its_number() {
        let long = format!("{{\"name\":\"{}\"}}", "x".repeat(2 * LONGEST_LINE));
        let lines = [
            "{\"name\":7,\"email\":[1],\"emial\":\"a\"}",
            "[1]",
            "{\"name\":\"A\",\"name\":\"B\"}",
            "{\"name\":\"A\"",
            &long,
            "{\"name\":\"Eve\",\"emial\":1}",
        ];
        let (guests, report) = guests(lines.join("\n").as_bytes()).unwrap();
        assert_eq!((guests.len(), guests[0].line), (1, 6));
        let told = told(&report);
        assert_eq!(told[0], "1 name must be a text");
        assert_eq!(told[1], "1 email must be a text");
        assert!(told[2].starts_with("2  must be an object"), "{told:?}");
        assert_eq!(told[3], "3 name is given twice");
        assert!(
            told[4].starts_with("4  is not valid JSON: EOF while parsing an object, at column"),
            "{told:?}"
        );
        assert!(told[5].starts_with("5  is longer than"), "{told:?}");
        assert_eq!(report.mistakes.count, 6);
        assert!(report.remarks[0].message.contains("did you mean email? (2 rows have it)"));
    }

    #[test]
    fn too_many_lines_and_none_are_refused() {
        assert!(matches!(guests(&b"{\"name\":\"A\"}\n".repeat(11)), Err(Error::TooMany(10))));
        assert!(matches!(guests(b"\n \n"), Err(Error::Unreadable(_))));
        let deep = "[".repeat(100_000);
        assert_eq!(guests(&deep.as_bytes()[..60_000]).unwrap().1.mistakes.count, 1);
    }
}
