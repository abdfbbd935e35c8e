//! Everything Stampede says to Redis, and the only crate that names `redis` or `bullmq`.
//!
//! | module | holds |
//! |---|---|
//! | `broker.rs` | [`Broker`]: the way to everything else |
//! | `link/` | Redis as a place: address, connections, Sentinel, TLS, whether it answers |
//! | `queue/` | BullMQ's queues: producer, consumer, dead letters, flows, schedules, limits, circuit breakers |
//! | `cluster/` | nodes, workers, leases and decisions in Redis |
//! | `feed.rs` | the feed: a stream of events for outside readers |
//! | `quota.rs` | how often each of many subjects may do something, counted over all nodes |
//! | `request_id.rs` | the id of the request that caused a job |
//! | `snapshots.rs` | states of things, written for outside readers |
//! | `copy/` | copying a Redis into another |
//!
//! Queues are BullMQ 6, byte for byte. Counting, administration, flows and schedules go through the official
//! crate. Adding and consuming ([`Consumer`]) are our own and run the same Lua scripts (`crates/scripts`): the
//! official worker loses jobs where a ticket system must not, and one call for many jobs is faster.
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
//! let result = mails.events().await?.ended("welcome-ann", Duration::from_secs(90)).await?;
//! println!("{result:?}"); // Some(Completed(Object {"sent": String("ann@example.com")}))
//! stop.cancel();
//! working.await.expect("the mailer stops");
//! # Ok(())
//! # }
//! ```
//!
//! This crate moves jobs; it must never know what a job does.

mod broker;
mod cluster;
pub mod copy;
mod error;
mod feed;
mod link;
mod queue;
mod quota;
mod request_id;
mod snapshots;
mod work;

pub use broker::{Broker, Config};
pub use cluster::{
    Announced, ClaimNode, Decided, Decisions, Leadership, Lease, Level, NodeEntry, NodeIdentity,
    Registry, Subscription, Tallies, WorkerEntry, WorkerPresence,
};
pub use error::Error;
pub use feed::{
    Entry, Feed, FeedReader, Look, NewEntry, Noticed, Page, ParsePositionError, Position,
};
pub use link::{ConnectionState, Restarts, TlsFiles, check_url};
pub use queue::{
    Ask, Backoff, Breaker, BreakerConfig, BreakerDecision, BulkResult, Call, Cancelled, Consumer,
    ConsumerConfig, ConsumerEvent, ConsumerHandle, Counts, DeadLetter, DeadLetters, Deduplication,
    Delayed, Edit, EventKind, Flow, Found, FoundLetters, Handler, History, Job, JobContext,
    JobPolicy, JobResult, JobSpec, JobView, Keep, Letters, Limits, NotReplayed, OnFailure,
    OpenBreaker, Outcome, PastOperation, Pause, Permit, Permits, Presence, Queue, QueueEvent,
    QueueEvents, QueueFigures, Rate, Rest, RetryPolicy, RunEnd, RunObserver, Schedule, State,
    Suspect, Suspects, Taken, Taking, WhenActive, Which,
};
pub use quota::{Quota, Standing};
pub use request_id::{RequestId, kept};
pub use snapshots::{SnapshotWrite, Snapshots};
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
