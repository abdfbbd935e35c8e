//! A record as the log keeps it: without secrets, with long texts and files by hash and size.
//!
//! Handlers hand over records as the API shows them, which have no secrets. What is removed here is the second lock: a
//! field or a value that looks like a secret never reaches the log, whoever forgot it.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Longest text that is kept as it is, in bytes.
const LONGEST_TEXT: usize = 2_000;
/// Longest record that is kept as it is, in bytes.
const LONGEST_RECORD: usize = 32 << 10;
/// Fields that hold secrets, in plain letters.
const SECRET_FIELDS: [&str; 7] =
    ["secret", "secrets", "enrolcode", "enrolurl", "password", "authorization", "privatekey"];
/// Beginnings of secrets: API keys and webhook secrets.
const SECRET_BEGINNINGS: [&str; 2] = ["stp_", "whsec_"];

/// The record as JSON text.
pub(crate) fn kept(record: Value) -> String {
    let text = cleaned(record, Place::Record).to_string();
    match text.len() <= LONGEST_RECORD {
        true => text,
        false => digest(text.as_bytes()).to_string(),
    }
}

/// The id of a record that a change has made.
pub(crate) fn id_of(record: &Value) -> Option<String> {
    record["id"].as_str().map(str::to_owned)
}

/// Where a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Record,
    /// Below `files`: every text is the content of a file.
    Files,
}

fn cleaned(value: Value, place: Place) -> Value {
    match value {
        Value::String(text) if looks_secret(&text) => json!("removed"),
        Value::String(text) if place == Place::Files || text.len() > LONGEST_TEXT => {
            digest(text.as_bytes())
        }
        Value::Array(values) => {
            Value::Array(values.into_iter().map(|value| cleaned(value, place)).collect())
        }
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| {
                let value = match name.as_str() {
                    name if is_secret(name) => json!("removed"),
                    "files" => cleaned(value, Place::Files),
                    _ => cleaned(value, place),
                };
                (name, value)
            });
            Value::Object(fields.collect::<Map<String, Value>>())
        }
        other => other,
    }
}

fn is_secret(field: &str) -> bool {
    let plain: String =
        field.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    SECRET_FIELDS.contains(&plain.as_str())
}

fn looks_secret(text: &str) -> bool {
    SECRET_BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

/// A text by its hash and size.
fn digest(bytes: &[u8]) -> Value {
    json!({ "sha256": hex::encode(Sha256::digest(bytes)), "bytes": bytes.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_never_reach_the_log() {
        let record = json!({
            "id": "1", "name": "Box office", "secret": "x", "enrolCode": "ABCD", "enrolUrl": "/gate#enrol=ABCD",
            "nested": [{ "Password": "y", "key": "stp_0123", "hook": "whsec_abc" }],
        });
        let kept: Value = serde_json::from_str(&kept(record)).unwrap();
        let removed = json!("removed");
        assert_eq!(
            kept,
            json!({
                "id": "1", "name": "Box office", "secret": removed, "enrolCode": removed, "enrolUrl": removed,
                "nested": [{ "Password": removed, "key": removed, "hook": removed }],
            })
        );
    }

    #[test]
    fn files_and_long_texts_are_kept_by_hash_and_size() {
        let record = json!({ "files": { "template.typ": "short" }, "note": "n".repeat(3_000) });
        let kept: Value = serde_json::from_str(&kept(record)).unwrap();
        assert_eq!(kept["files"]["template.typ"]["bytes"], 5);
        assert_eq!(kept["files"]["template.typ"]["sha256"].as_str().unwrap().len(), 64);
        assert_eq!(kept["note"]["bytes"], 3_000);
        let large: Vec<String> = (0..10_000).map(|n| format!("text {n}")).collect();
        assert!(super::kept(json!(large)).len() < 200);
    }
}
