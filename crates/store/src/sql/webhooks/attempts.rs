//! Attempts in SQL: each is recorded together with its effect on the delivery and the endpoint.

use sqlx::{AnyConnection, AssertSqlSafe, Row};
use stampede_model::{DeliveryId, Timestamp, WebhookId};

use super::cancel_pending;
use crate::Durability::{Relaxed, Synced};
use crate::sql::Sql;
use crate::sql::rows::parsed;
use crate::sql::transaction::in_transaction;
use crate::{AttemptResult, DisabledReason, Result, WebhookAttempt};

/// Attempts of one delivery that are kept: the last ones.
const KEPT: i64 = 50;
/// A success that is not much later than the last one is not written: many deliveries share the endpoint's row.
const SUCCESS_EVERY_MS: i64 = 60_000;

impl Sql {
    pub(super) async fn write_attempt(
        &self,
        id: DeliveryId,
        attempt: &WebhookAttempt,
        result: AttemptResult,
    ) -> Result<Option<DisabledReason>> {
        let durability = match result {
            AttemptResult::Delivered | AttemptResult::Retry { .. } => Relaxed,
            AttemptResult::Failed { .. } | AttemptResult::Gone => Synced,
        };
        in_transaction!(self, durability, async |db| {
            let found =
                sqlx::query("SELECT endpoint_id AS id FROM webhook_deliveries WHERE id = $1")
                    .bind(id.to_string())
                    .fetch_optional(&mut *db)
                    .await?;
            let Some(row) = found else { return Ok(None) };
            let webhook: WebhookId = parsed(&row, "id")?;
            let ended = attempt.at + attempt.duration;
            let disabled = note_at_endpoint(&mut *db, webhook, result, ended).await?;
            if let Some(number) = note_at_delivery(&mut *db, id, attempt, result, ended).await? {
                insert_attempt(&mut *db, id, number, attempt).await?;
            }
            if disabled.is_some() {
                cancel_pending(db, webhook, ended).await?;
            }
            Ok(disabled)
        })
    }
}

/// Notes success or failure; returns why the endpoint is disabled by it, if it is.
async fn note_at_endpoint(
    db: &mut AnyConnection,
    webhook: WebhookId,
    result: AttemptResult,
    ended: Timestamp,
) -> sqlx::Result<Option<DisabledReason>> {
    let now = ended.as_millisecond();
    let (reason, failing_before) = match result {
        AttemptResult::Delivered => {
            sqlx::query(
                "UPDATE webhook_endpoints SET failing_since = NULL, last_success_at = $2 WHERE id = $1 \
                 AND (failing_since IS NOT NULL OR last_success_at IS NULL OR last_success_at < $3)",
            )
            .bind(webhook.to_string())
            .bind(now)
            .bind(now - SUCCESS_EVERY_MS)
            .execute(db)
            .await?;
            return Ok(None);
        }
        AttemptResult::Gone => (DisabledReason::Gone, i64::MAX),
        AttemptResult::Retry { give_up_before, .. } | AttemptResult::Failed { give_up_before } => {
            (DisabledReason::Failing, give_up_before.as_millisecond())
        }
    };
    sqlx::query(
        "UPDATE webhook_endpoints SET failing_since = $2 WHERE id = $1 AND failing_since IS NULL",
    )
    .bind(webhook.to_string())
    .bind(now)
    .execute(&mut *db)
    .await?;
    let done = sqlx::query(
        "UPDATE webhook_endpoints SET disabled_reason = $2, disabled_at = $3, version = version + 1, \
         updated_at = CASE WHEN updated_at < $3 THEN CAST($3 AS BIGINT) ELSE updated_at + 1 END \
         WHERE id = $1 AND disabled_at IS NULL AND deleted_at IS NULL AND failing_since <= $4",
    )
    .bind(webhook.to_string())
    .bind(reason.as_str())
    .bind(now)
    .bind(failing_before)
    .execute(db)
    .await?;
    Ok((done.rows_affected() > 0).then_some(reason))
}

/// Writes the state of the delivery; returns the number of the attempt. A delivery that was cancelled meanwhile stays so,
/// unless the endpoint has accepted it.
async fn note_at_delivery(
    db: &mut AnyConnection,
    id: DeliveryId,
    attempt: &WebhookAttempt,
    result: AttemptResult,
    ended: Timestamp,
) -> sqlx::Result<Option<i64>> {
    let (state, from, next_at) = match result {
        AttemptResult::Delivered => ("delivered", "'pending', 'cancelled'", None),
        AttemptResult::Retry { at, .. } => ("pending", "'pending'", Some(at)),
        AttemptResult::Failed { .. } | AttemptResult::Gone => ("failed", "'pending'", None),
    };
    let sql = format!(
        "UPDATE webhook_deliveries SET attempts = attempts + 1, tries = tries + 1, last_status = $2, \
         last_error = $3, \
         next_at = CASE WHEN state IN ({from}) THEN CAST($4 AS BIGINT) ELSE next_at END, \
         ended_at = CASE WHEN state IN ({from}) THEN CAST($5 AS BIGINT) ELSE ended_at END, \
         state = CASE WHEN state IN ({from}) THEN '{state}' ELSE state END \
         WHERE id = $1 RETURNING attempts"
    );
    let ended = (state != "pending").then(|| ended.as_millisecond());
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(id.to_string())
        .bind(attempt.status.map(i64::from))
        .bind(attempt.error.as_deref())
        .bind(next_at.map(Timestamp::as_millisecond))
        .bind(ended)
        .fetch_optional(db)
        .await?;
    row.map(|row| row.try_get("attempts")).transpose()
}

async fn insert_attempt(
    db: &mut AnyConnection,
    id: DeliveryId,
    number: i64,
    attempt: &WebhookAttempt,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO webhook_attempts (delivery_id, number, at, duration_ms, status, error, answer) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(id.to_string())
    .bind(number)
    .bind(attempt.at.as_millisecond())
    .bind(i64::try_from(attempt.duration.as_millis()).unwrap_or(i64::MAX))
    .bind(attempt.status.map(i64::from))
    .bind(attempt.error.as_deref())
    .bind(attempt.answer.as_str())
    .execute(&mut *db)
    .await?;
    sqlx::query("DELETE FROM webhook_attempts WHERE delivery_id = $1 AND number <= $2")
        .bind(id.to_string())
        .bind(number - KEPT)
        .execute(db)
        .await?;
    Ok(())
}
