//! `/api/queues/{name}/schedules`: jobs that come again and again.

use axum::Json;
use axum::extract::State;
use stampede_broker::Schedule;
use stampede_wire::Paged;
use stampede_wire::queues::{Done, Schedule as Shown, Schedules};

use super::jobs::{Attempts, BackoffForm, Description, Number, milliseconds};
use super::{LONGEST_NAME, any, existing, in_turn};
use crate::app::App;
use crate::auth::{Admin, Overseer};
use crate::body::LargeBody;
use crate::describe::NoContent;
use crate::forms::{Given, Mistakes, Payload, Text, Whole, form};
use crate::input::{Id, Ids};
use crate::page::Page;
use crate::problem::Problem;
use crate::query::Params;
use crate::trace::Audited;
use crate::version::{Fresh, IfMatch, IfNoneMatch, Tagged, Version};
use stampede_audit::{Kind, Subject};

/// All schedules of a queue.
pub(crate) async fn list(
    State(app): State<App>,
    _: Overseer,
    Id(name): Id<String>,
    Params(page): Params<Page>,
) -> Result<Json<Paged<Schedules>>, Problem> {
    let schedules: Vec<Shown> = existing(&app, &name).await?.schedules().await?;
    let key = |schedule: &Shown| schedule.key.clone();
    Ok(Json(page.cut(schedules, key, |schedules| Schedules { schedules })))
}

/// One schedule of a queue.
pub(crate) async fn read(
    State(app): State<App>,
    _: Overseer,
    Ids(name, id): Ids<String, String>,
    known: IfNoneMatch,
) -> Result<Fresh<Json<Shown>>, Problem> {
    let schedule = existing(&app, &name).await?.schedule_of::<Shown>(&id).await?;
    let schedule = schedule.ok_or_else(|| Problem::not_found("Schedule", &id))?;
    Ok(known.answer(version(&schedule).showing(&schedule), Json(schedule)))
}

/// The schedule as the audit log names it.
fn subject(queue: &str, id: &str) -> Subject {
    Subject::of(Kind::Schedule, format!("{queue}/{id}"))
}

/// BullMQ keeps no version of a schedule: what was set is its version. Its jobs come by themselves.
fn version(schedule: &Shown) -> Version {
    let set = Shown { iteration_count: 0, next: None, offset: None, ..schedule.clone() };
    Version::of_content(&set)
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
    wanted: IfMatch,
    LargeBody(form, _held): LargeBody<ScheduleForm>,
) -> Result<Audited<Tagged<Json<Done>>>, Problem> {
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
    let queue = any(&app, &name).await?;
    let (noted, set) = in_turn(&app, &format!("schedule {name} {id}"), async {
        let before = queue.schedule_of::<Shown>(&id).await?;
        match &before {
            Some(before) => wanted.check(&version(before))?,
            None => wanted.check_missing()?,
        }
        let noted = admin.begin(&app, subject(&name, &id), &before).await?;
        queue.schedule(&id, &schedule, &job).await?;
        Ok((noted, queue.schedule_of::<Shown>(&id).await?))
    })
    .await?;
    tracing::info!(user = admin.0.user, queue = name, schedule = id, "schedule set");
    let version = set.as_ref().map(version);
    Ok(noted.after(&set).answer(Tagged(version, Json(Done { success: true }))))
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
    wanted: IfMatch,
) -> Result<Audited<NoContent>, Problem> {
    let queue = existing(&app, &name).await?;
    let noted = in_turn(&app, &format!("schedule {name} {id}"), async {
        let before = queue.schedule_of::<Shown>(&id).await?;
        let before = before.ok_or_else(|| Problem::not_found("Schedule", &id))?;
        wanted.check(&version(&before))?;
        let noted = admin.begin(&app, subject(&name, &id), &before).await?;
        queue.unschedule(&id).await?;
        Ok(noted)
    })
    .await?;
    tracing::info!(user = admin.0.user, queue = name, schedule = id, "schedule ended");
    Ok(noted.gone().answer(NoContent))
}
