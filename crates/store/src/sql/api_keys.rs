//! API keys in SQL.

use async_trait::async_trait;
use sqlx::AnyConnection;
use stampede_model::{KeyHash, Principal, Role, Timestamp};

use super::transaction::in_transaction;
use super::{Sql, rows};
use crate::Durability::Synced;
use crate::api_keys::PRESET_KEY_ID;
use crate::{ApiKeys, NewKey, Result};

#[async_trait]
impl ApiKeys for Sql {
    async fn insert_key(&self, key: &NewKey, now: Timestamp) -> Result<()> {
        in_transaction!(self, Synced, async |db| { insert_key(db, key, now).await })
    }

    async fn principal(&self, hash: &KeyHash, now: Timestamp) -> Result<Option<Principal>> {
        let query = sqlx::query(
            "SELECT id, owner, role, event_id, queues FROM keys \
             WHERE hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2) \
             ORDER BY id LIMIT 1",
        );
        let query = query.bind(hash.as_str()).bind(now.as_millisecond());
        self.fetch_optional(query, rows::principal).await
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

/// Writes a newly issued key, inside a transaction.
pub(super) async fn insert_key(
    db: &mut AnyConnection,
    key: &NewKey,
    now: Timestamp,
) -> sqlx::Result<()> {
    let scope = &key.principal.scope;
    let queues = scope.queues.as_ref().map(|names| serde_json::json!(names).to_string());
    sqlx::query(
        "INSERT INTO keys (id, hash, owner, role, label, created_at, expires_at, event_id, queues) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(key.id.to_string())
    .bind(key.hash.as_str())
    .bind(key.principal.user.as_str())
    .bind(key.principal.role.as_str())
    .bind(key.name.as_str())
    .bind(now.as_millisecond())
    .bind(key.expires_at.map(Timestamp::as_millisecond))
    .bind(scope.event.map(|id| id.to_string()))
    .bind(queues.as_deref())
    .execute(db)
    .await?;
    Ok(())
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
