//! API keys: `/api/keys`, `stampede token`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::{EventId, KeyId, Role, Timestamp};

/// What a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// Made with `POST /api/keys` or `stampede token create`.
    Key,
    /// The admin key of the setting `ADMIN_KEY`.
    Preset,
    /// The key of a scanning device.
    Device,
}

/// Whether a key works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyState {
    /// It works.
    Active,
    /// Its end has come.
    Expired,
    /// It was revoked.
    Revoked,
}

impl KeyState {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

/// An API key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    /// The key's id, which is not secret.
    pub id: KeyId,
    /// The name that people know it by.
    pub name: String,
    /// What it is.
    pub kind: KeyKind,
    /// What it allows.
    pub role: Role,
    /// The user whose records it works on.
    pub user: String,
    /// The only event that it reaches, if it is limited to one.
    pub event: Option<EventId>,
    /// The only queues that it reaches, if it is limited to some.
    pub queues: Option<Vec<String>>,
    /// Whether it works now.
    pub state: KeyState,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed; a use changes nothing.
    pub updated_at: Timestamp,
    /// When it ends; `null`: never.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// The address from which it was last used.
    pub last_used_from: Option<String>,
    /// Until when a secret that was replaced still works, if one does.
    pub grace_until: Option<Timestamp>,
}

/// A key with its secret, which is shown once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IssuedKey {
    /// The key.
    #[serde(flatten)]
    pub key: Key,
    /// The secret: what clients send. It is not stored and cannot be shown again.
    pub secret: String,
}

/// One page of keys, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyPage {
    /// The keys.
    pub keys: Vec<Key>,
    /// The `after` of the next page; `null` on the last.
    pub next: Option<KeyId>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ticketing::golden::assert_golden;

    #[test]
    fn keys_have_the_names_that_clients_read() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let (id, event) = (KeyId::from_bytes([1; 16]), EventId::from_bytes([2; 16]));
        let key = Key {
            id,
            name: "Box office".into(),
            kind: KeyKind::Key,
            role: Role::Organiser,
            user: "ann".into(),
            event: Some(event),
            queues: None,
            state: KeyState::Active,
            created_at: at,
            updated_at: at,
            expires_at: Some(at),
            revoked_at: None,
            last_used_at: Some(at),
            last_used_from: Some("192.0.2.7".into()),
            grace_until: None,
        };
        let json = json!({
            "id": id, "name": "Box office", "kind": "key", "role": "organiser", "user": "ann",
            "event": event, "queues": null, "state": "active", "createdAt": "2027-01-15T08:00:00Z",
            "updatedAt": "2027-01-15T08:00:00Z", "expiresAt": "2027-01-15T08:00:00Z", "revokedAt": null,
            "lastUsedAt": "2027-01-15T08:00:00Z", "lastUsedFrom": "192.0.2.7", "graceUntil": null,
        });
        assert_golden(&key, json.clone());
        let page = KeyPage { keys: vec![key.clone()], next: Some(id) };
        assert_golden(&page, json!({ "keys": [json], "next": id }));
        let mut issued = json;
        issued["secret"] = json!("stp_x");
        assert_golden(&IssuedKey { key, secret: "stp_x".into() }, issued);
        for (kind, word) in [(KeyKind::Preset, "preset"), (KeyKind::Device, "device")] {
            assert_golden(&kind, json!(word));
        }
        for state in [KeyState::Active, KeyState::Expired, KeyState::Revoked] {
            assert_golden(&state, json!(state.as_str()));
        }
    }
}
