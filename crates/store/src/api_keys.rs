//! API keys: only their hashes are stored.

use async_trait::async_trait;
use stampede_model::{KeyHash, KeyId, Principal, Timestamp};

use crate::Result;

/// The id of the preset admin key, which comes from a setting instead of being issued. It is fixed, so
/// that a changed setting replaces the former key, and it sorts before all issued keys.
pub(crate) const PRESET_KEY_ID: &str = "00000000-0000-0000-0000-000000000000";

/// A key to be issued.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Names the key.
    pub id: KeyId,
    /// The hash of its secret.
    pub hash: KeyHash,
    /// Who uses it, with which role and scope; its own `key` is not read.
    pub principal: Principal,
    /// The name that people know it by; may be empty.
    pub name: String,
    /// When it ends; `None`: never.
    pub expires_at: Option<Timestamp>,
}

/// The API keys. All changes are synced: a revoked key must not come back.
#[async_trait]
pub trait ApiKeys: Send + Sync {
    /// Writes a newly issued key.
    async fn insert_key(&self, key: &NewKey, now: Timestamp) -> Result<()>;

    /// Finds the holder of a key; `None` if the key is unknown, revoked or expired. If the preset key
    /// equals an issued one, the preset key counts.
    async fn principal(&self, hash: &KeyHash, now: Timestamp) -> Result<Option<Principal>>;

    /// Revokes a key; returns `false` if it is unknown or was revoked before.
    async fn revoke_key(&self, hash: &KeyHash, now: Timestamp) -> Result<bool>;

    /// Returns whether any valid admin key exists.
    async fn has_admin_key(&self) -> Result<bool>;

    /// Makes the given key the one preset admin key and revokes a former preset key; `None` leaves none.
    async fn preset_admin_key(&self, hash: Option<&KeyHash>, now: Timestamp) -> Result<()>;
}
