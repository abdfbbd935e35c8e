//! The types of fields. Each reads one kind of JSON; the message for any other kind is [`Part::EXPECTED`].

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, SeqAccess};
use serde_json::Number;
use stampede_model::{Limit, check_email, check_text};

use super::given::{Seed, State};
use super::reading::Reading;
use super::skip::{Skip, skip_list, skip_object};

/// Longest text from which a short value, such as an id or a number, is read, in bytes.
const SHORT: usize = 200;

/// A type of fields. Its schema is part of the API's description.
pub(crate) trait Part: Sized + JsonSchema {
    /// The message for JSON of another kind.
    const EXPECTED: &'static str;

    /// Reads a text.
    fn text(_: &str) -> Result<Self, String> {
        Err(Self::EXPECTED.to_owned())
    }

    /// Reads a number.
    fn number(_: Number) -> Result<Self, String> {
        Err(Self::EXPECTED.to_owned())
    }

    /// Reads `true` or `false`.
    fn flag(_: bool) -> Result<Self, String> {
        Err(Self::EXPECTED.to_owned())
    }

    /// Reads a list. The outer error ends the reading of the whole body.
    fn list<'de, A: SeqAccess<'de>>(
        list: A,
        _: &Reading,
    ) -> Result<Result<Self, String>, A::Error> {
        skip_list(list)?;
        Ok(Err(Self::EXPECTED.to_owned()))
    }

    /// Reads an object. The outer error ends the reading of the whole body.
    fn object<'de, A: MapAccess<'de>>(
        object: A,
        _: &Reading,
    ) -> Result<Result<Self, String>, A::Error> {
        skip_object(object)?;
        Ok(Err(Self::EXPECTED.to_owned()))
    }
}

/// Writes the schema of a simple type where it is used.
macro_rules! inline_schema {
    ($name:literal, $schema:expr) => {
        fn schema_name() -> ::std::borrow::Cow<'static, str> {
            $name.into()
        }

        fn inline_schema() -> bool {
            true
        }

        fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
            $schema
        }
    };
}

pub(crate) use inline_schema;

/// A line of text that can be printed on a ticket, of at most `MAX` characters.
#[derive(Debug, Clone)]
pub(crate) struct Line<const MAX: usize>(pub(crate) String);

impl<const MAX: usize> JsonSchema for Line<MAX> {
    inline_schema!("Line", json_schema!({ "type": "string", "minLength": 1, "maxLength": MAX }));
}

impl<const MAX: usize> Part for Line<MAX> {
    const EXPECTED: &'static str = "must be a text";

    fn text(text: &str) -> Result<Self, String> {
        check_text(text, Limit(MAX)).map(Self).map_err(|error| error.to_string())
    }
}

/// Any text of at most `MAX` bytes.
#[derive(Debug, Clone)]
pub(crate) struct Text<const MAX: usize>(pub(crate) String);

impl<const MAX: usize> JsonSchema for Text<MAX> {
    inline_schema!("Text", json_schema!({ "type": "string", "maxLength": MAX }));
}

impl<const MAX: usize> Part for Text<MAX> {
    const EXPECTED: &'static str = "must be a text";

    fn text(text: &str) -> Result<Self, String> {
        if text.len() > MAX {
            return Err(format!("must have at most {MAX} bytes, has {}", text.len()));
        }
        Ok(Self(text.to_owned()))
    }
}

/// An e-mail address.
#[derive(Debug, Clone)]
pub(crate) struct Email(pub(crate) String);

impl JsonSchema for Email {
    inline_schema!(
        "Email",
        json_schema!({ "type": "string", "format": "email", "maxLength": Limit::EMAIL.0 })
    );
}

impl Part for Email {
    const EXPECTED: &'static str = "must be a text";

    fn text(text: &str) -> Result<Self, String> {
        check_email(text).map(Self).map_err(|error| error.to_string())
    }
}

/// A telephone number, or a chat of Telegram, as a text or as a number.
#[derive(Debug, Clone)]
pub(crate) struct Contact(pub(crate) String);

impl JsonSchema for Contact {
    inline_schema!(
        "Contact",
        json_schema!({ "type": ["string", "integer"], "maxLength": Limit::CONTACT.0 })
    );
}

impl Part for Contact {
    const EXPECTED: &'static str = "must be a text or a number";

    fn text(text: &str) -> Result<Self, String> {
        check_text(text, Limit::CONTACT).map(Self).map_err(|error| error.to_string())
    }

    fn number(number: Number) -> Result<Self, String> {
        Ok(Self(number.to_string()))
    }
}

/// An amount of money in a currency that is not known yet, as a number or as text.
#[derive(Debug, Clone)]
pub(crate) struct Amount(pub(crate) String);

impl JsonSchema for Amount {
    inline_schema!(
        "Amount",
        json_schema!({
            "anyOf": [{ "type": "number", "minimum": 0 }, { "type": "string", "maxLength": SHORT }],
            "examples": ["49.90"],
        })
    );
}

impl Part for Amount {
    const EXPECTED: &'static str = "must be a decimal number such as 49.90";

    fn text(text: &str) -> Result<Self, String> {
        if text.len() > SHORT { Err(Self::EXPECTED.to_owned()) } else { Ok(Self(text.to_owned())) }
    }

    fn number(number: Number) -> Result<Self, String> {
        Ok(Self(number.to_string()))
    }
}

/// A whole number, not negative, within bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole<const MIN: u64 = 0, const MAX: u64 = { u64::MAX }>(pub(crate) u64);

impl<const MIN: u64, const MAX: u64> JsonSchema for Whole<MIN, MAX> {
    inline_schema!("Whole", json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX }));
}

impl<const MIN: u64, const MAX: u64> Part for Whole<MIN, MAX> {
    const EXPECTED: &'static str = "must be a whole number";

    fn number(number: Number) -> Result<Self, String> {
        if number.as_i64().is_some_and(i64::is_negative) {
            return Err(format!("must be at least {MIN}"));
        }
        let number = number.as_u64().ok_or_else(|| Self::EXPECTED.to_owned())?;
        match number {
            _ if number < MIN => Err(format!("must be at least {MIN}")),
            _ if number > MAX => Err(format!("must be at most {MAX}")),
            _ => Ok(Self(number)),
        }
    }
}

/// A number of tickets; some clients send `5.0`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity(pub(crate) u64);

impl JsonSchema for Quantity {
    inline_schema!("Quantity", json_schema!({ "type": "integer", "minimum": 1 }));
}

impl Part for Quantity {
    const EXPECTED: &'static str = "must be a whole number";

    fn number(number: Number) -> Result<Self, String> {
        let whole = |n: &f64| n.fract() == 0.0 && *n >= 0.0;
        let rounded = || number.as_f64().filter(whole).map(|n| n as u64);
        number.as_u64().or_else(rounded).map(Self).ok_or_else(|| Self::EXPECTED.to_owned())
    }
}

/// `true` or `false`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flag(pub(crate) bool);

impl JsonSchema for Flag {
    inline_schema!("Flag", json_schema!({ "type": "boolean" }));
}

impl Part for Flag {
    const EXPECTED: &'static str = "must be true or false";

    fn flag(flag: bool) -> Result<Self, String> {
        Ok(Self(flag))
    }
}

/// A short text that stands for a value.
#[derive(Debug, Clone)]
pub(crate) struct Parsed<T>(pub(crate) T);

impl<T: JsonSchema> JsonSchema for Parsed<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        schemas.subschema_for::<T>()
    }
}

impl<T> Part for Parsed<T>
where
    T: FromStr + JsonSchema,
    T::Err: Display,
{
    const EXPECTED: &'static str = "must be a text";

    fn text(text: &str) -> Result<Self, String> {
        if text.len() > SHORT {
            return Err(format!("must have at most {SHORT} bytes, has {}", text.len()));
        }
        text.parse().map(Self).map_err(|error: T::Err| error.to_string())
    }
}

/// The id of a record; `None`: a text that is the id of no record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdOf<T>(pub(crate) Option<T>);

impl<T> JsonSchema for IdOf<T> {
    inline_schema!("Id", json_schema!({ "type": "string", "format": "uuid" }));
}

impl<T: FromStr> Part for IdOf<T> {
    const EXPECTED: &'static str = "must be an id";

    fn text(text: &str) -> Result<Self, String> {
        Ok(Self(text.parse().ok()))
    }
}

/// A list of at most `MAX` entries; each is right or has its message.
#[derive(Debug, Clone)]
pub(crate) struct List<T, const MAX: usize>(pub(crate) Vec<Result<T, String>>);

impl<T: Part, const MAX: usize> JsonSchema for List<T, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("ListOf{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let entries = schemas.subschema_for::<T>();
        json_schema!({ "type": "array", "items": entries, "maxItems": MAX })
    }
}

impl<T: Part, const MAX: usize> Part for List<T, MAX> {
    const EXPECTED: &'static str = "must be a list";

    fn list<'de, A: SeqAccess<'de>>(
        mut list: A,
        reading: &Reading,
    ) -> Result<Result<Self, String>, A::Error> {
        let mut entries = Vec::new();
        while entries.len() < MAX {
            // Further mistakes would not be told.
            if reading.has_seen_enough() {
                skip_list(list)?;
                return Ok(Ok(Self(entries)));
            }
            // A vector that grows holds its former half for a moment.
            reading.keep(size_of::<Result<T, String>>() * 3 / 2)?;
            match list.next_element_seed(Seed::<T>::new(reading))? {
                None => return Ok(Ok(Self(entries))),
                Some(State::Is(entry)) => entries.push(Ok(entry)),
                Some(State::Wrong(message)) => entries.push(Err(message)),
                Some(State::Null | State::Absent) => entries.push(Err(T::EXPECTED.to_owned())),
            }
        }
        if list.next_element::<Skip>()?.is_none() {
            return Ok(Ok(Self(entries)));
        }
        drop(entries);
        let count = MAX + 1 + skip_list(list)?;
        Ok(Err(format!("may have at most {MAX} entries, has {count}")))
    }
}
