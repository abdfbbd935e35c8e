//! THE LIST: every job that a worker runs, one line each.
//!
//! Adding a job? Write a type that implements [`stampede_broker::Work`] in a file named like it, in the crate
//! that holds its business, and add a line here. The queues a worker serves, its slots, the queues that the
//! autoscaler and the coordinator watch, and the notes about jobs that come back are read from this list.
//! A job that touches more than the environment has adds it to `environment.rs`.

use stampede_broker::JobList;
use stampede_ticketing::GenerateTicket;

use crate::Environment;

/// All jobs, with what they may touch.
pub fn jobs(environment: &Environment) -> JobList {
    JobList::default().with::<GenerateTicket>(environment.ticketing.clone())
}
