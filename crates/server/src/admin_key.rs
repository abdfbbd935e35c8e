//! The first admin key, and the secrets of new API keys.

use anyhow::Result;
use stampede_audit::{Kind, Subject};
use stampede_model::{KeyHash, KeyId, Principal, Role, Timestamp};
use stampede_store::{NewKey, Store};

use crate::operator::audited;
use crate::settings::Settings;

/// The user of `ADMIN_KEY` and of the key made at the first start.
const ADMIN_USER: &str = "admin";

/// A shorter `ADMIN_KEY` is logged as a warning.
const SHORT_KEY: usize = 16;

/// Where the admin key comes from.
pub(crate) enum AdminKey {
    /// Made at this start; it is shown once.
    New(String),
    /// Set by the operator as `ADMIN_KEY`.
    Preset,
    /// Made at an earlier start.
    Known,
}

/// Makes an admin key unless there is one.
pub(crate) async fn ensure_admin_key(settings: &Settings, store: &Store) -> Result<AdminKey> {
    let preset = settings.admin_key.as_deref().map(KeyHash::of);
    store.preset_admin_key(preset.as_ref(), Timestamp::now()).await?;
    if let Some(key) = &settings.admin_key {
        if key.len() < SHORT_KEY {
            tracing::warn!("ADMIN_KEY has fewer than {SHORT_KEY} characters and may be guessed");
        }
        return Ok(AdminKey::Preset);
    }
    if store.has_admin_key().await? {
        return Ok(AdminKey::Known);
    }
    let principal = Principal::new(ADMIN_USER, Role::Admin);
    Ok(AdminKey::New(create(store, &principal, "made at the first start").await?))
}

/// Makes an API key and returns it; the store keeps only its hash.
pub(crate) async fn create(store: &Store, principal: &Principal, label: &str) -> Result<String> {
    let secret = format!("stp_{}", hex::encode(rand::random::<[u8; 32]>()));
    let hash = KeyHash::of(&secret);
    let key = NewKey {
        id: KeyId::generate(),
        hash,
        principal: principal.clone(),
        name: label.to_owned(),
        expires_at: None,
    };
    let id = key.id;
    let made = serde_json::json!({
        "id": key.id, "name": label, "user": principal.user, "role": principal.role.as_str(),
    });
    let inserting = store.insert_key(&key, Timestamp::now());
    let subject = Subject::of(Kind::Key, id);
    audited(store, "createKey", subject, None, inserting, |()| Some(made)).await?;
    Ok(secret)
}
