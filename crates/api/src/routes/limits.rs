//! `/api/limits` and `/api/breakers`: rate limits and circuit breakers. For administrators only.

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use stampede_broker::Rate;
use stampede_wire::queues::{Breaker, Breakers, Done, Limit, Limits};

use crate::app::App;
use crate::auth::Admin;
use crate::input::{Body, Fields};
use crate::problem::Problem;

/// A window longer than this is a mistake.
const LONGEST_WINDOW_MS: u64 = 31 * 24 * 3600 * 1000;
/// Each permit of a window is remembered; more than this is no limit.
const MOST_PERMITS: u64 = 1_000_000;

/// The rate limits that were set, by name.
pub(crate) async fn list(State(app): State<App>, _: Admin) -> Result<Json<Limits>, Problem> {
    let limits = app.broker.limits().all().await?.into_iter();
    let limits = limits.map(|(name, Rate { max, per_ms })| Limit { name, max, per_ms });
    Ok(Json(Limits { limits: limits.collect() }))
}

/// Sets or changes a limit for all processes: `{max, perMs}`. The limit of a queue is called `queue:<name>`.
pub(crate) async fn set(
    State(app): State<App>,
    admin: Admin,
    Path(name): Path<String>,
    Body(body): Body,
) -> Result<Json<Done>, Problem> {
    let mut fields = Fields::new(&body);
    fields.only(&["max", "perMs"]);
    for name in ["max", "perMs"] {
        if fields.get(name).is_none() {
            fields.wrong(name, "is missing");
        }
    }
    let max = fields.read("max", |value| match value.as_u64() {
        Some(max @ 0..=MOST_PERMITS) => Ok(max as u32),
        _ => Err(format!("must be a whole number from 0 (nothing at all) to {MOST_PERMITS}")),
    });
    let per_ms = fields.read("perMs", |value| match value.as_u64() {
        Some(ms @ 1..=LONGEST_WINDOW_MS) => Ok(ms),
        _ => Err("must be a whole number of milliseconds, at most those of a month"),
    });
    let (max, per_ms) = fields.finish(max.zip(per_ms))?;
    app.broker.limits().set(&name, Rate { max, per_ms }).await?;
    tracing::info!(user = admin.0.user, limit = name, max, per_ms, "rate limit set");
    Ok(Json(Done { success: true }))
}

/// Removes a limit; a rate that a program sets itself holds again.
pub(crate) async fn remove(
    State(app): State<App>,
    admin: Admin,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    if !app.broker.limits().unset(&name).await? {
        return Err(Problem::not_found("Limit"));
    }
    tracing::info!(user = admin.0.user, limit = name, "rate limit lifted");
    Ok(StatusCode::NO_CONTENT)
}

/// The circuit breakers that are not closed: their services are not called now.
pub(crate) async fn breakers(State(app): State<App>, _: Admin) -> Result<Json<Breakers>, Problem> {
    let breakers = app.broker.open_breakers().await?.into_iter().map(|breaker| Breaker {
        name: breaker.name,
        state: breaker.state,
        retry_in_ms: breaker.retry_in_ms,
    });
    Ok(Json(Breakers { breakers: breakers.collect() }))
}

/// Closes a circuit breaker: its service is called again at once.
pub(crate) async fn close_breaker(
    State(app): State<App>,
    admin: Admin,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    if !app.broker.close_breaker(&name).await? {
        return Err(Problem::not_found("Open circuit breaker"));
    }
    tracing::info!(user = admin.0.user, service = name, "circuit breaker closed");
    Ok(StatusCode::NO_CONTENT)
}
