//! Counts the runs of jobs of one queue.

use std::time::Duration;

use stampede_broker::{RunEnd, RunObserver};
use stampede_telemetry::{JobEnd, JobMetrics};

/// The metrics of a queue, as its consumer tells them. Its counters were looked up before: counting takes no lock.
#[derive(Debug)]
pub(crate) struct Counts(pub(crate) JobMetrics);

impl RunObserver for Counts {
    fn waited(&self, wait: Duration) {
        self.0.waited(wait);
    }

    fn ran(&self, took: Duration) {
        self.0.ran(took);
    }

    fn ended(&self, end: RunEnd, took: Option<Duration>) {
        let end = match end {
            RunEnd::Completed => JobEnd::Completed,
            RunEnd::Failed => JobEnd::Failed,
            RunEnd::Retried => JobEnd::Retried,
            RunEnd::Snoozed => JobEnd::Snoozed,
            RunEnd::Cancelled => JobEnd::Cancelled,
        };
        self.0.ended(end, took);
    }

    fn stalled(&self, jobs: usize) {
        self.0.stalled(jobs);
    }
}
