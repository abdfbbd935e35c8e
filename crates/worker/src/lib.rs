//! The worker process: takes jobs from the queues of its list and runs them.
//!
//! - `jobs.rs`: the list of all jobs, [`jobs()`].
//! - [`Environment`]: what jobs may touch.
//! - [`run()`]: one consumer for each queue, with slots of its own, so that slow jobs of one queue do not
//!   hold up another.
//! - [`Heartbeat`]: announces that the worker lives and how busy it is.
//!
//! What a job does is in the crate of its business, such as `ticketing`. This crate must never serve HTTP.

mod counts;
mod environment;
mod heartbeat;
mod jobs;
mod run;

pub use environment::Environment;
pub use heartbeat::{Heartbeat, Report};
pub use jobs::jobs;
pub use run::run;
