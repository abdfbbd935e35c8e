//! `/api/queues`: inspecting and cleaning queues. A queue holds the work of all owners, so that only viewers of
//! everybody see it and only administrators change it.
//!
//! | file | routes |
//! |---|---|
//! | this one | the overview, cleaning |
//! | `operate.rs` | pause, resume, concurrency, retry, drain, obliterate |
//! | `jobs.rs` | jobs: list, read, add, remove, retry, promote, cancel |
//! | `dead_letters.rs` | dead letters: list, replay, purge |
//! | `schedules.rs` | schedules: list, set, remove |

mod coming_back;
pub(crate) mod dead_letters;
pub(crate) mod jobs;
pub(crate) mod operate;
pub(crate) mod schedules;
mod shown;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use stampede_broker::{Delayed, Error, Queue, State as JobState};
use stampede_wire::queues::{Cleaned, QueueStatus, Status};
use tokio::time::Instant;

use crate::app::App;
use crate::auth::{Admin, Overseer};
use crate::body::MaybeBody;
use crate::forms::{Mistakes, Text, Whole, form};
use crate::problem::{Code, Problem};
use crate::query::{FromQuery, Nothing, Params, Query};
use crate::scope::reached_queues;
use crate::trace::Audited;
use crate::unknown;
use stampede_audit::{Kind, Subject};

/// Longest text that may be the name of a queue, a job or a schedule, in bytes; Redis keys have stricter rules.
const LONGEST_NAME: usize = 10_000;
/// Active jobs that the overview shows of each queue.
const SHOWN_ACTIVE: usize = 10;
/// Jobs in one answer, unless the request names a number.
const USUAL_PAGE: usize = 50;
/// Most jobs in one answer.
const LARGEST_PAGE: usize = 500;
/// Longest wait for a handle on a queue while Redis is away.
const HANDLE_PATIENCE: Duration = Duration::from_secs(3);
/// Most jobs of a queue that a request asks to clean up.
const LARGEST_CLEANING: u64 = 1_000_000;
/// Jobs that one request removes at most, and the time after which it removes no more. It answers how many are left.
const PORTION: usize = 10_000;
const PORTION_TIME: Duration = Duration::from_secs(20);
/// Jobs that are removed between two looks at the clock.
const STEP: usize = 1_000;

form! {
    /// `POST /api/queues/clean`.
    pub(crate) struct CleanForm {
        /// The queue; all of them if absent.
        queue: Text<LONGEST_NAME> = "queue",
        /// The state of the jobs; `failed` if absent.
        state: Text<200> = "state",
        /// Jobs that ended less than so many milliseconds ago stay.
        grace_ms: Whole = "graceMs",
        /// Jobs of a queue at most.
        limit: Whole = "limit",
    }
}

/// All queues with counts and active jobs, in the form that older software reads (docs/compatibility.md).
pub(crate) async fn status(
    State(app): State<App>,
    overseer: Overseer,
    Params(Nothing): Params<Nothing>,
) -> Result<Json<Status>, Problem> {
    let mut answer = Status::new();
    let limits = app.broker.limits().all().await?;
    // A queue of ours is shown before its first job was added.
    let mut names = app.broker.queue_names().await?;
    names.extend(app.jobs.queues().into_iter().map(str::to_owned));
    for name in reached_queues(&overseer.0.scope, names) {
        let queue = app.broker.queue(&name).await?;
        let active = queue.jobs(JobState::Active, 0, SHOWN_ACTIVE).await?;
        let status = QueueStatus {
            paused: queue.is_paused().await?,
            concurrency: queue.global_concurrency().await?,
            limit: limits.get(&format!("queue:{name}")).copied().map(shown::rate),
            active_jobs: active.into_iter().map(shown::active_job).collect(),
            ..shown::counts(queue.counts().await?)
        };
        answer.insert(name, status);
    }
    Ok(Json(answer))
}

/// Removes jobs: `{queue?, state?, graceMs?, limit?}`. Without a body, as older software calls it: the failed jobs of
/// all queues.
pub(crate) async fn clean(
    State(app): State<App>,
    admin: Admin,
    MaybeBody(form): MaybeBody<CleanForm>,
) -> Result<Audited<Json<Cleaned>>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let rule = "must be failed, completed, waiting, prioritized or delayed";
    let states = mistakes.ruled(form.state, rule, |Text(word)| cleanable(&word));
    let states = states.unwrap_or_else(|| vec![JobState::Failed]);
    let grace_ms = mistakes.value(form.grace_ms).map_or(0, |Whole(ms)| ms);
    let limit = mistakes.value(form.limit).map_or(LARGEST_CLEANING, |Whole(limit)| limit);
    let limit = limit.min(LARGEST_CLEANING);
    let queue = mistakes.ruled(form.queue, "must be the name of a queue", |Text(name)| Some(name));
    mistakes.finish(Some(()))?;
    let names = match queue {
        Some(name) if !admin.0.scope.has_queue(&name) => {
            return Err(Problem::out_of_scope(&admin.0.scope));
        }
        Some(name) => vec![existing(&app, &name).await?.name().to_owned()],
        // Dead letters are not ended jobs: they wait for an operator.
        None => reached_queues(&admin.0.scope, app.broker.queue_names().await?)
            .into_iter()
            .filter(|name| !name.ends_with("-dlq"))
            .collect(),
    };
    // Logged before it happens, because it may break off in the middle.
    tracing::info!(user = admin.0.user, ?names, ?states, grace_ms, limit, "queues are cleaned");
    let subject = Subject::of(Kind::Queue, names.join(", "));
    let noted = admin.begin_new(&app, subject).await?;
    let (mut removed, mut left) = (BTreeMap::new(), BTreeMap::new());
    let (mut note, mut portion) = (None, Portion::new());
    let grace = Duration::from_millis(grace_ms);
    for name in names {
        let queue = app.broker.queue(&name).await?;
        let (mut gone, mut stay) = (0, 0);
        for state in &states {
            let most = (limit as usize).saturating_sub(gone + stay);
            let (cleaned, rest) = portion.clean(&queue, *state, grace, most).await?;
            (gone, stay) = (gone + cleaned, stay + rest);
        }
        if gone > 0 && !states.contains(&JobState::Failed) && !states.contains(&JobState::Completed)
        {
            note = coming_back::note_of_all(&app, &name).or(note);
        }
        if stay > 0 {
            left.insert(name.clone(), stay);
        }
        removed.insert(name, gone);
    }
    tracing::info!(user = admin.0.user, ?removed, ?left, "queues cleaned");
    let cleaned = Cleaned { success: true, removed, left, note };
    Ok(noted.after(&cleaned).answer(Json(cleaned)))
}

/// Which jobs are removed.
#[derive(Clone, Copy)]
enum Removal<'q> {
    /// Those in a state that have not changed for so long.
    Clean(&'q Queue, JobState, Duration),
    /// Removes the jobs that wait.
    Drain(&'q Queue, Delayed),
}

impl Removal<'_> {
    /// Removes at most so many jobs; returns how many. Fewer: there are no more.
    async fn step(self, most: usize) -> Result<usize, Error> {
        match self {
            Self::Clean(queue, state, grace) => {
                Ok(queue.clean(state, grace, most as u32).await?.len())
            }
            Self::Drain(queue, delayed) => queue.drain_some(delayed, most).await,
        }
    }
}

/// How much of its work one request does.
struct Portion {
    /// Jobs that it may still remove.
    jobs: usize,
    end: Instant,
}

impl Portion {
    fn new() -> Self {
        Self { jobs: PORTION, end: Instant::now() + PORTION_TIME }
    }

    /// Removes jobs in steps; returns how many were removed, and whether more may be left.
    async fn work(&mut self, most: usize, removal: Removal<'_>) -> Result<(usize, bool), Error> {
        let mut removed = 0;
        while removed < most {
            let wanted = STEP.min(self.jobs).min(most - removed);
            if wanted == 0 || Instant::now() >= self.end {
                return Ok((removed, true));
            }
            let gone = removal.step(wanted).await?;
            self.jobs -= gone.min(self.jobs);
            removed += gone;
            if gone < wanted {
                break;
            }
        }
        Ok((removed, false))
    }

    /// Cleans up one state of a queue; returns how many jobs were removed, and how many are left of those asked for.
    async fn clean(
        &mut self,
        queue: &Queue,
        state: JobState,
        grace: Duration,
        most: usize,
    ) -> Result<(usize, usize), Error> {
        let (removed, has_more) = self.work(most, Removal::Clean(queue, state, grace)).await?;
        if !has_more {
            return Ok((removed, 0));
        }
        let there = queue.size(state).await?;
        Ok((removed, there.min(most - removed)))
    }
}

/// The states that a word in a request to clean stands for.
fn cleanable(word: &str) -> Option<Vec<JobState>> {
    match JobState::parse(word)? {
        // "waiting" means all jobs that wait for a worker, also those with a priority.
        JobState::Waiting => Some(JobState::WAITING.to_vec()),
        state @ (JobState::Failed
        | JobState::Completed
        | JobState::Prioritized
        | JobState::Delayed) => Some(vec![state]),
        _ => None,
    }
}

/// Part of a list, or a text to search for in it.
pub(crate) struct Page {
    skip: usize,
    count: usize,
    search: Option<String>,
}

impl FromQuery for Page {
    fn from_query(query: &mut Query) -> Self {
        query.about("Entries on the page (50); more than 500 means 500.");
        let limit = query.whole("limit", 1..=u32::MAX);
        query.about("The same as `limit`, in older clients.");
        let count = limit.or(query.whole("count", 1..=u32::MAX));
        let count = count.map_or(USUAL_PAGE, |count| count as usize);
        query.about("`next` of the page before.");
        let after = query.whole("after", 0..=u32::MAX);
        query.about("The same as `after`, in older clients.");
        let skip = after.or(query.whole("skip", 0..=u32::MAX)).unwrap_or(0) as usize;
        let search = query.about("A text that the entries contain.").text("search");
        Self { skip, count: count.min(LARGEST_PAGE), search }
    }
}

/// A queue, which need not exist yet. A handle takes long while Redis is away, so the wait is limited.
async fn any(app: &App, name: &str) -> Result<Queue, Problem> {
    match tokio::time::timeout(HANDLE_PATIENCE, app.broker.queue(name)).await {
        Ok(queue) => Ok(queue?),
        Err(_) => Err(Problem::unavailable("the queue")),
    }
}

/// Changes a setting that Redis keeps, when it is this request's turn: nobody else who asks changes it between the
/// comparison of its version and the change.
pub(crate) async fn in_turn<T>(
    app: &App,
    setting: &str,
    change: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    let turn = app.broker.edit(setting).await?.ok_or_else(|| Problem::busy("the setting"))?;
    let changed = change.await;
    if let Err(error) = turn.end().await {
        tracing::debug!(%error, "the turn of an editor ends by itself");
    }
    changed
}

/// A queue that exists; a request for one that does not must not create it.
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
    Err(Problem::new(Code::NotFound, detail))
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match &error {
            Error::InvalidName { .. }
            | Error::PayloadTooLarge { .. }
            | Error::InvalidOption { .. }
            | Error::InvalidSchedule(_) => Self::new(Code::Invalid, error.to_string()),
            Error::Busy { .. } => {
                let detail = format!("{error}; wait for them, or use force and lose their work");
                Self::new(Code::Busy, detail)
            }
            Error::ChildFailed { .. } | Error::OfSchedule { .. } => {
                Self::new(Code::Conflict, error.to_string())
            }
            error if error.is_outage() => {
                tracing::warn!(%error, "request refused");
                Self::unavailable("the queue")
            }
            error => Self::internal(error),
        }
    }
}
