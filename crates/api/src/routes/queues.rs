//! `/api/queues`: looking into the queues and tidying them up. For administrators only: a queue holds
//! the work of all owners.

mod coming_back;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Map, Value, json};
use stampede_broker::{
    Cancelled, Delayed, Error, JobView, Letters, Queue, State as JobState, WhenActive,
};

use crate::app::App;
use crate::auth::Caller;
use crate::input::{Body, Fields, MaybeBody, as_text};
use crate::problem::Problem;
use crate::query::{FromQuery, Nothing, Params, Query};

/// Active jobs that the overview shows of each queue.
const SHOWN_ACTIVE: usize = 10;
/// Jobs in one answer, if the request does not say and at most.
const PAGE: (usize, usize) = (50, 500);
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
    let mut removed = BTreeMap::new();
    let mut answer = json!({ "success": true });
    for name in names {
        let queue = app.broker.queue(&name).await?;
        let mut gone = 0;
        for state in &states {
            let left = limit as usize - gone;
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

/// `pause`, `resume`, `drain` or `obliterate`.
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
    match verb.as_str() {
        "pause" | "resume" => {
            fields.only(&[]);
            fields.finish(Some(()))?;
            if verb == "pause" { queue.pause().await? } else { queue.resume().await? }
        }
        "drain" => {
            fields.only(&["delayed"]);
            let delayed = if fields.flag("delayed") { Delayed::Too } else { Delayed::Keep };
            queue.drain(fields.finish(Some(delayed))?).await?;
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
            obliterate(&queue, when).await?;
            if let Some(note) = coming_back::note_of_all(&name) {
                answer["note"] = note;
            }
        }
        _ => return Err(Problem::new(StatusCode::NOT_FOUND, "pause, resume, drain or obliterate")),
    }
    tracing::info!(user = caller.0.user, queue = name, verb, "queue changed");
    Ok(Json(answer))
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
pub(crate) struct Wanted {
    states: Vec<JobState>,
    page: Page,
}

impl FromQuery for Wanted {
    fn from_query(query: &mut Query) -> Self {
        let states = match query.text("state").as_deref().map(JobState::parse) {
            // Most jobs have a priority; that they are kept apart is BullMQ's affair.
            None | Some(Some(JobState::Waiting)) => JobState::WAITING.to_vec(),
            Some(Some(state)) => vec![state],
            Some(None) => {
                let names = JobState::ALL.map(JobState::name).join(", ");
                query.wrong("state", &format!("must be one of {names}"));
                Vec::new()
            }
        };
        Self { states, page: Page::from_query(query) }
    }
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

/// Jobs of a queue in one state, or those of them that contain a text. Without a state, or for
/// `waiting`: all that wait for a worker, with and without a priority.
pub(crate) async fn jobs(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let queue = existing(&app, &name).await?;
    let Wanted { states, page: Page { skip, count, search } } = wanted;
    match &search {
        Some(text) => Ok(Json(json!(queue.search(&states, text, skip, count).await?))),
        None => {
            let jobs = queue.jobs_in(&states, skip, count).await?;
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

/// Removes a job that is not being worked on; with a body only if there is something to say.
pub(crate) async fn remove(
    State(app): State<App>,
    caller: Caller,
    Path((name, id)): Path<(String, String)>,
) -> Result<Response, Problem> {
    caller.must_administer()?;
    let queue = existing(&app, &name).await?;
    queue.job(&id).await?.ok_or_else(|| Problem::not_found("Job"))?;
    if queue.remove(&id).await? {
        tracing::info!(user = caller.0.user, queue = name, job = id, "job removed");
        return Ok(match coming_back::note_of_one(&app, &name, &id).await {
            Some(note) => Json(json!({ "success": true, "note": note })).into_response(),
            None => StatusCode::NO_CONTENT.into_response(),
        });
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
    let mut fields = Fields::new(&body);
    fields.only(if verb == "cancel" { &["reason"] } else { &[] });
    let reason = fields.read("reason", |value| as_text(value).map(str::to_owned));
    let reason = fields.finish(Some(reason))?;
    let mut note = None;
    let result = match verb.as_str() {
        "retry" if queue.retry(&id).await? => "waiting",
        "retry" => return Err(refusal(&queue, &id, "only a failed job can be retried").await?),
        "promote" if queue.promote(&id).await? => "waiting",
        "promote" => return Err(refusal(&queue, &id, "only a delayed job can be promoted").await?),
        "cancel" => {
            let reason = reason.unwrap_or_else(|| format!("by {}", caller.0.user));
            match queue.cancel(&id, &reason).await? {
                Cancelled::Removed => {
                    note = coming_back::note_of_one(&app, &name, &id).await;
                    "removed"
                }
                Cancelled::Told => "cancelling",
                Cancelled::NotThere => {
                    let why = "only a job that waits or runs can be cancelled";
                    return Err(refusal(&queue, &id, why).await?);
                }
            }
        }
        _ => return Err(Problem::new(StatusCode::NOT_FOUND, "retry, promote or cancel")),
    };
    tracing::info!(user = caller.0.user, queue = name, job = id, verb, "job changed");
    let mut answer = json!({ "success": true, "state": result });
    if let Some(note) = note {
        answer["note"] = note;
    }
    Ok(Json(answer))
}

/// Why a job cannot be changed so: there is none (404), or it is in another state (409).
async fn refusal(queue: &Queue, id: &str, why: &str) -> Result<Problem, Problem> {
    let Some(job) = queue.job(id).await? else { return Ok(Problem::not_found("Job")) };
    let detail = format!("{why}; this one is {}", job.state.name());
    Ok(Problem::new(StatusCode::CONFLICT, detail))
}

/// The dead letters of a queue.
pub(crate) async fn dead_letters(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Params(page): Params<Page>,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let letters = existing(&app, &name).await?.dead_letters().await?;
    let found = match &page.search {
        Some(text) => letters.search(text, page.count).await?,
        None => letters.list(page.skip, page.count).await?,
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
    let mut fields = Fields::new(&body);
    fields.only(if verb == "replay" { &["ids", "all", "data"] } else { &["ids", "all"] });
    let ids: Option<Vec<String>> = fields.read("ids", |value| {
        let ids = value.as_array().into_iter().flatten();
        let ids: Vec<String> = ids.filter_map(|id| id.as_str().map(str::to_owned)).collect();
        let all_read = value.as_array().is_some_and(|given| given.len() == ids.len());
        if all_read { Ok(ids) } else { Err("must be a list of texts") }
    });
    let all = fields.flag("all");
    fields.finish(Some(()))?;
    let which = match (ids, all) {
        (Some(_), true) => {
            let detail = "say either ids or all, not both";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
        }
        (Some(ids), false) => Letters::These(ids),
        (None, true) => Letters::All,
        (None, false) => {
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
