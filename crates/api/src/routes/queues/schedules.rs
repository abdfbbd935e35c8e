//! `/api/queues/{name}/schedules`: jobs that come again and again.

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use stampede_broker::Schedule;
use stampede_wire::queues::{Done, Schedules};

use super::{any, existing, jobs};
use crate::app::App;
use crate::auth::Admin;
use crate::input::{Body, Fields, as_text};
use crate::problem::Problem;

/// All schedules of a queue.
pub(crate) async fn list(
    State(app): State<App>,
    _: Admin,
    Path(name): Path<String>,
) -> Result<Json<Schedules>, Problem> {
    let schedules = existing(&app, &name).await?.schedules().await?;
    Ok(Json(Schedules { schedules }))
}

/// Adds a schedule or changes it: `{cron, timeZone?}` or `{everyMs}`, and the description of its jobs.
pub(crate) async fn set(
    State(app): State<App>,
    admin: Admin,
    Path((name, id)): Path<(String, String)>,
    Body(body): Body,
) -> Result<Json<Done>, Problem> {
    let mut fields = Fields::new(&body);
    fields
        .only(&["cron", "timeZone", "everyMs", "name", "data", "priority", "attempts", "backoff"]);
    let schedule = schedule(&mut fields);
    let job = jobs::spec(&mut fields);
    let (schedule, job) = fields.finish(schedule.zip(job))?;
    any(&app, &name).await?.schedule(&id, &schedule, &job).await?;
    tracing::info!(user = admin.0.user, queue = name, schedule = id, "schedule set");
    Ok(Json(Done { success: true }))
}

fn schedule(fields: &mut Fields<'_>) -> Option<Schedule> {
    let pattern = fields.read("cron", |value| as_text(value).map(str::to_owned));
    let time_zone = fields.read("timeZone", |value| as_text(value).map(str::to_owned));
    let every = jobs::milliseconds(fields, "everyMs");
    match (pattern, every) {
        (Some(pattern), None) => Some(Schedule::Cron { pattern, time_zone }),
        (None, Some(every)) => {
            if time_zone.is_some() {
                fields.wrong("timeZone", "goes with cron; an interval is the same everywhere");
            }
            Some(Schedule::Every(every))
        }
        _ if fields.mistakes() > 0 => None,
        _ => {
            fields.wrong("cron", "or everyMs: one of them says when its jobs come");
            None
        }
    }
}

/// Ends a schedule.
pub(crate) async fn remove(
    State(app): State<App>,
    admin: Admin,
    Path((name, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    if !existing(&app, &name).await?.unschedule(&id).await? {
        return Err(Problem::not_found("Schedule"));
    }
    tracing::info!(user = admin.0.user, queue = name, schedule = id, "schedule ended");
    Ok(StatusCode::NO_CONTENT)
}
