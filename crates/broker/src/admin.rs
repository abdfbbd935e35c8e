//! Looking into queues and tidying them up: what an operator does, by API, command line or dashboard.
//!
//! Jobs are read straight from their hashes and tolerantly, for what is worth looking at is often odd.
//! Whatever changes something goes through the official crate's scripts, so that Node's clients see
//! the same events as if one of them had done it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bullmq::error::error_code::{JOB_NOT_EXIST, JOB_NOT_IN_STATE};
use futures::stream::{self, StreamExt};
use redis::{cmd, pipe};
use serde::Serialize;
use serde_json::Value;

use crate::names::{check_job_to_touch, check_queue_name};
use crate::scripts::{self, Again};
use crate::{Broker, Error, Queue, Replayed, now_ms};

/// Jobs looked at in one go.
const PAGE: usize = 200;
/// Jobs that are retried at the same time.
const RETRY_AT_ONCE: usize = 32;
/// Jobs that are cleaned up in one call.
const CLEAN_AT_ONCE: usize = 10_000;
/// Jobs that one search looks through before it says where to go on.
const SEARCH_AT_MOST: usize = 20_000;

/// For how long queues are not looked for again.
const NAMES_KNOWN: Duration = Duration::from_secs(5);

/// The names of queues that were found or used of late. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct QueueNames(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    found: Option<(Instant, BTreeSet<String>)>,
    used: BTreeSet<String>,
}

impl QueueNames {
    /// Somebody here has a handle on it.
    pub(crate) fn use_one(&self, name: &str) {
        self.lock().used.insert(name.to_owned());
    }

    fn recently_found(&self) -> Option<BTreeSet<String>> {
        let known = self.lock();
        let (when, names) = known.found.as_ref()?;
        (when.elapsed() < NAMES_KNOWN).then(|| names.clone())
    }

    fn found(&self, names: BTreeSet<String>) {
        let mut known = self.lock();
        known.found = Some((Instant::now(), names));
        known.used.clear();
    }

    fn used(&self) -> BTreeSet<String> {
        self.lock().used.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a job stands; the names are BullMQ's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Waits for a worker.
    Waiting,
    /// Waits for a worker, by priority.
    Prioritized,
    /// Is being worked on.
    Active,
    /// Waits for its time.
    Delayed,
    /// Waits for its children in a flow.
    WaitingChildren,
    /// Is done.
    Completed,
    /// Has failed for good.
    Failed,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Prioritized,
        Self::Active,
        Self::Delayed,
        Self::WaitingChildren,
        Self::Completed,
        Self::Failed,
    ];

    /// Its name, and the part of the queue's keys that holds it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Prioritized => "prioritized",
            Self::Active => "active",
            Self::Delayed => "delayed",
            Self::WaitingChildren => "waiting-children",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// The states of jobs that wait for nothing but a worker: the list of those without a priority, which
    /// are taken first, and those with one.
    pub const WAITING: [Self; 2] = [Self::Waiting, Self::Prioritized];

    /// The state of this name; `wait` is BullMQ's other word for waiting.
    pub fn parse(name: &str) -> Option<Self> {
        let name = if name == "wait" { "waiting" } else { name };
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    fn key(self) -> &'static str {
        if self == Self::Waiting { "wait" } else { self.name() }
    }

    /// The command that reads its ids, in the order in which people expect them.
    fn range(self) -> &'static str {
        match self {
            Self::Waiting | Self::Active => "LRANGE",
            Self::Completed | Self::Failed => "ZREVRANGE",
            Self::Prioritized | Self::Delayed | Self::WaitingChildren => "ZRANGE",
        }
    }
}

/// A job as an operator sees it. What its hash does not have, or has in another form, is left out.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    /// Its id.
    pub id: String,
    /// Its type.
    pub name: String,
    /// Where it stands.
    pub state: State,
    /// Its payload.
    pub data: Value,
    /// Its options.
    pub opts: Value,
    /// How far it is.
    pub progress: Value,
    /// Attempts that have ended.
    pub attempts_made: u64,
    /// When it was added, in milliseconds since 1970.
    pub timestamp: Option<u64>,
    /// When it last began.
    pub processed_on: Option<u64>,
    /// When it ended.
    pub finished_on: Option<u64>,
    /// Who worked on it.
    pub processed_by: Option<String>,
    /// Why its last attempt failed.
    pub failed_reason: Option<String>,
    /// What was written about its attempts.
    pub stacktrace: Vec<String>,
    /// Its result.
    pub returnvalue: Value,
}

impl JobView {
    fn read(id: String, state: State, mut fields: HashMap<String, String>) -> Self {
        let mut json = |name: &str| match fields.remove(name) {
            None => Value::Null,
            Some(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        };
        let (data, opts, progress) = (json("data"), json("opts"), json("progress"));
        let (returnvalue, stacktrace) = (json("returnvalue"), json("stacktrace"));
        let number =
            |name: &str| fields.get(name).and_then(|n| n.parse::<f64>().ok()).map(|n| n as u64);
        let lines = stacktrace.as_array().into_iter().flatten();
        Self {
            attempts_made: number("atm").unwrap_or(0),
            timestamp: number("timestamp"),
            processed_on: number("processedOn"),
            finished_on: number("finishedOn"),
            stacktrace: lines.filter_map(|line| line.as_str().map(str::to_owned)).collect(),
            processed_by: fields.get("pb").cloned(),
            failed_reason: fields.get("failedReason").cloned(),
            name: fields.remove("name").unwrap_or_default(),
            id,
            state,
            data,
            opts,
            progress,
            returnvalue,
        }
    }
}

/// What a search found, and where it left off.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// Jobs, at most as many as were asked for.
    pub jobs: Vec<JobView>,
    /// Give this to go on; `None`: everything was looked at.
    pub next: Option<usize>,
}

/// Jobs that an operation leaves alone, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delayed {
    /// Delayed jobs stay.
    Keep,
    /// They go too.
    Too,
}

/// Whether a queue may be destroyed while somebody works on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenActive {
    /// Then it is refused.
    Refuse,
    /// Their work is lost.
    Destroy,
}

impl Broker {
    /// Whether a queue of this name exists.
    pub async fn has_queue(&self, name: &str) -> Result<bool, Error> {
        check_queue_name(name)?;
        let meta = crate::keys::Keys::new(self.prefix(), name).part("meta");
        Ok(cmd("EXISTS").arg(meta).query_async(&mut self.redis()).await?)
    }

    /// The names of all queues in this Redis, dead-letter queues among them. One that others have just made may
    /// be missing for some seconds: looking for them means looking at all keys there are.
    pub async fn queue_names(&self) -> Result<BTreeSet<String>, Error> {
        let mut names = match self.names().recently_found() {
            Some(names) => names,
            None => {
                let names = self.find_queue_names().await?;
                self.names().found(names.clone());
                names
            }
        };
        names.extend(self.names().used());
        let mut are_there = pipe();
        for name in &names {
            are_there.exists(crate::keys::Keys::new(self.prefix(), name).part("meta"));
        }
        if names.is_empty() {
            return Ok(names);
        }
        let are_there: Vec<bool> = are_there.query_async(&mut self.redis()).await?;
        let there = names.into_iter().zip(are_there).filter(|(_, is_there)| *is_there);
        Ok(there.map(|(name, _)| name).collect())
    }

    async fn find_queue_names(&self) -> Result<BTreeSet<String>, Error> {
        let before = format!("{}:", self.prefix());
        let mut names = BTreeSet::new();
        let mut cursor = 0_u64;
        loop {
            let mut scan = cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(format!("{before}*:meta")).arg("COUNT").arg(1000);
            let (next, keys): (u64, Vec<String>) = self.ask_home(scan).await?;
            let name =
                |key: &String| Some(key.strip_prefix(&before)?.strip_suffix(":meta")?.to_owned());
            names
                .extend(keys.iter().filter_map(name).filter(|name| check_queue_name(name).is_ok()));
            if next == 0 {
                return Ok(names);
            }
            cursor = next;
        }
    }
}

impl Queue {
    /// Lets no worker take another job, until resumed.
    pub async fn pause(&self) -> Result<(), Error> {
        Ok(self.bull().pause().await?)
    }

    /// Lets workers go on.
    pub async fn resume(&self) -> Result<(), Error> {
        Ok(self.bull().resume().await?)
    }

    /// Whether it is paused.
    pub async fn is_paused(&self) -> Result<bool, Error> {
        self.ask(|| self.bull().is_paused()).await
    }

    /// Removes all jobs that wait; returns how many. What runs, what has ended and the next jobs of schedules stay.
    ///
    /// BullMQ's own script for this cuts off the wrong end of the list when a schedule's job is in it.
    pub async fn drain(&self, delayed: Delayed) -> Result<usize, Error> {
        let delayed = (delayed == Delayed::Too).then_some(State::Delayed);
        let mut removed = 0;
        for state in State::WAITING.into_iter().chain(delayed) {
            removed += self.clean(state, Duration::ZERO, u32::MAX).await?.len();
        }
        Ok(removed)
    }

    /// Puts all failed jobs back to wait, as [`Queue::retry`] does: also those of other software, which makes no
    /// dead letters.
    pub async fn retry_all(&self) -> Result<Replayed, Error> {
        let mut redis = self.broker().redis();
        let failed = self.keys().part("failed");
        // Oldest first.
        let ids: Vec<String> =
            cmd("ZRANGE").arg(failed).arg(0).arg(-1).query_async(&mut redis).await?;
        let each = stream::iter(ids).map(|id| async move {
            let retried = self.retry(&id).await;
            (id, retried)
        });
        Replayed::of(each.buffered(RETRY_AT_ONCE)).await
    }

    /// Removes jobs in a state that are older than `grace`, at most `limit`; returns their ids.
    pub async fn clean(
        &self,
        state: State,
        grace: Duration,
        limit: u32,
    ) -> Result<Vec<String>, Error> {
        let grace_ms = grace.as_millis() as u64;
        let mut removed = Vec::new();
        // The crate cleans in steps of this size, the last of which it does not shorten.
        while removed.len() < limit as usize {
            let step = (limit as usize - removed.len()).min(CLEAN_AT_ONCE) as u32;
            let gone = self.bull().clean(grace_ms, step, state.key()).await?;
            let is_last = gone.len() < step as usize;
            removed.extend(gone);
            if is_last {
                break;
            }
        }
        Ok(removed)
    }

    /// Puts a failed job back to wait, with all its attempts, and takes its dead letter away. In a flow, it takes
    /// those along that failed because of it. `Ok(false)`: it has not failed.
    pub async fn retry(&self, job_id: &str) -> Result<bool, Error> {
        let mut redis = self.broker().redis();
        check_job_to_touch(job_id)?;
        match scripts::replay(&mut redis, self.keys(), job_id, None, None, now_ms()).await? {
            Again::Waits => self.wake_parents(job_id).await.map(|()| true),
            Again::NotFailed | Again::Missing | Again::Changed => Ok(false),
            Again::Blocked(child) => Err(Error::ChildFailed { id: job_id.to_owned(), child }),
        }
    }

    /// Lets a delayed job begin now. `Ok(false)`: it is not delayed.
    pub async fn promote(&self, job_id: &str) -> Result<bool, Error> {
        let Some(job) = self.bull().get_job(job_id).await? else { return Ok(false) };
        if self.state_of(job_id).await? != Some(State::Delayed) {
            return Ok(false);
        }
        match job.promote().await {
            // Its time has come meanwhile.
            Err(bullmq::Error::Script { code: JOB_NOT_IN_STATE | JOB_NOT_EXIST, .. }) => Ok(false),
            promoted => Ok(promoted.map(|_| true)?),
        }
    }

    /// Destroys the queue with everything in it. Nobody takes jobs from it meanwhile.
    pub async fn obliterate(&self, when_active: WhenActive) -> Result<(), Error> {
        let was_paused = self.is_paused().await?;
        self.pause().await?;
        // Of a paused queue nobody takes another one. (The crate does not ask BullMQ's script to refuse.)
        if when_active == WhenActive::Refuse && self.size(State::Active).await? > 0 {
            if !was_paused {
                self.resume().await?;
            }
            return Err(Error::Busy { queue: self.name().to_owned() });
        }
        Ok(self.bull().obliterate(true, 1000).await?)
    }

    /// Most jobs that all workers together may run at a time; `None` lifts the limit.
    pub async fn set_global_concurrency(&self, jobs: Option<u64>) -> Result<(), Error> {
        match jobs {
            Some(jobs) => Ok(self.bull().set_global_concurrency(jobs).await?),
            None => Ok(self.bull().remove_global_concurrency().await?),
        }
    }

    /// That limit, if there is one.
    pub async fn global_concurrency(&self) -> Result<Option<u64>, Error> {
        let mut redis = self.broker().redis();
        let meta = self.keys().part("meta");
        let set: Option<String> =
            cmd("HGET").arg(meta).arg("concurrency").query_async(&mut redis).await?;
        Ok(set.and_then(|jobs| jobs.parse().ok()))
    }

    /// Jobs in a state.
    pub async fn jobs(
        &self,
        state: State,
        skip: usize,
        count: usize,
    ) -> Result<Vec<JobView>, Error> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut redis = self.broker().redis();
        let ids: Vec<String> = cmd(state.range())
            .arg(self.keys().part(state.key()))
            .arg(skip)
            .arg(skip + count - 1)
            .query_async(&mut redis)
            .await?;
        let mut hashes = pipe();
        for id in &ids {
            hashes.hgetall(self.keys().part(id));
        }
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let hashes: Vec<HashMap<String, String>> = hashes.query_async(&mut redis).await?;
        Ok(ids.into_iter().zip(hashes).map(|(id, hash)| JobView::read(id, state, hash)).collect())
    }

    /// Jobs in several states, one state after the other.
    pub async fn jobs_in(
        &self,
        states: &[State],
        mut skip: usize,
        count: usize,
    ) -> Result<Vec<JobView>, Error> {
        let mut found = Vec::new();
        for (at, state) in states.iter().enumerate() {
            found.extend(self.jobs(*state, skip, count - found.len()).await?);
            if found.len() >= count || at + 1 == states.len() {
                break;
            }
            // A job that moves meanwhile is shown twice or not at all; a queue stands still for nobody.
            skip = skip.saturating_sub(self.size(*state).await?);
        }
        Ok(found)
    }

    async fn size(&self, state: State) -> Result<usize, Error> {
        let size = if state.range() == "LRANGE" { "LLEN" } else { "ZCARD" };
        let key = self.keys().part(state.key());
        Ok(cmd(size).arg(key).query_async(&mut self.broker().redis()).await?)
    }

    /// One job.
    pub async fn job(&self, job_id: &str) -> Result<Option<JobView>, Error> {
        let Some(state) = self.state_of(job_id).await? else { return Ok(None) };
        let mut redis = self.broker().redis();
        let key = self.keys().part(job_id);
        let hash: HashMap<String, String> = cmd("HGETALL").arg(key).query_async(&mut redis).await?;
        Ok((!hash.is_empty()).then(|| JobView::read(job_id.to_owned(), state, hash)))
    }

    async fn state_of(&self, job_id: &str) -> Result<Option<State>, Error> {
        let state = self.ask(|| self.bull().get_job_state(job_id)).await?;
        Ok(State::parse(state.as_str()))
    }

    /// Lines of a job's log.
    pub async fn logs(&self, job_id: &str) -> Result<Vec<String>, Error> {
        let key = self.keys().part(&format!("{job_id}:logs"));
        Ok(cmd("LRANGE")
            .arg(key)
            .arg(-1000)
            .arg(-1)
            .query_async(&mut self.broker().redis())
            .await?)
    }

    /// Jobs in these states that contain a text in id, name or payload. Looks through a bounded number of
    /// them, from the `from`-th on, and says where to go on.
    pub async fn search(
        &self,
        states: &[State],
        text: &str,
        from: usize,
        count: usize,
    ) -> Result<Found, Error> {
        let mut jobs = Vec::new();
        let mut at = from;
        while jobs.len() < count && at < from + SEARCH_AT_MOST {
            let page = self.jobs_in(states, at, PAGE).await?;
            if page.is_empty() {
                return Ok(Found { jobs, next: None });
            }
            for job in page {
                if jobs.len() == count {
                    return Ok(Found { jobs, next: Some(at) });
                }
                at += 1;
                let data = job.data.to_string();
                if job.id.contains(text) || job.name.contains(text) || data.contains(text) {
                    jobs.push(job);
                }
            }
        }
        Ok(Found { jobs, next: Some(at) })
    }
}
