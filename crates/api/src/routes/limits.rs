//! `/api/limits` and `/api/breakers`: rate limits and circuit breakers. Viewers of everybody see them, administrators set them.

use axum::Json;
use axum::extract::State;
use stampede_broker::Rate;
use stampede_wire::Paged;
use stampede_wire::queues::{Breaker, Breakers, Done, Limit, Limits};

use crate::app::App;
use crate::auth::{Admin, Overseer};
use crate::body::Body;
use crate::describe::NoContent;
use crate::forms::{Mistakes, Whole, form};
use crate::input::Id;
use crate::page::Page;
use crate::problem::Problem;
use crate::query::Params;
use crate::routes::queues::in_turn;
use crate::trace::Audited;
use crate::version::{Fresh, IfMatch, IfNoneMatch, Tagged, Version};
use stampede_audit::{Kind, Subject};

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
pub(crate) async fn list(
    State(app): State<App>,
    _: Overseer,
    Params(page): Params<Page>,
) -> Result<Json<Paged<Limits>>, Problem> {
    let limits = app.broker.limits().all().await?.into_iter();
    let limits = limits.map(|(name, rate)| shown(name, rate)).collect();
    let name = |limit: &Limit| limit.name.clone();
    Ok(Json(page.cut(limits, name, |limits| Limits { limits })))
}

/// Sets or changes a limit for all processes: `{max, perMs}`. The limit of a queue is called `queue:<name>`.
pub(crate) async fn set(
    State(app): State<App>,
    admin: Admin,
    Id(name): Id<String>,
    wanted: IfMatch,
    Body(form, _held): Body<LimitForm>,
) -> Result<Audited<Tagged<Json<Done>>>, Problem> {
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
    let rate = Rate { max, per_ms };
    let noted = in_turn(&app, &format!("limit {name}"), async {
        let before = app.broker.limits().get(&name).await?;
        match before {
            Some(before) => wanted.check(&version(&name, before))?,
            None => wanted.check_missing()?,
        }
        let before = before.map(|rate| shown(name.clone(), rate));
        let noted = admin.begin(&app, Subject::of(Kind::Limit, &name), &before).await?;
        app.broker.limits().set(&name, rate).await?;
        Ok(noted)
    })
    .await?;
    tracing::info!(user = admin.0.user, limit = name, max, per_ms, "rate limit set");
    let version = version(&name, rate);
    let made = noted.after(&shown(name, rate));
    Ok(made.answer(Tagged::new(version, Json(Done { success: true }))))
}

/// A rate limit.
pub(crate) async fn read(
    State(app): State<App>,
    _: Overseer,
    Id(name): Id<String>,
    known: IfNoneMatch,
) -> Result<Fresh<Json<Limit>>, Problem> {
    let rate = app.broker.limits().get(&name).await?;
    let rate = rate.ok_or_else(|| Problem::not_found("Limit", &name))?;
    Ok(known.answer(version(&name, rate), Json(shown(name, rate))))
}

fn shown(name: String, Rate { max, per_ms }: Rate) -> Limit {
    Limit { name, max, per_ms }
}

/// Redis keeps no version of a limit: its content is its version.
fn version(name: &str, rate: Rate) -> Version {
    Version::of_content(&shown(name.to_owned(), rate))
}

/// Removes a limit; a rate that a program sets itself holds again.
pub(crate) async fn remove(
    State(app): State<App>,
    admin: Admin,
    Id(name): Id<String>,
    wanted: IfMatch,
) -> Result<Audited<NoContent>, Problem> {
    let noted = in_turn(&app, &format!("limit {name}"), async {
        let before = app.broker.limits().get(&name).await?;
        let before = before.ok_or_else(|| Problem::not_found("Limit", &name))?;
        wanted.check(&version(&name, before))?;
        let before = shown(name.clone(), before);
        let noted = admin.begin(&app, Subject::of(Kind::Limit, &name), &before).await?;
        app.broker.limits().unset(&name).await?;
        Ok(noted)
    })
    .await?;
    tracing::info!(user = admin.0.user, limit = name, "rate limit lifted");
    Ok(noted.gone().answer(NoContent))
}

/// The circuit breakers that are not closed: their services are not called now.
pub(crate) async fn breakers(
    State(app): State<App>,
    _: Overseer,
    Params(page): Params<Page>,
) -> Result<Json<Paged<Breakers>>, Problem> {
    let breakers = app.broker.open_breakers().await?.into_iter().map(|breaker| Breaker {
        name: breaker.name,
        state: breaker.state,
        retry_in_ms: breaker.retry_in_ms,
    });
    let name = |breaker: &Breaker| breaker.name.clone();
    Ok(Json(page.cut(breakers.collect(), name, |breakers| Breakers { breakers })))
}

/// Closes a circuit breaker: its service is called again at once.
pub(crate) async fn close_breaker(
    State(app): State<App>,
    admin: Admin,
    Id(name): Id<String>,
) -> Result<Audited<NoContent>, Problem> {
    let noted = admin.begin_new(&app, Subject::of(Kind::Breaker, &name)).await?;
    if !app.broker.close_breaker(&name).await? {
        return Err(Problem::not_found("Open circuit breaker", &name));
    }
    tracing::info!(user = admin.0.user, service = name, "circuit breaker closed");
    Ok(noted.gone().answer(NoContent))
}
