//! `/api/queues/{name}/jobs`: the jobs of a queue.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use stampede_broker::{Backoff, Cancelled, JobSpec, Presence, Queue, State as JobState};
use stampede_wire::queues as wire;

use super::operate::NoFields;
use super::{LONGEST_NAME, Page, any, coming_back, existing, shown};
use crate::app::App;
use crate::auth::{Admin, Overseer};
use crate::body::{LargeBody, MaybeBody};
use crate::describe::{Either, NoContent};
use crate::forms::{Given, Mistakes, Payload, Text, Whole, form};
use crate::input::{Id, Ids, Names};
use crate::problem::{Code, Problem};
use crate::query::{FromQuery, Params, Query};
use crate::trace::Audited;
use crate::unknown::no_such_action;
use stampede_audit::{Kind, Subject};

/// The jobs to show.
pub(crate) struct Wanted {
    states: Vec<JobState>,
    page: Page,
}

impl FromQuery for Wanted {
    fn from_query(query: &mut Query) -> Self {
        let about = "Their state; `all` for all of them. All that wait for a worker if absent.";
        let state = query.about(about).text("state");
        let page = Page::from_query(query);
        let states = match (state.as_deref(), state.as_deref().and_then(JobState::parse)) {
            // A search need not know the state.
            (None, _) if page.search.is_some() => JobState::ALL.to_vec(),
            (Some("all"), _) => JobState::ALL.to_vec(),
            // BullMQ keeps jobs with a priority apart; for people they wait too.
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

/// Jobs of a queue in one state, or those that contain a text. Without a state: all that wait for a worker, with and
/// without a priority; or, if a text is given, all that contain it.
pub(crate) async fn list(
    State(app): State<App>,
    _: Overseer,
    Id(name): Id<String>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<wire::Jobs>, Problem> {
    let queue = existing(&app, &name).await?;
    let Wanted { states, page: Page { skip, count, search } } = wanted;
    let (jobs, next) = match &search {
        Some(text) => {
            let found = queue.search(&states, text, skip, count).await?;
            (found.jobs, found.next)
        }
        None => {
            let mut jobs = queue.jobs_in(&states, skip, count + 1).await?;
            let next = (jobs.len() > count).then_some(skip + count);
            jobs.truncate(count);
            (jobs, next)
        }
    };
    Ok(Json(wire::Jobs { jobs: jobs.into_iter().map(shown::job).collect(), next }))
}

/// One job with its log.
pub(crate) async fn read(
    State(app): State<App>,
    _: Overseer,
    Ids(name, id): Ids<String, String>,
) -> Result<Json<wire::JobWithLog>, Problem> {
    let queue = existing(&app, &name).await?;
    let job = queue.job(&id).await?.ok_or_else(|| Problem::not_found("Job", &id))?;
    Ok(Json(wire::JobWithLog { job: shown::job(job), logs: queue.logs(&id).await? }))
}

/// Removes a job that does not run. The answer has a body only if there is a note.
pub(crate) async fn remove(
    State(app): State<App>,
    admin: Admin,
    Ids(name, id): Ids<String, String>,
) -> Result<Audited<Either<Json<wire::Changed>, NoContent>>, Problem> {
    let queue = existing(&app, &name).await?;
    let job = queue.job(&id).await?.ok_or_else(|| Problem::not_found("Job", &id))?;
    let before = json!({ "name": job.name, "state": job.state.name() });
    let noted = admin.begin(&app, subject(&name, &id), &before).await?;
    if queue.remove(&id).await? {
        tracing::info!(user = admin.0.user, queue = name, job = id, "job removed");
        let note = coming_back::note_of_one(&app, &name, &id).await;
        return Ok(noted.gone().answer(match note {
            Some(_) => Either::One(Json(wire::Changed { success: true, note })),
            None => Either::Other(NoContent),
        }));
    }
    Err(Problem::new(Code::WrongState, "the job is being worked on; cancel it instead"))
}

/// Runs a failed job again.
pub(crate) async fn retry(
    State(app): State<App>,
    admin: Admin,
    Ids(name, id): Ids<String, String>,
    MaybeBody(form): MaybeBody<NoFields>,
) -> Result<Audited<Json<wire::JobChanged>>, Problem> {
    let queue = existing(&app, &name).await?;
    must_be_empty(&form)?;
    let noted = admin.begin_new(&app, subject(&name, &id)).await?;
    if !queue.retry(&id).await? {
        return Err(refusal(&queue, &id, "only a failed job can be retried").await?);
    }
    let changed = changed(&admin, &name, &id, "retry", "waiting");
    Ok(noted.after(&changed.0).answer(changed))
}

/// Lets a delayed job begin now.
pub(crate) async fn promote(
    State(app): State<App>,
    admin: Admin,
    Ids(name, id): Ids<String, String>,
    MaybeBody(form): MaybeBody<NoFields>,
) -> Result<Audited<Json<wire::JobChanged>>, Problem> {
    let queue = existing(&app, &name).await?;
    must_be_empty(&form)?;
    let noted = admin.begin_new(&app, subject(&name, &id)).await?;
    if !queue.promote(&id).await? {
        return Err(refusal(&queue, &id, "only a delayed job can be promoted").await?);
    }
    let changed = changed(&admin, &name, &id, "promote", "waiting");
    Ok(noted.after(&changed.0).answer(changed))
}

/// Removes a job that waits, or tells its worker to stop it: `{reason?}`.
pub(crate) async fn cancel(
    State(app): State<App>,
    admin: Admin,
    Ids(name, id): Ids<String, String>,
    MaybeBody(form): MaybeBody<CancelForm>,
) -> Result<Audited<Json<wire::JobChanged>>, Problem> {
    let queue = existing(&app, &name).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let reason = mistakes.value(form.reason).map(|Text(reason)| reason);
    let reason = mistakes.finish(Some(reason))?;
    let reason = reason.unwrap_or_else(|| format!("by {}", admin.0.user));
    let noted = admin.begin_new(&app, subject(&name, &id)).await?;
    match queue.cancel(&id, &reason).await? {
        Cancelled::Removed => {
            let Json(answer) = changed(&admin, &name, &id, "cancel", "removed");
            let note = coming_back::note_of_one(&app, &name, &id).await;
            let answer = wire::JobChanged { note, ..answer };
            Ok(noted.after(&answer).answer(Json(answer)))
        }
        Cancelled::Told => {
            let changed = changed(&admin, &name, &id, "cancel", "cancelling");
            Ok(noted.after(&changed.0).answer(changed))
        }
        Cancelled::NotThere => {
            Err(refusal(&queue, &id, "only a job that waits or runs can be cancelled").await?)
        }
    }
}

/// The job as the audit log names it.
fn subject(queue: &str, job: &str) -> Subject {
    Subject::of(Kind::Job, format!("{queue}/{job}"))
}

/// Refuses an action that jobs do not have.
pub(crate) async fn unknown(
    State(app): State<App>,
    _: Admin,
    Names([name, _, action]): Names,
) -> Result<Infallible, Problem> {
    existing(&app, &name).await?;
    Err(no_such_action(&action, &["retry", "promote", "cancel"]))
}

form! {
    /// `POST /api/queues/{name}/jobs/{id}/cancel`.
    pub(crate) struct CancelForm {
        /// The reason, for the job's record.
        reason: Text<LONGEST_NAME> = "reason",
    }
}

fn must_be_empty(form: &NoFields) -> Result<(), Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(form);
    mistakes.finish(Some(()))
}

fn changed(
    admin: &Admin,
    queue: &str,
    job: &str,
    action: &str,
    state: &str,
) -> Json<wire::JobChanged> {
    tracing::info!(user = admin.0.user, queue, job, action, "job changed");
    Json(wire::JobChanged { success: true, state: state.to_owned(), note: None })
}

/// The reason why a job cannot be changed: there is none (404), or it is in another state (409).
async fn refusal(queue: &Queue, id: &str, why: &str) -> Result<Problem, Problem> {
    let Some(job) = queue.job(id).await? else { return Ok(Problem::not_found("Job", &id)) };
    let detail = format!("{why}; this one is {}", job.state.name());
    Ok(Problem::new(Code::WrongState, detail))
}

form! {
    /// `POST /api/queues/{name}/jobs`.
    pub(crate) struct JobForm {
        /// The type of the job, as workers know it.
        name: Text<LONGEST_NAME> = "name" required,
        /// The payload; `{}` if absent.
        data: Payload = "data",
        /// The id; a new one if absent.
        id: Text<LONGEST_NAME> = "id",
        /// The time before the job may begin, in milliseconds.
        delay_ms: Whole = "delayMs",
        /// 1 is taken first, then 2, and so on; 0, no priority, before all of them.
        priority: Number = "priority",
        /// Attempts; as many as the job's type has if absent.
        attempts: Attempts = "attempts",
        /// The pause between attempts.
        backoff: BackoffForm = "backoff",
    }
}

form! {
    /// The pause between attempts.
    pub(crate) struct BackoffForm {
        /// `fixed`, `exponential`, or a name that the worker knows.
        kind: Text<200> = "type" required,
        /// The first pause, in milliseconds.
        delay_ms: Whole = "delayMs",
    }
}

/// A priority.
pub(super) type Number = Whole<0, { u32::MAX as u64 }>;
/// A number of attempts.
pub(super) type Attempts = Whole<1, { u32::MAX as u64 }>;

/// Adds a job: `{name, data, id?, delayMs?, priority?, attempts?, backoff?: {type, delayMs}}`. If a job of this id
/// exists, nothing happens, and `added` is false.
pub(crate) async fn add(
    State(app): State<App>,
    admin: Admin,
    Id(name): Id<String>,
    LargeBody(form, _held): LargeBody<JobForm>,
) -> Result<Audited<Json<wire::Added>>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let (id, delay) = (mistakes.value(form.id), milliseconds(&mut mistakes, form.delay_ms));
    let description = Description {
        name: form.name,
        data: form.data,
        priority: form.priority,
        attempts: form.attempts,
        backoff: form.backoff,
    };
    let mut job = description.spec(&mut mistakes);
    job.delay = delay.unwrap_or_default();
    if let Some(Text(id)) = id {
        job.id = id;
    }
    let job = mistakes.finish(Some(job))?;
    let is_new = !app.broker.has_queue(&name).await?;
    let queue = any(&app, &name).await?;
    queue.check(&job)?;
    let was_there = queue.presence(&[&job.id]).await? != [Presence::Missing];
    let noted = admin.begin_new(&app, subject(&name, &job.id)).await?;
    let ids = queue.enqueue(std::slice::from_ref(&job)).await?;
    tracing::info!(user = admin.0.user, queue = name, job = job.id, was_there, "job added");
    let note = is_new.then(|| {
        format!(
            "queue {name} is new; the workers of this server take jobs from {}, others need a worker of yours",
            app.jobs.queues().join(", ")
        )
    });
    // The payload belongs to the job, and may hold what nobody else is to read.
    let made = noted.after(&json!({ "name": job.name, "added": !was_there }));
    let id = ids.into_iter().next();
    Ok(made.answer(Json(wire::Added { success: true, id, added: !was_there, note })))
}

/// The description of a job, also of a schedule's jobs.
pub(super) struct Description {
    pub(super) name: Given<Text<LONGEST_NAME>>,
    pub(super) data: Given<Payload>,
    pub(super) priority: Given<Number>,
    pub(super) attempts: Given<Attempts>,
    pub(super) backoff: Given<BackoffForm>,
}

impl Description {
    /// The job; mistakes are noted.
    pub(super) fn spec(self, mistakes: &mut Mistakes) -> JobSpec {
        let name = mistakes.required(self.name).map(|Text(name)| name);
        if name.as_deref() == Some("") {
            mistakes.wrong("name", "is empty");
        }
        let data = mistakes.value(self.data).map(|payload| payload.value);
        let data = data.unwrap_or_else(|| Value::Object(Map::new()));
        let mut job = JobSpec::new(name.unwrap_or_default(), data);
        let priority = mistakes.value(self.priority).map_or(0, |Whole(number)| number);
        // Their types keep them within these bounds.
        job.priority = u32::try_from(priority).unwrap_or(u32::MAX);
        let attempts = mistakes.value(self.attempts).map(|Whole(number)| number);
        job.attempts = attempts.and_then(|number| u32::try_from(number).ok());
        job.backoff = backoff(mistakes, self.backoff);
        job
    }
}

fn backoff(mistakes: &mut Mistakes, given: Given<BackoffForm>) -> Option<Backoff> {
    const EXPECTED: &str = "must be an object: {\"type\": \"exponential\", \"delayMs\": 2000}";
    let form = mistakes.ruled(given, EXPECTED, Some)?;
    let mut nested = Mistakes::nested("backoff.");
    nested.only(&form);
    let pause = milliseconds(&mut nested, form.delay_ms);
    let kind = nested.value(form.kind).map(|Text(kind)| kind);
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
    mistakes.absorb(nested);
    backoff
}

/// A time in milliseconds.
pub(super) fn milliseconds(mistakes: &mut Mistakes, given: Given<Whole>) -> Option<Duration> {
    let rule = "must be a whole number of milliseconds";
    mistakes.ruled(given, rule, |Whole(ms)| Some(Duration::from_millis(ms)))
}
