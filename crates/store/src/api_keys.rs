//! API keys: only their hashes are stored.

use async_trait::async_trait;
use stampede_model::{KeyHash, KeyId, Principal, Role, Scope, Timestamp};

use crate::{Result, Slice, Sorted, Versioned};

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

/// What a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Made by a person or a program.
    Issued,
    /// The admin key of a setting. The store cannot change it.
    Preset,
    /// The key of a scanning device.
    Device,
}

/// A key as it is kept, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Names the key.
    pub id: KeyId,
    /// What it is.
    pub kind: KeyKind,
    /// The name that people know it by; may be empty.
    pub name: String,
    /// Who uses it, with which role, scope and end.
    pub principal: Principal,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed; its version. Its use does not change it.
    pub updated_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// The address from which it was last used.
    pub last_used_from: Option<String>,
    /// Until when a secret that was replaced still works, if one does.
    pub former_until: Option<Timestamp>,
}

/// Whether a key works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// It works.
    Active,
    /// Its end has come.
    Expired,
    /// It was revoked.
    Revoked,
}

impl ApiKey {
    /// Whether the key works at a time.
    pub fn state(&self, now: Timestamp) -> KeyState {
        match (self.revoked_at, self.principal.expires_at) {
            (Some(_), _) => KeyState::Revoked,
            (None, Some(end)) if end <= now => KeyState::Expired,
            (None, _) => KeyState::Active,
        }
    }
}

/// Which keys to list; what is absent matches all.
#[derive(Debug, Clone, Default)]
pub struct KeyFilter {
    /// Only keys of this user.
    pub user: Option<String>,
    /// Only keys with this role.
    pub role: Option<Role>,
    /// Only keys with exactly this name.
    pub name: Option<String>,
    /// Only keys in this state.
    pub state: Option<KeyState>,
    /// Only keys whose scope is within this one.
    pub within: Scope,
}

/// Changes of a key; what is absent stays.
#[derive(Debug, Clone, Default)]
pub struct KeyEdit {
    /// Another name.
    pub name: Option<String>,
    /// Another end; `Some(None)`: never.
    pub expires_at: Option<Option<Timestamp>>,
}

/// The result of writing a key that has a name of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyWritten {
    /// It is written.
    Done,
    /// Another key of the user that is not revoked has the name.
    NameTaken,
    /// There is no such key, or it is revoked or preset.
    NotFound,
    /// The key has another version than the one that was seen.
    ChangedMeanwhile,
}

/// The result of replacing a key's secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRotated {
    /// The new secret works.
    Done,
    /// There is no such key, or it is revoked, expired or preset.
    NotFound,
    /// As many former secrets as there may be still work.
    TooManyFormer,
}

/// A use of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyUse {
    /// The key.
    pub key: KeyId,
    /// When.
    pub at: Timestamp,
    /// From which address.
    pub from: Option<String>,
}

/// Most former secrets of one key that work at the same time.
pub(crate) const MOST_FORMER: i64 = 10;

/// The API keys. All changes are synced: a revoked key must not come back.
#[async_trait]
pub trait ApiKeys: Send + Sync {
    /// Writes a newly issued key. Other keys may have its name.
    async fn insert_key(&self, key: &NewKey, now: Timestamp) -> Result<()>;

    /// Writes a newly issued key whose name no other key of its user has that was named so and is not revoked.
    async fn insert_named_key(&self, key: &NewKey, now: Timestamp) -> Result<KeyWritten>;

    /// A key, whatever its state.
    async fn api_key(&self, id: KeyId, now: Timestamp) -> Result<Option<ApiKey>>;

    /// A part of the keys.
    async fn api_keys_slice(
        &self,
        filter: &KeyFilter,
        slice: &Slice<KeyId>,
        now: Timestamp,
    ) -> Result<Vec<ApiKey>>;

    /// The number of a user's keys that work at a time.
    async fn count_keys(&self, user: &str, now: Timestamp) -> Result<u64>;

    /// Keys, newest first; those before `after`.
    async fn api_keys(
        &self,
        filter: &KeyFilter,
        after: Option<KeyId>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<ApiKey>> {
        self.api_keys_slice(filter, &Slice::new(Sorted::NewestFirst, after, limit), now).await
    }

    /// Changes a key that is neither revoked nor preset.
    async fn edit_key_as_seen(
        &self,
        id: KeyId,
        edit: &KeyEdit,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<KeyWritten>;

    /// Gives a key another secret. The former ones work until `former_until`; `None`: they stop at once. Secrets that
    /// were replaced before keep their end.
    async fn rotate_key(
        &self,
        id: KeyId,
        hash: &KeyHash,
        former_until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<KeyRotated>;

    /// Revokes a key by its id. A preset key and one that was revoked before are like none.
    async fn end_key_as_seen(
        &self,
        id: KeyId,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Versioned<()>>;

    /// Revokes any version of a key; `false` if it is unknown, preset or was revoked before.
    async fn end_key(&self, id: KeyId, now: Timestamp) -> Result<bool> {
        Ok(self.end_key_as_seen(id, None, now).await?.done().is_some())
    }

    /// Notes when and from where keys were last used. An older use changes nothing. Not synced.
    async fn note_key_uses(&self, uses: &[KeyUse]) -> Result<()>;

    /// Finds the holder of a key by its secret, or by a former one that still works; `None` if the key is unknown,
    /// revoked or expired. If the preset key
    /// equals an issued one, the preset key counts.
    async fn principal(&self, hash: &KeyHash, now: Timestamp) -> Result<Option<Principal>>;

    /// Revokes a key by its secret, or by a former one that still works; returns `false` if it is unknown or was revoked before.
    async fn revoke_key(&self, hash: &KeyHash, now: Timestamp) -> Result<bool>;

    /// Returns whether an admin key exists that is neither limited nor has an end.
    async fn has_admin_key(&self) -> Result<bool>;

    /// Makes the given key the one preset admin key and revokes a former preset key; `None` leaves none.
    async fn preset_admin_key(&self, hash: Option<&KeyHash>, now: Timestamp) -> Result<()>;
}
