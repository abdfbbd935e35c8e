//! Queues, jobs, dead letters, schedules, rate limits and circuit breakers.
//!
//! | file | holds |
//! |---|---|
//! | `status.rs` | the overview of all queues |
//! | `jobs.rs` | jobs of a queue: listed, read, added |
//! | `dead_letters.rs` | jobs that failed permanently |
//! | `schedules.rs` | jobs that come again and again |
//! | `limits.rs` | rate limits and circuit breakers |
//! | `changes.rs` | the answers of requests that change something |
//!
//! A job's `data`, `opts`, `progress` and `returnvalue` are any JSON: they belong to the job.

mod changes;
mod dead_letters;
mod jobs;
mod limits;
mod schedules;
mod status;

pub use changes::{BulkResult, Changed, Cleaned, Done, Drained, JobChanged, NotDone, Obliterated};
pub use dead_letters::{DeadLetter, DeadLetters, Selection};
pub use jobs::{Added, Backoff, Job, JobState, JobWithLog, Jobs, NewJob};
pub use limits::{Breaker, Breakers, Limit, Limits, Rate, Suspect, Suspects};
pub use schedules::{NewSchedule, Schedule, Schedules};
pub use status::{ActiveJob, Clean, QueueStatus, Status};
