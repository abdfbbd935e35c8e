//! Completing and failing tickets in SQL.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::Serialize;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::feed::{self, FailedTicket, MadeTicket};
use stampede_model::{Batch, BatchId, TicketId};

use super::outbox::Told;
use super::page::to_json;
use super::transaction::in_transaction;
use super::{Sql, rows};
use crate::Durability::{self, Relaxed, Synced};
use crate::{Completion, Completions, Failure, GroupCommit, Result};

/// The values of one ticket in a group commit.
#[derive(Serialize)]
struct Change<'a> {
    ticket_id: TicketId,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<i64>,
    worker: &'a str,
    at: i64,
}

/// A ticket whose record was changed.
struct Changed {
    id: TicketId,
    batch: BatchId,
    serial: u32,
}

fn changed(row: &AnyRow) -> sqlx::Result<Changed> {
    Ok(Changed {
        id: rows::parsed(row, "id")?,
        batch: rows::parsed(row, "batch_id")?,
        serial: rows::number(row, "serial")?,
    })
}

/// The events of a group commit: for each batch with a changed ticket the tickets, then the counters.
fn told(
    batches: &[Batch],
    changed: &[Changed],
    changes: &BTreeMap<TicketId, Change<'_>>,
) -> Vec<Told> {
    let mut told = Vec::new();
    for batch in batches {
        let own = || changed.iter().filter(|ticket| ticket.batch == batch.id);
        let reason = |ticket: &Changed| changes.get(&ticket.id).and_then(|change| change.reason);
        let made: Vec<MadeTicket> = own()
            .filter(|ticket| reason(ticket).is_none())
            .map(|ticket| MadeTicket { id: ticket.id, number: ticket.serial })
            .collect();
        told.extend(Told::of_made(batch, &made));
        for (ticket, reason) in own().filter_map(|ticket| Some((ticket, reason(ticket)?))) {
            let failed = FailedTicket {
                ticket_id: ticket.id,
                batch_id: batch.id,
                number: ticket.serial,
                error: reason.to_owned(),
            };
            told.push(Told::of_order(batch, feed::Change::TicketFailed(failed)));
        }
        if own().next().is_some() {
            told.push(Told::of_order(batch, feed::Change::of_batch(batch)));
        }
    }
    told
}

#[async_trait]
impl Completions for Sql {
    async fn complete_tickets(&self, completions: &[Completion]) -> Result<GroupCommit> {
        let changes = completions.iter().map(|done| Change {
            ticket_id: done.ticket_id,
            reason: None,
            fingerprint: Some(&done.pdf.fingerprint),
            size: Some(done.pdf.size),
            checksum: Some(&done.pdf.checksum),
            seen: Some(done.seen.as_millisecond()),
            worker: &done.worker,
            at: done.at.as_millisecond(),
        });
        self.commit_group(
            Relaxed,
            changes,
            "status = 'completed', error = NULL, pdf_fingerprint = change.fingerprint, \
             pdf_size = change.size, pdf_checksum = change.checksum",
            "tickets.updated_at = change.seen \
             AND (tickets.status IN ('pending', 'failed') OR tickets.status = 'completed' \
             AND (tickets.pdf_fingerprint <> change.fingerprint OR tickets.pdf_size <> change.size \
             OR tickets.pdf_checksum <> change.checksum))",
        )
        .await
    }

    async fn fail_tickets(&self, failures: &[Failure]) -> Result<GroupCommit> {
        let changes = failures.iter().map(|failure| Change {
            ticket_id: failure.ticket_id,
            reason: Some(&failure.reason),
            fingerprint: None,
            size: None,
            checksum: None,
            seen: None,
            worker: &failure.worker,
            at: failure.at.as_millisecond(),
        });
        self.commit_group(
            Synced,
            changes,
            "status = 'failed', error = change.reason",
            "tickets.status = 'pending'",
        )
        .await
    }
}

impl Sql {
    /// Applies one list of assignments to many tickets, each with its own values.
    async fn commit_group<'a>(
        &self,
        durability: Durability,
        changes: impl Iterator<Item = Change<'a>>,
        assignments: &'static str,
        condition: &'static str,
    ) -> Result<GroupCommit> {
        // One change a ticket (the last one), in the order in which tickets are locked.
        let changes: BTreeMap<TicketId, Change<'a>> =
            changes.map(|change| (change.ticket_id, change)).collect();
        if changes.is_empty() {
            return Ok(GroupCommit::default());
        }
        let ids = to_json(&changes.keys().collect::<Vec<_>>());
        let values = to_json(&changes.values().collect::<Vec<_>>());
        let update = format!(
            "UPDATE tickets SET {assignments}, processed_by = change.worker, \
             processed_at = change.at, updated_at = {} \
             FROM (SELECT value ->> 'ticket_id' AS ticket_id, value ->> 'reason' AS reason, \
             value ->> 'fingerprint' AS fingerprint, CAST(value ->> 'size' AS BIGINT) AS size, \
             value ->> 'checksum' AS checksum, \
             CAST(value ->> 'seen' AS BIGINT) AS seen, \
             value ->> 'worker' AS worker, CAST(value ->> 'at' AS BIGINT) AS at FROM {}) AS change \
             WHERE tickets.id = change.ticket_id AND {condition} \
             RETURNING id, batch_id, serial",
            self.dialect.later("change.at", "tickets.updated_at"),
            self.dialect.each_object("$1")
        );
        in_transaction!(self, durability, async |db| {
            self.lock_tickets(db, &ids).await?;
            let updated = sqlx::query(AssertSqlSafe(update.as_str()))
                .bind(values.as_str())
                .fetch_all(&mut *db)
                .await?;
            let mut changed: Vec<Changed> =
                updated.iter().map(changed).collect::<sqlx::Result<_>>()?;
            changed.sort_unstable_by_key(|ticket| ticket.id);
            let batches = self.batches_of(db, &ids).await?;
            self.tell(db, told(&batches, &changed, &changes)).await?;
            let changed = changed.iter().map(|ticket| ticket.id).collect();
            Ok(GroupCommit { batches, changed })
        })
    }

    /// Locks tickets in the order of their ids; an `UPDATE` would lock them in any order.
    async fn lock_tickets(&self, db: &mut AnyConnection, ids: &str) -> sqlx::Result<()> {
        let lock = self.dialect.to_change();
        if lock.is_empty() {
            return Ok(());
        }
        let each = self.dialect.each_text("$1");
        let sql = format!(
            "SELECT id FROM tickets WHERE id IN (SELECT value FROM {each}) ORDER BY id {lock}"
        );
        sqlx::query(AssertSqlSafe(sql)).bind(ids).execute(db).await?;
        Ok(())
    }

    /// Reads the batches of tickets, by id.
    async fn batches_of(&self, db: &mut AnyConnection, ids: &str) -> sqlx::Result<Vec<Batch>> {
        let sql = format!(
            "SELECT {} FROM batches WHERE id IN (SELECT batch_id FROM tickets \
             WHERE id IN (SELECT value FROM {})) ORDER BY id",
            rows::BATCH,
            self.dialect.each_text("$1")
        );
        let found = sqlx::query(AssertSqlSafe(sql)).bind(ids).fetch_all(db).await?;
        found.iter().map(rows::batch).collect()
    }
}
