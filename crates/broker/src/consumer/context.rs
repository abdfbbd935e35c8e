//! What a handler can do besides its work.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::limits::{Limits, Rate};
use crate::{Breaker, BreakerConfig, Error, Job, Permit, Queue, scripts};

/// The handler's way to Redis while it works on one job.
#[derive(Clone)]
pub struct JobContext {
    queue: Queue,
    job_id: String,
    keep_logs: Option<u64>,
    /// The job has shown how far it is.
    shows_progress: Arc<AtomicBool>,
    over: CancellationToken,
    /// Its time is over.
    overdue: Arc<AtomicBool>,
}

impl JobContext {
    pub(super) fn new(queue: &Queue, job: &Job) -> Self {
        Self {
            queue: queue.clone(),
            job_id: job.id.clone(),
            keep_logs: job.keep_logs,
            shows_progress: Arc::new(AtomicBool::new(job.shows_progress)),
            over: CancellationToken::new(),
            overdue: Arc::default(),
        }
    }

    /// Whatever the handler still waits for took too long.
    pub(super) fn set_overdue(&self) {
        self.overdue.store(true, Ordering::Relaxed);
    }

    /// Is cancelled when this run is over, in whatever way. A handler itself is just dropped when its job
    /// is cancelled, takes too long or is lost to another worker; what it has begun on other threads or in
    /// other processes is not, and has to look at this.
    pub fn cancellation(&self) -> CancellationToken {
        self.over.clone()
    }

    /// Whether it has been shown how far the job is, in numbers; then it ends at 100.
    pub(super) fn shows_progress(&self) -> bool {
        self.shows_progress.load(Ordering::Relaxed)
    }

    /// Shows how far the job is: a percentage, or any JSON.
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

    /// Why children of the job failed that may do so, by the key of the child.
    pub async fn children_failures(&self) -> Result<HashMap<String, String>, Error> {
        self.queue.children_failures(&self.job_id).await
    }

    /// Removes those children of the job that nobody has begun: it began because one failed
    /// ([`crate::OnFailure::RunParent`]), and does not need the others. A job that is done before its children are
    /// waits for them, and runs again.
    pub async fn remove_unprocessed_children(&self) -> Result<(), Error> {
        let mut redis = self.queue.broker().redis();
        scripts::remove_unprocessed_children(&mut redis, self.queue.keys(), &self.job_id).await
    }

    /// Asks for a permit of a rate limit, such as `account:17`. Without one: [`crate::Outcome::Snooze`].
    ///
    /// What it is for is to begin at once. A handler that prepares something in between asks
    /// [`crate::Taken::is_fresh`], and for another if it is not.
    pub async fn permit(&self, name: &str, otherwise: Option<Rate>) -> Result<Permit, Error> {
        self.limits().take_as(&self.job_id, name, otherwise).await
    }

    /// All rate limits.
    pub fn limits(&self) -> Limits {
        self.queue.broker().limits()
    }

    /// The circuit breaker of an outside service. A call that is on its way when the job's time limit is over
    /// counts as failed.
    pub fn breaker(&self, name: &str, config: BreakerConfig) -> Breaker {
        self.queue.broker().breaker(name, config).blaming_the_overdue(self.overdue.clone())
    }
}
