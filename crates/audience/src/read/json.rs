//! Recipients of a JSON file: a list of objects, or an object with a list of `recipients`, read one at a time.

use std::fmt;
use std::io::{self, Read};

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use stampede_guests::Place;

use super::draft::{Draft, Value};
use super::{Error, Reading};

/// The list of an object.
const LIST: &str = "recipients";
/// The message about a row that is no object.
pub(super) const NO_OBJECT: &str =
    "must be an object with an address, such as {\"phoneNumber\": \"+79991234567\"}";
/// The message about a file that has no list.
const NO_LIST: &str =
    "the file must be a list of recipients, or an object with such a list called recipients";

pub(super) fn read(text: impl Read, reading: &mut Reading<'_>) -> Result<(), Error> {
    let mut body = Body { reading, failed: None };
    let mut json = serde_json::Deserializer::from_reader(text);
    let read = Whole(&mut body).deserialize(&mut json);
    match read.and_then(|rows| json.end().map(|()| rows)) {
        Ok(Some(0)) => Err(Error::Unreadable("the list of recipients is empty".to_owned())),
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(Error::Unreadable(NO_LIST.to_owned())),
        Err(error) => Err(match body.failed {
            Some(failed) => failed,
            None if error.is_io() => io::Error::from(error).into(),
            // The parser's own message repeats the value, however long it is.
            None if error.is_data() => Error::Unreadable(format!(
                "line {} column {}: {NO_LIST}",
                error.line(),
                error.column()
            )),
            None => Error::NotJson(error.to_string()),
        }),
    }
}

/// One reading of a body.
struct Body<'b, 'k> {
    reading: &'b mut Reading<'k>,
    /// Why the reading was broken off.
    failed: Option<Error>,
}

impl Body<'_, '_> {
    fn add(&mut self, index: usize, draft: Option<Draft>) -> Result<(), Error> {
        self.reading.count(index + 1)?;
        let place = Place::Entry(LIST, index);
        match draft {
            Some(draft) => self.reading.add(place, index as u64 + 1, draft),
            None => {
                self.reading.note(place, NO_OBJECT);
                Ok(())
            }
        }
    }
}

/// Reads the whole body; the answer is the number of recipients, `None` if there is no list.
struct Whole<'w, 'b, 'k>(&'w mut Body<'b, 'k>);

impl<'de> DeserializeSeed<'de> for Whole<'_, '_, '_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Option<usize>, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Whole<'_, '_, '_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of recipients")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Option<usize>, A::Error> {
        List(self.0).visit_seq(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Option<usize>, A::Error> {
        let mut rows = None;
        while let Some(key) = object.next_key::<String>()? {
            if key != LIST {
                object.next_value::<IgnoredAny>()?;
            } else if rows.is_some() {
                self.0.failed = Some(Error::Unreadable("recipients is given twice".to_owned()));
                return Err(A::Error::custom("the reading was broken off"));
            } else {
                rows = object.next_value_seed(List(self.0))?;
            }
        }
        Ok(rows)
    }
}

/// Reads the list.
struct List<'w, 'b, 'k>(&'w mut Body<'b, 'k>);

impl<'de> DeserializeSeed<'de> for List<'_, '_, '_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Option<usize>, D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_, '_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of recipients")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Option<usize>, A::Error> {
        let mut index = 0;
        while let Some(draft) = list.next_element_seed(RowOf(self.0.reading))? {
            if let Err(error) = self.0.add(index, draft) {
                self.0.failed = Some(error);
                return Err(A::Error::custom("the reading was broken off"));
            }
            index += 1;
        }
        Ok(Some(index))
    }
}

/// Reads one row; `None`: it is no object.
pub(super) struct RowOf<'r, 'k>(pub(super) &'r Reading<'k>);

impl<'de> DeserializeSeed<'de> for RowOf<'_, '_> {
    type Value = Option<Draft>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Option<Draft>, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RowOf<'_, '_> {
    type Value = Option<Draft>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Option<Draft>, A::Error> {
        let mut draft = Draft::default();
        while let Some(key) = object.next_key::<String>()? {
            if key == "fields" {
                object.next_value_seed(FieldsOf(&mut draft))?;
            } else {
                let value = object.next_value_seed(AnyValue)?;
                draft.set_key(self.0, &key, value);
            }
        }
        Ok(Some(draft))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Option<Draft>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Option<Draft>, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<Draft>, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Option<Draft>, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Option<Draft>, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Option<Draft>, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Option<Draft>, E> {
        Ok(None)
    }
}

/// Reads the object `fields` of a row.
struct FieldsOf<'d>(&'d mut Draft);

impl<'de> DeserializeSeed<'de> for FieldsOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl FieldsOf<'_> {
    fn refuse<E>(self) -> Result<(), E> {
        self.0.wrong("fields must be an object");
        Ok(())
    }
}

impl<'de> Visitor<'de> for FieldsOf<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(key) = object.next_key::<String>()? {
            let value = object.next_value_seed(AnyValue)?;
            self.0.set_field(&key, value);
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        self.refuse()
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.refuse()
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.refuse()
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.refuse()
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.refuse()
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        self.refuse()
    }
}

/// Reads a value as a text. Numbers and booleans are written as JSON has them; `null` is nothing.
struct AnyValue;

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

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Is(flag.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Is(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Is(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        let text = serde_json::Number::from_f64(number).map(|number| number.to_string());
        Ok(text.map_or(Value::Absent, Value::Is))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Wrong("must be a text, a number, true or false".to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Wrong("must be a text, a number, true or false".to_owned()))
    }
}
