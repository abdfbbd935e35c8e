//! Everything Stampede says to Redis, and the only crate that names `redis` or `bullmq`.
//!
//! Queues are BullMQ 6, byte for byte: counting, administration, flows and schedules go through the
//! official crate; adding and consuming ([`Consumer`]) are our own and run the same Lua scripts, because
//! the official worker loses jobs where a ticket system must not, and one call for many jobs is faster
//! (see `ARCHITECTURE.md`).
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use serde_json::json;
//! use stampede_broker::{
//!     Broker, Config, Consumer, ConsumerConfig, Handler, Job, JobContext, JobSpec, Outcome,
//! };
//! use tokio_util::sync::CancellationToken;
//!
//! struct Mailer;
//!
//! impl Handler for Mailer {
//!     async fn run(&self, job: &Job, context: &JobContext) -> Outcome {
//!         let Some(to) = job.data["to"].as_str() else {
//!             return Outcome::Discard("nobody to send it to".to_owned());
//!         };
//!         // Send it here; `context` has its log, its progress, rate limits and circuit breakers.
//!         Outcome::Done(json!({ "sent": to }))
//!     }
//! }
//!
//! # async fn example() -> Result<(), stampede_broker::Error> {
//! let broker = Broker::connect(&Config::new("redis://127.0.0.1:6379")).await?;
//! let mails = broker.queue("mails").await?;
//! let welcome = JobSpec {
//!     id: "welcome-ann".to_owned(),
//!     delay: Duration::from_secs(60),
//!     ..JobSpec::new("welcome", json!({ "to": "ann@example.com" }))
//! };
//! mails.enqueue(&[welcome]).await?;
//!
//! let stop = CancellationToken::new();
//! let mailer = Consumer::new(ConsumerConfig::new("mailer", 16), mails.clone(), Mailer);
//! let working = tokio::spawn(mailer.run(stop.clone()));
//!
//! let ended = mails.events().await?.ended("welcome-ann", Duration::from_secs(90)).await?;
//! println!("{ended:?}"); // Some(Completed(Object {"sent": String("ann@example.com")}))
//! stop.cancel();
//! working.await.expect("the mailer stops");
//! # Ok(())
//! # }
//! ```
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
mod events;
mod flows;
mod job;
mod keys;
mod limits;
mod look;
mod names;
mod options;
mod queue;
mod queue_names;
mod reclaim;
mod schedules;
mod scripts;
mod snapshots;
mod work;

pub use address::check_url;
pub use admin::{Delayed, WhenActive};
pub use backoff::RetryPolicy;
pub use breaker::{Breaker, BreakerConfig, Gate, Passage, ShutBreaker};
pub use cluster::{
    Announced, ClaimNode, Decided, Decisions, Holder, Leadership, Lease, Level, NodeEntry,
    Registry, Subscription, Tallies, WorkerEntry, WorkerPresence,
};
pub use connection::{Broker, Config, ConnectionState, TlsFiles};
pub use consumer::{
    Cancelled, Consumer, ConsumerConfig, ConsumerHandle, Event, EventKind, Handler, JobContext,
    JobPolicy,
};
pub use dead_letters::{DeadLetter, DeadLetters, FoundLetters, Letters, NotReplayed, Replayed};
pub use error::Error;
pub use events::{Ended, QueueEvent, QueueEvents};
pub use flows::{Flow, OnFailure};
pub use job::{Job, Outcome};
pub use limits::{Limits, Permit, Rate, Taken};
pub use look::{Found, JobView, State};
pub use names::Channel;
pub use queue::{Counts, Presence, Queue};
pub use schedules::Schedule;
pub use snapshots::{SnapshotWrite, Snapshots};
/// What jobs are described with.
pub use stampede_model::{Backoff, Deduplication, JobSpec, Keep, Which};
pub use work::{JobList, PayloadError, QueueJobs, Work};

/// The guide, whose examples are compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/queues.md")]
struct Guide;

/// Milliseconds since 1970, as BullMQ writes times.
fn now_ms() -> u64 {
    use std::time::{SystemTime, UNIX_EPOCH};
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
