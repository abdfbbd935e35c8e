//! Deliveries in SQL.

use async_trait::async_trait;
use sqlx::AssertSqlSafe;
use stampede_model::{DeliveryId, Timestamp, WebhookId};

use super::{cancel_pending, rows};
use crate::Durability::{Relaxed, Synced};
use crate::sql::page::{Page, to_json};
use crate::sql::transaction::in_transaction;
use crate::sql::{Sql, slices};
use crate::{
    AttemptResult, DeliveryFilter, DisabledReason, NewDelivery, PendingDelivery, Redelivered,
    Result, SealedDelivery, Slice, WebhookAttempt, WebhookDeliveries, WebhookDelivery,
};

/// What makes a delivery pending again, with all attempts.
const AGAIN: &str = "UPDATE webhook_deliveries SET state = 'pending', tries = 0, queued = 0, next_at = NULL, \
     ended_at = NULL";

#[async_trait]
impl WebhookDeliveries for Sql {
    async fn insert_delivery(&self, delivery: &NewDelivery, now: Timestamp) -> Result<bool> {
        // So that it is not disabled before the delivery is there to be cancelled.
        let hold =
            format!("SELECT id FROM webhook_endpoints WHERE id = $1 {}", self.dialect.to_rely_on());
        let inserted = in_transaction!(self, Synced, async |db| {
            let hold = sqlx::query(AssertSqlSafe(hold.as_str())).bind(delivery.webhook.to_string());
            hold.fetch_optional(&mut *db).await?;
            let done = sqlx::query(
                "INSERT INTO webhook_deliveries (id, endpoint_id, message_id, kind, happened_at, data, state, \
                 attempts, tries, queued, created_at) \
                 SELECT CAST($1 AS TEXT), id, CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT), \
                 CAST($6 AS TEXT), 'pending', 0, 0, 0, CAST($7 AS BIGINT) FROM webhook_endpoints \
                 WHERE id = $2 AND disabled_at IS NULL AND deleted_at IS NULL",
            )
            .bind(delivery.id.to_string())
            .bind(delivery.webhook.to_string())
            .bind(delivery.message.to_string())
            .bind(delivery.kind.as_str())
            .bind(delivery.happened_at.as_millisecond())
            .bind(delivery.data.as_str())
            .bind(now.as_millisecond())
            .execute(db)
            .await?;
            Ok(done.rows_affected() > 0)
        });
        self.pending.notify_one();
        inserted
    }

    async fn delivery(
        &self,
        webhook: WebhookId,
        id: DeliveryId,
    ) -> Result<Option<WebhookDelivery>> {
        let sql = format!(
            "SELECT {} FROM webhook_deliveries WHERE id = $1 AND endpoint_id = $2",
            rows::DELIVERY
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()).bind(webhook.to_string());
        self.fetch_optional(query, rows::delivery).await
    }

    async fn deliveries(
        &self,
        webhook: WebhookId,
        filter: &DeliveryFilter,
        slice: &Slice<DeliveryId>,
    ) -> Result<Vec<WebhookDelivery>> {
        let mut conditions = vec![("endpoint_id =", webhook.to_string())];
        conditions.extend(filter.state.map(|state| ("state =", state.as_str().to_owned())));
        conditions.extend(filter.kind.clone().map(|kind| ("kind =", kind)));
        conditions.extend(slices::conditions(slice));
        let (order, limit) = (slices::order(slice), slice.limit);
        let page = Page { table: "webhook_deliveries", columns: rows::DELIVERY, order, limit };
        self.page(page, conditions, rows::delivery).await
    }

    async fn delivery_attempts(&self, id: DeliveryId) -> Result<Vec<WebhookAttempt>> {
        let sql = format!(
            "SELECT {} FROM webhook_attempts WHERE delivery_id = $1 ORDER BY number",
            rows::ATTEMPT
        );
        self.fetch_all(sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()), rows::attempt).await
    }

    async fn sealed_delivery(&self, id: DeliveryId) -> Result<Option<SealedDelivery>> {
        let of_delivery = rows::DELIVERY.split(", ").map(|column| format!("d.{}", column.trim()));
        let sql = format!(
            "SELECT {}, e.owner, e.url, e.secret, e.former_secret, e.former_until \
             FROM webhook_deliveries AS d JOIN webhook_endpoints AS e ON e.id = d.endpoint_id \
             WHERE d.id = $1 AND d.state = 'pending' AND e.disabled_at IS NULL AND e.deleted_at IS NULL",
            of_delivery.collect::<Vec<_>>().join(", ")
        );
        self.fetch_optional(sqlx::query(AssertSqlSafe(sql)).bind(id.to_string()), rows::sealed)
            .await
    }

    async fn record_attempt(
        &self,
        id: DeliveryId,
        attempt: &WebhookAttempt,
        result: AttemptResult,
    ) -> Result<Option<DisabledReason>> {
        self.write_attempt(id, attempt, result).await
    }

    async fn fail_delivery(&self, id: DeliveryId, reason: &str, now: Timestamp) -> Result<()> {
        in_transaction!(self, Synced, async |db| {
            sqlx::query(
                "UPDATE webhook_deliveries SET state = 'failed', last_error = $2, next_at = NULL, ended_at = $3 \
                 WHERE id = $1 AND state = 'pending'",
            )
            .bind(id.to_string())
            .bind(reason)
            .bind(now.as_millisecond())
            .execute(db)
            .await?;
            Ok(())
        })
    }

    async fn redeliver(&self, webhook: WebhookId, id: DeliveryId) -> Result<Redelivered> {
        let lock = format!(
            "SELECT disabled_at FROM webhook_endpoints WHERE id = $1 AND deleted_at IS NULL {}",
            self.dialect.to_change()
        );
        let again = format!("{AGAIN} WHERE id = $1 AND endpoint_id = $2");
        let redelivered = in_transaction!(self, Synced, async |db| {
            let found = sqlx::query(AssertSqlSafe(lock.as_str()))
                .bind(webhook.to_string())
                .fetch_optional(&mut *db)
                .await?;
            let Some(endpoint) = found else { return Ok(Redelivered::NotFound) };
            if sqlx::Row::try_get::<Option<i64>, _>(&endpoint, "disabled_at")?.is_some() {
                return Ok(Redelivered::Disabled);
            }
            let done = sqlx::query(AssertSqlSafe(again.as_str()))
                .bind(id.to_string())
                .bind(webhook.to_string())
                .execute(db)
                .await?;
            Ok(match done.rows_affected() {
                0 => Redelivered::NotFound,
                _ => Redelivered::Done,
            })
        });
        self.pending.notify_one();
        redelivered
    }

    async fn redeliver_all(&self, webhook: WebhookId, since: Timestamp) -> Result<u64> {
        let lock = format!(
            "SELECT id FROM webhook_endpoints WHERE id = $1 AND deleted_at IS NULL AND disabled_at IS NULL {}",
            self.dialect.to_change()
        );
        let again = format!(
            "{AGAIN} WHERE endpoint_id = $1 AND state IN ('failed', 'cancelled') AND ended_at >= $2"
        );
        let redelivered = in_transaction!(self, Synced, async |db| {
            let found = sqlx::query(AssertSqlSafe(lock.as_str()))
                .bind(webhook.to_string())
                .fetch_optional(&mut *db)
                .await?;
            if found.is_none() {
                return Ok(0);
            }
            let done = sqlx::query(AssertSqlSafe(again.as_str()))
                .bind(webhook.to_string())
                .bind(since.as_millisecond())
                .execute(db)
                .await?;
            Ok(done.rows_affected())
        });
        self.pending.notify_one();
        redelivered
    }

    async fn inactive_with_pending(&self) -> Result<Option<WebhookId>> {
        let query = sqlx::query(
            "SELECT id FROM webhook_endpoints WHERE (disabled_at IS NOT NULL OR deleted_at IS NOT NULL) \
             AND EXISTS (SELECT 1 FROM webhook_deliveries WHERE endpoint_id = webhook_endpoints.id \
             AND state = 'pending') LIMIT 1",
        );
        self.fetch_optional(query, |row| crate::sql::rows::parsed(row, "id")).await
    }

    async fn cancel_pending(&self, webhook: WebhookId, now: Timestamp) -> Result<u64> {
        let lock = format!(
            "SELECT id FROM webhook_endpoints WHERE id = $1 \
             AND (disabled_at IS NOT NULL OR deleted_at IS NOT NULL) {}",
            self.dialect.to_change()
        );
        in_transaction!(self, Relaxed, async |db| {
            let lock = sqlx::query(AssertSqlSafe(lock.as_str())).bind(webhook.to_string());
            match lock.fetch_optional(&mut *db).await? {
                Some(_) => cancel_pending(db, webhook, now).await,
                None => Ok(0),
            }
        })
    }

    async fn unqueued_deliveries(&self, limit: u32) -> Result<Vec<PendingDelivery>> {
        let query = sqlx::query(
            "SELECT id, next_at FROM webhook_deliveries WHERE state = 'pending' AND queued = 0 \
             ORDER BY id LIMIT $1",
        );
        self.fetch_all(query.bind(i64::from(limit)), rows::pending).await
    }

    async fn mark_queued(&self, ids: &[DeliveryId]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let update = format!(
            "UPDATE webhook_deliveries SET queued = 1 WHERE queued = 0 AND id IN (SELECT value FROM {})",
            self.dialect.each_text("$1")
        );
        let ids = to_json(&ids);
        in_transaction!(self, Relaxed, async |db| {
            sqlx::query(AssertSqlSafe(update.as_str())).bind(ids.as_str()).execute(db).await?;
            Ok(())
        })
    }

    async fn pending_deliveries(
        &self,
        after: Option<DeliveryId>,
        limit: u32,
    ) -> Result<Vec<PendingDelivery>> {
        let query = sqlx::query(
            "SELECT id, next_at FROM webhook_deliveries WHERE state = 'pending' AND id > $1 \
             ORDER BY id LIMIT $2",
        );
        let after = after.map(|id| id.to_string()).unwrap_or_default();
        self.fetch_all(query.bind(after).bind(i64::from(limit)), rows::pending).await
    }

    async fn deliveries_wait(&self) {
        self.pending.notified().await;
    }

    async fn forget_deliveries(&self, ended_before: Timestamp, limit: u32) -> Result<u64> {
        in_transaction!(self, Relaxed, async |db| {
            let mut removed = 0;
            for portion in [
                "SELECT id FROM webhook_deliveries WHERE ended_at < $1 ORDER BY ended_at LIMIT $2",
                "SELECT id FROM webhook_deliveries WHERE CAST($1 AS BIGINT) IS NOT NULL AND endpoint_id IN \
                 (SELECT id FROM webhook_endpoints WHERE deleted_at IS NOT NULL) LIMIT $2",
            ] {
                let sql = format!("DELETE FROM webhook_deliveries WHERE id IN ({portion})");
                let done = sqlx::query(AssertSqlSafe(sql))
                    .bind(ended_before.as_millisecond())
                    .bind(i64::from(limit))
                    .execute(&mut *db)
                    .await?;
                removed += done.rows_affected();
            }
            sqlx::query(
                "DELETE FROM webhook_endpoints WHERE deleted_at IS NOT NULL AND NOT EXISTS \
                 (SELECT 1 FROM webhook_deliveries WHERE endpoint_id = webhook_endpoints.id)",
            )
            .execute(db)
            .await?;
            Ok(removed)
        })
    }
}
