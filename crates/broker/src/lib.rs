//! Everything Stampede says to Redis, and the only crate that names `redis` or `bullmq`.
//!
//! Queues are BullMQ 6, byte for byte: producing, counting and administration go through the
//! official crate; consuming is our own ([`Consumer`]), running the same Lua scripts, because the
//! official worker loses jobs where a ticket system must not (see `ARCHITECTURE.md`).
//!
//! This crate moves jobs; it must never know what a job does.

mod address;
mod admin;
mod backoff;
mod breaker;
mod cluster;
mod connection;
mod consumer;
pub mod copy;
mod dead_letters;
mod error;
mod flows;
mod job;
mod keys;
mod limits;
mod mirror;
mod names;
mod queue;
mod reclaim;
mod schedules;
mod scripts;

pub use address::check_url;
pub use admin::{Delayed, Found, JobView, State, WhenActive};
pub use backoff::{Backoff, RetryPolicy};
pub use breaker::{Breaker, BreakerConfig, Gate, Passage};
pub use cluster::{
    Alert, Announced, ClaimNode, Decided, Decisions, Holder, Leadership, Lease, Level, NodeEntry,
    Registry, Subscription, Tallies, WorkerEntry, WorkerPresence,
};
pub use connection::{Broker, Config, ConnectionState, TlsFiles};
pub use consumer::{
    Cancelled, Consumer, ConsumerConfig, ConsumerHandle, Event, EventKind, Handler, JobContext,
    JobPolicy,
};
pub use dead_letters::{DeadLetter, DeadLetters, Letters};
pub use error::Error;
pub use flows::Flow;
pub use job::{Job, Outcome};
pub use limits::{Limits, Permit, Rate, Taken};
pub use mirror::BatchMirror;
pub use names::Channel;
pub use queue::{Counts, Presence, Queue};
pub use schedules::Schedule;

/// Milliseconds since 1970, as BullMQ writes times.
fn now_ms() -> u64 {
    use std::time::{SystemTime, UNIX_EPOCH};
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
