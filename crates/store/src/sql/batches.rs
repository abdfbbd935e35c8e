//! Whole batches in SQL.

use async_trait::async_trait;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::feed::Change;
use stampede_model::{Batch, BatchId, Timestamp};

use super::outbox::Told;
use super::page::Page;
use super::transaction::in_transaction;
use super::{Sql, rows, slices};
use crate::Durability::Synced;
use crate::{BatchFilter, Batches, Cancelled, MadeTickets, Result, Slice};

/// [`rules::is_unmade`](crate::rules::is_unmade) in SQL.
const UNMADE: &str = "status IN ('pending', 'failed') AND pdf_fingerprint IS NULL";

#[async_trait]
impl Batches for Sql {
    async fn batches(&self, filter: &BatchFilter, slice: &Slice<BatchId>) -> Result<Vec<Batch>> {
        // The narrower filter must choose the index, as in the list of tickets.
        let owner = if filter.event.is_some() { "owner || '' =" } else { "owner =" };
        let mut conditions: Vec<(&str, String)> = Vec::new();
        conditions.extend(filter.owner.clone().map(|name| (owner, name)));
        conditions.extend(filter.event.map(|id| ("event_id =", id.to_string())));
        conditions.extend(slices::conditions(slice));
        let order = slices::order(slice);
        let page = Page { table: "batches", columns: rows::BATCH, order, limit: slice.limit };
        self.page(page, conditions, rows::batch).await
    }

    async fn cancel_batch(
        &self,
        id: BatchId,
        made: MadeTickets,
        now: Timestamp,
    ) -> Result<Option<Cancelled>> {
        in_transaction!(self, Synced, [self.limits.order], async |db| {
            self.lock_tickets_of(db, id, "status <> 'void'").await?;
            let unmade = self.change_all(db, id, "status = 'void'", UNMADE, now).await?;
            let made = match made {
                MadeTickets::Keep => 0,
                MadeTickets::Void => {
                    self.change_all(db, id, "status = 'void'", "status <> 'void'", now).await?
                }
            };
            let Some(batch) = find_batch(db, id).await? else { return Ok(None) };
            if unmade + made > 0 {
                let cancelled = Change::BatchCancelled((&batch).into());
                let changes = [cancelled, Change::of_batch(&batch)];
                self.tell(db, changes.map(|change| Told::of_order(&batch, change))).await?;
            }
            Ok(Some(Cancelled { batch, unmade, made }))
        })
    }

    async fn retry_batch(&self, id: BatchId, now: Timestamp) -> Result<Option<(Batch, u64)>> {
        in_transaction!(self, Synced, [self.limits.order], async |db| {
            self.lock_tickets_of(db, id, "status = 'failed'").await?;
            let pending = "status = 'pending', error = NULL";
            let retried = self.change_all(db, id, pending, "status = 'failed'", now).await?;
            let Some(batch) = find_batch(db, id).await? else { return Ok(None) };
            if retried > 0 {
                self.tell(db, [Told::of_order(&batch, Change::of_batch(&batch))]).await?;
            }
            Ok(Some((batch, retried)))
        })
    }
}

impl Sql {
    /// Locks tickets of a batch in the order of their ids; an `UPDATE` would lock them in any order.
    async fn lock_tickets_of(
        &self,
        db: &mut AnyConnection,
        batch: BatchId,
        condition: &str,
    ) -> sqlx::Result<()> {
        let lock = self.dialect.to_change();
        if !lock.is_empty() {
            let sql = format!(
                "SELECT id FROM tickets WHERE batch_id = $1 AND {condition} ORDER BY id {lock}"
            );
            sqlx::query(AssertSqlSafe(sql)).bind(batch.to_string()).execute(db).await?;
        }
        Ok(())
    }

    /// Changes all tickets of a batch that meet the condition; returns how many.
    async fn change_all(
        &self,
        db: &mut AnyConnection,
        batch: BatchId,
        assignments: &str,
        condition: &str,
        now: Timestamp,
    ) -> sqlx::Result<u64> {
        let sql = format!(
            "UPDATE tickets SET {assignments}, updated_at = {} WHERE batch_id = $1 AND {condition}",
            self.dialect.later("$2", "updated_at")
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(batch.to_string());
        Ok(query.bind(now.as_millisecond()).execute(db).await?.rows_affected())
    }
}

async fn find_batch(db: &mut AnyConnection, id: BatchId) -> sqlx::Result<Option<Batch>> {
    let sql = format!("SELECT {} FROM batches WHERE id = $1", rows::BATCH);
    let row = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()).fetch_optional(db).await?;
    row.as_ref().map(rows::batch).transpose()
}
