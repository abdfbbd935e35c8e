//! `GET /api/batches/{id}`: how far an order is.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use stampede_model::{BatchId, Timestamp};

use crate::app::App;
use crate::auth::Caller;
use crate::input::Id;
use crate::problem::Problem;

/// Batches up to this size list their tickets; larger ones say where to page through them.
const LISTED_TICKETS: u64 = 1_000;
/// The queue's counts are left out when Redis takes longer.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<BatchId>,
) -> Result<Json<Value>, Problem> {
    let batch = app.store.batch(id).await?.ok_or_else(|| Problem::not_found("Batch"))?;
    caller.must_read(&batch.owner)?;
    let now = Timestamp::now();
    let counts = tokio::time::timeout(PATIENCE, app.tickets.counts()).await;
    let mut body = json!({
        "id": batch.id,
        "eventId": batch.event_id,
        "userId": batch.owner,
        "total": batch.total,
        "completed": batch.completed,
        "failed": batch.failed,
        "voided": batch.voided,
        "pending": batch.pending(),
        "status": batch.status(),
        "ratePerSecond": (batch.rate_per_s(now) * 10.0).round() / 10.0,
        "secondsLeft": batch.seconds_left(now).map(|seconds| (seconds * 10.0).round() / 10.0),
        "createdAt": batch.created_at.as_millisecond(),
        "updatedAt": batch.updated_at.as_millisecond(),
        "queueStats": counts.ok().and_then(Result::ok),
        "ticketsUrl": format!("/api/tickets?batch={}", batch.id),
    });
    if batch.total <= LISTED_TICKETS {
        body["tickets"] = json!(app.store.batch_ticket_ids(id).await?);
    }
    Ok(Json(body))
}
