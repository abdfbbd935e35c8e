//! Numbers with a fraction, and objects whose values are short texts.

use std::collections::BTreeMap;

use schemars::{JsonSchema, json_schema};
use serde::de::MapAccess;
use serde_json::{Number, Value};

use super::parts::{Part, inline_schema};
use super::payload::Payload;
use super::reading::Reading;

/// A number, not negative.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decimal(pub(crate) f64);

impl JsonSchema for Decimal {
    inline_schema!("Decimal", json_schema!({ "type": "number", "minimum": 0 }));
}

impl Part for Decimal {
    const EXPECTED: &'static str = "must be a number";

    fn number(number: Number) -> Result<Self, String> {
        match number.as_f64() {
            Some(number) if number >= 0.0 => Ok(Self(number)),
            _ => Err("must not be negative".to_owned()),
        }
    }
}

/// An object of texts, such as the fields of a recipient. Numbers and booleans become texts; `null` counts as absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts(pub(crate) BTreeMap<String, String>);

impl JsonSchema for Texts {
    inline_schema!(
        "Texts",
        json_schema!({
            "type": "object",
            "additionalProperties": { "type": ["string", "number", "boolean", "null"] },
        })
    );
}

impl Part for Texts {
    const EXPECTED: &'static str = "must be an object of texts";

    fn object<'de, A: MapAccess<'de>>(
        object: A,
        reading: &Reading,
    ) -> Result<Result<Self, String>, A::Error> {
        Ok(Payload::object(object, reading)?.and_then(|payload| Self::of(payload.value)))
    }
}

impl Texts {
    /// The texts of an object.
    pub(crate) fn of(value: Value) -> Result<Self, String> {
        let Value::Object(fields) = value else { return Err(Self::EXPECTED.to_owned()) };
        let mut texts = BTreeMap::new();
        for (name, value) in fields {
            match text(value) {
                Some(Some(value)) => drop(texts.insert(name, value)),
                Some(None) => {}
                None => return Err(format!("has no text in {}", crate::unknown::shown(&name))),
            }
        }
        Ok(Self(texts))
    }
}

/// A value as a text; `Some(None)`: it is `null`, `None`: it is a list or an object.
pub(crate) fn text(value: Value) -> Option<Option<String>> {
    match value {
        Value::Null => Some(None),
        Value::String(text) => Some(Some(text)),
        Value::Number(number) => Some(Some(number.to_string())),
        Value::Bool(flag) => Some(Some(flag.to_string())),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_and_booleans_are_texts_and_null_is_absent() {
        let Texts(texts) = Texts::of(json!({ "a": "x", "b": 7, "c": true, "d": null })).unwrap();
        let wanted = [("a", "x"), ("b", "7"), ("c", "true")];
        assert!(texts.iter().map(|(k, v)| (k.as_str(), v.as_str())).eq(wanted));
        assert_eq!(Texts::of(json!({ "a": [] })).unwrap_err(), "has no text in a");
        assert!(Texts::of(json!([])).is_err());
    }
}
