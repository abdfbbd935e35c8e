//! Everything Stampede says to Redis, and the only crate that names `redis` or `bullmq`.
//!
//! Queues are BullMQ 6, byte for byte: producing, counting and administration go through the
//! official crate; consuming is our own ([`Consumer`]), running the same Lua scripts, because the
//! official worker loses jobs where a ticket system must not (see `ARCHITECTURE.md`).
//!
//! This crate moves jobs; it must never know what a job does.

mod connection;
mod consumer;
pub mod copy;
mod error;
mod job;
mod keys;
mod mirror;
mod names;
mod queue;
mod reclaim;
mod scripts;

pub use connection::{Broker, Config};
pub use consumer::{Consumer, ConsumerConfig, Handler, JobContext};
pub use error::Error;
pub use job::{Job, Outcome};
pub use mirror::BatchMirror;
pub use names::Channel;
pub use queue::{Counts, Presence, Queue};
