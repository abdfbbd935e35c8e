//! Runs of jobs.

use std::sync::Arc;
use std::time::Duration;

use crate::Metrics;
use crate::values::{Counter, Histogram};

/// How a run of a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd {
    /// The job is done.
    Completed,
    /// The job failed permanently, and is a dead letter.
    Failed,
    /// The attempt failed; there will be another.
    Retried,
    /// The job comes back later, and has used no attempt.
    Snoozed,
    /// The job was cancelled while it ran.
    Cancelled,
}

/// The metrics of a queue's jobs, looked up once: counting takes no lock. Cheap to clone.
#[derive(Debug, Clone)]
pub struct JobMetrics(Arc<Series>);

#[derive(Debug)]
struct Series {
    completed: Arc<Counter>,
    failed: Arc<Counter>,
    retried: Arc<Counter>,
    snoozed: Arc<Counter>,
    cancelled: Arc<Counter>,
    stalled: Arc<Counter>,
    duration: Arc<Histogram>,
    run: Arc<Histogram>,
    wait: Arc<Histogram>,
}

impl Metrics {
    /// The metrics of a queue's jobs. They are shown from now on, as 0.
    pub fn jobs(&self, queue: &str) -> JobMetrics {
        let table = &self.table;
        let end = |status: &str| table.jobs.with(&[queue, status]);
        JobMetrics(Arc::new(Series {
            completed: end("completed"),
            failed: end("failed"),
            retried: end("retried"),
            snoozed: end("snoozed"),
            cancelled: end("cancelled"),
            stalled: end("stalled"),
            duration: table.job_duration.with(&[queue]),
            run: table.job_run.with(&[queue]),
            wait: table.job_wait.with(&[queue]),
        }))
    }
}

impl JobMetrics {
    /// A job begins that has waited for so long for its first run.
    pub fn waited(&self, wait: Duration) {
        self.0.wait.observe(wait);
    }

    /// A run took so long.
    pub fn ran(&self, took: Duration) {
        self.0.run.observe(took);
    }

    /// The end of a run is written; `took`: how long the handler ran, if it did.
    pub fn ended(&self, end: JobEnd, took: Option<Duration>) {
        let series = &*self.0;
        let counter = match end {
            JobEnd::Completed => &series.completed,
            JobEnd::Failed => &series.failed,
            JobEnd::Retried => &series.retried,
            JobEnd::Snoozed => &series.snoozed,
            JobEnd::Cancelled => &series.cancelled,
        };
        counter.add(1);
        if let (JobEnd::Completed, Some(took)) = (end, took) {
            series.duration.observe(took);
        }
    }

    /// So many jobs were found whose worker had disappeared.
    pub fn stalled(&self, jobs: usize) {
        self.0.stalled.add(jobs as u64);
    }
}
