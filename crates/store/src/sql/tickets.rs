//! Tickets in SQL. Completing and failing are in `completions.rs`.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::feed::{Change, TicketData};
use stampede_model::{Batch, Event, EventId, Ticket, TicketId, TicketStatus, Timestamp};

use super::orders::fetch_batch;
use super::outbox::{Told, of_ticket};
use super::page::Page;
use super::transaction::in_transaction;
use super::versions::{Held, Of};
use super::{Sql, rows, slices};
use crate::Durability::{Relaxed, Synced};
use crate::{Edited, Result, Slice, TicketEdit, TicketFilter, Tickets, Versioned};

/// [`rules::begins_generation`](crate::rules::begins_generation) in SQL: $3 is the name, $5 the seat.
const REPRINTED: &str = "(name <> $3 OR seat IS DISTINCT FROM $5)";

/// The key that signs for a ticket's event now; used with a shared lock on the event.
const NEWEST_KEY: &str = "(SELECT MAX(number) FROM ticket_keys \
     WHERE ticket_keys.event_id = tickets.event_id AND revoked_at IS NULL)";

#[async_trait]
impl Tickets for Sql {
    async fn ticket(&self, id: TicketId) -> Result<Option<Ticket>> {
        let sql = format!("SELECT {} FROM tickets WHERE id = $1", rows::TICKET);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string());
        self.fetch_optional(query, rows::ticket).await
    }

    async fn ticket_by_serial(&self, event: EventId, serial: u32) -> Result<Option<Ticket>> {
        let sql =
            format!("SELECT {} FROM tickets WHERE event_id = $1 AND serial = $2", rows::TICKET);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(event.to_string()).bind(i64::from(serial));
        self.fetch_optional(query, rows::ticket).await
    }

    async fn tickets_slice(
        &self,
        filter: &TicketFilter,
        slice: &Slice<TicketId>,
    ) -> Result<Vec<Ticket>> {
        // The narrowest filter must choose the index. Appending an empty text hides the wider ones from
        // the planner; otherwise it may search one batch through everything its owner has.
        let event = if filter.batch.is_some() { "event_id || '' =" } else { "event_id =" };
        let narrowed = filter.batch.is_some() || filter.event.is_some();
        let owner = if narrowed { "owner || '' =" } else { "owner =" };
        let mut conditions = slices::conditions(slice);
        conditions.extend(filter.owner.clone().map(|name| (owner, name)));
        conditions.extend(filter.event.map(|id| (event, id.to_string())));
        conditions.extend(filter.batch.map(|id| ("batch_id =", id.to_string())));
        conditions.extend(filter.status.map(|status| ("status =", status.as_str().to_owned())));
        let (order, limit) = (slices::order(slice), slice.limit);
        let page = Page { table: "tickets", columns: rows::TICKET, order, limit };
        self.page(page, conditions, rows::ticket).await
    }

    async fn tickets_with_events(&self, ids: &[TicketId]) -> Result<Vec<(Ticket, Event)>> {
        let tickets = self.fetch_many("tickets", rows::TICKET, ids, rows::ticket).await?;
        // Hundreds of tickets mostly share one event: it is read once.
        let event_ids: BTreeSet<EventId> = tickets.iter().map(|ticket| ticket.event_id).collect();
        let events: HashMap<EventId, Event> = self
            .fetch_many("events", rows::EVENT, &event_ids, rows::event)
            .await?
            .into_iter()
            .map(|event| (event.id, event))
            .collect();
        // An event that was deleted in between took its tickets with it.
        let with_event = |ticket: Ticket| {
            let event = events.get(&ticket.event_id)?.clone();
            Some((ticket, event))
        };
        Ok(tickets.into_iter().filter_map(with_event).collect())
    }

    async fn pending_tickets(
        &self,
        unchanged_since: Timestamp,
        after: Option<TicketId>,
        limit: u32,
    ) -> Result<Vec<Ticket>> {
        // The status is written out, not bound, because the partial index applies only then.
        let sql = format!(
            "SELECT {} FROM tickets WHERE status = 'pending' AND id > $1 AND updated_at < $2 \
             ORDER BY id LIMIT $3",
            rows::TICKET
        );
        let query = sqlx::query(AssertSqlSafe(sql))
            .bind(after.map(|id| id.to_string()).unwrap_or_default())
            .bind(unchanged_since.as_millisecond())
            .bind(i64::from(limit));
        self.fetch_all(query, rows::ticket).await
    }

    async fn edit_ticket(
        &self,
        id: TicketId,
        edit: &TicketEdit,
        seen: Timestamp,
        now: Timestamp,
    ) -> Result<Edited> {
        let sql = format!(
            "UPDATE tickets SET name = $3, email = $4, seat = $5, price_amount = $6, \
             price_currency = $7, phone = $9, chat = $10, status = 'pending', error = NULL, \
             updated_at = {}, \
             generation = CASE WHEN {REPRINTED} THEN generation + 1 ELSE generation END, \
             signing_key = CASE WHEN {REPRINTED} THEN {NEWEST_KEY} ELSE signing_key END \
             WHERE id = $1 AND status <> 'void' AND updated_at = $8 RETURNING {}",
            self.dialect.later("$2", "updated_at"),
            rows::TICKET
        );
        in_transaction!(self, Synced, async |db| {
            self.share_event_of(db, id).await?;
            let changed = sqlx::query(AssertSqlSafe(sql.as_str()))
                .bind(id.to_string())
                .bind(now.as_millisecond())
                .bind(edit.holder.name.as_str())
                .bind(edit.holder.email.as_deref())
                .bind(edit.holder.seat.as_deref())
                .bind(edit.price.map(|price| price.amount()))
                .bind(edit.price.map(|price| price.currency().code()))
                .bind(seen.as_millisecond())
                .bind(edit.holder.phone.as_deref())
                .bind(edit.holder.chat.as_deref())
                .fetch_all(&mut *db)
                .await?;
            if let Some((ticket, batch)) = with_batch(db, &changed).await? {
                self.tell(db, of_ticket(&ticket, &batch, Change::TicketChanged)).await?;
                return Ok(Edited::Changed(Box::new(ticket), batch));
            }
            let Some(row) = fetch_ticket(db, id).await? else { return Ok(Edited::NotFound) };
            Ok(match rows::ticket(&row)?.status {
                TicketStatus::Void => Edited::Void,
                _ => Edited::ChangedMeanwhile,
            })
        })
    }

    async fn reissue_ticket(
        &self,
        id: TicketId,
        now: Timestamp,
    ) -> Result<Option<(Ticket, Batch)>> {
        let sql = format!(
            "UPDATE tickets SET status = 'pending', error = NULL, generation = generation + 1, \
             signing_key = {NEWEST_KEY}, updated_at = {} WHERE id = $1 AND status <> 'void'",
            self.dialect.later("$2", "updated_at")
        );
        in_transaction!(self, Synced, async |db| {
            self.share_event_of(db, id).await?;
            self.change(db, &sql, id, now, Change::TicketReissued).await
        })
    }

    async fn void_ticket_as_seen(
        &self,
        id: TicketId,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Versioned<(Ticket, Batch)>> {
        let sql = format!(
            "UPDATE tickets SET status = 'void', updated_at = {} \
             WHERE id = $1 AND status <> 'void'",
            self.dialect.later("$2", "updated_at")
        );
        in_transaction!(self, Synced, async |db| {
            let held = self.hold_as_seen(db, Of::Ticket, &id.to_string(), seen).await?;
            if held == Held::Changed {
                return Ok(Versioned::ChangedMeanwhile);
            }
            let changed = self.change(db, &sql, id, now, Change::TicketVoided).await?;
            Ok(changed.map_or(Versioned::NotFound, Versioned::Done))
        })
    }

    async fn mark_stale(&self, id: TicketId, now: Timestamp) -> Result<Option<Batch>> {
        let sql = format!(
            "UPDATE tickets SET status = 'pending', updated_at = {} \
             WHERE id = $1 AND status = 'completed' RETURNING {}",
            self.dialect.later("$2", "updated_at"),
            rows::TICKET
        );
        in_transaction!(self, Relaxed, async |db| {
            let changed = sqlx::query(AssertSqlSafe(sql.as_str()))
                .bind(id.to_string())
                .bind(now.as_millisecond())
                .fetch_all(&mut *db)
                .await?;
            let Some((_, batch)) = with_batch(db, &changed).await? else { return Ok(None) };
            self.tell(db, [Told::of_order(&batch, Change::of_batch(&batch))]).await?;
            Ok(Some(batch))
        })
    }

    async fn delete_ticket_as_seen(
        &self,
        id: TicketId,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Versioned<Batch>> {
        let delete = format!("DELETE FROM tickets WHERE id = $1 RETURNING {}", rows::TICKET);
        in_transaction!(self, Synced, async |db| {
            let held = self.hold_as_seen(db, Of::Ticket, &id.to_string(), seen).await?;
            if held == Held::Changed {
                return Ok(Versioned::ChangedMeanwhile);
            }
            let gone = sqlx::query(AssertSqlSafe(delete.as_str()))
                .bind(id.to_string())
                .fetch_all(&mut *db)
                .await?;
            let Some(row) = gone.first() else { return Ok(Versioned::NotFound) };
            let ticket = rows::ticket(row)?;
            let batch_id = ticket.batch_id;
            // The trigger moved the counters, but a deleted row gives the batch no new time.
            sqlx::query("UPDATE batches SET updated_at = $2 WHERE id = $1 AND updated_at < $2")
                .bind(batch_id.to_string())
                .bind(now.as_millisecond())
                .execute(&mut *db)
                .await?;
            let batch = fetch_batch(db, batch_id).await?;
            self.tell(db, of_ticket(&ticket, &batch, Change::TicketDeleted)).await?;
            Ok(Versioned::Done(batch))
        })
    }
}

impl Sql {
    /// Locks a ticket's event (shared) until the transaction ends, so that no key of it is revoked.
    async fn share_event_of(&self, db: &mut AnyConnection, id: TicketId) -> sqlx::Result<()> {
        let sql = format!(
            "SELECT id FROM events WHERE id = (SELECT event_id FROM tickets WHERE id = $1) {}",
            self.dialect.to_refer_to()
        );
        sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()).execute(db).await?;
        Ok(())
    }

    /// Changes a ticket if the statement allows it, and reads the ticket with its batch.
    async fn change(
        &self,
        db: &mut AnyConnection,
        sql: &str,
        id: TicketId,
        now: Timestamp,
        told: fn(TicketData) -> Change,
    ) -> sqlx::Result<Option<(Ticket, Batch)>> {
        let changed = sqlx::query(AssertSqlSafe(sql))
            .bind(id.to_string())
            .bind(now.as_millisecond())
            .execute(&mut *db)
            .await?;
        let row = fetch_ticket(db, id).await?;
        let found = with_batch(db, row.as_slice()).await?;
        if let (1.., Some((ticket, batch))) = (changed.rows_affected(), &found) {
            self.tell(db, of_ticket(ticket, batch, told)).await?;
        }
        Ok(found)
    }
}

async fn fetch_ticket(db: &mut AnyConnection, id: TicketId) -> sqlx::Result<Option<AnyRow>> {
    let sql = format!("SELECT {} FROM tickets WHERE id = $1", rows::TICKET);
    sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()).fetch_optional(db).await
}

/// Reads the first ticket of the rows, with its batch after the change.
async fn with_batch(
    db: &mut AnyConnection,
    changed: &[AnyRow],
) -> sqlx::Result<Option<(Ticket, Batch)>> {
    let Some(row) = changed.first() else { return Ok(None) };
    let ticket = rows::ticket(row)?;
    let batch = fetch_batch(db, ticket.batch_id).await?;
    Ok(Some((ticket, batch)))
}
