//! Reads endpoints, deliveries and attempts from rows.

use std::time::Duration;

use sqlx::any::AnyRow;

use crate::sql::rows::{damaged, number, optional_parsed, optional_time, parsed, time, value};
use crate::{
    DeliveryState, Disabled, DisabledReason, PendingDelivery, SealedDelivery, Webhook,
    WebhookAttempt, WebhookDelivery,
};

/// The columns [`webhook`] reads.
pub(super) const WEBHOOK: &str = "id, owner, url, description, kinds, event_id, disabled_reason, \
     disabled_at, former_until, version, failing_since, last_success_at, created_at, updated_at";

/// The columns [`delivery`] reads.
pub(super) const DELIVERY: &str = "id, endpoint_id, message_id, kind, event_id, batch_id, happened_at, data, state, attempts, \
     tries, next_at, last_status, last_error, created_at, ended_at";

/// The columns [`attempt`] reads.
pub(super) const ATTEMPT: &str = "delivery_id AS id, at, duration_ms, status, error, answer";

/// Reads the columns [`WEBHOOK`].
pub(super) fn webhook(row: &AnyRow) -> sqlx::Result<Webhook> {
    let kinds: Option<String> = value(row, "kinds")?;
    Ok(Webhook {
        id: parsed(row, "id")?,
        owner: value(row, "owner")?,
        url: value(row, "url")?,
        description: value(row, "description")?,
        kinds: kinds
            .map(|kinds| serde_json::from_str(&kinds))
            .transpose()
            .map_err(|error| damaged(row, "kinds", error))?,
        event: optional_parsed(row, "event_id")?,
        disabled: disabled(row)?,
        former_until: optional_time(row, "former_until")?,
        version: number(row, "version")?,
        failing_since: optional_time(row, "failing_since")?,
        last_success_at: optional_time(row, "last_success_at")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

fn disabled(row: &AnyRow) -> sqlx::Result<Option<Disabled>> {
    let Some(at) = optional_time(row, "disabled_at")? else { return Ok(None) };
    let word: Option<String> = value(row, "disabled_reason")?;
    let reason = word.as_deref().and_then(DisabledReason::from_word);
    let reason = reason.ok_or_else(|| damaged(row, "disabled_reason", format!("{word:?}")))?;
    Ok(Some(Disabled { reason, at }))
}

/// Reads the columns [`DELIVERY`].
pub(super) fn delivery(row: &AnyRow) -> sqlx::Result<WebhookDelivery> {
    let state: String = value(row, "state")?;
    let last_status = match value::<Option<i64>>(row, "last_status")? {
        Some(_) => Some(number(row, "last_status")?),
        None => None,
    };
    Ok(WebhookDelivery {
        id: parsed(row, "id")?,
        webhook: parsed(row, "endpoint_id")?,
        message: parsed(row, "message_id")?,
        kind: value(row, "kind")?,
        event: optional_parsed(row, "event_id")?,
        batch: optional_parsed(row, "batch_id")?,
        happened_at: time(row, "happened_at")?,
        data: value(row, "data")?,
        state: DeliveryState::from_word(&state)
            .ok_or_else(|| damaged(row, "state", format!("{state:?} is not a state")))?,
        attempts: number(row, "attempts")?,
        tries: number(row, "tries")?,
        next_at: optional_time(row, "next_at")?,
        last_status,
        last_error: value(row, "last_error")?,
        created_at: time(row, "created_at")?,
        ended_at: optional_time(row, "ended_at")?,
    })
}

/// Reads the columns [`DELIVERY`] and those of its endpoint.
pub(super) fn sealed(row: &AnyRow) -> sqlx::Result<SealedDelivery> {
    Ok(SealedDelivery {
        delivery: delivery(row)?,
        webhook: parsed(row, "endpoint_id")?,
        owner: value(row, "owner")?,
        url: value(row, "url")?,
        secret: value(row, "secret")?,
        former_secret: value(row, "former_secret")?,
        former_until: optional_time(row, "former_until")?,
    })
}

/// Reads the columns `id` and `next_at`.
pub(super) fn pending(row: &AnyRow) -> sqlx::Result<PendingDelivery> {
    Ok(PendingDelivery { id: parsed(row, "id")?, next_at: optional_time(row, "next_at")? })
}

/// Reads the columns [`ATTEMPT`].
pub(super) fn attempt(row: &AnyRow) -> sqlx::Result<WebhookAttempt> {
    let status = match value::<Option<i64>>(row, "status")? {
        Some(_) => Some(number(row, "status")?),
        None => None,
    };
    Ok(WebhookAttempt {
        at: time(row, "at")?,
        duration: Duration::from_millis(number(row, "duration_ms")?),
        status,
        error: value(row, "error")?,
        answer: value(row, "answer")?,
    })
}
