//! API keys in SQL.

use async_trait::async_trait;
use sqlx::AnyConnection;
use stampede_model::{KeyHash, KeyId, Principal, Role, Timestamp};

use super::transaction::in_transaction;
use super::{Sql, rows};
use crate::Durability::Synced;
use crate::api_keys::PRESET_KEY_ID;
use crate::{ApiKeys, Result};

#[async_trait]
impl ApiKeys for Sql {
    async fn insert_key(
        &self,
        id: KeyId,
        hash: &KeyHash,
        principal: &Principal,
        label: &str,
        now: Timestamp,
    ) -> Result<()> {
        in_transaction!(self, Synced, async |db| {
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

    async fn principal(&self, hash: &KeyHash) -> Result<Option<Principal>> {
        let query = sqlx::query(
            "SELECT id, owner, role FROM keys WHERE hash = $1 AND revoked_at IS NULL \
             ORDER BY id LIMIT 1",
        );
        self.fetch_optional(query.bind(hash.as_str()), rows::principal).await
    }

    async fn revoke_key(&self, hash: &KeyHash, now: Timestamp) -> Result<bool> {
        in_transaction!(self, Synced, async |db| {
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

    async fn has_admin_key(&self) -> Result<bool> {
        let query =
            sqlx::query("SELECT id FROM keys WHERE role = $1 AND revoked_at IS NULL LIMIT 1");
        let found = self.fetch_optional(query.bind(Role::Admin.as_str()), |_| Ok(())).await?;
        Ok(found.is_some())
    }

    async fn preset_admin_key(&self, hash: Option<&KeyHash>, now: Timestamp) -> Result<()> {
        in_transaction!(self, Synced, async |db| {
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
    .bind(PRESET_KEY_ID)
    .bind(hash.as_str())
    .bind(Role::Admin.as_str())
    .bind(now.as_millisecond())
    .execute(db)
    .await?;
    Ok(())
}

async fn revoke_preset(db: &mut AnyConnection, now: Timestamp) -> sqlx::Result<()> {
    sqlx::query("UPDATE keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL")
        .bind(PRESET_KEY_ID)
        .bind(now.as_millisecond())
        .execute(db)
        .await?;
    Ok(())
}
