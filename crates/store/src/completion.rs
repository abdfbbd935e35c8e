//! The outcome of making tickets: group commits of the workers.
//!
//! Many tickets per transaction, because a commit costs the same for one as for a hundred. All of it
//! may be repeated: a worker that died after the commit makes the ticket again, with the same effect
//! as once.

use std::collections::BTreeMap;

use serde::Serialize;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::{Batch, Pdf, TicketId, Timestamp};

use crate::rows;
use crate::tickets::to_json;
use crate::transaction::in_transaction;
use crate::{Result, Store};

/// A ticket's PDF is in the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The ticket.
    pub ticket_id: TicketId,
    /// The ticket's `updated_at` when it was read to make the PDF.
    pub seen: Timestamp,
    /// What was put into the files.
    pub pdf: Pdf,
    /// Who made it.
    pub worker: String,
    /// When it was made.
    pub at: Timestamp,
}

/// Making a ticket failed for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The ticket.
    pub ticket_id: TicketId,
    /// Why, for a person.
    pub reason: String,
    /// Who tried last.
    pub worker: String,
    /// When that was.
    pub at: Timestamp,
}

/// What a group commit did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The batch of every ticket named that exists, as it stands now; by id.
    pub batches: Vec<Batch>,
    /// The tickets whose record this call changed; by id.
    pub changed: Vec<TicketId>,
}

/// One row of a group commit on its way into the database.
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

impl Store {
    /// Records PDFs that are in the files: pending and failed tickets become completed, a completed
    /// one takes the new PDF if it differs; void and deleted ones are left alone, and so are those
    /// that were changed after they were read, because their PDF shows what they said before.
    pub async fn complete_tickets(&self, completions: &[Completion]) -> Result<Outcome> {
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

    /// Records tickets that could not be made: pending ones become failed, all others are left alone.
    pub async fn fail_tickets(&self, failures: &[Failure]) -> Result<Outcome> {
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
            changes,
            "status = 'failed', error = change.reason",
            "tickets.status = 'pending'",
        )
        .await
    }

    /// Applies the same assignments to many tickets, each with its own values.
    async fn commit_group<'a>(
        &self,
        changes: impl Iterator<Item = Change<'a>>,
        assignments: &'static str,
        condition: &'static str,
    ) -> Result<Outcome> {
        // One change per ticket (the last one), in the order in which everybody locks tickets.
        let changes: BTreeMap<TicketId, Change<'a>> =
            changes.map(|change| (change.ticket_id, change)).collect();
        if changes.is_empty() {
            return Ok(Outcome::default());
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
             WHERE tickets.id = change.ticket_id AND {condition} RETURNING id",
            self.dialect.later("change.at", "tickets.updated_at"),
            self.dialect.each_object("$1")
        );
        in_transaction!(self, async |db| {
            self.lock_tickets(db, &ids).await?;
            let updated = sqlx::query(AssertSqlSafe(update.as_str()))
                .bind(values.as_str())
                .fetch_all(&mut *db)
                .await?;
            let mut changed: Vec<TicketId> =
                updated.iter().map(|row| rows::parsed(row, "id")).collect::<sqlx::Result<_>>()?;
            changed.sort_unstable();
            Ok(Outcome { batches: self.batches_of(db, &ids).await?, changed })
        })
    }

    /// Locks tickets in the order of their ids; an `UPDATE` would take them in any order.
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
