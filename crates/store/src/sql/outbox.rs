//! The outbox in SQL.

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde::Serialize;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::feed::{Change, MadeTicket, MadeTickets, TICKETS_PER_CHANGE, TicketData};
use stampede_model::{Batch, BatchId, EventId, FeedEventId, Ticket};

use super::Sql;
use super::page::to_json;
use super::rows::{number, optional_parsed, optional_time, parsed, time, value};
use super::transaction::in_transaction;
use crate::Durability::Relaxed;
use crate::{Outbox, OutboxRow, OutboxSize, Result};

/// A change that a transaction tells of.
pub(super) struct Told {
    /// `None`: the owner of the event.
    owner: Option<String>,
    event: Option<EventId>,
    batch: Option<BatchId>,
    change: Change,
}

impl Told {
    /// Tells of an event of this owner.
    pub(super) fn of_event(owner: &str, event: EventId, change: Change) -> Self {
        Self { owner: Some(owner.to_owned()), event: Some(event), batch: None, change }
    }

    /// Tells of a campaign of this owner, whose recipients are the guests of an event if there is one.
    pub(super) fn of_campaign(owner: &str, event: Option<EventId>, change: Change) -> Self {
        Self { owner: Some(owner.to_owned()), event, batch: None, change }
    }

    /// Tells of something that belongs to an event, whose owner is looked up.
    pub(super) fn within(event: EventId, batch: Option<BatchId>, change: Change) -> Self {
        Self { owner: None, event: Some(event), batch, change }
    }

    /// Tells of an order, or of a ticket in it.
    pub(super) fn of_order(batch: &Batch, change: Change) -> Self {
        Self {
            owner: Some(batch.owner.clone()),
            event: Some(batch.event_id),
            batch: Some(batch.id),
            change,
        }
    }

    /// Tells of tickets of one order whose PDFs are ready, in parts.
    pub(super) fn of_made<'a>(
        batch: &'a Batch,
        tickets: &'a [MadeTicket],
    ) -> impl Iterator<Item = Self> + 'a {
        tickets.chunks(TICKETS_PER_CHANGE).map(move |part| {
            let made = MadeTickets {
                batch_id: batch.id,
                tickets: part.to_vec(),
                completed: batch.completed,
                total: batch.total,
            };
            Self::of_order(batch, Change::TicketsCompleted(made))
        })
    }
}

/// What became of one ticket, and the counters of its order afterwards.
pub(super) fn of_ticket(
    ticket: &Ticket,
    batch: &Batch,
    change: fn(TicketData) -> Change,
) -> [Told; 2] {
    [Told::of_order(batch, change(ticket.into())), Told::of_order(batch, Change::of_batch(batch))]
}

#[derive(Serialize)]
struct NewRow {
    /// Its place among the rows of its statement.
    nth: usize,
    id: FeedEventId,
    kind: &'static str,
    owner: Option<String>,
    event: Option<EventId>,
    batch: Option<BatchId>,
    data: String,
    at: i64,
}

impl Sql {
    /// Writes events of the feed into the outbox, in the transaction of the changes they tell of: one statement.
    pub(super) async fn tell(
        &self,
        db: &mut AnyConnection,
        told: impl IntoIterator<Item = Told>,
    ) -> sqlx::Result<()> {
        let row = |(nth, told): (usize, Told)| {
            let id = FeedEventId::generate();
            NewRow {
                nth,
                id,
                kind: told.change.kind().as_str(),
                owner: told.owner,
                event: told.event,
                batch: told.batch,
                data: told.change.data(),
                at: id.made_at_ms(),
            }
        };
        let rows: Vec<NewRow> = told.into_iter().enumerate().map(row).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "INSERT INTO outbox (id, kind, owner, event_id, batch_id, data, at) \
             SELECT value ->> 'id', value ->> 'kind', COALESCE(value ->> 'owner', \
             (SELECT owner FROM events WHERE events.id = value ->> 'event'), ''), \
             value ->> 'event', value ->> 'batch', value ->> 'data', \
             CAST(value ->> 'at' AS BIGINT) FROM {} ORDER BY CAST(value ->> 'nth' AS BIGINT)",
            self.dialect.each_object("$1")
        );
        sqlx::query(AssertSqlSafe(sql)).bind(to_json(&rows)).execute(db).await?;
        Ok(())
    }
}

#[async_trait]
impl Outbox for Sql {
    async fn outbox(&self, limit: u32) -> Result<Vec<OutboxRow>> {
        let query = sqlx::query(
            "SELECT seq, id, kind, owner, event_id, batch_id, data, at FROM outbox \
             ORDER BY seq LIMIT $1",
        );
        self.fetch_all(query.bind(i64::from(limit)), outbox_row).await
    }

    async fn settle_outbox(&self, rows: &[OutboxRow]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = rows.iter().map(|row| row.seq.to_string()).collect();
        let ids = to_json(&ids);
        let delete = format!(
            "DELETE FROM outbox WHERE seq IN (SELECT CAST(value AS BIGINT) FROM {}) \
             RETURNING id, seq",
            self.dialect.each_text("$1")
        );
        let delivered = in_transaction!(self, Relaxed, async |db| {
            let settled = sqlx::query(AssertSqlSafe(delete.as_str())).bind(ids.as_str());
            let settled = settled.fetch_all(&mut *db).await?;
            let settled: BTreeSet<u64> =
                settled.iter().map(|row| number(row, "seq")).collect::<sqlx::Result<_>>()?;
            // Rows that another relay has settled have their deliveries already.
            let rows: Vec<&OutboxRow> =
                rows.iter().filter(|row| settled.contains(&row.seq)).collect();
            self.fan_out(db, &rows).await
        });
        if delivered? {
            self.pending.notify_one();
        }
        Ok(())
    }

    async fn outbox_size(&self) -> Result<OutboxSize> {
        let query = sqlx::query(
            "SELECT 'outbox' AS id, COUNT(*) AS waiting, MIN(at) AS oldest FROM outbox",
        );
        let size = self
            .fetch_optional(query, |row| {
                Ok(OutboxSize {
                    rows: number(row, "waiting")?,
                    oldest: optional_time(row, "oldest")?,
                })
            })
            .await?;
        Ok(size.unwrap_or_default())
    }

    async fn written(&self) {
        self.writes.notified().await;
    }
}

fn outbox_row(row: &AnyRow) -> sqlx::Result<OutboxRow> {
    Ok(OutboxRow {
        seq: number(row, "seq")?,
        id: parsed(row, "id")?,
        kind: value(row, "kind")?,
        owner: value(row, "owner")?,
        event_id: optional_parsed(row, "event_id")?,
        batch_id: optional_parsed(row, "batch_id")?,
        data: value(row, "data")?,
        at: time(row, "at")?,
    })
}
