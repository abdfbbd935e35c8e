//! The canonical text of a body: without white space, the fields of every object sorted by name, of two fields of one
//! name the last. Two bodies with the same content have the same text.
//!
//! The text is that of `serde_json::Value`, from which the hashes of earlier orders were made, without the tree: fields
//! are written one after the other and put in order when their object ends.

use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Fields of one object.
const MOST_FIELDS: usize = 1_000;

/// The canonical text of a body; `None` if it is not JSON, or an object in it has more than a thousand fields.
pub(crate) fn canonical(body: &[u8]) -> Option<String> {
    let mut text = Vec::with_capacity(body.len());
    let mut json = serde_json::Deserializer::from_slice(body);
    Writer { text: &mut text }.deserialize(&mut json).ok()?;
    String::from_utf8(text).ok()
}

/// Writes one value to the end of the text.
struct Writer<'t> {
    text: &'t mut Vec<u8>,
}

impl Writer<'_> {
    fn scalar<E: Error>(self, value: impl Into<Value>) -> Result<(), E> {
        serde_json::to_writer(self.text, &value.into()).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Writer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.scalar(Value::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<(), E> {
        self.scalar(flag)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.scalar(number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.scalar(number)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.scalar(number)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        serde_json::to_writer(self.text, text).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.text.push(b'[');
        let begin = self.text.len();
        loop {
            let end = self.text.len();
            if end > begin {
                self.text.push(b',');
            }
            if list.next_element_seed(Writer { text: self.text })?.is_none() {
                self.text.truncate(end);
                break;
            }
        }
        self.text.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let begin = self.text.len();
        let mut fields: Vec<(String, Range<usize>)> = Vec::new();
        while let Some(name) = object.next_key::<String>()? {
            if fields.len() == MOST_FIELDS {
                return Err(A::Error::custom("too many fields"));
            }
            let start = self.text.len();
            serde_json::to_writer(&mut *self.text, &name).map_err(A::Error::custom)?;
            self.text.push(b':');
            object.next_value_seed(Writer { text: self.text })?;
            fields.push((name, start..self.text.len()));
        }
        put_in_order(self.text, begin, fields);
        Ok(())
    }
}

/// Replaces the fields of an object, written from `begin` in any order, by the sorted object.
fn put_in_order(text: &mut Vec<u8>, begin: usize, mut fields: Vec<(String, Range<usize>)>) {
    fields.reverse();
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    fields.dedup_by(|later, kept| later.0 == kept.0);
    let mut sorted = Vec::with_capacity(text.len() - begin + fields.len() + 2);
    sorted.push(b'{');
    for (index, (_, field)) in fields.into_iter().enumerate() {
        if index > 0 {
            sorted.push(b',');
        }
        sorted.extend_from_slice(&text[field]);
    }
    sorted.push(b'}');
    text.truncate(begin);
    text.extend_from_slice(&sorted);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_that_of_a_sorted_tree() {
        for body in [
            r#" {"b": [1, 2.50, -3, 1e2, {"z": null, "a": "é\u00e9\n\""}], "a": {"y":{}, "x":[]}} "#,
            r#"{"target":"t","name":"Ann","quantity":5,"price":49.90}"#,
            r#"{"a":1,"b":2,"a":3}"#,
            r#"{"holders":[{"seat":"A","name":"B"},{"name":"C"}],"":0,"ä":1,"Z":2}"#,
            "{}",
            "[]",
            "[[],[{}],18446744073709551615,0.1,1e-7]",
        ] {
            let tree: Value = serde_json::from_str(body).unwrap();
            assert_eq!(canonical(body.as_bytes()), Some(tree.to_string()), "{body}");
        }
        assert_eq!(canonical(b"{\"a\":"), None);
        let many: Vec<String> = (0..=MOST_FIELDS).map(|n| format!("\"{n}\":0")).collect();
        assert_eq!(canonical(format!("{{{}}}", many.join(",")).as_bytes()), None);
    }
}
