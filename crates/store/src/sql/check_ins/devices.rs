//! Devices in SQL: rows of `keys` with a row of `check_in_devices`.

use sqlx::AssertSqlSafe;
use stampede_model::{KeyHash, KeyId, Timestamp};

use super::super::transaction::in_transaction;
use super::super::versions::{Held, Of};
use super::rows;
use crate::Durability::{Relaxed, Synced};
use crate::sql::Sql;
use crate::sql::api_keys::insert_key;
use crate::{Device, NewDevice, Result, Versioned};

impl Sql {
    pub(super) async fn write_device(&self, device: &NewDevice, now: Timestamp) -> Result<()> {
        in_transaction!(self, Synced, async |db| {
            insert_key(db, &device.key, now).await?;
            sqlx::query(
                "INSERT INTO check_in_devices (key_id, event_id, gate_id, list_id, enrol_hash, enrol_until) \
                 VALUES ($1, $2, $3, $4, $5, $6)",
            )
            .bind(device.key.id.to_string())
            .bind(device.event_id.to_string())
            .bind(device.gate.map(|id| id.to_string()))
            .bind(device.list.map(|id| id.to_string()))
            .bind(device.enrol_code.as_str())
            .bind(device.enrol_until.as_millisecond())
            .execute(&mut *db)
            .await?;
            Ok(())
        })
    }

    pub(super) async fn end_device(
        &self,
        key: KeyId,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Versioned<()>> {
        let revoke = format!(
            "UPDATE keys SET revoked_at = $2, updated_at = {} \
             WHERE id = $1 AND revoked_at IS NULL",
            self.dialect.later("$2", "updated_at")
        );
        in_transaction!(self, Synced, async |db| {
            if self.hold_as_seen(db, Of::Key, &key.to_string(), seen).await? == Held::Changed {
                return Ok(Versioned::ChangedMeanwhile);
            }
            let done = sqlx::query(
                "UPDATE check_in_devices SET enrol_hash = NULL, enrol_until = NULL WHERE key_id = $1",
            )
            .bind(key.to_string())
            .execute(&mut *db)
            .await?;
            if done.rows_affected() == 0 {
                return Ok(Versioned::NotFound);
            }
            sqlx::query(AssertSqlSafe(revoke.as_str()))
                .bind(key.to_string())
                .bind(now.as_millisecond())
                .execute(&mut *db)
                .await?;
            Ok(Versioned::Done(()))
        })
    }

    pub(super) async fn give_fresh_key(
        &self,
        code: &KeyHash,
        key: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<Device>> {
        let read = format!("{} WHERE keys.id = $1", rows::DEVICES);
        let fresh = format!(
            "UPDATE keys SET hash = $2, updated_at = {} WHERE id = $1 AND revoked_at IS NULL \
             AND (expires_at IS NULL OR expires_at > $3)",
            self.dialect.later("$3", "updated_at")
        );
        // Strangers may send codes: a wrong one must not take a turn of those who write.
        let known = sqlx::query(
            "SELECT key_id FROM check_in_devices WHERE enrol_hash = $1 AND enrol_until > $2",
        );
        let known = known.bind(code.as_str()).bind(now.as_millisecond());
        if self.fetch_optional(known, |_| Ok(())).await?.is_none() {
            return Ok(None);
        }
        in_transaction!(self, Synced, async |db| {
            // The code is used up by the same statement that finds it: of two enrolments one wins.
            let found = sqlx::query(
                "UPDATE check_in_devices SET enrol_hash = NULL, enrol_until = NULL, last_seen_at = $2 \
                 WHERE enrol_hash = $1 AND enrol_until > $2 RETURNING key_id",
            )
            .bind(code.as_str())
            .bind(now.as_millisecond())
            .fetch_all(&mut *db)
            .await?;
            let Some(row) = found.first() else { return Ok(None) };
            let id: KeyId = crate::sql::rows::parsed(row, "key_id")?;
            let changed = sqlx::query(AssertSqlSafe(fresh.as_str()))
                .bind(id.to_string())
                .bind(key.as_str())
                .bind(now.as_millisecond())
                .execute(&mut *db)
                .await?;
            if changed.rows_affected() == 0 {
                return Ok(None);
            }
            sqlx::query("DELETE FROM former_keys WHERE key_id = $1")
                .bind(id.to_string())
                .execute(&mut *db)
                .await?;
            let row = sqlx::query(AssertSqlSafe(read.as_str()))
                .bind(id.to_string())
                .fetch_one(&mut *db)
                .await?;
            rows::device(&row).map(Some)
        })
    }

    pub(super) async fn note_device(
        &self,
        key: KeyId,
        unsent: Option<u32>,
        now: Timestamp,
    ) -> Result<()> {
        in_transaction!(self, Relaxed, async |db| {
            sqlx::query(
                "UPDATE check_in_devices SET last_seen_at = $2, unsent = COALESCE($3, unsent) \
                 WHERE key_id = $1",
            )
            .bind(key.to_string())
            .bind(now.as_millisecond())
            .bind(unsent.map(i64::from))
            .execute(&mut *db)
            .await?;
            Ok(())
        })
    }
}
