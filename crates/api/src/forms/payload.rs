//! Any JSON, as the payload of a job. The memory of the tree is counted while it grows: small objects take up to eighty
//! times the bytes of their text.

use schemars::{JsonSchema, Schema};
use serde::de::{MapAccess, SeqAccess};
use serde_json::{Map, Number, Value};

use super::given::{Seed, State};
use super::parts::{Part, inline_schema};
use super::reading::Reading;
use super::skip::{skip_list, skip_object};

/// Memory of a value in a list or map, in bytes.
const VALUE: usize = size_of::<Value>() * 3 / 2;
/// Memory of an object with a few fields, in bytes: a node of a B-tree has room for eleven.
const OBJECT: usize = 11 * (size_of::<String>() + size_of::<Value>()) + 32;
/// Memory of a field's name, in bytes, beside its letters.
const NAME: usize = 16;

/// Any JSON, at most as large as the payload of a job may be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Payload {
    pub(crate) value: Value,
    /// Bytes of its shortest text, at least.
    bytes: usize,
}

fn too_large(reading: &Reading) -> String {
    format!("has more than {} bytes; {0} is the most", reading.limits.payload)
}

impl JsonSchema for Payload {
    inline_schema!("Payload", Schema::default());
}

impl Part for Payload {
    const EXPECTED: &'static str = "must be JSON";

    fn text(text: &str) -> Result<Self, String> {
        Ok(Self { value: Value::String(text.to_owned()), bytes: text.len() + 2 })
    }

    fn number(number: Number) -> Result<Self, String> {
        Ok(Self { value: Value::Number(number), bytes: 1 })
    }

    fn flag(flag: bool) -> Result<Self, String> {
        Ok(Self { value: Value::Bool(flag), bytes: 4 })
    }

    fn list<'de, A: SeqAccess<'de>>(
        mut list: A,
        reading: &Reading,
    ) -> Result<Result<Self, String>, A::Error> {
        let (mut values, mut bytes) = (Vec::new(), 1);
        loop {
            reading.keep(VALUE)?;
            let entry = match list.next_element_seed(Seed::<Self>::new(reading))? {
                None => return Ok(Ok(Self { value: Value::Array(values), bytes: bytes.max(2) })),
                Some(entry) => taken(entry),
            };
            match entry {
                Ok(entry) if bytes + entry.bytes < reading.limits.payload => {
                    bytes += entry.bytes + 1;
                    values.push(entry.value);
                }
                refused => {
                    drop(values);
                    skip_list(list)?;
                    return Ok(Err(refused.err().unwrap_or_else(|| too_large(reading))));
                }
            }
        }
    }

    fn object<'de, A: MapAccess<'de>>(
        mut object: A,
        reading: &Reading,
    ) -> Result<Result<Self, String>, A::Error> {
        let (mut fields, mut bytes) = (Map::new(), 1);
        while let Some(name) = object.next_key::<String>()? {
            // An object's first field, and half of the others on average, need a node of their own.
            let node = if fields.len() % 5 == 0 { OBJECT } else { 0 };
            reading.keep(node + NAME + name.len())?;
            match taken(object.next_value_seed(Seed::<Self>::new(reading))?) {
                Ok(value) if bytes + name.len() + value.bytes < reading.limits.payload => {
                    bytes += name.len() + value.bytes + 4;
                    fields.insert(name, value.value);
                }
                refused => {
                    drop(fields);
                    skip_object(object)?;
                    return Ok(Err(refused.err().unwrap_or_else(|| too_large(reading))));
                }
            }
        }
        Ok(Ok(Self { value: Value::Object(fields), bytes: bytes.max(2) }))
    }
}

/// A value inside a payload; `null` is one, too.
fn taken(state: State<Payload>) -> Result<Payload, String> {
    match state {
        State::Is(payload) => Ok(payload),
        State::Wrong(message) => Err(message),
        State::Null | State::Absent => Ok(Payload { value: Value::Null, bytes: 4 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::{ReadingLimits, form, parse};

    form! {
        struct Job {
            data: Payload = "data",
        }
    }

    fn read(text: &str, payload: usize) -> State<Payload> {
        let limits = ReadingLimits { holders: 1, payload };
        parse::<Job>(text.as_bytes(), limits, None).unwrap().0.data.state
    }

    #[test]
    fn any_json_is_kept_as_it_is() {
        for text in
            [r#"{"a":[1,-2,2.5,null,true,"x"],"b":{"c":{}},"d":[]}"#, r#""text""#, "7", "[[],[[]]]"]
        {
            let State::Is(payload) = read(&format!("{{\"data\":{text}}}"), 1_000) else {
                panic!("{text}")
            };
            assert_eq!(payload.value.to_string(), text);
            assert!(payload.bytes <= text.len(), "{text}");
        }
    }

    #[test]
    fn a_payload_is_dropped_when_it_is_too_large() {
        for text in ["[{\"a\":0},".repeat(1_000), "[".to_owned() + &"{},".repeat(1_000)] {
            let closed = format!("{text}0{}", "]".repeat(text.matches('[').count()));
            let Ok((job, _)) = parse::<Job>(
                format!("{{\"data\":{closed}}}").as_bytes(),
                ReadingLimits { holders: 1, payload: 500 },
                None,
            ) else {
                continue;
            };
            let State::Wrong(message) = job.data.state else { panic!("kept") };
            assert_eq!(message, "has more than 500 bytes; 500 is the most");
        }
        let object: Vec<String> = (0..200).map(|n| format!("\"k{n}\":{n}")).collect();
        let text = format!("{{\"data\":{{{}}}}}", object.join(","));
        assert!(matches!(read(&text, 500), State::Wrong(_)));
    }
}
