//! API keys.

use serde::Serialize;
use stampede_model::{EventId, KeyId, Role, Timestamp};
use stampede_wire::identity::{IssuedKey, Key, KeyPage};

use crate::{Client, Result, with_query};

/// A key to be made.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewKey {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Its user; absent: the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The only event that it reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<EventId>,
    /// The only queues that it reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<Vec<String>>,
    /// When it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// Keys to list.
#[derive(Debug, Clone, Default)]
pub struct KeyQuery {
    /// Only keys of this user.
    pub user: Option<String>,
    /// Only keys with exactly this name.
    pub name: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rotate {
    grace_seconds: u64,
}

impl Client {
    /// Makes a key.
    pub async fn create_key(&self, key: &NewKey) -> Result<IssuedKey> {
        self.post("/api/keys", key).await
    }

    /// A page of keys, newest first.
    pub async fn keys(&self, query: &KeyQuery, after: Option<KeyId>) -> Result<KeyPage> {
        let after = after.map(|id| id.to_string());
        let parameters = [
            ("user", query.user.as_deref()),
            ("name", query.name.as_deref()),
            ("after", after.as_deref()),
        ];
        self.get(&with_query("/api/keys", &parameters)).await
    }

    /// A key.
    pub async fn key(&self, id: KeyId) -> Result<Key> {
        self.get(&format!("/api/keys/{id}")).await
    }

    /// Gives a key another secret; the former one works for so many seconds.
    pub async fn rotate_key(&self, id: KeyId, grace_seconds: u64) -> Result<IssuedKey> {
        self.post(&format!("/api/keys/{id}/rotate"), &Rotate { grace_seconds }).await
    }

    /// Revokes a key.
    pub async fn revoke_key(&self, id: KeyId) -> Result<()> {
        self.delete::<serde_json::Value>(&format!("/api/keys/{id}")).await.map(drop)
    }
}
