//! `/api/queues/{name}/schedules`: jobs that come again and again.

use axum::Json;
use axum::extract::State;
use stampede_broker::Schedule;
use stampede_wire::queues::{Done, Schedules};

use super::jobs::{Attempts, BackoffForm, Description, Number, milliseconds};
use super::{LONGEST_NAME, any, existing};
use crate::app::App;
use crate::auth::{Admin, Overseer};
use crate::body::LargeBody;
use crate::describe::NoContent;
use crate::forms::{Given, Mistakes, Payload, Text, Whole, form};
use crate::input::{Id, Ids};
use crate::problem::Problem;

/// All schedules of a queue.
pub(crate) async fn list(
    State(app): State<App>,
    _: Overseer,
    Id(name): Id<String>,
) -> Result<Json<Schedules>, Problem> {
    let schedules = existing(&app, &name).await?.schedules().await?;
    Ok(Json(Schedules { schedules }))
}

form! {
    /// `PUT /api/queues/{name}/schedules/{id}`.
    pub(crate) struct ScheduleForm {
        /// When its jobs come, as a cron pattern.
        cron: Text<1_000> = "cron",
        /// The zone of the pattern.
        time_zone: Text<200> = "timeZone",
        /// The pause between two of its jobs, in milliseconds; or `cron`.
        every_ms: Whole = "everyMs",
        /// The type of its jobs.
        name: Text<LONGEST_NAME> = "name" required,
        /// Their payload.
        data: Payload = "data",
        /// Their priority.
        priority: Number = "priority",
        /// Their attempts.
        attempts: Attempts = "attempts",
        /// The pause between attempts.
        backoff: BackoffForm = "backoff",
    }
}

/// Adds a schedule or changes it: `{cron, timeZone?}` or `{everyMs}`, and the description of its jobs.
pub(crate) async fn set(
    State(app): State<App>,
    admin: Admin,
    Ids(name, id): Ids<String, String>,
    LargeBody(form, _held): LargeBody<ScheduleForm>,
) -> Result<Json<Done>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let schedule = schedule(&mut mistakes, form.cron, form.time_zone, form.every_ms);
    let description = Description {
        name: form.name,
        data: form.data,
        priority: form.priority,
        attempts: form.attempts,
        backoff: form.backoff,
    };
    let job = description.spec(&mut mistakes);
    let (schedule, job) = mistakes.finish(schedule.map(|schedule| (schedule, job)))?;
    any(&app, &name).await?.schedule(&id, &schedule, &job).await?;
    tracing::info!(user = admin.0.user, queue = name, schedule = id, "schedule set");
    Ok(Json(Done { success: true }))
}

fn schedule(
    mistakes: &mut Mistakes,
    cron: Given<Text<1_000>>,
    time_zone: Given<Text<200>>,
    every: Given<Whole>,
) -> Option<Schedule> {
    let pattern = mistakes.value(cron).map(|Text(pattern)| pattern);
    let time_zone = mistakes.value(time_zone).map(|Text(zone)| zone);
    let every = milliseconds(mistakes, every);
    match (pattern, every) {
        (Some(pattern), None) => Some(Schedule::Cron { pattern, time_zone }),
        (None, Some(every)) => {
            if time_zone.is_some() {
                mistakes.wrong("timeZone", "goes with cron; an interval is the same everywhere");
            }
            Some(Schedule::Every(every))
        }
        _ if mistakes.count() > 0 => None,
        _ => {
            mistakes.wrong("cron", "or everyMs: one of them says when its jobs come");
            None
        }
    }
}

/// Ends a schedule.
pub(crate) async fn remove(
    State(app): State<App>,
    admin: Admin,
    Ids(name, id): Ids<String, String>,
) -> Result<NoContent, Problem> {
    if !existing(&app, &name).await?.unschedule(&id).await? {
        return Err(Problem::not_found("Schedule", &id));
    }
    tracing::info!(user = admin.0.user, queue = name, schedule = id, "schedule ended");
    Ok(NoContent)
}
