//! `/api/queues/{name}/jobs`: the jobs of a queue.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Map, Value, json};
use stampede_broker::{Backoff, Cancelled, JobSpec, Presence, Queue, State as JobState};

use super::{Page, any, coming_back, existing};
use crate::app::App;
use crate::auth::Caller;
use crate::input::{Body, Fields, MaybeBody, as_text};
use crate::problem::Problem;
use crate::query::{FromQuery, Params, Query};

/// Which jobs to show.
pub(crate) struct Wanted {
    states: Vec<JobState>,
    page: Page,
}

impl FromQuery for Wanted {
    fn from_query(query: &mut Query) -> Self {
        let state = query.text("state");
        let page = Page::from_query(query);
        let states = match (state.as_deref(), state.as_deref().and_then(JobState::parse)) {
            // Who looks for a job need not know how far it is.
            (None, _) if page.search.is_some() => JobState::ALL.to_vec(),
            (Some("all"), _) => JobState::ALL.to_vec(),
            // Most jobs have a priority; that they are kept apart is BullMQ's affair.
            (None, _) | (_, Some(JobState::Waiting)) => JobState::WAITING.to_vec(),
            (_, Some(state)) => vec![state],
            (Some(_), None) => {
                let names = JobState::ALL.map(JobState::name).join(", ");
                query.wrong("state", &format!("must be one of {names}, all"));
                Vec::new()
            }
        };
        Self { states, page }
    }
}

/// Jobs of a queue in one state, or those of them that contain a text. Without a state: those that contain the
/// text whatever their state, or all that wait for a worker, with and without a priority, as for `waiting`.
pub(crate) async fn list(
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
            let mut jobs = queue.jobs_in(&states, skip, count + 1).await?;
            let next = (jobs.len() > count).then_some(skip + count);
            jobs.truncate(count);
            Ok(Json(json!({ "jobs": jobs, "next": next })))
        }
    }
}

/// One job with its log.
pub(crate) async fn read(
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
pub(crate) async fn change(
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

/// What a new job is described with.
const SPEC: [&str; 7] = ["name", "data", "id", "delayMs", "priority", "attempts", "backoff"];

/// Adds a job: `{name, data, id?, delayMs?, priority?, attempts?, backoff?: {type, delayMs}}`. With the id of one
/// that is there already nothing happens, and `added` is false.
pub(crate) async fn add(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Body(body): Body,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let mut fields = Fields::new(&body);
    fields.only(&SPEC);
    let job = spec(&mut fields);
    let job = fields.finish(job)?;
    let is_new = !app.broker.has_queue(&name).await?;
    let queue = any(&app, &name).await?;
    queue.check(&job)?;
    let was_there = queue.presence(&[&job.id]).await? != [Presence::Missing];
    let ids = queue.enqueue(std::slice::from_ref(&job)).await?;
    tracing::info!(user = caller.0.user, queue = name, job = job.id, was_there, "job added");
    let mut answer = json!({ "success": true, "id": ids.first(), "added": !was_there });
    if is_new {
        answer["note"] = json!(format!(
            "queue {name} is new; the workers of this server take jobs from {}, others need a worker of yours",
            app.jobs.queues().join(", ")
        ));
    }
    Ok(Json(answer))
}

/// Reads what describes a job, such as those of a schedule.
pub(super) fn spec(fields: &mut Fields<'_>) -> Option<JobSpec> {
    if fields.get("name").is_none() {
        fields.wrong("name", "is missing");
    }
    let name = fields.read("name", |value| match as_text(value)? {
        "" => Err("is empty".to_owned()),
        name => Ok(name.to_owned()),
    });
    let data = fields.get("data").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    let mut job = JobSpec::new(name.unwrap_or_default(), data);
    if let Some(id) = fields.read("id", |value| as_text(value).map(str::to_owned)) {
        job.id = id;
    }
    let whole = |value: &Value| {
        value.as_u64().and_then(|n| u32::try_from(n).ok()).ok_or("must be a whole number")
    };
    job.delay = milliseconds(fields, "delayMs").unwrap_or_default();
    job.priority = fields.read("priority", whole).unwrap_or(0);
    job.attempts = fields.read("attempts", |value| match whole(value) {
        Ok(0) => Err("must be at least 1"),
        attempts => attempts,
    });
    job.backoff = backoff(fields);
    Some(job)
}

fn backoff(fields: &mut Fields<'_>) -> Option<Backoff> {
    let object = fields.get("backoff")?;
    let Some(object) = object.as_object() else {
        fields
            .wrong("backoff", "must be an object: {\"type\": \"exponential\", \"delayMs\": 2000}");
        return None;
    };
    let mut nested = Fields::nested(object, "backoff.".to_owned());
    nested.only(&["type", "delayMs"]);
    let pause = milliseconds(&mut nested, "delayMs");
    let kind = nested.read("type", |value| as_text(value).map(str::to_owned));
    let backoff = match (kind.as_deref(), pause) {
        (Some("fixed"), Some(pause)) => Some(Backoff::Fixed(pause)),
        (Some("exponential"), Some(pause)) => Some(Backoff::Exponential(pause)),
        (Some("fixed" | "exponential"), None) => {
            nested.wrong("delayMs", "is missing");
            None
        }
        (Some(name), None) => Some(Backoff::Named(name.to_owned())),
        (Some(_), Some(_)) => {
            nested.wrong(
                "delayMs",
                "goes with fixed and exponential; other types are the worker's own",
            );
            None
        }
        (None, _) => {
            nested.wrong("type", "must be fixed, exponential, or a name that the worker knows");
            None
        }
    };
    fields.absorb(nested);
    backoff
}

/// A time in milliseconds.
pub(super) fn milliseconds(fields: &mut Fields<'_>, name: &str) -> Option<Duration> {
    fields.read(name, |value| match value.as_u64() {
        Some(ms) => Ok(Duration::from_millis(ms)),
        None => Err("must be a whole number of milliseconds"),
    })
}
