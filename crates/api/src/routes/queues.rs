//! `/api/queues`: looking into the queues and tidying them up. For administrators only: a queue holds
//! the work of all owners.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use stampede_broker::{
    Cancelled, Delayed, Error, JobView, Letters, Queue, State as JobState, WhenActive,
};

use crate::app::App;
use crate::auth::Caller;
use crate::input::{Body, Fields, MaybeBody, Params};
use crate::problem::Problem;

/// Active jobs that the overview shows of each queue.
const SHOWN_ACTIVE: usize = 10;
/// Jobs in one answer, if the request does not say and at most.
const PAGE: (usize, usize) = (50, 500);
/// Jobs that one request cleans up, if it does not say and at most.
const CLEANED: (u64, u64) = (10_000, 1_000_000);

/// What seed 003 shows: counts and active jobs, by queue.
pub(crate) async fn status(State(app): State<App>, caller: Caller) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let mut answer = Map::new();
    for name in app.broker.queue_names().await? {
        let queue = app.broker.queue(&name).await?;
        let mut shown = json!(queue.counts().await?);
        shown["paused"] = json!(queue.is_paused().await?);
        let active = queue.jobs(JobState::Active, 0, SHOWN_ACTIVE).await?;
        let active: Vec<Value> = active.iter().map(shown_active).collect();
        shown["activeJobs"] = json!(active);
        answer.insert(name, shown);
    }
    Ok(Json(answer.into()))
}

fn shown_active(job: &JobView) -> Value {
    json!({
        "id": job.id, "name": job.name, "data": job.data, "progress": job.progress,
        "attemptsMade": job.attempts_made, "processedBy": job.processed_by,
    })
}

/// Removes ended jobs: `{queue?, state?, graceMs?, limit?}`. Without a body like seed 003's: the failed
/// ones of all queues.
pub(crate) async fn clean(
    State(app): State<App>,
    caller: Caller,
    MaybeBody(body): MaybeBody,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let mut fields = Fields::new(&body);
    let states = [JobState::Failed, JobState::Completed, JobState::Waiting, JobState::Delayed];
    let state = fields.read("state", |value| {
        let state = value.as_str().and_then(JobState::parse);
        state
            .filter(|state| states.contains(state))
            .ok_or("must be failed, completed, waiting or delayed")
    });
    let whole = |value: &Value| value.as_u64().ok_or("must be a whole number");
    let grace_ms = fields.read("graceMs", whole).unwrap_or(0);
    let limit = fields.read("limit", whole).unwrap_or(CLEANED.0).min(CLEANED.1);
    let queue = fields.read("queue", |value| {
        value.as_str().ok_or("must be the name of a queue").map(str::to_owned)
    });
    fields.finish(Some(()))?;
    let names = match queue {
        Some(name) => vec![existing(&app, &name).await?.name().to_owned()],
        // Dead letters are not ended jobs: they wait for somebody to look at them.
        None => app
            .broker
            .queue_names()
            .await?
            .into_iter()
            .filter(|name| !name.ends_with("-dlq"))
            .collect(),
    };
    let mut removed = BTreeMap::new();
    for name in names {
        let queue = app.broker.queue(&name).await?;
        let state = state.unwrap_or(JobState::Failed);
        let gone = queue.clean(state, Duration::from_millis(grace_ms), limit as u32).await?;
        removed.insert(name, gone.len());
    }
    tracing::info!(user = caller.0.user, ?removed, "queues cleaned");
    Ok(Json(json!({ "success": true, "removed": removed })))
}

/// `pause`, `resume`, `drain` or `obliterate`.
pub(crate) async fn change(
    State(app): State<App>,
    caller: Caller,
    Path((name, verb)): Path<(String, String)>,
    MaybeBody(body): MaybeBody,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let queue = existing(&app, &name).await?;
    let flag = |name: &str| body.get(name).and_then(Value::as_bool).unwrap_or(false);
    match verb.as_str() {
        "pause" => queue.pause().await?,
        "resume" => queue.resume().await?,
        "drain" => {
            let delayed = if flag("delayed") { Delayed::Too } else { Delayed::Keep };
            queue.drain(delayed).await?;
        }
        "obliterate" => {
            // Nothing can bring it back, so the request has to say what it destroys.
            if body.get("confirm").and_then(Value::as_str) != Some(name.as_str()) {
                let detail = format!(
                    "this destroys queue {name} with everything in it; send {{\"confirm\": \"{name}\"}} if you mean it"
                );
                return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
            }
            let when = if flag("force") { WhenActive::Destroy } else { WhenActive::Refuse };
            obliterate(&queue, when).await?;
        }
        _ => return Err(Problem::new(StatusCode::NOT_FOUND, "pause, resume, drain or obliterate")),
    }
    tracing::info!(user = caller.0.user, queue = name, verb, "queue changed");
    Ok(Json(json!({ "success": true })))
}

async fn obliterate(queue: &Queue, when: WhenActive) -> Result<(), Problem> {
    if when == WhenActive::Refuse && queue.counts().await?.active > 0 {
        let detail =
            "jobs are being worked on; wait for them, or send \"force\": true and lose their work";
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    Ok(queue.obliterate(when).await?)
}

/// Which jobs to show.
#[derive(Deserialize)]
pub(crate) struct Wanted {
    state: Option<String>,
    skip: Option<usize>,
    count: Option<usize>,
    search: Option<String>,
}

impl Wanted {
    fn count(&self) -> usize {
        self.count.unwrap_or(PAGE.0).min(PAGE.1)
    }
}

/// Jobs of a queue in one state, or those of them that contain a text.
pub(crate) async fn jobs(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let queue = existing(&app, &name).await?;
    let state = wanted.state.as_deref().unwrap_or("waiting");
    let Some(state) = JobState::parse(state) else {
        let names = JobState::ALL.map(JobState::name).join(", ");
        return Err(Problem::new(StatusCode::BAD_REQUEST, format!("state must be one of {names}")));
    };
    let (skip, count) = (wanted.skip.unwrap_or(0), wanted.count());
    match &wanted.search {
        Some(text) => Ok(Json(json!(queue.search(state, text, skip, count).await?))),
        None => {
            let jobs = queue.jobs(state, skip, count).await?;
            let next = (jobs.len() == count).then_some(skip + count);
            Ok(Json(json!({ "jobs": jobs, "next": next })))
        }
    }
}

/// One job with its log.
pub(crate) async fn job(
    State(app): State<App>,
    caller: Caller,
    Path((name, id)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let queue = existing(&app, &name).await?;
    let job = queue.job(&id).await?.ok_or_else(|| Problem::not_found("Job"))?;
    let mut shown = json!(job);
    shown["logs"] = json!(queue.logs(&id).await?);
    Ok(Json(shown))
}

/// Removes a job that is not being worked on.
pub(crate) async fn remove(
    State(app): State<App>,
    caller: Caller,
    Path((name, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    caller.must_administer()?;
    let queue = existing(&app, &name).await?;
    queue.job(&id).await?.ok_or_else(|| Problem::not_found("Job"))?;
    if queue.remove(&id).await? {
        tracing::info!(user = caller.0.user, queue = name, job = id, "job removed");
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Problem::new(StatusCode::CONFLICT, "the job is being worked on; cancel it instead"))
}

/// `retry`, `promote` or `cancel`.
pub(crate) async fn change_job(
    State(app): State<App>,
    caller: Caller,
    Path((name, id, verb)): Path<(String, String, String)>,
    MaybeBody(body): MaybeBody,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let queue = existing(&app, &name).await?;
    let refused = |detail: &str| Err(Problem::new(StatusCode::CONFLICT, detail));
    let result = match verb.as_str() {
        "retry" if queue.retry(&id).await? => "waiting",
        "retry" => return refused("only a failed job can be retried"),
        "promote" if queue.promote(&id).await? => "waiting",
        "promote" => return refused("only a delayed job can be promoted"),
        "cancel" => {
            let reason = body.get("reason").and_then(Value::as_str);
            let reason = reason.map_or_else(|| format!("by {}", caller.0.user), str::to_owned);
            match queue.cancel(&id, &reason).await? {
                Cancelled::Removed => "removed",
                Cancelled::Told => "cancelling",
                Cancelled::NotThere => return Err(Problem::not_found("Job")),
            }
        }
        _ => return Err(Problem::new(StatusCode::NOT_FOUND, "retry, promote or cancel")),
    };
    tracing::info!(user = caller.0.user, queue = name, job = id, verb, "job changed");
    Ok(Json(json!({ "success": true, "state": result })))
}

/// The dead letters of a queue.
pub(crate) async fn dead_letters(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let letters = existing(&app, &name).await?.dead_letters().await?;
    let found = match &wanted.search {
        Some(text) => letters.search(text, wanted.count()).await?,
        None => letters.list(wanted.skip.unwrap_or(0), wanted.count()).await?,
    };
    Ok(Json(json!({ "total": letters.count().await?, "letters": found })))
}

/// `replay` or `purge`: `{ids: […]}` or `{all: true}`, and for a replay other `data` if wanted.
pub(crate) async fn change_dead_letters(
    State(app): State<App>,
    caller: Caller,
    Path((name, verb)): Path<(String, String)>,
    Body(body): Body,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let letters = existing(&app, &name).await?.dead_letters().await?;
    let ids = body.get("ids").and_then(Value::as_array);
    let which = match (ids, body.get("all").and_then(Value::as_bool)) {
        (Some(ids), _) => {
            Letters::These(ids.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect())
        }
        (None, Some(true)) => Letters::All,
        _ => {
            let detail = "say which: {\"ids\": [\"…\"]} or {\"all\": true}";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
        }
    };
    let count = match verb.as_str() {
        "replay" => letters.replay(&which, body.get("data")).await?,
        "purge" => letters.purge(&which).await?,
        _ => return Err(Problem::new(StatusCode::NOT_FOUND, "replay or purge")),
    };
    tracing::info!(user = caller.0.user, queue = name, verb, count, "dead letters changed");
    Ok(Json(json!({ "success": true, "count": count })))
}

/// A queue that is there; asking for one must not make it.
async fn existing(app: &App, name: &str) -> Result<Queue, Problem> {
    if !app.broker.has_queue(name).await? {
        return Err(Problem::not_found("Queue"));
    }
    Ok(app.broker.queue(name).await?)
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match &error {
            Error::InvalidName { .. } | Error::PayloadTooLarge { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
            }
            error if error.is_outage() => {
                tracing::warn!(%error, "request refused");
                Self::unavailable("the queue")
            }
            error => Self::internal(error),
        }
    }
}
