//! Watching the runs of a consumer, for metrics.

use std::fmt::Debug;
use std::time::Duration;

use super::disposition::Disposition;
use crate::Job;

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

impl Job {
    /// How long the job has waited, if this is its first run. Later runs do not tell when they could begin.
    pub(super) fn first_wait(&self) -> Option<Duration> {
        let could_begin = self.timestamp.saturating_add(self.delay_ms);
        let wait = Duration::from_millis(self.processed_on.saturating_sub(could_begin));
        (self.starts <= 1 && self.timestamp > 0).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_waits_from_the_time_at_which_it_could_begin() {
        let job = |fields: &[(&str, &str)]| {
            let usual =
                [("name", "x"), ("data", "{}"), ("timestamp", "1000"), ("processedOn", "9000")];
            let all = usual.iter().chain(fields).map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            Job::from_hash("id".into(), all.collect())
        };
        let delayed = ("opts", r#"{"delay":7500}"#);
        for (fields, waited) in [
            (&[("ats", "1")][..], Some(8_000)),
            (&[("ats", "1"), delayed], Some(500)),
            (&[("ats", "1"), ("opts", r#"{"delay":60000}"#)], Some(0)),
            (&[("ats", "2")], None),
            (&[("ats", "1"), ("timestamp", "?")], None),
        ] {
            assert_eq!(job(fields).first_wait(), waited.map(Duration::from_millis), "{fields:?}");
        }
    }
}
