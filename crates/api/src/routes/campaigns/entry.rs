//! A recipient in the body of a request.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::MapAccess;
use serde_json::Value;
use stampede_campaign::RecipientRow;

use crate::forms::{Part, Payload, Reading, Texts, text};

/// The fields of a recipient that name its address.
const ADDRESSES: [&str; 4] = ["phoneNumber", "email", "chatId", "address"];

/// A recipient in the body of a request: an address under one of four names, a message, a time zone, and fields; names that
/// are none of these are fields, too.
#[derive(Debug, Clone)]
pub(crate) struct RecipientEntry(pub(crate) RecipientRow);

impl JsonSchema for RecipientEntry {
    fn schema_name() -> Cow<'static, str> {
        "RecipientEntry".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text =
            |about: &str| serde_json::json!({ "type": ["string", "null"], "description": about });
        let value = serde_json::json!({ "type": ["string", "number", "boolean", "null"] });
        json_schema!({
            "type": "object",
            "description": "A recipient: one address, a message of its own or fields for the template.",
            "properties": {
                "phoneNumber": { "type": ["string", "number", "null"], "description": "A telephone number." },
                "email": text("An address for mail."),
                "chatId": { "type": ["string", "number", "null"], "description": "A chat of Telegram." },
                "address": text("Any address of the channel."),
                "message": text("The recipient's own message."),
                "timeZone": text("The recipient's time zone, such as `Europe/Berlin`."),
                "fields": { "type": ["object", "null"], "additionalProperties": value },
            },
            "additionalProperties": value,
        })
    }
}

impl Part for RecipientEntry {
    const EXPECTED: &'static str =
        "must be an object such as {\"phoneNumber\": \"79991234567\", \"message\": \"Hello\"}";

    fn object<'de, A: MapAccess<'de>>(
        object: A,
        reading: &Reading,
    ) -> Result<Result<Self, String>, A::Error> {
        Ok(Payload::object(object, reading)?.and_then(|payload| entry(payload.value)))
    }
}

fn entry(value: Value) -> Result<RecipientEntry, String> {
    let Value::Object(mut object) = value else {
        return Err(RecipientEntry::EXPECTED.to_owned());
    };
    let mut one = |name: &str| match object.remove(name).map(text) {
        None => Ok(None),
        Some(Some(text)) => Ok(text),
        Some(None) => Err(format!("has no text in {name}")),
    };
    let mut addresses = Vec::new();
    for name in ADDRESSES {
        addresses.extend(one(name)?.filter(|address| !address.trim().is_empty()));
    }
    let (message, time_zone) = (one("message")?, one("timeZone")?);
    let Texts(mut fields) = match object.remove("fields") {
        None | Some(Value::Null) => Texts::default(),
        Some(fields) => Texts::of(fields).map_err(|error| format!("fields {error}"))?,
    };
    fields.extend(Texts::of(Value::Object(object))?.0);
    match <[String; 1]>::try_from(addresses) {
        Ok([address]) => Ok(RecipientEntry(RecipientRow { address, fields, message, time_zone })),
        Err(none) if none.is_empty() => {
            Err(format!("has no address: give {}", ADDRESSES.join(", ")))
        }
        Err(_) => Err(format!("has several addresses: give one of {}", ADDRESSES.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_recipient_has_one_address_and_everything_else_is_a_field() {
        let read = |value: Value| entry(value).map(|RecipientEntry(row)| row);
        let row = read(json!({ "phoneNumber": 79991234567u64, "message": "Привет!" })).unwrap();
        assert_eq!(
            (row.address.as_str(), row.message.as_deref()),
            ("79991234567", Some("Привет!"))
        );
        let row = read(json!({ "email": "a@example.com", "seat": 7, "fields": { "name": "Ann" } }));
        let fields = row.unwrap().fields;
        assert_eq!((fields["seat"].as_str(), fields["name"].as_str()), ("7", "Ann"));
        for (value, told) in [
            (json!({ "message": "x" }), "has no address"),
            (json!({ "email": "a@example.com", "phoneNumber": "1" }), "several addresses"),
            (json!({ "email": [] }), "no text in email"),
            (json!({ "email": "a@example.com", "tags": ["x"] }), "no text in tags"),
            (json!([]), "must be an object"),
        ] {
            assert!(read(value.clone()).unwrap_err().contains(told), "{value}");
        }
    }
}
