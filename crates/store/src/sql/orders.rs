//! Orders in SQL.
//!
//! An order takes the next serials of its event in its own transaction. Until that ends, other orders for
//! the same event wait: on PostgreSQL for the event's row, on SQLite for the one writer. Orders for
//! different events do not wait for each other on PostgreSQL.

use std::borrow::Cow;
use std::io;

use async_trait::async_trait;
use serde::Serialize;
use sqlx::{AnyConnection, AssertSqlSafe, Row};
use stampede_model::feed::Change;
use stampede_model::{Batch, BatchId, Order, Ticket, TicketId, Timestamp};

use super::audit::insert_entry;
use super::outbox::Told;
use super::page::to_json;
use super::ticket_keys::ensure_key;
use super::transaction::in_transaction;
use super::{Sql, rows};
use crate::Durability::Synced;
use crate::vault::Vault;
use crate::{AuditEntry, Error, Orders, Placed, Result, TicketChunks};

/// The columns of a new ticket that differ from the other tickets of its order.
#[derive(Serialize)]
struct NewTicket<'a> {
    id: TicketId,
    position: u32,
    /// 1 for the first.
    nth: usize,
    name: &'a str,
    email: Option<&'a str>,
    phone: Option<&'a str>,
    chat: Option<&'a str>,
    seat: Option<&'a str>,
    amount: Option<String>,
    currency: Option<&'static str>,
}

#[async_trait]
impl Orders for Sql {
    async fn place_noted_order(
        &self,
        order: &Order,
        entry: Option<&AuditEntry>,
        vault: &Vault,
    ) -> Result<Placed> {
        let (rows, count) = (new_tickets(&order.tickets), order.tickets.len() as i64);
        let mut source = Source::Whole { rows, count, is_written: false };
        self.place(order, &mut source, entry, vault).await
    }

    async fn place_in_chunks(
        &self,
        order: &Order,
        chunks: &mut dyn TicketChunks,
        entry: Option<&AuditEntry>,
        vault: &Vault,
    ) -> Result<Placed> {
        let mut source = Source::Chunks { chunks, unread: None };
        let placed = self.place(order, &mut source, entry, vault).await;
        match source {
            Source::Chunks { unread: Some(error), .. } => Err(Error::Unavailable(format!(
                "the tickets of an order cannot be read again: {error}"
            ))),
            _ => placed,
        }
    }

    async fn batch(&self, id: BatchId) -> Result<Option<Batch>> {
        let sql = format!("SELECT {} FROM batches WHERE id = $1", rows::BATCH);
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string());
        self.fetch_optional(query, rows::batch).await
    }

    async fn batches_changed_since(&self, since: Timestamp, limit: u32) -> Result<Vec<Batch>> {
        let sql = format!(
            "SELECT {} FROM batches WHERE updated_at >= $1 ORDER BY updated_at DESC, id DESC LIMIT $2",
            rows::BATCH
        );
        let query =
            sqlx::query(AssertSqlSafe(sql)).bind(since.as_millisecond()).bind(i64::from(limit));
        self.fetch_all(query, rows::batch).await
    }

    async fn batch_ticket_ids(&self, id: BatchId) -> Result<Vec<TicketId>> {
        let query = sqlx::query("SELECT id FROM tickets WHERE batch_id = $1 ORDER BY position");
        self.fetch_all(query.bind(id.to_string()), |row| rows::parsed(row, "id")).await
    }

    async fn batch_reissues(&self, id: BatchId) -> Result<u64> {
        // With their numbers: one that is deleted and one that is issued anew do not cancel each other out.
        let query = sqlx::query(
            "SELECT CAST(COALESCE(SUM((generation - 1) * (2 * serial + 1)), 0) AS BIGINT) AS reissues \
             FROM tickets WHERE batch_id = $1",
        );
        let found = self.fetch_optional(query.bind(id.to_string()), |row| {
            Ok(row.try_get::<i64, _>("reissues")?.unsigned_abs())
        });
        Ok(found.await?.unwrap_or_default())
    }

    async fn drifted_batches(&self) -> Result<Vec<BatchId>> {
        let query = sqlx::query(
            "SELECT batches.id FROM batches LEFT JOIN (SELECT batch_id, COUNT(*) AS total, \
             SUM(CASE WHEN status = 'completed' THEN 1 ELSE 0 END) AS completed, \
             SUM(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) AS failed, \
             SUM(CASE WHEN status = 'void' THEN 1 ELSE 0 END) AS voided \
             FROM tickets GROUP BY batch_id) AS counted ON counted.batch_id = batches.id \
             WHERE batches.total <> COALESCE(counted.total, 0) \
             OR batches.completed <> COALESCE(counted.completed, 0) \
             OR batches.failed <> COALESCE(counted.failed, 0) \
             OR batches.voided <> COALESCE(counted.voided, 0) ORDER BY batches.id",
        );
        self.fetch_all_within(self.limits.order, query, |row| rows::parsed(row, "id")).await
    }
}

impl Sql {
    /// Writes an order with the tickets of `source`.
    async fn place(
        &self,
        order: &Order,
        source: &mut Source<'_>,
        entry: Option<&AuditEntry>,
        vault: &Vault,
    ) -> Result<Placed> {
        let find_event = format!(
            "SELECT id, last_serial FROM events WHERE id = $1 {}",
            self.dialect.to_count_on()
        );
        let find_batch = format!(
            "SELECT {}, idempotency_request FROM batches \
             WHERE owner = $1 AND idempotency_key = $2",
            rows::BATCH
        );
        let insert_tickets = format!(
            "INSERT INTO tickets (id, event_id, batch_id, owner, position, serial, signing_key, name, \
             email, phone, chat, seat, price_amount, price_currency, status, created_at, updated_at) \
             SELECT value ->> 'id', $2, $3, $4, CAST(value ->> 'position' AS BIGINT), \
             $6 + CAST(value ->> 'nth' AS BIGINT), $7, \
             value ->> 'name', value ->> 'email', value ->> 'phone', value ->> 'chat', \
             value ->> 'seat', value ->> 'amount', value ->> 'currency', 'pending', $5, $5 FROM {}",
            self.dialect.each_object("$1")
        );
        in_transaction!(self, Synced, [self.limits.order], async |db| {
            let event = sqlx::query(AssertSqlSafe(find_event.as_str()))
                .bind(order.event_id.to_string())
                .fetch_optional(&mut *db)
                .await?;
            let Some(event) = event else { return Ok(Placed::NoSuchEvent) };
            let mut last_serial: i64 = event.try_get("last_serial")?;
            if !insert_batch(db, order).await? {
                let existing = sqlx::query(AssertSqlSafe(find_batch.as_str()))
                    .bind(order.owner.as_str())
                    .bind(order.idempotency.as_ref().map(|mark| mark.key.as_str()))
                    .fetch_one(&mut *db)
                    .await?;
                let request: Option<String> = existing.try_get("idempotency_request")?;
                return if request.as_ref() == order.idempotency.as_ref().map(|mark| &mark.request) {
                    Ok(Placed::Existing(rows::batch(&existing)?))
                } else {
                    Ok(Placed::OtherRequest)
                };
            }
            let key = ensure_key(db, vault, order.event_id, order.created_at).await?;
            source.rewind().await?;
            while let Some((rows, count)) = source.next().await? {
                sqlx::query(AssertSqlSafe(insert_tickets.as_str()))
                    .bind(rows.as_ref())
                    .bind(order.event_id.to_string())
                    .bind(order.batch_id.to_string())
                    .bind(order.owner.as_str())
                    .bind(order.created_at.as_millisecond())
                    .bind(last_serial)
                    .bind(i64::from(key))
                    .execute(&mut *db)
                    .await?;
                last_serial += count;
            }
            sqlx::query("UPDATE events SET last_serial = $2 WHERE id = $1")
                .bind(order.event_id.to_string())
                .bind(last_serial)
                .execute(&mut *db)
                .await?;
            let batch = fetch_batch(db, order.batch_id).await?;
            let created = Change::BatchCreated((&batch).into());
            self.tell(db, [Told::of_order(&batch, created)]).await?;
            if let Some(entry) = entry {
                insert_entry(db, entry).await?;
            }
            Ok(Placed::New(batch))
        })
    }
}

/// Reads a batch inside a transaction that changed it.
pub(super) async fn fetch_batch(db: &mut AnyConnection, id: BatchId) -> sqlx::Result<Batch> {
    let sql = format!("SELECT {} FROM batches WHERE id = $1", rows::BATCH);
    let row = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()).fetch_one(db).await?;
    rows::batch(&row)
}

/// Writes an empty batch; returns `false` if its owner used the idempotency key before. It waits for a
/// transaction that writes the same key, so of two concurrent orders exactly one is new.
async fn insert_batch(db: &mut AnyConnection, order: &Order) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "INSERT INTO batches (id, event_id, owner, idempotency_key, idempotency_request, \
         created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $6) \
         ON CONFLICT (owner, idempotency_key) DO NOTHING",
    )
    .bind(order.batch_id.to_string())
    .bind(order.event_id.to_string())
    .bind(order.owner.as_str())
    .bind(order.idempotency.as_ref().map(|mark| mark.key.as_str()))
    .bind(order.idempotency.as_ref().map(|mark| mark.request.as_str()))
    .bind(order.created_at.as_millisecond())
    .execute(db)
    .await?;
    Ok(done.rows_affected() > 0)
}

fn new_tickets(tickets: &[Ticket]) -> String {
    let tickets: Vec<NewTicket<'_>> = tickets
        .iter()
        .zip(1..)
        .map(|(ticket, nth)| NewTicket {
            id: ticket.id,
            position: ticket.index,
            nth,
            name: &ticket.holder.name,
            email: ticket.holder.email.as_deref(),
            phone: ticket.holder.phone.as_deref(),
            chat: ticket.holder.chat.as_deref(),
            seat: ticket.holder.seat.as_deref(),
            amount: ticket.price.map(|price| price.amount()),
            currency: ticket.price.map(|price| price.currency().code()),
        })
        .collect();
    to_json(&tickets)
}

/// The tickets of an order, as the rows of one or of many statements.
enum Source<'c> {
    Whole { rows: String, count: i64, is_written: bool },
    Chunks { chunks: &'c mut dyn TicketChunks, unread: Option<io::Error> },
}

impl Source<'_> {
    /// Begins anew with the first ticket.
    async fn rewind(&mut self) -> sqlx::Result<()> {
        match self {
            Self::Whole { is_written, .. } => *is_written = false,
            Self::Chunks { chunks, unread } => {
                if let Err(error) = chunks.rewind().await {
                    *unread = Some(error);
                    return Err(sqlx::Error::RowNotFound);
                }
            }
        }
        Ok(())
    }

    /// The rows of the next statement and their number; `None` after the last.
    async fn next(&mut self) -> sqlx::Result<Option<(Cow<'_, str>, i64)>> {
        match self {
            Self::Whole { rows, count, is_written } => {
                let is_over = std::mem::replace(is_written, true);
                Ok((!is_over).then_some((Cow::Borrowed(rows.as_str()), *count)))
            }
            Self::Chunks { chunks, unread } => match chunks.next().await {
                Ok(tickets) if tickets.is_empty() => Ok(None),
                Ok(tickets) => Ok(Some((Cow::Owned(new_tickets(&tickets)), tickets.len() as i64))),
                // The caller reports the reason, which is none of the database.
                Err(error) => {
                    *unread = Some(error);
                    Err(sqlx::Error::RowNotFound)
                }
            },
        }
    }
}
