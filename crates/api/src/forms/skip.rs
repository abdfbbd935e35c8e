//! Values that are read over: nothing of them is kept. They must still be JSON, and not nested too deeply.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// Any JSON value, forgotten.
///
/// Unlike `IgnoredAny`, for which serde_json only looks for the end of the value, this reader refuses what the reader of
/// a known field would refuse: half characters, numbers out of range, more than 128 levels.
pub(crate) struct Skip;

impl<'de> Deserialize<'de> for Skip {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Skip {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self, A::Error> {
        skip_list(list).map(|_| self)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self, A::Error> {
        skip_object(object).map(|()| self)
    }
}

/// Reads over the rest of a list; returns the number of its entries.
pub(crate) fn skip_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<usize, A::Error> {
    let mut count = 0;
    while list.next_element::<Skip>()?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// Reads over the rest of an object.
pub(crate) fn skip_object<'de, A: MapAccess<'de>>(mut object: A) -> Result<(), A::Error> {
    while object.next_entry::<Skip, Skip>()?.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_value_must_still_be_json_of_a_bearable_depth() {
        let read = |text: &str| serde_json::from_str::<Skip>(text).map(drop);
        for text in ["null", "1", "-1.5e3", "\"\\u00e9\"", "[1,[2,{}]]", "{\"a\":{\"b\":[true]}}"] {
            assert!(read(text).is_ok(), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
        for text in [&deep, "\"\\ud800\"", &"9".repeat(10_000), "[1,", "{\"a\"}"] {
            assert!(read(text).is_err(), "{text:.50}");
        }
    }
}
