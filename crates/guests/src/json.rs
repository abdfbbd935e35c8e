//! Guests of a JSON file: one object with a list of `holders`, as `POST /api/tickets` takes it, read one holder at a time.

use std::fmt;
use std::io::{self, Read};

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use stampede_model::{Limit, Money, check_email, check_text};

use crate::bounded::{Bounded, LONGEST};
use crate::columns::KNOWN;
use crate::mistakes::{Ignored, Place};
use crate::ndjson::{AnyValue, NO_OBJECT, RowOf};
use crate::row::{Row, Value};
use crate::{Error, Guest, Report, Rules};

/// The fields of the object.
const FIELDS: [&str; 9] =
    ["holders", "name", "quantity", "email", "phoneNumber", "chatId", "seat", "price", "strict"];

/// The message about a file that is no order.
const NO_BODY: &str =
    "the file must be an object with a list of holders, or with a name and a quantity";

pub(crate) fn read(
    text: impl Read,
    rules: Rules,
    keep: &mut dyn FnMut(Guest) -> io::Result<()>,
) -> Result<Report, Error> {
    let mut reading = Reading {
        rules,
        keep,
        report: Report::default(),
        ignored: Ignored::default(),
        unknown: Ignored::default(),
        failed: None,
    };
    let mut text = Bounded::new(text);
    let mut json = serde_json::Deserializer::from_reader(&mut text);
    let read = Body(&mut reading).deserialize(&mut json);
    let single = match read.and_then(|single| json.end().map(|()| single)) {
        Ok(single) => single,
        Err(_) if reading.failed.is_none() && text.is_too_long() => {
            let told = format!("the file has a text or number of more than {LONGEST} bytes");
            return Err(Error::Unreadable(told));
        }
        Err(error) => {
            return Err(match reading.failed {
                Some(failed) => failed,
                None if error.is_io() => io::Error::from(error).into(),
                // The parser's own message repeats the value, however long it is.
                None if error.is_data() => Error::Unreadable(format!(
                    "line {} column {}: {NO_BODY}",
                    error.line(),
                    error.column()
                )),
                None => Error::NotJson(error.to_string()),
            });
        }
    };
    if let Some(single) = single {
        reading.add_same(single)?;
    }
    let Reading { mut report, ignored, unknown, .. } = reading;
    report.remarks = unknown.remarks(&FIELDS);
    report.remarks.extend(ignored.remarks(&KNOWN));
    Ok(report)
}

/// One reading of a file.
struct Reading<'k> {
    rules: Rules,
    keep: &'k mut dyn FnMut(Guest) -> io::Result<()>,
    report: Report,
    /// Unknown fields of holders.
    ignored: Ignored,
    /// Unknown fields of the body.
    unknown: Ignored,
    /// Why the reading was broken off.
    failed: Option<Error>,
}

/// An order without holders: the same ticket so many times.
struct Same {
    row: Row,
    quantity: Option<u64>,
}

impl Reading<'_> {
    fn add(&mut self, index: usize, row: Option<Row>) -> Result<(), Error> {
        if index >= self.rules.most {
            return Err(Error::TooMany(self.rules.most));
        }
        let place = Place::Entry("holders", index);
        let Some(row) = row else {
            self.report.mistakes.note(place, "", NO_OBJECT);
            return Ok(());
        };
        self.add_row(place, row)
    }

    fn add_row(&mut self, place: Place, row: Row) -> Result<(), Error> {
        let checked = row.check(place, self.rules.currency, &mut self.report.mistakes);
        if let Some((guest, price)) = checked {
            self.report.count(price)?;
            (self.keep)(guest)?;
        }
        Ok(())
    }

    fn add_same(&mut self, same: Same) -> Result<(), Error> {
        let quantity = same.quantity.unwrap_or(1);
        if quantity > self.rules.most as u64 {
            return Err(Error::TooMany(self.rules.most));
        }
        let checked = same.row.check(Place::Body, self.rules.currency, &mut self.report.mistakes);
        if let Some((guest, price)) = checked.filter(|_| self.report.mistakes.count == 0) {
            for line in 1..=quantity {
                self.report.count(price)?;
                (self.keep)(Guest { line, ..guest.clone() })?;
            }
        }
        Ok(())
    }

    /// The value of a field of the body; its mistake is noted.
    fn default<T, E: fmt::Display>(
        &mut self,
        name: &str,
        value: Value,
        check: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let checked = match value {
            Value::Absent => return None,
            Value::Wrong(message) => Err(message),
            Value::Is(text) => check(&text).map_err(|error| error.to_string()),
        };
        checked.map_err(|message| self.report.mistakes.note(Place::Body, name, message)).ok()
    }

    fn wrong(&mut self, name: &str, message: &str) {
        self.report.mistakes.note(Place::Body, name, message);
    }
}

/// Reads the object; the answer is an order without holders, if it is one.
struct Body<'r, 'k>(&'r mut Reading<'k>);

impl<'de> DeserializeSeed<'de> for Body<'_, '_> {
    type Value = Option<Same>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Option<Same>, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Body<'_, '_> {
    type Value = Option<Same>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a list of holders")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Option<Same>, A::Error> {
        let reading = self.0;
        let mut given = [false; FIELDS.len()];
        let mut row = Row::default();
        let (mut quantity, mut has_holders) = (None, false);
        while let Some(field) = object.next_key::<String>()? {
            let Some(index) = FIELDS.iter().position(|known| *known == field) else {
                reading.unknown.note(&field);
                object.next_value::<IgnoredAny>()?;
                continue;
            };
            if std::mem::replace(&mut given[index], true) {
                reading.wrong(FIELDS[index], "is given twice");
                object.next_value::<IgnoredAny>()?;
                continue;
            }
            match FIELDS[index] {
                "holders" => has_holders = object.next_value_seed(Holders(reading))?,
                "name" => row.name = object.next_value_seed(AnyValue::Text)?,
                "email" => row.email = object.next_value_seed(AnyValue::Text)?,
                "phoneNumber" => row.phone = object.next_value_seed(AnyValue::Contact)?,
                "chatId" => row.chat = object.next_value_seed(AnyValue::Contact)?,
                "seat" => row.seat = object.next_value_seed(AnyValue::Text)?,
                "price" => row.price = object.next_value_seed(AnyValue::Amount)?,
                "quantity" => match object.next_value::<Plain>()? {
                    Plain::Number(number) if number > 0 => quantity = Some(number),
                    Plain::Null => {}
                    _ => reading.wrong("quantity", "must be a whole number, at least 1"),
                },
                _ => match object.next_value::<Plain>()? {
                    Plain::Flag(strict) => reading.report.strict = Some(strict),
                    Plain::Null => {}
                    _ => reading.wrong("strict", "must be true or false"),
                },
            }
        }
        if !has_holders {
            return Ok(Some(Same { row, quantity }));
        }
        let currency = reading.rules.currency;
        let Row { email, phone, chat, seat, price, .. } = row;
        reading.report.defaults.email = reading.default("email", email, check_email);
        let contact = |text: &str| check_text(text, Limit::CONTACT);
        reading.report.defaults.phone = reading.default("phoneNumber", phone, contact);
        reading.report.defaults.chat = reading.default("chatId", chat, contact);
        let seat = reading.default("seat", seat, |text| check_text(text, Limit::SEAT));
        reading.report.defaults.seat = seat;
        let price = reading.default("price", price, |text| Money::parse(text, currency));
        reading.report.defaults.price = price;
        let rows = reading.report.guests as u64;
        if reading.report.mistakes.count == 0 && quantity.is_some_and(|quantity| quantity != rows) {
            reading.wrong("quantity", &format!("does not match the {rows} holders"));
        }
        Ok(None)
    }
}

/// A value without parts. Lists, objects and texts are read over: they take no memory.
enum Plain {
    Null,
    Flag(bool),
    /// A whole number, also if it is written as `3.0`.
    Number(u64),
    Other,
}

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(PlainVisitor)
    }
}

struct PlainVisitor;

impl<'de> Visitor<'de> for PlainVisitor {
    type Value = Plain;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Plain, E> {
        Ok(Plain::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Plain, E> {
        Ok(Plain::Flag(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Plain, E> {
        Ok(Plain::Number(number))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Plain, E> {
        Ok(Plain::Other)
    }

    fn visit_f64<E>(self, number: f64) -> Result<Plain, E> {
        let is_whole = number.fract() == 0.0 && number >= 0.0;
        Ok(if is_whole { Plain::Number(number as u64) } else { Plain::Other })
    }

    fn visit_str<E>(self, _: &str) -> Result<Plain, E> {
        Ok(Plain::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Plain, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Plain::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Plain, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Plain::Other)
    }
}

/// Reads the list of holders; false if it is `null`.
struct Holders<'r, 'k>(&'r mut Reading<'k>);

impl<'de> DeserializeSeed<'de> for Holders<'_, '_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<bool, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Holders<'_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of holders")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        let reading = self.0;
        let mut index = 0;
        while let Some(row) = list.next_element_seed(RowOf(&mut reading.ignored))? {
            if let Err(error) = reading.add(index, row) {
                reading.failed = Some(error);
                return Err(A::Error::custom("the reading was broken off"));
            }
            index += 1;
        }
        if index == 0 {
            reading.wrong("holders", "must have at least one entry");
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use serde_json::{Value as Json, json};
    use stampede_model::Currency;

    use super::*;
    use crate::{Format, read as read_any};

    fn guests(body: &str) -> Result<(Vec<Guest>, Report), Error> {
        let mut guests = Vec::new();
        let rules = Rules { currency: Currency::USD, most: 10 };
        let report = read_any(Cursor::new(body), Format::Json, None, rules, &mut |guest| {
            guests.push(guest);
            Ok(())
        })?;
        Ok((guests, report))
    }

    fn told(body: Json) -> Vec<String> {
        let (_, report) = guests(&body.to_string()).unwrap();
        let told = report.mistakes.listed.iter();
        told.map(|mistake| format!("{} {}", mistake.field, mistake.message)).collect()
    }

    #[test]
    fn what_is_said_for_all_holders_may_stand_after_them() {
        let body = r#"{"holders":[{"name":"Ann","price":1},{"name":"Bob"}],"price":"5","seat":"A","strict":true}"#;
        let (guests, report) = guests(body).unwrap();
        assert_eq!((guests.len(), guests[1].line), (2, 2));
        assert_eq!((guests[0].price.as_deref(), guests[1].price.as_deref()), (Some("1.00"), None));
        assert_eq!(report.defaults.price.unwrap().amount(), "5.00");
        assert_eq!((report.defaults.seat.as_deref(), report.strict), (Some("A"), Some(true)));
        assert_eq!(report.without_price, 1);
    }

    #[test]
    fn one_name_and_a_quantity_are_so_many_tickets() {
        let (guests, _) = guests(r#"{"name":"Ann","quantity":3,"seat":"VIP"}"#).unwrap();
        assert_eq!(guests.len(), 3);
        let (whole, _) = self::guests(r#"{"name":"Ann","quantity":2.0}"#).unwrap();
        assert_eq!(whole.len(), 2);
        assert!(guests.iter().all(|guest| guest.seat.as_deref() == Some("VIP")));
    }

    #[test]
    fn all_mistakes_are_told_with_their_path() {
        let holders = json!([{ "name": 7, "email": "x" }, 5, { "name": "Eve" }]);
        assert_eq!(
            told(json!({ "holders": holders, "price": "x", "strict": 1, "quantity": 0 })),
            [
                "holders[0].name must be a text",
                "holders[0].email must be an e-mail address such as someone@example.com",
                "holders[1] must be an object with name, email, seat and price",
                "quantity must be a whole number, at least 1",
                "strict must be true or false",
                "price must be a decimal number such as 49.90",
            ]
        );
        assert_eq!(told(json!({ "holders": [] })), ["holders must have at least one entry"]);
        assert_eq!(told(json!({ "name": "A", "quantity": -1 })).len(), 1);
        assert_eq!(told(json!({})), ["name is missing"]);
        let (_, report) = guests(r#"{"holdrs":[],"name":"A","target":"x"}"#).unwrap();
        assert!(report.remarks[0].message.contains("did you mean holders?"));
    }

    #[test]
    fn more_holders_than_allowed_and_no_json_are_refused() {
        let many = json!({ "holders": vec![json!({ "name": "A" }); 11] });
        assert!(matches!(guests(&many.to_string()), Err(Error::TooMany(10))));
        assert!(matches!(guests(r#"{"name":"A","quantity":11}"#), Err(Error::TooMany(10))));
        for body in ["", "{", "{} x", "{\"holders\":[{]}"] {
            assert!(matches!(guests(body), Err(Error::NotJson(_))), "{body}");
        }
        for body in ["[]", "\"x\"", r#"{"holders":5}"#] {
            assert!(matches!(guests(body), Err(Error::Unreadable(_))), "{body}");
        }
    }

    #[test]
    fn a_text_where_none_belongs_is_not_repeated_in_the_message() {
        let long = "A".repeat(100_000);
        for body in
            [json!(long), json!({ "holders": long }), json!({ "name": "A", "quantity": long })]
        {
            let told = match guests(&body.to_string()) {
                Err(error) => error.to_string(),
                Ok((_, report)) => report.mistakes.listed[0].message.clone(),
            };
            assert!(told.len() < 300, "{}", told.len());
        }
    }

    #[test]
    fn a_text_that_is_too_long_for_any_field_is_not_held_in_memory() {
        let long = "x".repeat(100_000);
        for body in [
            format!("{{\"holders\": [{{\"name\": \"{long}\"}}]}}"),
            format!("{{\"holders\": [{{\"name\": \"Ann\", \"{long}\": 1}}]}}"),
        ] {
            let error = guests(&body).err();
            assert!(
                matches!(&error, Some(Error::Unreadable(why)) if why.contains("65536")),
                "{error:?}"
            );
        }
    }
}
