//! Inspecting queues: jobs as an operator sees them, by API, command line or dashboard.
//!
//! Jobs are read from their hashes, and tolerantly: malformed jobs are among those an operator wants to see.

use std::collections::HashMap;

use redis::{cmd, pipe};
use serde::Serialize;
use serde_json::Value;

use crate::{Error, Queue};

/// Jobs read in one call.
const PAGE: usize = 200;
/// Jobs that one search reads before it returns where to continue.
const SEARCH_AT_MOST: usize = 20_000;

/// The state of a job; the names are BullMQ's.
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
    /// Has failed permanently.
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

    pub(crate) fn key(self) -> &'static str {
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

/// A job as an operator sees it. A field that its hash lacks, or has in another form, is empty.
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
    /// The worker that ran it.
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
        // As BullMQ shows a job that has not told.
        let progress = if progress.is_null() { Value::from(0) } else { progress };
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

/// A page of jobs.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// Jobs, at most as many as were asked for.
    pub jobs: Vec<JobView>,
    /// Give this to go on; `None`: everything was looked at.
    pub next: Option<usize>,
}

impl Queue {
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
            // A job that changes its state meanwhile is shown twice or not at all.
            skip = skip.saturating_sub(self.size(*state).await?);
        }
        Ok(found)
    }

    /// The number of jobs in a state.
    pub async fn size(&self, state: State) -> Result<usize, Error> {
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

    pub(crate) async fn state_of(&self, job_id: &str) -> Result<Option<State>, Error> {
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
