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
///
/// The text can be several times as long as the body: `1e15` has four bytes, `1000000000000000.0` eighteen. `claim` is
/// asked for the memory that text and copies take at most, before it is taken; its refusal ends the work.
pub(crate) fn canonical<R>(
    body: &[u8],
    mut claim: impl FnMut(usize) -> Result<(), R>,
) -> Result<Option<String>, R> {
    let mut refused = None;
    let mut text = Text {
        bytes: Vec::new(),
        claimed: 0,
        claim: &mut |bytes| match claim(bytes) {
            Ok(()) => true,
            Err(refusal) => {
                refused = Some(refusal);
                false
            }
        },
    };
    let mut json = serde_json::Deserializer::from_slice(body);
    // Most texts are shorter than their bodies, which have white space.
    let written = text.grow(body.len() + 4 * SHORT);
    let written = written.and_then(|()| Writer { text: &mut text }.deserialize(&mut json));
    let bytes = std::mem::take(&mut text.bytes);
    match refused {
        Some(refusal) => Err(refusal),
        None => Ok(written.ok().and_then(|()| String::from_utf8(bytes).ok())),
    }
}

/// The longest number or name of a field that is written without asking again, in bytes.
const SHORT: usize = 64;

/// The text as far as it is written.
struct Text<'c> {
    bytes: Vec<u8>,
    /// Bytes of text for which memory is claimed.
    claimed: usize,
    claim: &'c mut dyn FnMut(usize) -> bool,
}

impl Text<'_> {
    /// Makes room for so many bytes more.
    fn reserve<E: Error>(&mut self, more: usize) -> Result<(), E> {
        let wanted = self.bytes.len() + more;
        // A quarter more, so that the text is seldom moved.
        if wanted <= self.claimed { Ok(()) } else { self.grow(wanted + wanted / 4) }
    }

    fn grow<E: Error>(&mut self, bytes: usize) -> Result<(), E> {
        // The text, and the copy that it is moved or sorted into.
        if !(self.claim)(2 * bytes) {
            return Err(E::custom("no memory for the canonical text"));
        }
        self.bytes.reserve_exact(bytes - self.bytes.len());
        self.claimed = bytes;
        Ok(())
    }
}

/// Writes one value to the end of the text.
struct Writer<'t, 'c> {
    text: &'t mut Text<'c>,
}

impl Writer<'_, '_> {
    fn scalar<E: Error>(self, value: impl Into<Value>) -> Result<(), E> {
        self.text.reserve(SHORT)?;
        serde_json::to_writer(&mut self.text.bytes, &value.into()).map_err(E::custom)
    }
}

/// Writes a text as JSON: a character takes six bytes at most.
fn write_text<E: Error>(out: &mut Text<'_>, text: &str) -> Result<(), E> {
    let escapes = text.bytes().filter(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')).count();
    out.reserve(text.len() + 5 * escapes + SHORT)?;
    serde_json::to_writer(&mut out.bytes, text).map_err(E::custom)
}

impl<'de> DeserializeSeed<'de> for Writer<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writer<'_, '_> {
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
        write_text(self.text, text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.text.reserve(SHORT)?;
        self.text.bytes.push(b'[');
        let begin = self.text.bytes.len();
        loop {
            let end = self.text.bytes.len();
            self.text.reserve(SHORT)?;
            if end > begin {
                self.text.bytes.push(b',');
            }
            if list.next_element_seed(Writer { text: self.text })?.is_none() {
                self.text.bytes.truncate(end);
                break;
            }
        }
        self.text.bytes.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let begin = self.text.bytes.len();
        let mut fields: Vec<(String, Range<usize>)> = Vec::new();
        while let Some(name) = object.next_key::<String>()? {
            if fields.len() == MOST_FIELDS {
                return Err(A::Error::custom("too many fields"));
            }
            let start = self.text.bytes.len();
            write_text(self.text, &name)?;
            self.text.bytes.push(b':');
            object.next_value_seed(Writer { text: self.text })?;
            fields.push((name, start..self.text.bytes.len()));
        }
        self.text.reserve(fields.len() + SHORT)?;
        put_in_order(&mut self.text.bytes, begin, fields);
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

    fn canonical(body: &[u8]) -> Option<String> {
        super::canonical(body, |_| Ok::<(), ()>(())).unwrap()
    }

    #[test]
    fn a_text_that_grows_claims_its_memory_first() {
        let body = format!("[{}1]", "1e15,".repeat(100_000));
        let mut claimed = 0;
        let text = super::canonical(body.as_bytes(), |bytes| {
            claimed = bytes;
            Ok::<(), ()>(())
        });
        let text = text.unwrap().unwrap();
        assert!(text.len() > 3 * body.len() && 2 * text.len() <= claimed, "{claimed}");
        assert!(text.capacity() <= claimed / 2, "{}", text.capacity());
        let refused = super::canonical(body.as_bytes(), |bytes| match bytes > 3 * body.len() {
            true => Err("no memory"),
            false => Ok(()),
        });
        assert_eq!(refused, Err("no memory"));
    }

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
