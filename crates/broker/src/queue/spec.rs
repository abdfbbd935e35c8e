//! A job to be added.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

/// A job to be added: its type, its payload and its options.
///
/// ```
/// # use std::time::Duration;
/// # use serde_json::json;
/// # use stampede_broker::JobSpec;
/// let later = JobSpec {
///     id: "order-7".to_owned(),
///     delay: Duration::from_secs(60),
///     ..JobSpec::new("charge-payment", json!({ "order": 7 }))
/// };
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct JobSpec {
    /// The name of the job type, as workers know it.
    pub name: Cow<'static, str>,
    /// Its id. Adding is idempotent: a second job with the same id is not added.
    pub id: String,
    /// The payload.
    pub data: Value,
    /// Jobs with priority 1 are taken first, then 2, and so on; jobs with 0, no priority, before all of them.
    pub priority: u32,
    /// It begins no sooner than this long from now.
    pub delay: Duration,
    /// How many attempts it has; `None`: as many as the policy of its type allows.
    pub attempts: Option<u32>,
    /// The pause between attempts; `None`: the policy of its type decides.
    pub backoff: Option<Backoff>,
    /// Skips or replaces this job if another with the same deduplication id exists.
    pub deduplication: Option<Deduplication>,
    /// How long its record is kept when it is completed.
    pub keep_completed: Keep,
    /// How long its record is kept when it has failed. Its dead letter stays.
    pub keep_failed: Keep,
}

impl JobSpec {
    /// A job with a new id, kept for a day when it is completed and for a week when it has failed.
    pub fn new(name: impl Into<Cow<'static, str>>, data: Value) -> Self {
        const DAY: Duration = Duration::from_secs(24 * 3600);
        Self {
            name: name.into(),
            id: Uuid::now_v7().to_string(),
            data,
            priority: 0,
            delay: Duration::ZERO,
            attempts: None,
            backoff: None,
            deduplication: None,
            keep_completed: Keep::AtMost { age: DAY, count: 10_000 },
            keep_failed: Keep::AtMost { age: 7 * DAY, count: 100_000 },
        }
    }
}

/// The pause before the next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backoff {
    /// One pause, equal before every attempt.
    Fixed(Duration),
    /// This pause, then twice as long, four times as long, …
    Exponential(Duration),
    /// By a rule of this name, which the handler knows ([`crate::Handler::custom_backoff`]).
    Named(String),
}

/// What happens to several jobs with the same deduplication id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deduplication {
    /// The deduplication id.
    pub id: String,
    /// Which of them is run.
    pub which: Which,
}

/// Which of several jobs with the same deduplication id is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The first; others are skipped until it has ended.
    First,
    /// The first; others are skipped for this long, whether it has ended or not.
    FirstWithin(Duration),
    /// The last: it waits for this long; another job that is added meanwhile replaces it and waits anew.
    LastAfter(Duration),
    /// The first, and after it the last of those that were added while it ran.
    FirstThenLast,
}

/// How long the record of an ended job is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Until it is removed.
    Forever,
    /// No longer than `age`, and no more than `count` of its queue; a count of 0 removes it at once.
    AtMost {
        /// The longest time, in whole seconds, at least one.
        age: Duration,
        /// How many records are kept: the newest.
        count: usize,
    },
}
