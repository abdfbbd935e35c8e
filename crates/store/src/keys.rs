//! API keys: only their hashes are kept.

use sqlx::AnyConnection;
use stampede_model::{KeyHash, KeyId, Principal, Role, Timestamp};

use crate::rows;
use crate::transaction::in_transaction;
use crate::{Result, Store};

/// The id of the one key that comes from a setting instead of being issued. It is fixed, so that a
/// changed setting replaces the former key in one statement; it sorts before all issued ones.
const PRESET: &str = "00000000-0000-0000-0000-000000000000";

impl Store {
    /// Writes a freshly issued key.
    pub async fn insert_key(
        &self,
        id: KeyId,
        hash: &KeyHash,
        principal: &Principal,
        label: &str,
        now: Timestamp,
    ) -> Result<()> {
        in_transaction!(self, async |db| {
            sqlx::query(
                "INSERT INTO keys (id, hash, owner, role, label, created_at) \
                 VALUES ($1, $2, $3, $4, $5, $6)",
            )
            .bind(id.to_string())
            .bind(hash.as_str())
            .bind(principal.user.as_str())
            .bind(principal.role.as_str())
            .bind(label)
            .bind(now.as_millisecond())
            .execute(db)
            .await?;
            Ok(())
        })
    }

    /// Who holds a key; `None` when it is unknown or revoked.
    pub async fn principal(&self, hash: &KeyHash) -> Result<Option<Principal>> {
        let query = sqlx::query(
            "SELECT id, owner, role FROM keys WHERE hash = $1 AND revoked_at IS NULL \
             ORDER BY id LIMIT 1",
        );
        let row = self.fetch_optional(query.bind(hash.as_str())).await?;
        Ok(row.as_ref().map(rows::principal).transpose()?)
    }

    /// Makes a key worthless from now on; `false` when it is unknown or was revoked before.
    pub async fn revoke_key(&self, hash: &KeyHash, now: Timestamp) -> Result<bool> {
        in_transaction!(self, async |db| {
            let done = sqlx::query(
                "UPDATE keys SET revoked_at = $2 WHERE hash = $1 AND revoked_at IS NULL",
            )
            .bind(hash.as_str())
            .bind(now.as_millisecond())
            .execute(db)
            .await?;
            Ok(done.rows_affected() > 0)
        })
    }

    /// Whether anybody holds a valid admin key.
    pub async fn has_admin_key(&self) -> Result<bool> {
        let query =
            sqlx::query("SELECT id FROM keys WHERE role = $1 AND revoked_at IS NULL LIMIT 1");
        let row = self.fetch_optional(query.bind(Role::Admin.as_str())).await?;
        Ok(row.is_some())
    }

    /// Makes the given key the one preset admin key; a former preset key is worthless from now on.
    /// `None` means that there is none any more.
    pub async fn preset_admin_key(&self, hash: Option<&KeyHash>, now: Timestamp) -> Result<()> {
        in_transaction!(self, async |db| {
            match hash {
                Some(hash) => preset(db, hash, now).await,
                None => revoke_preset(db, now).await,
            }
        })
    }
}

async fn preset(db: &mut AnyConnection, hash: &KeyHash, now: Timestamp) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO keys (id, hash, owner, role, label, created_at) \
         VALUES ($1, $2, 'admin', $3, 'preset', $4) \
         ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, revoked_at = NULL, \
         created_at = excluded.created_at \
         WHERE keys.hash <> excluded.hash OR keys.revoked_at IS NOT NULL",
    )
    .bind(PRESET)
    .bind(hash.as_str())
    .bind(Role::Admin.as_str())
    .bind(now.as_millisecond())
    .execute(db)
    .await?;
    Ok(())
}

async fn revoke_preset(db: &mut AnyConnection, now: Timestamp) -> sqlx::Result<()> {
    sqlx::query("UPDATE keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL")
        .bind(PRESET)
        .bind(now.as_millisecond())
        .execute(db)
        .await?;
    Ok(())
}
