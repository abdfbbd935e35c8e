//! `/api/limits` and `/api/breakers`: what holds jobs back. For administrators only.

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use serde_json::{Value, json};
use stampede_broker::Rate;

use crate::app::App;
use crate::auth::Caller;
use crate::input::{Body, Fields};
use crate::problem::Problem;

/// A window longer than this is a mistake.
const LONGEST_WINDOW_MS: u64 = 31 * 24 * 3600 * 1000;
/// Each permit of a window is remembered; more than this is no limit.
const MOST_PERMITS: u64 = 1_000_000;

/// The rate limits that were set, by name.
pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let limits = app.broker.limits().all().await?;
    let shown = limits
        .into_iter()
        .map(|(name, rate)| json!({ "name": name, "max": rate.max, "perMs": rate.per_ms }));
    Ok(Json(json!({ "limits": shown.collect::<Vec<_>>() })))
}

/// Sets a limit or changes it, for everybody and from now on: `{max, perMs}`. That of a queue is called
/// `queue:<name>`.
pub(crate) async fn set(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Body(body): Body,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
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
    tracing::info!(user = caller.0.user, limit = name, max, per_ms, "rate limit set");
    Ok(Json(json!({ "success": true })))
}

/// Lifts a limit; rates that are written in the program hold again.
pub(crate) async fn remove(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.must_administer()?;
    if !app.broker.limits().unset(&name).await? {
        return Err(Problem::not_found("Limit"));
    }
    tracing::info!(user = caller.0.user, limit = name, "rate limit lifted");
    Ok(StatusCode::NO_CONTENT)
}

/// The outside services that are not called now.
pub(crate) async fn breakers(
    State(app): State<App>,
    caller: Caller,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    Ok(Json(json!({ "breakers": app.broker.open_breakers().await? })))
}

/// Lets a service be called again at once.
pub(crate) async fn close_breaker(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.must_administer()?;
    if !app.broker.close_breaker(&name).await? {
        return Err(Problem::not_found("Open circuit breaker"));
    }
    tracing::info!(user = caller.0.user, service = name, "circuit breaker closed");
    Ok(StatusCode::NO_CONTENT)
}
