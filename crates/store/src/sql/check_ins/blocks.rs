//! Blocked tickets in SQL.

use async_trait::async_trait;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::feed::{Change, TicketData};
use stampede_model::{EventId, TicketId, Timestamp};

use super::super::outbox::Told;
use super::super::transaction::in_transaction;
use super::super::versions::{Held, Of};
use crate::Durability::Synced;
use crate::sql::Sql;
use crate::sql::rows::{self, TICKET, number, parsed, time, value};
use crate::{Block, Blocks, Result, Versioned};

/// The columns [`block`] reads.
const BLOCK: &str = "ticket_id AS id, event_id, serial, reason, created_at, updated_at";

#[async_trait]
impl Blocks for Sql {
    async fn block_ticket_as_seen(
        &self,
        event: EventId,
        ticket: TicketId,
        reason: Option<&str>,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Versioned<Block>> {
        let insert = format!(
            "INSERT INTO check_in_blocks (ticket_id, event_id, serial, reason, created_at, updated_at) \
             SELECT id, event_id, serial, CAST($3 AS TEXT), CAST($4 AS BIGINT), CAST($4 AS BIGINT) \
             FROM tickets WHERE id = $1 AND event_id = $2 \
             ON CONFLICT (ticket_id) DO UPDATE SET reason = excluded.reason, updated_at = {} \
             RETURNING {BLOCK}",
            self.dialect.later("excluded.updated_at", "check_in_blocks.updated_at")
        );
        in_transaction!(self, Synced, async |db| {
            if self.next_change(db, event).await?.is_none() {
                return Ok(Versioned::NotFound);
            }
            match self.hold_as_seen(db, Of::Block, &ticket.to_string(), seen).await? {
                Held::Missing if seen.is_some() => return Ok(Versioned::ChangedMeanwhile),
                Held::Changed => return Ok(Versioned::ChangedMeanwhile),
                Held::AsSeen | Held::Missing => {}
            }
            let found = sqlx::query(AssertSqlSafe(insert.as_str()))
                .bind(ticket.to_string())
                .bind(event.to_string())
                .bind(reason)
                .bind(now.as_millisecond())
                .fetch_optional(&mut *db)
                .await?;
            let Some(row) = found else { return Ok(Versioned::NotFound) };
            self.tell_block(db, event, ticket, Change::TicketBlocked).await?;
            block(&row).map(Versioned::Done)
        })
    }

    async fn unblock_ticket_as_seen(
        &self,
        event: EventId,
        ticket: TicketId,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<()>> {
        in_transaction!(self, Synced, async |db| {
            if self.next_change(db, event).await?.is_none() {
                return Ok(Versioned::NotFound);
            }
            if self.hold_as_seen(db, Of::Block, &ticket.to_string(), seen).await? == Held::Changed {
                return Ok(Versioned::ChangedMeanwhile);
            }
            let delete = "DELETE FROM check_in_blocks WHERE ticket_id = $1 AND event_id = $2";
            let query = sqlx::query(delete).bind(ticket.to_string()).bind(event.to_string());
            if query.execute(&mut *db).await?.rows_affected() == 0 {
                return Ok(Versioned::NotFound);
            }
            self.tell_block(db, event, ticket, Change::TicketUnblocked).await?;
            Ok(Versioned::Done(()))
        })
    }

    async fn block(&self, ticket: TicketId) -> Result<Option<Block>> {
        let sql = format!("SELECT {BLOCK} FROM check_in_blocks WHERE ticket_id = $1");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(ticket.to_string());
        self.fetch_optional(query, block).await
    }

    async fn blocks(&self, event: EventId) -> Result<Vec<Block>> {
        let sql =
            format!("SELECT {BLOCK} FROM check_in_blocks WHERE event_id = $1 ORDER BY serial");
        let query = sqlx::query(AssertSqlSafe(sql));
        self.fetch_all_within(self.limits.order, query.bind(event.to_string()), block).await
    }

    async fn is_blocked(&self, ticket: TicketId) -> Result<bool> {
        let query = sqlx::query("SELECT ticket_id AS id FROM check_in_blocks WHERE ticket_id = $1");
        let found = self.fetch_optional(query.bind(ticket.to_string()), |_| Ok(())).await?;
        Ok(found.is_some())
    }
}

impl Sql {
    /// Tells that a ticket was blocked or unblocked.
    async fn tell_block(
        &self,
        db: &mut AnyConnection,
        event: EventId,
        ticket: TicketId,
        change: fn(TicketData) -> Change,
    ) -> sqlx::Result<()> {
        let sql = format!("SELECT {TICKET} FROM tickets WHERE id = $1");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(ticket.to_string());
        let Some(row) = query.fetch_optional(&mut *db).await? else { return Ok(()) };
        let ticket = rows::ticket(&row)?;
        let change = change((&ticket).into());
        self.tell(db, [Told::within(event, Some(ticket.batch_id), change)]).await
    }
}

fn block(row: &AnyRow) -> sqlx::Result<Block> {
    Ok(Block {
        ticket_id: parsed(row, "id")?,
        event_id: parsed(row, "event_id")?,
        serial: number(row, "serial")?,
        reason: value(row, "reason")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}
