//! The audit log: `GET /api/audit`, `stampede audit`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stampede_model::{AuditId, EventId, KeyId, Role, Timestamp};

/// How a change was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "AuditOrigin")]
pub enum Origin {
    /// By a request to the API.
    Api,
    /// By a command on a machine that reaches the database; `user` is the user of its operating system.
    Command,
}

impl Origin {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Command => "command",
        }
    }
}

/// How a change ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "AuditOutcome")]
pub enum Outcome {
    /// The change was made.
    Done,
    /// Somebody without the right asked for it: nothing was changed.
    Refused,
    /// It failed; `status` says why. As a rule, nothing was changed.
    Failed,
    /// The process ended, or the client hung up, before the outcome was noted: the change may have been made or not.
    Unknown,
}

impl Outcome {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AuditEntry")]
pub struct Entry {
    /// The entry's id.
    pub id: AuditId,
    /// When the change began.
    pub at: Timestamp,
    /// The user who asked for it.
    pub user: String,
    /// The user's role.
    pub role: Role,
    /// The id of the key; `null`: a token of an identity provider, or a command.
    pub key: Option<KeyId>,
    /// The name that the key had.
    pub key_name: Option<String>,
    /// How the change was asked for.
    pub origin: Origin,
    /// The address that the request came from.
    pub address: Option<String>,
    /// The id of the request.
    pub request_id: Option<String>,
    /// The operation: an `operationId` of this API.
    pub operation: String,
    /// The kind of the record.
    pub kind: Option<String>,
    /// The record: its id or its name.
    pub record: Option<String>,
    /// The event that the record belongs to.
    pub event: Option<EventId>,
    /// How the change ended.
    pub outcome: Outcome,
    /// The status of the answer.
    pub status: Option<u16>,
    /// When the outcome was noted.
    pub settled_at: Option<Timestamp>,
    /// The record before the change, without secrets; long texts by hash and size.
    pub before: Option<Value>,
    /// The record after the change.
    pub after: Option<Value>,
    /// Refusals before this one that were not written, because there were too many.
    pub left_out: u32,
}

/// One page of the audit log, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AuditPage")]
pub struct EntryPage {
    /// The entries.
    pub entries: Vec<Entry>,
    /// The `after` of the next page; `null` on the last.
    pub next: Option<AuditId>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ticketing::golden::assert_golden;

    #[test]
    fn entries_have_the_names_that_clients_read() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let (id, key) = (AuditId::from_bytes([1; 16]), KeyId::from_bytes([2; 16]));
        let entry = Entry {
            id,
            at,
            user: "ann".into(),
            role: Role::Organiser,
            key: Some(key),
            key_name: Some("Box office".into()),
            origin: Origin::Api,
            address: Some("192.0.2.7".into()),
            request_id: Some("r".into()),
            operation: "updateEvent".into(),
            kind: Some("event".into()),
            record: Some("e".into()),
            event: None,
            outcome: Outcome::Done,
            status: Some(200),
            settled_at: Some(at),
            before: Some(json!({ "name": "a" })),
            after: None,
            left_out: 0,
        };
        let json = json!({
            "id": id, "at": "2027-01-15T08:00:00Z", "user": "ann", "role": "organiser", "key": key,
            "keyName": "Box office", "origin": "api", "address": "192.0.2.7", "requestId": "r",
            "operation": "updateEvent", "kind": "event", "record": "e", "event": null, "outcome": "done",
            "status": 200, "settledAt": "2027-01-15T08:00:00Z", "before": { "name": "a" }, "after": null,
            "leftOut": 0,
        });
        assert_golden(&entry, json.clone());
        let page = EntryPage { entries: vec![entry], next: Some(id) };
        assert_golden(&page, json!({ "entries": [json], "next": id }));
        for outcome in [Outcome::Refused, Outcome::Failed, Outcome::Unknown] {
            assert_golden(&outcome, json!(outcome.as_str()));
        }
        assert_golden(&Origin::Command, json!("command"));
    }
}
