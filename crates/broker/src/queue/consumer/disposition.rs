//! What happens to a job whose run is over: decided here, written by `finish.rs`.

use std::time::Duration;

use super::EventKind;
use crate::{Job, Outcome};

/// The longest delay of a job; BullMQ's scores have no room for more.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// What happens to a job whose run is over.
pub(super) enum Disposition {
    /// `progress`: the job has reported progress, so it ends at 100.
    Completed {
        result: String,
        progress: bool,
    },
    /// Permanently, with a dead letter.
    Failed(Failure),
    /// On request: without a dead letter, so that it is not replayed with others.
    Cancelled(Failure),
    Retried {
        delay: Duration,
        failure: Failure,
    },
    Snoozed {
        delay: Duration,
    },
}

/// Why an attempt failed.
pub(super) struct Failure {
    pub(super) reason: String,
    /// The entry for the job's `stacktrace`.
    pub(super) trace: String,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self { trace: reason.clone(), reason }
    }
}

impl Failure {
    /// With the stack trace of a panic, if it was one.
    pub(super) fn with(self, trace: Option<String>) -> Self {
        Self { trace: trace.unwrap_or(self.trace), ..self }
    }
}

impl Disposition {
    pub(super) fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed(failure) | Self::Cancelled(failure) | Self::Retried { failure, .. } => {
                Some(failure)
            }
            Self::Completed { .. } | Self::Snoozed { .. } => None,
        }
    }

    /// Whether the job never runs again.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Completed { .. } | Self::Failed(_) | Self::Cancelled(_))
    }

    pub(super) fn event(&self) -> EventKind {
        match self {
            Self::Completed { .. } => EventKind::Completed,
            Self::Failed(failure) | Self::Cancelled(failure) => {
                EventKind::Failed(failure.reason.clone())
            }
            Self::Retried { failure, .. } => EventKind::Retried(failure.reason.clone()),
            Self::Snoozed { .. } => EventKind::Snoozed,
        }
    }

    /// Fields of the job's hash that are written, besides those that the script writes.
    pub(super) fn fields(&self, stack: Option<&[String]>) -> Vec<(&'static str, String)> {
        let mut fields = match self.failure() {
            Some(failure) => vec![
                ("failedReason", failure.reason.clone()),
                ("stacktrace", serde_json::json!(stack.unwrap_or_default()).to_string()),
            ],
            None => Vec::new(),
        };
        match self {
            Self::Completed { progress: true, .. } => fields.push(("progress", "100".to_owned())),
            // The request is fulfilled; when the job is tried again, it is not cancelled again.
            Self::Cancelled(_) => fields.push(("cxl", String::new())),
            _ => {}
        }
        fields
    }
}

/// Pure: what an outcome means for a job with its attempts so far.
pub(super) fn decide(
    job: &Job,
    outcome: Outcome,
    attempts_of_type: u32,
    backoff: impl Fn(u32) -> Duration,
) -> Disposition {
    let attempts_made = job.attempts_made.saturating_add(1);
    let attempts = if job.attempts > 0 { job.attempts } else { attempts_of_type };
    let (reason, delay) = match outcome {
        Outcome::Done(value) => {
            return Disposition::Completed { result: value.to_string(), progress: false };
        }
        Outcome::Discard(reason) => return Disposition::Failed(reason.into()),
        Outcome::Snooze(delay) => return Disposition::Snoozed { delay: delay.min(LONGEST) },
        Outcome::Retry(reason) => (reason, None),
        Outcome::RetryAfter(reason, delay) => (reason, Some(delay)),
    };
    if attempts_made >= attempts {
        return Disposition::Failed(reason.into());
    }
    let delay = delay.unwrap_or_else(|| backoff(attempts_made)).min(LONGEST);
    Disposition::Retried { delay, failure: reason.into() }
}

/// The job's `stacktrace` with one more entry.
pub(super) fn stack_trace(job: &Job, entry: &str) -> Vec<String> {
    let skip = (job.stack_trace.len() + 1).saturating_sub(job.stack_trace_limit);
    job.stack_trace.iter().cloned().chain([entry.to_owned()]).skip(skip).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::json;

    use super::*;

    fn job(fields: &[(&str, &str)]) -> Job {
        let fields: HashMap<String, String> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Job::from_hash("a".to_owned(), fields)
    }

    #[test]
    fn the_last_attempt_fails_for_good_and_a_snooze_is_none() {
        let job = job(&[("name", "n"), ("data", "{}"), ("opts", r#"{"attempts":2}"#)]);
        let pause = |_| Duration::from_secs(1);
        let retried = decide(&job, Outcome::Retry("x".into()), 9, pause);
        assert!(matches!(retried, Disposition::Retried { delay, .. } if delay == pause(1)));
        let last = Job { attempts_made: 1, ..job };
        assert!(matches!(
            decide(&last, Outcome::Retry("x".into()), 9, pause),
            Disposition::Failed(_)
        ));
        let snoozed = decide(&last, Outcome::Snooze(Duration::MAX), 9, pause);
        assert!(matches!(snoozed, Disposition::Snoozed { delay } if delay == LONGEST));
        let unsaid = Job { attempts: 0, ..last };
        assert!(matches!(
            decide(&unsaid, Outcome::Retry("x".into()), 1, pause),
            Disposition::Failed(_)
        ));
    }

    #[test]
    fn only_the_newest_traces_are_kept() {
        let lines = json!(["one", "two"]).to_string();
        let mut job = job(&[("name", "n"), ("data", "{}"), ("stacktrace", &lines)]);
        assert_eq!(stack_trace(&job, "three"), ["one", "two", "three"]);
        job.stack_trace_limit = 2;
        assert_eq!(stack_trace(&job, "three"), ["two", "three"]);
        job.stack_trace_limit = 0;
        assert!(stack_trace(&job, "three").is_empty());
    }
}
