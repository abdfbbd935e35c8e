//! Replaced secrets and noted uses of API keys in SQL.

use std::collections::BTreeMap;

use serde::Serialize;
use sqlx::{AnyConnection, AssertSqlSafe, Row};
use stampede_model::{KeyHash, KeyId, Timestamp};

use crate::Durability::{Relaxed, Synced};
use crate::api_keys::{MOST_FORMER, PRESET_KEY_ID};
use crate::sql::page::to_json;
use crate::sql::transaction::in_transaction;
use crate::sql::{Sql, rows};
use crate::{KeyRotated, KeyUse, Result};

/// One use, as it goes into the statement.
#[derive(Serialize)]
struct Use<'a> {
    key: KeyId,
    at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
}

impl Sql {
    pub(super) async fn replace_secret(
        &self,
        id: KeyId,
        hash: &KeyHash,
        former_until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<KeyRotated> {
        let read = format!(
            "SELECT id, hash FROM keys WHERE id = $1 AND id <> $2 AND revoked_at IS NULL \
             AND (expires_at IS NULL OR expires_at > $3) {}",
            self.dialect.to_change()
        );
        let replace = format!(
            "UPDATE keys SET hash = $2, updated_at = {} WHERE id = $1",
            self.dialect.later("$3", "updated_at")
        );
        in_transaction!(self, Synced, async |db| {
            let found = sqlx::query(AssertSqlSafe(read.as_str()))
                .bind(id.to_string())
                .bind(PRESET_KEY_ID)
                .bind(now.as_millisecond())
                .fetch_optional(&mut *db)
                .await?;
            let Some(row) = found else { return Ok(KeyRotated::NotFound) };
            let former: String = rows::value(&row, "hash")?;
            forget_former(&mut *db, id, former_until.map(|_| now)).await?;
            if let Some(until) = former_until {
                if former_secrets(&mut *db, id).await? >= MOST_FORMER {
                    return Ok(KeyRotated::TooManyFormer);
                }
                keep_former(&mut *db, id, &former, until).await?;
            }
            sqlx::query(AssertSqlSafe(replace.as_str()))
                .bind(id.to_string())
                .bind(hash.as_str())
                .bind(now.as_millisecond())
                .execute(&mut *db)
                .await?;
            Ok(KeyRotated::Done)
        })
    }

    pub(super) async fn write_uses(&self, uses: &[KeyUse]) -> Result<()> {
        if uses.is_empty() {
            return Ok(());
        }
        // By id, so that two nodes lock in the same order.
        let uses: BTreeMap<KeyId, Use<'_>> = uses
            .iter()
            .map(|used| {
                let at = used.at.as_millisecond();
                (used.key, Use { key: used.key, at, from: used.from.as_deref() })
            })
            .collect();
        let values = to_json(&uses.values().collect::<Vec<_>>());
        let update = format!(
            "UPDATE keys SET last_used_at = used.at, last_used_from = used.origin \
             FROM (SELECT value ->> 'key' AS key_id, CAST(value ->> 'at' AS BIGINT) AS at, \
             value ->> 'from' AS origin FROM {}) AS used \
             WHERE keys.id = used.key_id AND (keys.last_used_at IS NULL OR keys.last_used_at < used.at)",
            self.dialect.each_object("$1")
        );
        in_transaction!(self, Relaxed, async |db| {
            sqlx::query(AssertSqlSafe(update.as_str())).bind(values.as_str()).execute(db).await?;
            Ok(())
        })
    }
}

/// Forgets former secrets of a key that ended before a time; `None`: all of them.
async fn forget_former(
    db: &mut AnyConnection,
    id: KeyId,
    ended: Option<Timestamp>,
) -> sqlx::Result<()> {
    let ended = ended.map_or(i64::MAX, Timestamp::as_millisecond);
    sqlx::query("DELETE FROM former_keys WHERE key_id = $1 AND valid_until <= $2")
        .bind(id.to_string())
        .bind(ended)
        .execute(db)
        .await?;
    Ok(())
}

async fn former_secrets(db: &mut AnyConnection, id: KeyId) -> sqlx::Result<i64> {
    let count = sqlx::query("SELECT COUNT(*) AS former FROM former_keys WHERE key_id = $1");
    count.bind(id.to_string()).fetch_one(db).await?.try_get("former")
}

async fn keep_former(
    db: &mut AnyConnection,
    id: KeyId,
    hash: &str,
    until: Timestamp,
) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO former_keys (hash, key_id, valid_until) VALUES ($1, $2, $3)")
        .bind(hash)
        .bind(id.to_string())
        .bind(until.as_millisecond())
        .execute(db)
        .await?;
    Ok(())
}
