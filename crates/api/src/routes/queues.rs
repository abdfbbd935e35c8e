//! `/api/queues`: looking into the queues and tidying them up. For administrators only: a queue holds
//! the work of all owners.

mod coming_back;
pub(crate) mod dead_letters;
pub(crate) mod jobs;
pub(crate) mod schedules;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use serde_json::{Map, Value, json};
use stampede_broker::{
    BulkResult, Delayed, Error, JobView, Queue, Rate, State as JobState, WhenActive,
};

use crate::app::App;
use crate::auth::Caller;
use crate::input::{Fields, MaybeBody};
use crate::problem::Problem;
use crate::query::{FromQuery, Nothing, Params, Query};
use crate::unknown;

/// Active jobs that the overview shows of each queue.
const SHOWN_ACTIVE: usize = 10;
/// Jobs in one answer, if the request does not say and at most.
const PAGE: (usize, usize) = (50, 500);
/// How long to wait for a queue that may be made.
const HANDLE_PATIENCE: Duration = Duration::from_secs(3);
/// Most jobs at a time that can be asked for.
const MOST_AT_A_TIME: u64 = 1_000_000;
/// Jobs that one request cleans up, if it does not say and at most.
const CLEANED: (u64, u64) = (10_000, 1_000_000);

/// What seed 003 shows: counts and active jobs, by queue.
pub(crate) async fn status(
    State(app): State<App>,
    caller: Caller,
    Params(Nothing): Params<Nothing>,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let mut answer = Map::new();
    let limits = app.broker.limits().all().await?;
    for name in app.broker.queue_names().await? {
        let queue = app.broker.queue(&name).await?;
        let mut shown = json!(queue.counts().await?);
        shown["paused"] = json!(queue.is_paused().await?);
        shown["concurrency"] = json!(queue.global_concurrency().await?);
        shown["limit"] = json!(limits.get(&format!("queue:{name}")).map(rate));
        let active = queue.jobs(JobState::Active, 0, SHOWN_ACTIVE).await?;
        let active: Vec<Value> = active.iter().map(shown_active).collect();
        shown["activeJobs"] = json!(active);
        answer.insert(name, shown);
    }
    Ok(Json(answer.into()))
}

/// As `/api/limits` shows it.
fn rate(rate: &Rate) -> Value {
    json!({ "max": rate.max, "perMs": rate.per_ms })
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
    fields.only(&["queue", "state", "graceMs", "limit"]);
    let states = fields.read("state", |value| match value.as_str().and_then(JobState::parse) {
        // Who says "waiting" means all jobs that wait, also those with a priority.
        Some(JobState::Waiting) => Ok(JobState::WAITING.to_vec()),
        Some(
            state @ (JobState::Failed
            | JobState::Completed
            | JobState::Prioritized
            | JobState::Delayed),
        ) => Ok(vec![state]),
        _ => Err("must be failed, completed, waiting, prioritized or delayed"),
    });
    let states = states.unwrap_or_else(|| vec![JobState::Failed]);
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
    // Before it happens: it may break off in the middle.
    tracing::info!(user = caller.0.user, ?names, ?states, grace_ms, limit, "queues are cleaned");
    let mut removed = BTreeMap::new();
    let mut answer = json!({ "success": true });
    for name in names {
        let queue = app.broker.queue(&name).await?;
        let mut gone = 0;
        for state in &states {
            let left = (limit as usize).saturating_sub(gone);
            if left > 0 {
                let grace = Duration::from_millis(grace_ms);
                gone += queue.clean(*state, grace, left as u32).await?.len();
            }
        }
        if gone > 0
            && !states.contains(&JobState::Failed)
            && !states.contains(&JobState::Completed)
            && let Some(note) = coming_back::note_of_all(&name)
        {
            answer["note"] = note;
        }
        removed.insert(name, gone);
    }
    tracing::info!(user = caller.0.user, ?removed, "queues cleaned");
    answer["removed"] = json!(removed);
    Ok(Json(answer))
}

/// `pause`, `resume`, `concurrency`, `retry` (all that failed), `drain` or `obliterate`.
pub(crate) async fn change(
    State(app): State<App>,
    caller: Caller,
    Path((name, verb)): Path<(String, String)>,
    MaybeBody(body): MaybeBody,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let queue = existing(&app, &name).await?;
    let mut fields = Fields::new(&body);
    let mut answer = json!({ "success": true });
    // Before it happens: it may break off in the middle.
    tracing::info!(user = caller.0.user, queue = name, verb, "queue is to be changed");
    match verb.as_str() {
        "pause" | "resume" => {
            fields.only(&[]);
            fields.finish(Some(()))?;
            if verb == "pause" { queue.pause().await? } else { queue.resume().await? }
        }
        "concurrency" => {
            fields.only(&["jobs"]);
            let jobs = fields.read("jobs", |value| match value.as_u64() {
                Some(jobs @ 1..=MOST_AT_A_TIME) => Ok(jobs),
                _ => Err("must be a whole number, at least 1; null lifts the limit"),
            });
            if jobs.is_none() && !fields.is_cleared("jobs") && fields.mistakes() == 0 {
                fields.wrong("jobs", "is missing; null lifts the limit");
            }
            queue.set_global_concurrency(fields.finish(Some(jobs))?).await?;
        }
        "retry" => {
            fields.only(&[]);
            fields.finish(Some(()))?;
            let BulkResult { count, failed } = queue.retry_all().await?;
            let left = queue.counts().await?.failed;
            let success = failed.is_empty();
            answer = json!({ "success": success, "count": count, "failed": failed, "left": left });
        }
        "drain" => {
            fields.only(&["delayed"]);
            let delayed = if fields.flag("delayed") { Delayed::Too } else { Delayed::Keep };
            answer["removed"] = json!(queue.drain(fields.finish(Some(delayed))?).await?);
            if let Some(note) = coming_back::note_of_all(&name) {
                answer["note"] = note;
            }
        }
        "obliterate" => {
            fields.only(&["confirm", "force"]);
            let when = if fields.flag("force") { WhenActive::Destroy } else { WhenActive::Refuse };
            let when = fields.finish(Some(when))?;
            // Nothing can bring it back, so the request has to say what it destroys.
            if body.get("confirm").and_then(Value::as_str) != Some(name.as_str()) {
                let detail = format!(
                    "this destroys queue {name} with everything in it; send {{\"confirm\": \"{name}\"}} if you mean it"
                );
                return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
            }
            queue.obliterate(when).await?;
            if let Some(note) = coming_back::note_of_all(&name) {
                answer["note"] = note;
            }
        }
        _ => {
            let verbs = "pause, resume, concurrency, retry, drain or obliterate";
            return Err(Problem::new(StatusCode::NOT_FOUND, verbs));
        }
    }
    tracing::info!(user = caller.0.user, queue = name, verb, "queue changed");
    Ok(Json(answer))
}

/// Which part of a list to show, or what to look for in it.
pub(crate) struct Page {
    skip: usize,
    count: usize,
    search: Option<String>,
}

impl FromQuery for Page {
    fn from_query(query: &mut Query) -> Self {
        let count = query.whole("count", 1..=u32::MAX).map_or(PAGE.0, |count| count as usize);
        Self {
            skip: query.whole("skip", 0..=u32::MAX).unwrap_or(0) as usize,
            count: count.min(PAGE.1),
            search: query.text("search"),
        }
    }
}

/// A queue, which need not be there yet. (A handle on a Redis that is away takes its time.)
async fn any(app: &App, name: &str) -> Result<Queue, Problem> {
    match tokio::time::timeout(HANDLE_PATIENCE, app.broker.queue(name)).await {
        Ok(queue) => Ok(queue?),
        Err(_) => Err(Problem::unavailable("the queue")),
    }
}

/// A queue that is there; asking for one must not make it.
async fn existing(app: &App, name: &str) -> Result<Queue, Problem> {
    if app.broker.has_queue(name).await? {
        return Ok(app.broker.queue(name).await?);
    }
    let names = app.broker.queue_names().await?;
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let meant = match unknown::closest(name, &known) {
        Some(closest) => format!("; did you mean {closest}?"),
        None => String::new(),
    };
    let detail = format!("Queue not found: {}{meant}", unknown::shown(name));
    Err(Problem::new(StatusCode::NOT_FOUND, detail))
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match &error {
            Error::InvalidName { .. }
            | Error::PayloadTooLarge { .. }
            | Error::InvalidOption { .. }
            | Error::InvalidSchedule(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
            }
            Error::Busy { .. } => {
                let detail = format!("{error}; wait for them, or use force and lose their work");
                Self::new(StatusCode::CONFLICT, detail)
            }
            Error::ChildFailed { .. } | Error::OfSchedule { .. } => {
                Self::new(StatusCode::CONFLICT, error.to_string())
            }
            error if error.is_outage() => {
                tracing::warn!(%error, "request refused");
                Self::unavailable("the queue")
            }
            error => Self::internal(error),
        }
    }
}
