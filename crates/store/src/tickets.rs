//! Tickets: read, list, edit, withdraw, delete.
//!
//! Who moves a ticket from one state to another is drawn in `stampede_model::Ticket`'s file; making
//! and failing, which come in crowds, are in `completion.rs`.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::{
    Batch, BatchId, Event, EventId, Holder, Money, Ticket, TicketId, TicketStatus, Timestamp,
};

use crate::orders::fetch_batch;
use crate::rows;
use crate::transaction::in_transaction;
use crate::{Result, Store};

/// Whether an edit ($3 name, $5 seat) changes whom or which place the paper is for.
const REPRINTED: &str = "(name <> $3 OR seat IS DISTINCT FROM $5)";

/// The key that signs for a ticket's event now. Whoever gives it to a ticket shares the event.
const NEWEST_KEY: &str = "(SELECT MAX(number) FROM ticket_keys \
     WHERE ticket_keys.event_id = tickets.event_id AND revoked_at IS NULL)";

/// Which tickets to list; an empty filter means all.
#[derive(Debug, Clone, Default)]
pub struct TicketFilter {
    /// Only of this user.
    pub owner: Option<String>,
    /// Only for this event.
    pub event: Option<EventId>,
    /// Only of this order.
    pub batch: Option<BatchId>,
    /// Only in this state.
    pub status: Option<TicketStatus>,
}

/// What an organiser can change of a ticket; replaces the former values.
#[derive(Debug, Clone, PartialEq)]
pub struct TicketEdit {
    /// Who it is for.
    pub holder: Holder,
    /// What it cost.
    pub price: Option<Money>,
}

/// What became of a ticket that was to be edited.
#[derive(Debug, Clone, PartialEq)]
pub enum Edited {
    /// It is changed and pending, for its PDF has to be made anew.
    Changed(Box<Ticket>, Batch),
    /// It is not any more what the editor saw, and stays as it is.
    ChangedMeanwhile,
    /// It was withdrawn and stays as it was.
    Void,
    /// There is none.
    NotFound,
}

impl Store {
    /// One ticket.
    pub async fn ticket(&self, id: TicketId) -> Result<Option<Ticket>> {
        let sql = format!("SELECT {} FROM tickets WHERE id = $1", rows::TICKET);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string());
        let row = self.fetch_optional(query).await?;
        Ok(row.as_ref().map(rows::ticket).transpose()?)
    }

    /// A page of tickets, oldest first; `after` is the last id of the page before.
    pub async fn tickets(
        &self,
        filter: &TicketFilter,
        after: Option<TicketId>,
        limit: u32,
    ) -> Result<Vec<Ticket>> {
        // The narrowest filter is to choose the index; the wider ones are hidden from the planner by
        // an empty text, or one batch would be searched through everything its owner has.
        let event = if filter.batch.is_some() { "event_id || '' =" } else { "event_id =" };
        let narrowed = filter.batch.is_some() || filter.event.is_some();
        let owner = if narrowed { "owner || '' =" } else { "owner =" };
        let mut conditions: Vec<(&str, String)> = Vec::new();
        conditions.extend(filter.owner.clone().map(|name| (owner, name)));
        conditions.extend(filter.event.map(|id| (event, id.to_string())));
        conditions.extend(filter.batch.map(|id| ("batch_id =", id.to_string())));
        conditions.extend(filter.status.map(|status| ("status =", status.as_str().to_owned())));
        conditions.extend(after.map(|id| ("id >", id.to_string())));
        let rows = self.page("tickets", rows::TICKET, conditions, "id", limit).await?;
        Ok(rows.iter().map(rows::ticket).collect::<sqlx::Result<_>>()?)
    }

    /// Many tickets at once, each with its event; ids without a ticket are left out.
    pub async fn tickets_with_events(&self, ids: &[TicketId]) -> Result<Vec<(Ticket, Event)>> {
        let tickets: Vec<Ticket> = self
            .fetch_many("tickets", rows::TICKET, ids)
            .await?
            .iter()
            .map(rows::ticket)
            .collect::<sqlx::Result<_>>()?;
        // Hundreds of tickets mostly share one event: it is sent once.
        let event_ids: BTreeSet<EventId> = tickets.iter().map(|ticket| ticket.event_id).collect();
        let events: HashMap<EventId, Event> = self
            .fetch_many("events", rows::EVENT, &event_ids)
            .await?
            .iter()
            .map(|row| rows::event(row).map(|event| (event.id, event)))
            .collect::<sqlx::Result<_>>()?;
        // An event that was deleted in between took its tickets with it.
        let with_event = |ticket: Ticket| {
            let event = events.get(&ticket.event_id)?.clone();
            Some((ticket, event))
        };
        Ok(tickets.into_iter().filter_map(with_event).collect())
    }

    /// Tickets that have been pending and unchanged since before `unchanged_since`, oldest first; `after`
    /// is the last id of the page before.
    pub async fn pending_tickets(
        &self,
        unchanged_since: Timestamp,
        after: Option<TicketId>,
        limit: u32,
    ) -> Result<Vec<Ticket>> {
        // The status is written out, not bound: only so does the partial index apply.
        let sql = format!(
            "SELECT {} FROM tickets WHERE status = 'pending' AND id > $1 AND updated_at < $2 \
             ORDER BY id LIMIT $3",
            rows::TICKET
        );
        let query = sqlx::query(AssertSqlSafe(sql))
            .bind(after.map(|id| id.to_string()).unwrap_or_default())
            .bind(unchanged_since.as_millisecond())
            .bind(i64::from(limit));
        let rows = self.fetch_all(query).await?;
        Ok(rows.iter().map(rows::ticket).collect::<sqlx::Result<_>>()?)
    }

    /// Changes a ticket whose `updated_at` was `seen`; it is pending afterwards. One that is void
    /// stays as it is.
    ///
    /// Another name or seat begins a new generation, signed by the newest key: paper that shows the
    /// former holder or place must not be accepted any more. Price and e-mail do not.
    pub async fn edit_ticket(
        &self,
        id: TicketId,
        edit: &TicketEdit,
        seen: Timestamp,
        now: Timestamp,
    ) -> Result<Edited> {
        let sql = format!(
            "UPDATE tickets SET name = $3, email = $4, seat = $5, price_amount = $6, \
             price_currency = $7, status = 'pending', error = NULL, updated_at = {}, \
             generation = CASE WHEN {REPRINTED} THEN generation + 1 ELSE generation END, \
             signing_key = CASE WHEN {REPRINTED} THEN {NEWEST_KEY} ELSE signing_key END \
             WHERE id = $1 AND status <> 'void' AND updated_at = $8 RETURNING {}",
            self.dialect.later("$2", "updated_at"),
            rows::TICKET
        );
        in_transaction!(self, async |db| {
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
                .fetch_all(&mut *db)
                .await?;
            if let Some((ticket, batch)) = with_batch(db, &changed).await? {
                return Ok(Edited::Changed(Box::new(ticket), batch));
            }
            let Some(row) = fetch_ticket(db, id).await? else { return Ok(Edited::NotFound) };
            Ok(match rows::ticket(&row)?.status {
                TicketStatus::Void => Edited::Void,
                _ => Edited::ChangedMeanwhile,
            })
        })
    }

    /// Issues a ticket anew, because its paper was lost or stolen: a new generation, signed by the
    /// newest key, pending. One that is void stays as it is; `None` when there is none.
    pub async fn reissue_ticket(
        &self,
        id: TicketId,
        now: Timestamp,
    ) -> Result<Option<(Ticket, Batch)>> {
        let sql = format!(
            "UPDATE tickets SET status = 'pending', error = NULL, generation = generation + 1, \
             signing_key = {NEWEST_KEY}, updated_at = {} WHERE id = $1 AND status <> 'void'",
            self.dialect.later("$2", "updated_at")
        );
        in_transaction!(self, async |db| {
            self.share_event_of(db, id).await?;
            change(db, &sql, id, now).await
        })
    }

    /// Withdraws a ticket for good; doing it twice is doing it once. `None` when there is none.
    pub async fn void_ticket(
        &self,
        id: TicketId,
        now: Timestamp,
    ) -> Result<Option<(Ticket, Batch)>> {
        let sql = format!(
            "UPDATE tickets SET status = 'void', updated_at = {} \
             WHERE id = $1 AND status <> 'void'",
            self.dialect.later("$2", "updated_at")
        );
        in_transaction!(self, async |db| { change(db, &sql, id, now).await })
    }

    /// Makes a completed ticket pending again, because its file is missing, short or stale; `None`
    /// when it was not completed (any more).
    pub async fn mark_stale(&self, id: TicketId, now: Timestamp) -> Result<Option<Batch>> {
        let sql = format!(
            "UPDATE tickets SET status = 'pending', updated_at = {} \
             WHERE id = $1 AND status = 'completed' RETURNING {}",
            self.dialect.later("$2", "updated_at"),
            rows::TICKET
        );
        in_transaction!(self, async |db| {
            let changed = sqlx::query(AssertSqlSafe(sql.as_str()))
                .bind(id.to_string())
                .bind(now.as_millisecond())
                .fetch_all(&mut *db)
                .await?;
            Ok(with_batch(db, &changed).await?.map(|(_, batch)| batch))
        })
    }

    /// Deletes a ticket; the answer is its batch without it, `None` when there was no such ticket.
    pub async fn delete_ticket(&self, id: TicketId, now: Timestamp) -> Result<Option<Batch>> {
        in_transaction!(self, async |db| {
            let gone = sqlx::query("DELETE FROM tickets WHERE id = $1 RETURNING batch_id")
                .bind(id.to_string())
                .fetch_all(&mut *db)
                .await?;
            let Some(row) = gone.first() else { return Ok(None) };
            let batch_id: BatchId = rows::parsed(row, "batch_id")?;
            // The trigger counted it out, but a row that is gone cannot tell the time.
            sqlx::query("UPDATE batches SET updated_at = $2 WHERE id = $1 AND updated_at < $2")
                .bind(batch_id.to_string())
                .bind(now.as_millisecond())
                .execute(&mut *db)
                .await?;
            fetch_batch(db, batch_id).await.map(Some)
        })
    }

    /// Keeps the keys of a ticket's event from being revoked until the transaction ends.
    async fn share_event_of(&self, db: &mut AnyConnection, id: TicketId) -> sqlx::Result<()> {
        let sql = format!(
            "SELECT id FROM events WHERE id = (SELECT event_id FROM tickets WHERE id = $1) {}",
            self.dialect.to_refer_to()
        );
        sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()).execute(db).await?;
        Ok(())
    }

    /// One page of a table: the rows that meet all conditions (`column operator`, value).
    pub(crate) async fn page(
        &self,
        table: &'static str,
        columns: &'static str,
        conditions: Vec<(&'static str, String)>,
        order: &'static str,
        limit: u32,
    ) -> Result<Vec<AnyRow>> {
        let mut sql = format!("SELECT {columns} FROM {table} WHERE TRUE");
        for (number, (condition, _)) in conditions.iter().enumerate() {
            sql += &format!(" AND {condition} ${}", number + 2);
        }
        sql += &format!(" ORDER BY {order} LIMIT $1");
        let mut query = sqlx::query(AssertSqlSafe(sql)).bind(i64::from(limit));
        for (_, value) in conditions {
            query = query.bind(value);
        }
        self.fetch_all(query).await
    }

    async fn fetch_many(
        &self,
        table: &'static str,
        columns: &'static str,
        ids: impl Serialize,
    ) -> Result<Vec<AnyRow>> {
        let each = self.dialect.each_text("$1");
        let sql = format!(
            "SELECT {columns} FROM {table} WHERE id IN (SELECT value FROM {each}) ORDER BY id"
        );
        self.fetch_all(sqlx::query(AssertSqlSafe(sql)).bind(to_json(&ids))).await
    }
}

/// Plain data as JSON, the form in which many rows go into one statement.
pub(crate) fn to_json(rows: &impl Serialize) -> String {
    // Structs of texts and numbers always serialise; an empty list would do nothing at all.
    serde_json::to_string(rows).unwrap_or_else(|_| "[]".to_owned())
}

async fn fetch_ticket(db: &mut AnyConnection, id: TicketId) -> sqlx::Result<Option<AnyRow>> {
    let sql = format!("SELECT {} FROM tickets WHERE id = $1", rows::TICKET);
    sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()).fetch_optional(db).await
}

/// Changes a ticket, if it may be changed so, and reads what it is then.
async fn change(
    db: &mut AnyConnection,
    sql: &str,
    id: TicketId,
    now: Timestamp,
) -> sqlx::Result<Option<(Ticket, Batch)>> {
    sqlx::query(AssertSqlSafe(sql))
        .bind(id.to_string())
        .bind(now.as_millisecond())
        .execute(&mut *db)
        .await?;
    let row = fetch_ticket(db, id).await?;
    with_batch(db, row.as_slice()).await
}

/// The first ticket of the rows, with its batch as it is after the change.
async fn with_batch(
    db: &mut AnyConnection,
    changed: &[AnyRow],
) -> sqlx::Result<Option<(Ticket, Batch)>> {
    let Some(row) = changed.first() else { return Ok(None) };
    let ticket = rows::ticket(row)?;
    let batch = fetch_batch(db, ticket.batch_id).await?;
    Ok(Some((ticket, batch)))
}
