//! A worker process without tickets: jobs of the test on two queues of a real redis-server.
#![allow(clippy::unwrap_used)]

mod queues;
mod refused;
mod stage;
mod stopping;
