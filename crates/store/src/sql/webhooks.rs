//! Webhooks in SQL: their endpoints. Deliveries are in `deliveries.rs`, attempts in `attempts.rs`, and the step from the
//! outbox to deliveries in `fan_out.rs`.
//!
//! Every transaction locks an endpoint before its deliveries.

mod attempts;
mod deliveries;
mod fan_out;
mod rows;

use async_trait::async_trait;
use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::{Timestamp, WebhookId};

use super::Sql;
use super::page::to_json;
use super::slices;
use super::ticket_secret::check_secret;
use super::transaction::in_transaction;
use crate::Durability::Synced;
use crate::vault::Vault;
use crate::{
    DisabledReason, Result, Slice, Versioned, Webhook, WebhookFilter, WebhookWritten, Webhooks,
};

/// Pending deliveries that one transaction cancels.
const CANCELLED_AT_ONCE: i64 = 500;

#[async_trait]
impl Webhooks for Sql {
    async fn insert_webhook(
        &self,
        webhook: &Webhook,
        secret: &[u8],
        most: u32,
        vault: &Vault,
    ) -> Result<WebhookWritten> {
        // Two requests that make the last endpoint that is allowed wait for each other.
        let lock = format!(
            "SELECT id FROM webhook_endpoints WHERE owner = $1 AND deleted_at IS NULL ORDER BY id {}",
            self.dialect.to_change()
        );
        let sealed = vault.seal_webhook_secret(webhook.id, secret);
        in_transaction!(self, Synced, async |db| {
            check_secret(&mut *db, vault).await?;
            let lock = sqlx::query(AssertSqlSafe(lock.as_str())).bind(webhook.owner.as_str());
            lock.fetch_all(&mut *db).await?;
            if count(&mut *db, &webhook.owner).await? >= i64::from(most) {
                return Ok(WebhookWritten::TooMany);
            }
            insert(db, webhook, &sealed).await?;
            Ok(WebhookWritten::Done)
        })
    }

    async fn webhook(&self, id: WebhookId) -> Result<Option<Webhook>> {
        let sql = format!(
            "SELECT {} FROM webhook_endpoints WHERE id = $1 AND deleted_at IS NULL",
            rows::WEBHOOK
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_string());
        self.fetch_optional(query, rows::webhook).await
    }

    async fn webhooks(
        &self,
        filter: &WebhookFilter,
        slice: &Slice<WebhookId>,
    ) -> Result<Vec<Webhook>> {
        let mut sql =
            format!("SELECT {} FROM webhook_endpoints WHERE deleted_at IS NULL", rows::WEBHOOK);
        let mut conditions = Vec::new();
        conditions.extend(filter.owner.clone().map(|owner| ("owner =", owner)));
        conditions.extend(filter.event.map(|id| ("event_id =", id.to_string())));
        conditions.extend(slices::conditions(slice));
        for (index, (condition, _)) in conditions.iter().enumerate() {
            sql += &format!(" AND {condition} ${}", index + 2);
        }
        sql += match filter.is_active {
            Some(true) => " AND disabled_at IS NULL",
            Some(false) => " AND disabled_at IS NOT NULL",
            None => "",
        };
        sql += &format!(" ORDER BY {} LIMIT $1", slices::order(slice));
        let mut query = sqlx::query(AssertSqlSafe(sql)).bind(i64::from(slice.limit));
        for (_, value) in conditions {
            query = query.bind(value);
        }
        self.fetch_all(query, rows::webhook).await
    }

    async fn update_webhook(&self, webhook: &Webhook, seen: u32) -> Result<bool> {
        let update = format!(
            "UPDATE webhook_endpoints SET url = $2, description = $3, kinds = $4, \
             disabled_reason = $5, disabled_at = $6, version = version + 1, \
             failing_since = CASE WHEN disabled_at IS NOT NULL AND CAST($6 AS BIGINT) IS NULL THEN NULL ELSE failing_since END, \
             updated_at = {} WHERE id = $1 AND version = $8 AND deleted_at IS NULL",
            self.dialect.later("$7", "updated_at")
        );
        let disabled = webhook.disabled.as_ref();
        in_transaction!(self, Synced, async |db| {
            let done = sqlx::query(AssertSqlSafe(update.as_str()))
                .bind(webhook.id.to_string())
                .bind(webhook.url.as_str())
                .bind(webhook.description.as_str())
                .bind(webhook.kinds.as_ref().map(to_json))
                .bind(disabled.map(|disabled| disabled.reason.as_str()))
                .bind(disabled.map(|disabled| disabled.at.as_millisecond()))
                .bind(webhook.updated_at.as_millisecond())
                .bind(i64::from(seen))
                .execute(&mut *db)
                .await?;
            if done.rows_affected() == 0 {
                return Ok(false);
            }
            if disabled.is_some() {
                cancel_pending(db, webhook.id, webhook.updated_at).await?;
            }
            Ok(true)
        })
    }

    async fn rotate_webhook(
        &self,
        id: WebhookId,
        secret: &[u8],
        former_until: Option<Timestamp>,
        now: Timestamp,
        vault: &Vault,
    ) -> Result<bool> {
        let sealed = vault.seal_webhook_secret(id, secret);
        let update = format!(
            "UPDATE webhook_endpoints SET \
             former_secret = CASE WHEN CAST($3 AS BIGINT) IS NULL OR disabled_reason = 'secret_lost' THEN NULL \
             ELSE secret END, \
             former_until = CASE WHEN disabled_reason = 'secret_lost' THEN NULL ELSE CAST($3 AS BIGINT) END, \
             disabled_reason = CASE WHEN disabled_reason = 'secret_lost' THEN 'by_hand' ELSE disabled_reason END, \
             secret = $2, version = version + 1, updated_at = {} WHERE id = $1 AND deleted_at IS NULL",
            self.dialect.later("$4", "updated_at")
        );
        in_transaction!(self, Synced, async |db| {
            check_secret(&mut *db, vault).await?;
            let done = sqlx::query(AssertSqlSafe(update.as_str()))
                .bind(id.to_string())
                .bind(sealed.as_str())
                .bind(former_until.map(Timestamp::as_millisecond))
                .bind(now.as_millisecond())
                .execute(db)
                .await?;
            Ok(done.rows_affected() > 0)
        })
    }

    async fn delete_webhook_as_seen(
        &self,
        id: WebhookId,
        seen: Option<u32>,
        now: Timestamp,
    ) -> Result<Versioned<()>> {
        let find = format!(
            "SELECT version FROM webhook_endpoints WHERE id = $1 AND deleted_at IS NULL {}",
            self.dialect.to_change()
        );
        in_transaction!(self, Synced, async |db| {
            let found = sqlx::query(AssertSqlSafe(find.as_str()))
                .bind(id.to_string())
                .fetch_optional(&mut *db)
                .await?;
            let Some(found) = found else { return Ok(Versioned::NotFound) };
            let version: i64 = sqlx::Row::try_get(&found, "version")?;
            if seen.is_some_and(|seen| i64::from(seen) != version) {
                return Ok(Versioned::ChangedMeanwhile);
            }
            // The secret goes at once; the rest when its deliveries are removed.
            let done = sqlx::query(
                "UPDATE webhook_endpoints SET deleted_at = $2, secret = '', former_secret = NULL \
                 WHERE id = $1 AND deleted_at IS NULL",
            )
            .bind(id.to_string())
            .bind(now.as_millisecond())
            .execute(&mut *db)
            .await?;
            if done.rows_affected() == 0 {
                return Ok(Versioned::NotFound);
            }
            cancel_pending(db, id, now).await?;
            Ok(Versioned::Done(()))
        })
    }

    async fn disable_all_webhooks(&self, now: Timestamp) -> Result<u64> {
        in_transaction!(self, Synced, async |db| {
            // Those that were disabled before, too: they must not become active with a secret that is lost.
            let done = sqlx::query(
                "UPDATE webhook_endpoints SET disabled_reason = $1, \
                 disabled_at = COALESCE(disabled_at, CAST($2 AS BIGINT)), former_secret = NULL, \
                 former_until = NULL, version = version + 1 WHERE deleted_at IS NULL",
            )
            .bind(DisabledReason::SecretLost.as_str())
            .bind(now.as_millisecond())
            .execute(&mut *db)
            .await?;
            sqlx::query(
                "UPDATE webhook_deliveries SET state = 'cancelled', next_at = NULL, ended_at = $1 \
                 WHERE state = 'pending'",
            )
            .bind(now.as_millisecond())
            .execute(db)
            .await?;
            Ok(done.rows_affected())
        })
    }
}

/// The number of endpoints that a user has.
async fn count(db: &mut AnyConnection, owner: &str) -> sqlx::Result<i64> {
    let count = sqlx::query(
        "SELECT COUNT(*) AS endpoints FROM webhook_endpoints WHERE owner = $1 AND deleted_at IS NULL",
    );
    sqlx::Row::try_get(&count.bind(owner).fetch_one(db).await?, "endpoints")
}

async fn insert(db: &mut AnyConnection, webhook: &Webhook, sealed: &str) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO webhook_endpoints (id, owner, url, description, kinds, event_id, secret, version, \
         created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(webhook.id.to_string())
    .bind(webhook.owner.as_str())
    .bind(webhook.url.as_str())
    .bind(webhook.description.as_str())
    .bind(webhook.kinds.as_ref().map(to_json))
    .bind(webhook.event.map(|id| id.to_string()))
    .bind(sealed)
    .bind(i64::from(webhook.version))
    .bind(webhook.created_at.as_millisecond())
    .bind(webhook.updated_at.as_millisecond())
    .execute(db)
    .await?;
    Ok(())
}

/// Cancels a portion of the pending deliveries of an endpoint that is locked and gets nothing any more; returns how many. The
/// dispatcher cancels the rest ([`WebhookDeliveries::cancel_pending`](crate::WebhookDeliveries::cancel_pending)): no transaction
/// is as long as a backlog.
async fn cancel_pending(
    db: &mut AnyConnection,
    webhook: WebhookId,
    now: Timestamp,
) -> sqlx::Result<u64> {
    let done = sqlx::query(
        "UPDATE webhook_deliveries SET state = 'cancelled', next_at = NULL, ended_at = $2 \
         WHERE id IN (SELECT id FROM webhook_deliveries WHERE endpoint_id = $1 AND state = 'pending' \
         ORDER BY id LIMIT $3)",
    )
    .bind(webhook.to_string())
    .bind(now.as_millisecond())
    .bind(CANCELLED_AT_ONCE)
    .execute(db)
    .await?;
    Ok(done.rows_affected())
}
