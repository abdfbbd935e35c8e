//! The audit log in SQL.

use async_trait::async_trait;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::{AuditId, Timestamp};

use super::page::Page;
use super::transaction::in_transaction;
use super::{Sql, rows, slices};
use crate::Durability::Relaxed;
use crate::{
    AuditEntry, AuditFilter, AuditLog, AuditOrigin, AuditOutcome, AuditSettlement, Durability,
    Result, Slice,
};

/// The columns [`entry`] reads.
const ENTRY: &str = "id, actor, role, key_id, key_name, origin, address, request_id, operation, kind, \
     record, event_id, before_change, after_change, status, settled_at, left_out";

#[async_trait]
impl AuditLog for Sql {
    async fn append_audit(&self, entry: &AuditEntry, durability: Durability) -> Result<()> {
        in_transaction!(self, durability, async |db| { insert_entry(db, entry).await })
    }

    async fn settle_audit(&self, id: AuditId, settlement: &AuditSettlement) -> Result<bool> {
        in_transaction!(self, Relaxed, async |db| {
            let outcome = &settlement.outcome;
            let done = sqlx::query(
                "UPDATE audit_entries SET status = $2, settled_at = $3, after_change = $4, \
                 before_change = COALESCE($5, before_change), record = COALESCE($6, record) \
                 WHERE id = $1 AND status IS NULL",
            )
            .bind(id.to_string())
            .bind(i64::from(outcome.status))
            .bind(outcome.at.as_millisecond())
            .bind(outcome.after.as_deref())
            .bind(settlement.before.as_deref())
            .bind(settlement.record.as_deref())
            .execute(db)
            .await?;
            Ok(done.rows_affected() > 0)
        })
    }

    async fn audit_entry(&self, id: AuditId) -> Result<Option<AuditEntry>> {
        let sql = format!("SELECT {ENTRY} FROM audit_entries WHERE id = $1");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string());
        self.fetch_optional(query, entry).await
    }

    async fn audit_entries(
        &self,
        filter: &AuditFilter,
        slice: &Slice<AuditId>,
    ) -> Result<Vec<AuditEntry>> {
        let mut conditions = slices::conditions(slice);
        conditions.extend(filter.user.clone().map(|user| ("actor =", user)));
        conditions.extend(filter.operation.clone().map(|name| ("operation =", name)));
        conditions.extend(filter.record.clone().map(|record| ("record =", record)));
        conditions.extend(filter.event.map(|event| ("event_id =", event.to_string())));
        let (order, limit) = (slices::order(slice), slice.limit);
        let page = Page { table: "audit_entries", columns: ENTRY, order, limit };
        self.page(page, conditions, entry).await
    }

    async fn remove_audit_before(&self, before: Timestamp, limit: u32) -> Result<u64> {
        in_transaction!(self, Relaxed, async |db| {
            let done = sqlx::query(
                "DELETE FROM audit_entries WHERE id IN \
                 (SELECT id FROM audit_entries WHERE id < $1 ORDER BY id LIMIT $2)",
            )
            .bind(AuditId::earliest(before).to_string())
            .bind(i64::from(limit))
            .execute(db)
            .await?;
            Ok(done.rows_affected())
        })
    }

    async fn remove_refusals_beyond(&self, kept: u32, limit: u32) -> Result<u64> {
        // Read first: a turn of those who write is not taken for nothing.
        let query = sqlx::query(
            "SELECT id FROM audit_entries WHERE status = 403 ORDER BY id DESC LIMIT 1 OFFSET $1",
        );
        let oldest: Option<AuditId> =
            self.fetch_optional(query.bind(i64::from(kept)), |row| rows::parsed(row, "id")).await?;
        let Some(oldest) = oldest else { return Ok(0) };
        in_transaction!(self, Relaxed, async |db| {
            let done = sqlx::query(
                "DELETE FROM audit_entries WHERE id IN (SELECT id FROM audit_entries \
                 WHERE status = 403 AND id <= $1 ORDER BY id LIMIT $2)",
            )
            .bind(oldest.to_string())
            .bind(i64::from(limit))
            .execute(db)
            .await?;
            Ok(done.rows_affected())
        })
    }
}

/// Writes an entry, inside a transaction. The name of its key is the one that the key has now.
pub(super) async fn insert_entry(db: &mut AnyConnection, entry: &AuditEntry) -> sqlx::Result<()> {
    let outcome = entry.outcome.as_ref();
    sqlx::query(
        "INSERT INTO audit_entries (id, at, actor, role, key_id, key_name, origin, address, request_id, \
         operation, kind, record, event_id, before_change, after_change, status, settled_at, left_out) \
         VALUES ($1, $2, $3, $4, $5, (SELECT label FROM keys WHERE id = $6), $7, $8, $9, $10, $11, $12, \
         $13, $14, $15, $16, $17, $18)",
    )
    .bind(entry.id.to_string())
    .bind(entry.id.at().as_millisecond())
    .bind(entry.user.as_str())
    .bind(entry.role.as_str())
    .bind(entry.key.map(|key| key.to_string()))
    .bind(entry.key.map(|key| key.to_string()))
    .bind(entry.origin.as_str())
    .bind(entry.address.as_deref())
    .bind(entry.request_id.as_deref())
    .bind(entry.operation.as_str())
    .bind(entry.kind.as_deref())
    .bind(entry.record.as_deref())
    .bind(entry.event.map(|event| event.to_string()))
    .bind(entry.before.as_deref())
    .bind(outcome.and_then(|outcome| outcome.after.as_deref()))
    .bind(outcome.map(|outcome| i64::from(outcome.status)))
    .bind(outcome.map(|outcome| outcome.at.as_millisecond()))
    .bind(i64::from(entry.left_out))
    .execute(db)
    .await?;
    Ok(())
}

fn entry(row: &AnyRow) -> sqlx::Result<AuditEntry> {
    let origin: String = rows::value(row, "origin")?;
    let origin = AuditOrigin::from_word(&origin)
        .ok_or_else(|| rows::damaged(row, "origin", "no such origin"))?;
    Ok(AuditEntry {
        id: rows::parsed(row, "id")?,
        user: rows::value(row, "actor")?,
        role: rows::parsed(row, "role")?,
        key: rows::optional_parsed(row, "key_id")?,
        key_name: rows::value(row, "key_name")?,
        origin,
        address: rows::value(row, "address")?,
        request_id: rows::value(row, "request_id")?,
        operation: rows::value(row, "operation")?,
        kind: rows::value(row, "kind")?,
        record: rows::value(row, "record")?,
        event: rows::optional_parsed(row, "event_id")?,
        before: rows::value(row, "before_change")?,
        outcome: outcome(row)?,
        left_out: rows::number(row, "left_out")?,
    })
}

fn outcome(row: &AnyRow) -> sqlx::Result<Option<AuditOutcome>> {
    let Some(at) = rows::optional_time(row, "settled_at")? else { return Ok(None) };
    Ok(Some(AuditOutcome {
        status: rows::number(row, "status")?,
        at,
        after: rows::value(row, "after_change")?,
    }))
}
