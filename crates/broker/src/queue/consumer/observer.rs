//! Watching the runs of a consumer, for metrics.

use std::fmt::Debug;
use std::time::Duration;

use super::disposition::Disposition;

/// How a run ended, once that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
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

/// Is told of every run of a consumer, by the slots themselves: it must neither wait nor take a lock.
pub trait RunObserver: Debug + Send + Sync + 'static {
    /// A job begins its first run, so long after it could have begun. The time at which it could is that of the process that added
    /// it; the parent of a flow could begin when it was added.
    fn waited(&self, _wait: Duration) {}

    /// A handler ran so long, however its run ended. Handlers that were dropped are not told.
    fn ran(&self, _took: Duration) {}

    /// The end of a run is written. `took`: how long the handler ran, unless it was dropped or not called.
    fn ended(&self, _end: RunEnd, _took: Option<Duration>) {}

    /// Jobs were found whose worker had disappeared; they wait again.
    fn stalled(&self, _jobs: usize) {}
}

/// Watches nothing.
#[derive(Debug)]
pub(super) struct Nobody;

impl RunObserver for Nobody {}

impl Disposition {
    /// What is told of it.
    pub(super) fn end(&self) -> RunEnd {
        match self {
            Self::Completed { .. } => RunEnd::Completed,
            Self::Failed(_) => RunEnd::Failed,
            Self::Cancelled(_) => RunEnd::Cancelled,
            Self::Retried { .. } => RunEnd::Retried,
            Self::Snoozed { .. } => RunEnd::Snoozed,
        }
    }
}
