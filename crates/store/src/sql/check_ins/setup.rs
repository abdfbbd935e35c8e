//! Lists and gates in SQL, and the operations on devices, which are in `devices.rs`.

use async_trait::async_trait;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::{
    AdmissionRules, CheckInList, EventId, Gate, GateId, KeyHash, KeyId, ListId, Timestamp,
};

use super::super::transaction::in_transaction;
use super::super::versions::{Held, Of};
use super::rows;
use crate::Durability::Synced;
use crate::sql::Sql;
use crate::sql::rows::{EVENT, event as event_row};
use crate::{CheckInSetup, Device, NewDevice, Result, Versioned};

#[async_trait]
impl CheckInSetup for Sql {
    async fn check_in_lists(&self, event: EventId) -> Result<Vec<CheckInList>> {
        let sql =
            format!("SELECT {} FROM check_in_lists WHERE event_id = $1 ORDER BY id", rows::LIST);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(event.to_string());
        let mut lists = self.fetch_all(query, rows::list).await?;
        let main = ListId::main_of(event);
        match lists.iter().position(|list| list.id == main) {
            Some(at) => lists[..=at].rotate_right(1),
            None => match self.check_in_list(main).await? {
                Some(built_in) => lists.insert(0, built_in),
                None => lists.clear(),
            },
        }
        Ok(lists)
    }

    async fn check_in_list(&self, id: ListId) -> Result<Option<CheckInList>> {
        let sql = format!("SELECT {} FROM check_in_lists WHERE id = $1", rows::LIST);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string());
        if let Some(list) = self.fetch_optional(query, rows::list).await? {
            return Ok(Some(list));
        }
        let sql = format!("SELECT {EVENT} FROM events WHERE id = $1");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string());
        let event = self.fetch_optional(query, event_row).await?;
        Ok(event.map(|event| built_in(event.id, event.created_at)))
    }

    async fn put_check_in_list(&self, list: &CheckInList, seen: Option<Timestamp>) -> Result<bool> {
        in_transaction!(self, Synced, async |db| {
            let Some(seq) = self.next_change(db, list.event_id).await? else { return Ok(false) };
            let written = write_list(self, db, list, seen).await?;
            if written {
                note_lists(db, list.event_id, seq).await?;
            }
            Ok(written)
        })
    }

    async fn delete_check_in_list_as_seen(
        &self,
        id: ListId,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<()>> {
        let list = self.check_in_list(id).await?;
        let Some(list) = list.filter(|list| !id.is_main_of(list.event_id)) else {
            return Ok(Versioned::NotFound);
        };
        in_transaction!(self, Synced, async |db| {
            let Some(seq) = self.next_change(db, list.event_id).await? else {
                return Ok(Versioned::NotFound);
            };
            match self.hold_as_seen(db, Of::List, &id.to_string(), seen).await? {
                Held::AsSeen => {}
                Held::Changed => return Ok(Versioned::ChangedMeanwhile),
                Held::Missing => return Ok(Versioned::NotFound),
            }
            for sql in [
                "DELETE FROM check_in_lists WHERE id = $1",
                "DELETE FROM check_in_admissions WHERE list_id = $1",
                "UPDATE check_in_devices SET list_id = NULL WHERE list_id = $1",
            ] {
                sqlx::query(sql).bind(id.to_string()).execute(&mut *db).await?;
            }
            note_lists(db, list.event_id, seq).await?;
            Ok(Versioned::Done(()))
        })
    }

    async fn gates(&self, event: EventId) -> Result<Vec<Gate>> {
        let sql =
            format!("SELECT {} FROM check_in_gates WHERE event_id = $1 ORDER BY id", rows::GATE);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(event.to_string());
        self.fetch_all(query, rows::gate).await
    }

    async fn gate(&self, id: GateId) -> Result<Option<Gate>> {
        let sql = format!("SELECT {} FROM check_in_gates WHERE id = $1", rows::GATE);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string());
        self.fetch_optional(query, rows::gate).await
    }

    async fn put_gate(&self, gate: &Gate) -> Result<bool> {
        in_transaction!(self, Synced, async |db| {
            if self.next_change(db, gate.event_id).await?.is_none() {
                return Ok(false);
            }
            sqlx::query(
                "INSERT INTO check_in_gates (id, event_id, name, created_at, updated_at) \
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO UPDATE SET \
                 name = excluded.name, updated_at = excluded.updated_at",
            )
            .bind(gate.id.to_string())
            .bind(gate.event_id.to_string())
            .bind(gate.name.as_str())
            .bind(gate.created_at.as_millisecond())
            .bind(gate.updated_at.as_millisecond())
            .execute(&mut *db)
            .await?;
            Ok(true)
        })
    }

    async fn rename_gate_as_seen(
        &self,
        gate: &Gate,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<Gate>> {
        let update = format!(
            "UPDATE check_in_gates SET name = $2, updated_at = {} WHERE id = $1 RETURNING {}",
            self.dialect.later("$3", "updated_at"),
            rows::GATE
        );
        in_transaction!(self, Synced, async |db| {
            if self.next_change(db, gate.event_id).await?.is_none() {
                return Ok(Versioned::NotFound);
            }
            if self.hold_as_seen(db, Of::Gate, &gate.id.to_string(), seen).await? == Held::Changed {
                return Ok(Versioned::ChangedMeanwhile);
            }
            let renamed = sqlx::query(AssertSqlSafe(update.as_str()))
                .bind(gate.id.to_string())
                .bind(gate.name.as_str())
                .bind(gate.updated_at.as_millisecond())
                .fetch_all(&mut *db)
                .await?;
            let Some(row) = renamed.first() else { return Ok(Versioned::NotFound) };
            rows::gate(row).map(Versioned::Done)
        })
    }

    async fn delete_gate_as_seen(
        &self,
        id: GateId,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<()>> {
        let Some(gate) = self.gate(id).await? else { return Ok(Versioned::NotFound) };
        in_transaction!(self, Synced, async |db| {
            if self.next_change(db, gate.event_id).await?.is_none() {
                return Ok(Versioned::NotFound);
            }
            match self.hold_as_seen(db, Of::Gate, &id.to_string(), seen).await? {
                Held::AsSeen => {}
                Held::Changed => return Ok(Versioned::ChangedMeanwhile),
                Held::Missing => return Ok(Versioned::NotFound),
            }
            for sql in [
                "DELETE FROM check_in_gates WHERE id = $1",
                "UPDATE check_in_devices SET gate_id = NULL WHERE gate_id = $1",
            ] {
                sqlx::query(sql).bind(id.to_string()).execute(&mut *db).await?;
            }
            Ok(Versioned::Done(()))
        })
    }

    async fn insert_device(&self, device: &NewDevice, now: Timestamp) -> Result<()> {
        self.write_device(device, now).await
    }

    async fn device(&self, key: KeyId) -> Result<Option<Device>> {
        let sql = format!("{} WHERE keys.id = $1", rows::DEVICES);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(key.to_string());
        self.fetch_optional(query, rows::device).await
    }

    async fn devices(&self, event: EventId) -> Result<Vec<Device>> {
        let sql =
            format!("{} WHERE check_in_devices.event_id = $1 ORDER BY keys.id", rows::DEVICES);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(event.to_string());
        self.fetch_all(query, rows::device).await
    }

    async fn revoke_device_as_seen(
        &self,
        key: KeyId,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Versioned<()>> {
        self.end_device(key, seen, now).await
    }

    async fn device_of_code(&self, code: &KeyHash, now: Timestamp) -> Result<Option<Device>> {
        let sql = format!("{} WHERE enrol_hash = $1 AND enrol_until > $2", rows::DEVICES);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(code.as_str()).bind(now.as_millisecond());
        self.fetch_optional(query, rows::device).await
    }

    async fn enrol_device(
        &self,
        code: &KeyHash,
        key: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<Device>> {
        self.give_fresh_key(code, key, now).await
    }

    async fn touch_device(&self, key: KeyId, unsent: Option<u32>, now: Timestamp) -> Result<()> {
        self.note_device(key, unsent, now).await
    }
}

/// The list that every event has.
pub(super) fn built_in(event: EventId, created_at: Timestamp) -> CheckInList {
    CheckInList {
        id: ListId::main_of(event),
        event_id: event,
        rules: AdmissionRules::main(),
        created_at,
        updated_at: created_at,
    }
}

/// Writes a list of an event whose counter is locked, if it is as it was seen.
async fn write_list(
    sql: &Sql,
    db: &mut AnyConnection,
    list: &CheckInList,
    seen: Option<Timestamp>,
) -> sqlx::Result<bool> {
    let json = |values: serde_json::Value| values.to_string();
    let batches = list.rules.batches.as_ref().map(|batches| json(serde_json::json!(batches)));
    let seats = list.rules.seats.as_ref().map(|seats| json(serde_json::json!(seats)));
    let write = format!(
        "INSERT INTO check_in_lists (id, event_id, name, opens_at, closes_at, entries, reentry, batches, \
         seats, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, opens_at = excluded.opens_at, \
         closes_at = excluded.closes_at, entries = excluded.entries, reentry = excluded.reentry, \
         batches = excluded.batches, seats = excluded.seats, \
         updated_at = {} WHERE check_in_lists.updated_at = $12",
        sql.dialect.later("excluded.updated_at", "check_in_lists.updated_at")
    );
    let done = sqlx::query(AssertSqlSafe(write))
        .bind(list.id.to_string())
        .bind(list.event_id.to_string())
        .bind(list.rules.name.as_str())
        .bind(list.rules.opens_at.map(Timestamp::as_millisecond))
        .bind(list.rules.closes_at.map(Timestamp::as_millisecond))
        .bind(i64::from(list.rules.entries))
        .bind(i64::from(list.rules.reentry))
        .bind(batches)
        .bind(seats)
        .bind(list.created_at.as_millisecond())
        .bind(list.updated_at.as_millisecond())
        .bind(seen.map(Timestamp::as_millisecond))
        .execute(db)
        .await?;
    Ok(done.rows_affected() > 0)
}

/// Notes that a list changed: a scanner that is older needs everything again.
async fn note_lists(db: &mut AnyConnection, event: EventId, seq: u64) -> sqlx::Result<()> {
    sqlx::query("UPDATE check_in_counters SET lists_seq = $2 WHERE event_id = $1")
        .bind(event.to_string())
        .bind(i64::try_from(seq).unwrap_or(i64::MAX))
        .execute(db)
        .await?;
    Ok(())
}
