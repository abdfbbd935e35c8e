//! The context of a run: log, progress, children, rate limits and circuit breakers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::queue::limits::{Limits, Rate};
use crate::queue::scripts;
use crate::{Breaker, BreakerConfig, Error, Job, Permit, Queue};

/// The context of one run of a job.
#[derive(Clone)]
pub struct JobContext {
    queue: Queue,
    job_id: String,
    attempts_made: u32,
    crashes: u32,
    keep_logs: Option<u64>,
    /// The job has reported its progress as a number.
    shows_progress: Arc<AtomicBool>,
    over: CancellationToken,
    /// The time limit of the job is over.
    overdue: Arc<AtomicBool>,
}

impl JobContext {
    pub(super) fn new(queue: &Queue, job: &Job) -> Self {
        Self {
            queue: queue.clone(),
            job_id: job.id.clone(),
            attempts_made: job.attempts_made,
            crashes: job.crashes,
            keep_logs: job.keep_logs,
            shows_progress: Arc::new(AtomicBool::new(job.shows_progress)),
            over: CancellationToken::new(),
            overdue: Arc::default(),
        }
    }

    /// Notes that the time limit is over: calls that have not returned took too long.
    pub(super) fn set_overdue(&self) {
        self.overdue.store(true, Ordering::Relaxed);
    }

    /// A token that is cancelled when this run is over. The handler itself is dropped when its job is cancelled, takes
    /// too long or is lost to another worker. Work that it has begun on other threads or in other processes is not
    /// dropped, and must watch this token.
    pub fn cancellation(&self) -> CancellationToken {
        self.over.clone()
    }

    /// Attempts that have ended before this one.
    pub fn attempts_made(&self) -> u32 {
        self.attempts_made
    }

    /// Workers that died or lost the job's lock while they ran it: what it works with may be the cause.
    pub fn crashes(&self) -> u32 {
        self.crashes
    }

    /// Whether the job has reported its progress as a number; then it ends at 100.
    pub(super) fn shows_progress(&self) -> bool {
        self.shows_progress.load(Ordering::Relaxed)
    }

    /// Reports the progress of the job: a percentage, or any JSON.
    pub async fn progress(&self, progress: impl Serialize) -> Result<(), Error> {
        let progress = serde_json::to_value(&progress).unwrap_or_default();
        self.shows_progress.store(progress.is_number(), Ordering::Relaxed);
        let progress = progress.to_string();
        let mut redis = self.queue.broker().redis();
        scripts::update_progress(&mut redis, self.queue.keys(), &self.job_id, &progress).await
    }

    /// Adds a line to the job's log; only the newest are kept if its options say so.
    pub async fn log(&self, line: &str) -> Result<(), Error> {
        let mut redis = self.queue.broker().redis();
        scripts::add_log(&mut redis, self.queue.keys(), &self.job_id, line, self.keep_logs).await
    }

    /// Results of the job's children in a flow, by the key of the child (`bull:payments:17`).
    pub async fn children_values(&self) -> Result<HashMap<String, Value>, Error> {
        self.queue.children_values(&self.job_id).await
    }

    /// Failure reasons of the job's children that were allowed to fail, by the key of the child.
    pub async fn children_failures(&self) -> Result<HashMap<String, String>, Error> {
        self.queue.children_failures(&self.job_id).await
    }

    /// Removes the children of the job that no worker has begun: the job began because one child failed
    /// ([`crate::OnFailure::RunParent`]), and does not need the others. A job that is done before its children waits for
    /// them, and runs again.
    pub async fn remove_unprocessed_children(&self) -> Result<(), Error> {
        let mut redis = self.queue.broker().redis();
        scripts::remove_unprocessed_children(&mut redis, self.queue.keys(), &self.job_id).await
    }

    /// Asks for a permit of a rate limit, such as `account:17`. Without one: [`crate::Outcome::Snooze`].
    ///
    /// The operation is to begin at once. A handler that prepares something in between checks
    /// [`crate::Taken::is_fresh`], and asks for another permit if it is not.
    pub async fn permit(&self, name: &str, otherwise: Option<Rate>) -> Result<Permit, Error> {
        self.limits().take_as(&self.job_id, name, otherwise).await
    }

    /// The id of the job.
    pub fn job_id(&self) -> &str {
        &self.job_id
    }

    /// All rate limits.
    pub fn limits(&self) -> Limits {
        self.queue.broker().limits()
    }

    /// The circuit breaker of an outside service. A call that has not returned when the job's time limit is over counts
    /// as failed.
    pub fn breaker(&self, name: &str, config: BreakerConfig) -> Breaker {
        self.queue.broker().breaker(name, config).blaming_the_overdue(self.overdue.clone())
    }
}
