//! API keys in SQL.

mod listing;
mod rotation;

use async_trait::async_trait;
use sqlx::any::AnyQueryResult;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::{KeyHash, KeyId, Principal, Role, Timestamp};

use super::transaction::in_transaction;
use super::versions::{Held, Of};
use super::{Sql, rows};
use crate::Durability::Synced;
use crate::api_keys::PRESET_KEY_ID;
use crate::{
    ApiKey, ApiKeys, KeyEdit, KeyFilter, KeyRotated, KeyUse, KeyWritten, NewKey, Result, Slice,
    Versioned,
};

#[async_trait]
impl ApiKeys for Sql {
    async fn insert_key(&self, key: &NewKey, now: Timestamp) -> Result<()> {
        in_transaction!(self, Synced, async |db| { insert_key(db, key, now).await })
    }

    async fn insert_named_key(&self, key: &NewKey, now: Timestamp) -> Result<KeyWritten> {
        in_transaction!(self, Synced, async |db| {
            written(insert(db, key, Some(&key.name), now).await)
        })
    }

    async fn api_key(&self, id: KeyId, now: Timestamp) -> Result<Option<ApiKey>> {
        self.read_key(id, now).await
    }

    async fn api_keys_slice(
        &self,
        filter: &KeyFilter,
        slice: &Slice<KeyId>,
        now: Timestamp,
    ) -> Result<Vec<ApiKey>> {
        self.list_keys(filter, slice, now).await
    }

    async fn count_keys(&self, user: &str, now: Timestamp) -> Result<u64> {
        let query = sqlx::query(
            "SELECT COUNT(*) AS keys FROM keys WHERE owner = $1 AND revoked_at IS NULL \
             AND (expires_at IS NULL OR expires_at > $2)",
        );
        let query = query.bind(user).bind(now.as_millisecond());
        let count = self.fetch_optional(query, |row| sqlx::Row::try_get::<i64, _>(row, "keys"));
        Ok(count.await?.unwrap_or_default().unsigned_abs())
    }

    async fn edit_key_as_seen(
        &self,
        id: KeyId,
        edit: &KeyEdit,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<KeyWritten> {
        let update = format!(
            "UPDATE keys SET label = COALESCE($2, label), \
             unique_name = CASE WHEN id IN (SELECT key_id FROM check_in_devices) THEN NULL \
             ELSE COALESCE($2, unique_name) END, \
             expires_at = CASE WHEN $3 = 1 THEN $4 ELSE expires_at END, updated_at = {} \
             WHERE id = $1 AND id <> $5 AND revoked_at IS NULL",
            self.dialect.later("$6", "updated_at")
        );
        in_transaction!(self, Synced, async |db| {
            if self.hold_as_seen(db, Of::Key, &id.to_string(), seen).await? == Held::Changed {
                return Ok(KeyWritten::ChangedMeanwhile);
            }
            let done = sqlx::query(AssertSqlSafe(update.as_str()))
                .bind(id.to_string())
                .bind(edit.name.as_deref())
                .bind(i64::from(edit.expires_at.is_some()))
                .bind(edit.expires_at.flatten().map(Timestamp::as_millisecond))
                .bind(PRESET_KEY_ID)
                .bind(now.as_millisecond())
                .execute(db)
                .await;
            written(done)
        })
    }

    async fn rotate_key(
        &self,
        id: KeyId,
        hash: &KeyHash,
        former_until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<KeyRotated> {
        self.replace_secret(id, hash, former_until, now).await
    }

    async fn end_key_as_seen(
        &self,
        id: KeyId,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Versioned<()>> {
        let revoke = format!(
            "UPDATE keys SET revoked_at = $2, updated_at = {} \
             WHERE id = $1 AND id <> $3 AND revoked_at IS NULL",
            self.dialect.later("$2", "updated_at")
        );
        in_transaction!(self, Synced, async |db| {
            if self.hold_as_seen(db, Of::Key, &id.to_string(), seen).await? == Held::Changed {
                return Ok(Versioned::ChangedMeanwhile);
            }
            sqlx::query(
                "UPDATE check_in_devices SET enrol_hash = NULL, enrol_until = NULL WHERE key_id = $1",
            )
            .bind(id.to_string())
            .execute(&mut *db)
            .await?;
            let done = sqlx::query(AssertSqlSafe(revoke.as_str()))
                .bind(id.to_string())
                .bind(now.as_millisecond())
                .bind(PRESET_KEY_ID)
                .execute(&mut *db)
                .await?;
            Ok(match done.rows_affected() {
                0 => Versioned::NotFound,
                _ => Versioned::Done(()),
            })
        })
    }

    async fn note_key_uses(&self, uses: &[KeyUse]) -> Result<()> {
        self.write_uses(uses).await
    }

    async fn principal(&self, hash: &KeyHash, now: Timestamp) -> Result<Option<Principal>> {
        // Two lookups by index; an OR over two tables would read all keys.
        let query = sqlx::query(
            "SELECT id, owner, role, event_id, queues, expires_at FROM keys \
             WHERE hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2) \
             UNION ALL \
             SELECT id, owner, role, event_id, queues, expires_at \
             FROM former_keys JOIN keys ON keys.id = former_keys.key_id \
             WHERE former_keys.hash = $1 AND former_keys.valid_until > $2 \
             AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2) \
             ORDER BY id LIMIT 1",
        );
        let query = query.bind(hash.as_str()).bind(now.as_millisecond());
        self.fetch_optional(query, rows::principal).await
    }

    async fn revoke_key(&self, hash: &KeyHash, now: Timestamp) -> Result<bool> {
        let revoke = format!(
            "UPDATE keys SET revoked_at = $2, updated_at = {} \
             WHERE revoked_at IS NULL AND (hash = $1 OR id IN \
             (SELECT key_id FROM former_keys WHERE hash = $1 AND valid_until > $2))",
            self.dialect.later("$2", "updated_at")
        );
        in_transaction!(self, Synced, async |db| {
            let done = sqlx::query(AssertSqlSafe(revoke.as_str()))
                .bind(hash.as_str())
                .bind(now.as_millisecond())
                .execute(db)
                .await?;
            Ok(done.rows_affected() > 0)
        })
    }

    async fn has_admin_key(&self) -> Result<bool> {
        let query = sqlx::query(
            "SELECT id FROM keys WHERE role = $1 AND revoked_at IS NULL AND expires_at IS NULL \
             AND event_id IS NULL AND queues IS NULL LIMIT 1",
        );
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
    insert(db, key, None, now).await.map(drop)
}

/// Writes a key; `unique` is the name that no other key of its user may have.
async fn insert(
    db: &mut AnyConnection,
    key: &NewKey,
    unique: Option<&str>,
    now: Timestamp,
) -> sqlx::Result<AnyQueryResult> {
    let scope = &key.principal.scope;
    let queues = scope.queues.as_ref().map(|names| serde_json::json!(names).to_string());
    sqlx::query(
        "INSERT INTO keys (id, hash, owner, role, label, created_at, expires_at, event_id, queues, unique_name, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $6)",
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
    .bind(unique)
    .execute(db)
    .await
}

/// The result of a statement that may take a name. It must be the first of its transaction that writes: PostgreSQL undoes
/// the whole transaction when the name is taken, SQLite only the statement.
fn written(done: sqlx::Result<AnyQueryResult>) -> sqlx::Result<KeyWritten> {
    match done {
        Ok(done) if done.rows_affected() > 0 => Ok(KeyWritten::Done),
        Ok(_) => Ok(KeyWritten::NotFound),
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
            Ok(KeyWritten::NameTaken)
        }
        Err(error) => Err(error),
    }
}

async fn preset(db: &mut AnyConnection, hash: &KeyHash, now: Timestamp) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO keys (id, hash, owner, role, label, created_at, updated_at) \
         VALUES ($1, $2, 'admin', $3, 'preset', $4, $4) \
         ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, revoked_at = NULL, \
         created_at = excluded.created_at, updated_at = excluded.updated_at \
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
    sqlx::query(
        "UPDATE keys SET revoked_at = $2, updated_at = $2 WHERE id = $1 AND revoked_at IS NULL",
    )
    .bind(PRESET_KEY_ID)
    .bind(now.as_millisecond())
    .execute(db)
    .await?;
    Ok(())
}
