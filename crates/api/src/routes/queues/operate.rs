//! `/api/queues/{name}/…`: pausing, limiting, retrying, draining and destroying a queue.

use std::convert::Infallible;

use axum::Json;
use axum::extract::State;
use stampede_broker::{Delayed, Queue, WhenActive};
use stampede_model::feed::{Change, QueueData};
use stampede_wire::queues::{BulkResult, Done, Drained, Obliterated};

use super::{LONGEST_NAME, PORTION, Portion, Removal, coming_back, existing, shown};
use crate::app::App;
use crate::auth::Admin;
use crate::body::MaybeBody;
use crate::forms::{Flag, Given, Mistakes, Text, Whole, form};
use crate::input::{Id, Ids};
use crate::problem::{Code, Problem};
use crate::trace::Audited;
use crate::unknown::no_such_action;
use serde_json::json;
use stampede_audit::{Kind, Subject};

/// Most jobs at a time that a request may set.
const MOST_AT_A_TIME: u64 = 1_000_000;

form! {
    /// A request that says everything by its path.
    pub(crate) struct NoFields {}
}

form! {
    /// `POST /api/queues/{name}/concurrency`.
    pub(crate) struct ConcurrencyForm {
        /// Jobs at a time; `null` lifts the limit.
        jobs: Whole<1, MOST_AT_A_TIME> = "jobs",
    }
}

form! {
    /// `POST /api/queues/{name}/drain`.
    pub(crate) struct DrainForm {
        /// Whether delayed jobs are removed, too.
        delayed: Flag = "delayed",
    }
}

form! {
    /// `POST /api/queues/{name}/obliterate`.
    pub(crate) struct ObliterateForm {
        /// The name of the queue once more.
        confirm: Text<LONGEST_NAME> = "confirm" required,
        /// Whether running jobs do not stop it.
        force: Flag = "force",
    }
}

/// Whether a flag is given as true.
pub(super) fn is_set(mistakes: &mut Mistakes, flag: Given<Flag>) -> bool {
    mistakes.value(flag).is_some_and(|Flag(flag)| flag)
}

/// Logs an operation before it happens, because it may break off in the middle.
fn log_intent(admin: &Admin, queue: &str, action: &str) {
    tracing::info!(user = admin.0.user, queue, action, "queue is to be changed");
}

fn log_done(admin: &Admin, queue: &str, action: &str) {
    tracing::info!(user = admin.0.user, queue, action, "queue changed");
}

/// A queue and a request without fields.
async fn without_fields(
    app: &App,
    name: &str,
    MaybeBody(form): &MaybeBody<NoFields>,
) -> Result<Queue, Problem> {
    let queue = existing(app, name).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(form);
    mistakes.finish(Some(queue))
}

/// Workers take no more jobs of the queue.
pub(crate) async fn pause(
    State(app): State<App>,
    admin: Admin,
    Id(name): Id<String>,
    body: MaybeBody<NoFields>,
) -> Result<Audited<Json<Done>>, Problem> {
    let queue = without_fields(&app, &name, &body).await?;
    log_intent(&admin, &name, "pause");
    let before = json!({ "paused": queue.is_paused().await? });
    let noted = admin.begin(&app, Subject::of(Kind::Queue, &name), &before).await?;
    queue.pause().await?;
    log_done(&admin, &name, "pause");
    stampede_feed::publish(&app.broker, Change::QueuePaused(QueueData { queue: name.clone() }))
        .await;
    Ok(noted.after(&json!({ "paused": true })).answer(Json(Done { success: true })))
}

/// Workers take jobs of the queue again.
pub(crate) async fn resume(
    State(app): State<App>,
    admin: Admin,
    Id(name): Id<String>,
    body: MaybeBody<NoFields>,
) -> Result<Audited<Json<Done>>, Problem> {
    let queue = without_fields(&app, &name, &body).await?;
    log_intent(&admin, &name, "resume");
    let before = json!({ "paused": queue.is_paused().await? });
    let noted = admin.begin(&app, Subject::of(Kind::Queue, &name), &before).await?;
    queue.resume().await?;
    log_done(&admin, &name, "resume");
    stampede_feed::publish(&app.broker, Change::QueueResumed(QueueData { queue: name.clone() }))
        .await;
    Ok(noted.after(&json!({ "paused": false })).answer(Json(Done { success: true })))
}

/// Limits the jobs that run at a time over all workers: `{jobs}`, `null` lifts the limit.
pub(crate) async fn concurrency(
    State(app): State<App>,
    admin: Admin,
    Id(name): Id<String>,
    MaybeBody(form): MaybeBody<ConcurrencyForm>,
) -> Result<Audited<Json<Done>>, Problem> {
    let queue = existing(&app, &name).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    if !form.jobs.is_named() && mistakes.count() == 0 {
        mistakes.wrong("jobs", "is missing; null lifts the limit");
    }
    let rule = "must be a whole number, at least 1; null lifts the limit";
    let jobs = mistakes.ruled(form.jobs, rule, |Whole(jobs)| Some(jobs));
    let jobs = mistakes.finish(Some(jobs))?;
    log_intent(&admin, &name, "concurrency");
    let before = json!({ "concurrency": queue.global_concurrency().await? });
    let noted = admin.begin(&app, Subject::of(Kind::Queue, &name), &before).await?;
    queue.set_global_concurrency(jobs).await?;
    log_done(&admin, &name, "concurrency");
    Ok(noted.after(&json!({ "concurrency": jobs })).answer(Json(Done { success: true })))
}

/// Retries all failed jobs, the oldest 10,000 in one request.
pub(crate) async fn retry(
    State(app): State<App>,
    admin: Admin,
    Id(name): Id<String>,
    body: MaybeBody<NoFields>,
) -> Result<Audited<Json<BulkResult>>, Problem> {
    let queue = without_fields(&app, &name, &body).await?;
    log_intent(&admin, &name, "retry");
    let noted = admin.begin_new(&app, Subject::of(Kind::Queue, &name)).await?;
    let retried = queue.retry_all().await?;
    let left = queue.counts().await?.failed;
    log_done(&admin, &name, "retry");
    let result = shown::bulk(retried, left);
    Ok(noted.after(&result).answer(Json(result)))
}

/// Removes waiting jobs, at most 10,000 in one request: `{delayed: true}` removes delayed ones too.
pub(crate) async fn drain(
    State(app): State<App>,
    admin: Admin,
    Id(name): Id<String>,
    MaybeBody(form): MaybeBody<DrainForm>,
) -> Result<Audited<Json<Drained>>, Problem> {
    let queue = existing(&app, &name).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let delayed = if is_set(&mut mistakes, form.delayed) { Delayed::Too } else { Delayed::Keep };
    let delayed = mistakes.finish(Some(delayed))?;
    log_intent(&admin, &name, "drain");
    let noted = admin.begin_new(&app, Subject::of(Kind::Queue, &name)).await?;
    let drain = Removal::Drain(&queue, delayed);
    let (removed, has_more) = Portion::new().work(usize::MAX, drain).await?;
    let left = if has_more { queue.drainable(delayed).await? as u64 } else { 0 };
    let removed = removed as u64;
    log_done(&admin, &name, "drain");
    let note = coming_back::note_of_all(&app, &name);
    let drained = Drained { success: true, removed, left, note };
    Ok(noted.after(&drained).answer(Json(drained)))
}

/// Destroys a queue, at most 10,000 jobs in one request: `{confirm: <name>}`, and `{force: true}` if jobs run.
pub(crate) async fn obliterate(
    State(app): State<App>,
    admin: Admin,
    Id(name): Id<String>,
    MaybeBody(form): MaybeBody<ObliterateForm>,
) -> Result<Audited<Json<Obliterated>>, Problem> {
    let queue = existing(&app, &name).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let force = is_set(&mut mistakes, form.force);
    let when = if force { WhenActive::Destroy } else { WhenActive::Refuse };
    let when = mistakes.finish(Some(when))?;
    // It cannot be undone, so the request has to name the queue.
    if form.confirm.value().is_none_or(|Text(confirmed)| *confirmed != name) {
        let detail = format!(
            "this destroys queue {name} with everything in it; send {{\"confirm\": \"{name}\"}} if you mean it"
        );
        return Err(Problem::new(Code::NotConfirmed, detail));
    }
    log_intent(&admin, &name, "obliterate");
    let noted = admin.begin_new(&app, Subject::of(Kind::Queue, &name)).await?;
    let left = queue.obliterate_some(when, PORTION).await? as u64;
    log_done(&admin, &name, "obliterate");
    let note = coming_back::note_of_all(&app, &name);
    Ok(noted.gone().answer(Json(Obliterated { success: true, left, note })))
}

/// Refuses an action that queues do not have.
pub(crate) async fn unknown(
    State(app): State<App>,
    _: Admin,
    Ids(name, action): Ids<String, String>,
) -> Result<Infallible, Problem> {
    existing(&app, &name).await?;
    let known = ["pause", "resume", "concurrency", "retry", "drain", "obliterate"];
    Err(no_such_action(&action, &known))
}
