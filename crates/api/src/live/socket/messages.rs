//! The messages of a client, read: mistakes are named.

use serde::Deserialize;
use stampede_feed::{Filter, Position};
use stampede_model::feed::Kind;

use crate::unknown;

/// Longest name of a subscription.
const LONGEST_ID: usize = 64;

/// What a client sends.
#[derive(Debug, PartialEq)]
pub(super) enum Asked {
    /// Its key.
    Auth(String),
    /// What it wants to hear.
    Wish(Wish),
}

/// What a client wants to hear.
#[derive(Debug, PartialEq)]
pub(super) enum Wish {
    /// Events of a filter, perhaps from a position on.
    Subscribe { id: String, filter: Filter, after: Option<Position> },
    /// No more of them.
    Unsubscribe { id: String },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
enum Written {
    Auth {
        key: String,
    },
    Subscribe {
        #[serde(default)]
        id: String,
        kinds: Option<Vec<String>>,
        target: Option<String>,
        batch: Option<String>,
        queue: Option<String>,
        after: Option<String>,
    },
    Unsubscribe {
        #[serde(default)]
        id: String,
    },
}

/// Reads a message; the error is for the person who wrote it.
pub(super) fn read(text: &str) -> Result<Asked, String> {
    let written: Written = serde_json::from_str(text)
        .map_err(|error| format!("the message cannot be read: {error}"))?;
    match written {
        Written::Auth { key } => Ok(Asked::Auth(key)),
        Written::Unsubscribe { id } => Ok(Asked::Wish(Wish::Unsubscribe { id })),
        Written::Subscribe { id, kinds, target, batch, queue, after } => {
            if id.len() > LONGEST_ID {
                return Err(format!("id has more than {LONGEST_ID} bytes"));
            }
            let kinds = kinds.map(|names| names.iter().map(|name| kind(name)).collect());
            let filter = Filter {
                kinds: kinds.transpose()?,
                target: parsed("target", target, "the id of an event")?,
                batch: parsed("batch", batch, "the id of a batch")?,
                queue,
            };
            let after = parsed("after", after, "the position of an event")?;
            Ok(Asked::Wish(Wish::Subscribe { id, filter, after }))
        }
    }
}

/// A kind by its name; a typo gets the name that was probably meant.
pub(crate) fn kind(name: &str) -> Result<Kind, String> {
    name.parse().map_err(|_| {
        let shown = unknown::shown(name);
        format!("kinds: {shown:?} {}", unknown::remark(name, Kind::NAMES))
    })
}

fn parsed<T: std::str::FromStr>(
    field: &str,
    text: Option<String>,
    right: &str,
) -> Result<Option<T>, String> {
    text.map(|text| text.parse().map_err(|_| format!("{field} must be {right}"))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_and_mistakes_are_named() {
        assert_eq!(read(r#"{"type":"auth","key":"k"}"#), Ok(Asked::Auth("k".into())));
        let all = Wish::Subscribe { id: String::new(), filter: Filter::default(), after: None };
        assert_eq!(read(r#"{"type":"subscribe"}"#), Ok(Asked::Wish(all)));
        let Ok(Asked::Wish(Wish::Subscribe { id, filter, after })) = read(
            r#"{"type":"subscribe","id":"a","kinds":["batch.created"],"queue":"q","after":"5-1"}"#,
        ) else {
            panic!("not read")
        };
        assert_eq!((id.as_str(), filter.queue.as_deref()), ("a", Some("q")));
        assert_eq!(filter.kinds, Some(vec![Kind::BatchCreated]));
        assert_eq!(after.map(|after| after.to_string()).as_deref(), Some("5-1"));
        for (text, told) in [
            ("", "cannot be read"),
            ("[1]", "cannot be read"),
            (r#"{"type":"shout"}"#, "cannot be read"),
            (r#"{"type":"subscribe","kindz":[]}"#, "unknown field"),
            (r#"{"type":"subscribe","kinds":["batch.craeted"]}"#, "did you mean batch.created?"),
            (r#"{"type":"subscribe","target":"x"}"#, "target must be the id of an event"),
            (r#"{"type":"subscribe","after":"x"}"#, "after must be the position of an event"),
        ] {
            let mistake = read(text).unwrap_err();
            assert!(mistake.contains(told), "{text}: {mistake}");
        }
        let long = format!(r#"{{"type":"subscribe","id":"{}"}}"#, "x".repeat(65));
        assert!(read(&long).is_err());
    }
}
