//! What a queue is told of a job.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

/// A job to be added: what it is, and how its queue treats it.
///
/// ```
/// # use std::time::Duration;
/// # use serde_json::json;
/// # use stampede_model::JobSpec;
/// let later = JobSpec {
///     id: "order-7".to_owned(),
///     delay: Duration::from_secs(60),
///     ..JobSpec::new("charge-payment", json!({ "order": 7 }))
/// };
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct JobSpec {
    /// The wire name of the job type.
    pub name: Cow<'static, str>,
    /// Adding a second job with the same id does nothing, so that adding can be repeated.
    pub id: String,
    /// The payload.
    pub data: Value,
    /// 1 is taken first; 0 means no priority, which comes before all others.
    pub priority: u32,
    /// It begins no sooner than this long from now.
    pub delay: Duration,
    /// How often it may be tried. Unless it says so, the policy of its type does.
    pub attempts: Option<u32>,
    /// How long to wait between tries; the same holds.
    pub backoff: Option<Backoff>,
    /// Whether it is one too many beside others that are not the same.
    pub deduplication: Option<Deduplication>,
    /// How long it can be looked at when it is completed.
    pub keep_completed: Keep,
    /// How long when it has failed. Its dead letter stays.
    pub keep_failed: Keep,
}

impl JobSpec {
    /// A job with an id of its own, kept for a day when it is completed and a week when it has failed.
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
    /// Always the same.
    Fixed(Duration),
    /// This, then twice that, four times, …
    Exponential(Duration),
    /// By a rule that whoever runs the job knows by this name.
    Named(String),
}

/// Which of several jobs about the same thing is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deduplication {
    /// What they are about.
    pub id: String,
    /// Which of them.
    pub which: Which,
}

/// Which of several jobs about the same thing is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The first; others are left out until it has ended.
    First,
    /// The first; others are left out for this long, whether it has ended or not.
    FirstWithin(Duration),
    /// The last: it waits for this long, and if another comes meanwhile, that one takes its place and
    /// waits anew.
    LastAfter(Duration),
    /// The first, and after it the last of those that came while it ran.
    FirstThenLast,
}

/// How long an ended job can be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Until somebody removes it.
    Forever,
    /// No longer than this, and no more than so many of its queue; 0 removes it at once.
    AtMost {
        /// In whole seconds, one at least.
        age: Duration,
        /// The newest stay.
        count: usize,
    },
}
