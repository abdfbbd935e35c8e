//! `/api/limits` and `/api/breakers`: rate limits and circuit breakers. Viewers of everybody see them, administrators set them.

use axum::Json;
use axum::extract::State;
use stampede_broker::Rate;
use stampede_wire::queues::{Breaker, Breakers, Done, Limit, Limits};

use crate::app::App;
use crate::auth::{Admin, Overseer};
use crate::body::Body;
use crate::describe::NoContent;
use crate::forms::{Mistakes, Whole, form};
use crate::input::Id;
use crate::problem::Problem;

/// A window longer than this is a mistake.
const LONGEST_WINDOW_MS: u64 = 31 * 24 * 3600 * 1000;
/// Each permit of a window is remembered; more than this is no limit.
const MOST_PERMITS: u64 = 1_000_000;

form! {
    /// `PUT /api/limits/{name}`.
    pub(crate) struct LimitForm {
        /// Permits in one window.
        max: Whole<0, MOST_PERMITS> = "max" required,
        /// The length of the window, in milliseconds.
        per_ms: Whole<1, LONGEST_WINDOW_MS> = "perMs" required,
    }
}

/// The rate limits that were set, by name.
pub(crate) async fn list(State(app): State<App>, _: Overseer) -> Result<Json<Limits>, Problem> {
    let limits = app.broker.limits().all().await?.into_iter();
    let limits = limits.map(|(name, Rate { max, per_ms })| Limit { name, max, per_ms });
    Ok(Json(Limits { limits: limits.collect() }))
}

/// Sets or changes a limit for all processes: `{max, perMs}`. The limit of a queue is called `queue:<name>`.
pub(crate) async fn set(
    State(app): State<App>,
    admin: Admin,
    Id(name): Id<String>,
    Body(form, _held): Body<LimitForm>,
) -> Result<Json<Done>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    for (name, has_value) in [("max", form.max.has_value()), ("perMs", form.per_ms.has_value())] {
        if !has_value {
            mistakes.wrong(name, "is missing");
        }
    }
    let rule = format!("must be a whole number from 0 (nothing at all) to {MOST_PERMITS}");
    let max = mistakes.ruled(form.max, &rule, |Whole(max)| u32::try_from(max).ok());
    let rule = "must be a whole number of milliseconds, at most those of a month";
    let per_ms = mistakes.ruled(form.per_ms, rule, |Whole(ms)| Some(ms));
    let (max, per_ms) = mistakes.finish(max.zip(per_ms))?;
    app.broker.limits().set(&name, Rate { max, per_ms }).await?;
    tracing::info!(user = admin.0.user, limit = name, max, per_ms, "rate limit set");
    Ok(Json(Done { success: true }))
}

/// Removes a limit; a rate that a program sets itself holds again.
pub(crate) async fn remove(
    State(app): State<App>,
    admin: Admin,
    Id(name): Id<String>,
) -> Result<NoContent, Problem> {
    if !app.broker.limits().unset(&name).await? {
        return Err(Problem::not_found("Limit", &name));
    }
    tracing::info!(user = admin.0.user, limit = name, "rate limit lifted");
    Ok(NoContent)
}

/// The circuit breakers that are not closed: their services are not called now.
pub(crate) async fn breakers(
    State(app): State<App>,
    _: Overseer,
) -> Result<Json<Breakers>, Problem> {
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
    Id(name): Id<String>,
) -> Result<NoContent, Problem> {
    if !app.broker.close_breaker(&name).await? {
        return Err(Problem::not_found("Open circuit breaker", &name));
    }
    tracing::info!(user = admin.0.user, service = name, "circuit breaker closed");
    Ok(NoContent)
}
