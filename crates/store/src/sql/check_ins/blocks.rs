//! Blocked tickets in SQL.

use async_trait::async_trait;
use sqlx::any::AnyRow;
use stampede_model::{EventId, TicketId, Timestamp};

use super::super::transaction::in_transaction;
use crate::Durability::Synced;
use crate::sql::Sql;
use crate::sql::rows::{number, parsed, time, value};
use crate::{Block, Blocks, Result};

#[async_trait]
impl Blocks for Sql {
    async fn block_ticket(
        &self,
        event: EventId,
        ticket: TicketId,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<Block>> {
        in_transaction!(self, Synced, async |db| {
            if self.next_change(db, event).await?.is_none() {
                return Ok(None);
            }
            let found = sqlx::query(
                "INSERT INTO check_in_blocks (ticket_id, event_id, serial, reason, created_at) \
                 SELECT id, event_id, serial, CAST($3 AS TEXT), CAST($4 AS BIGINT) FROM tickets \
                 WHERE id = $1 AND event_id = $2 \
                 ON CONFLICT (ticket_id) DO UPDATE SET reason = excluded.reason \
                 RETURNING ticket_id AS id, event_id, serial, reason, created_at",
            )
            .bind(ticket.to_string())
            .bind(event.to_string())
            .bind(reason)
            .bind(now.as_millisecond())
            .fetch_optional(&mut *db)
            .await?;
            found.as_ref().map(block).transpose()
        })
    }

    async fn unblock_ticket(&self, event: EventId, ticket: TicketId) -> Result<bool> {
        in_transaction!(self, Synced, async |db| {
            if self.next_change(db, event).await?.is_none() {
                return Ok(false);
            }
            let delete = "DELETE FROM check_in_blocks WHERE ticket_id = $1 AND event_id = $2";
            let query = sqlx::query(delete).bind(ticket.to_string()).bind(event.to_string());
            Ok(query.execute(&mut *db).await?.rows_affected() > 0)
        })
    }

    async fn blocks(&self, event: EventId) -> Result<Vec<Block>> {
        let query = sqlx::query(
            "SELECT ticket_id AS id, event_id, serial, reason, created_at FROM check_in_blocks \
             WHERE event_id = $1 ORDER BY serial",
        );
        self.fetch_all_within(self.limits.order, query.bind(event.to_string()), block).await
    }

    async fn is_blocked(&self, ticket: TicketId) -> Result<bool> {
        let query = sqlx::query("SELECT ticket_id AS id FROM check_in_blocks WHERE ticket_id = $1");
        let found = self.fetch_optional(query.bind(ticket.to_string()), |_| Ok(())).await?;
        Ok(found.is_some())
    }
}

fn block(row: &AnyRow) -> sqlx::Result<Block> {
    Ok(Block {
        ticket_id: parsed(row, "id")?,
        event_id: parsed(row, "event_id")?,
        serial: number(row, "serial")?,
        reason: value(row, "reason")?,
        created_at: time(row, "created_at")?,
    })
}
