//! The data that Stampede exchanges with the outside, as types: answers of the HTTP API, announcements on Redis
//! channels, entries in Redis that other software reads.
//!
//! Handlers write these types; the command line, benchmarks and tests read them. Field names are contracts:
//! golden tests in each file pin them.
//!
//! - [`ticketing`]: events, orders, tickets, batches, keys, templates, verification
//! - [`checkin`]: lists, gates, devices, scans, bundles, statistics
//! - [`identity`]: API keys
//! - [`webhooks`]: endpoints, deliveries, attempts
//! - [`campaigns`]: accounts, campaigns (contracts), recipients, reports, suppressed addresses
//! - [`stickers`]: stickers, variants, the pool that draws
//! - [`audit`]: the audit log
//! - [`queues`]: queues, jobs, dead letters, schedules, limits, circuit breakers
//! - [`cluster`]: nodes, workers, scaling, health
//! - [`feed`]: events that live streams and webhooks send
//! - [`announcement`]: everything that is published on a channel
//! - [`problem`]: answers that refuse
//!
//! This crate holds data only: it must never do IO or decide anything.

pub mod announcement;
pub mod audit;
pub mod campaigns;
pub mod checkin;
pub mod cluster;
pub mod feed;
pub mod identity;
mod open;
mod paged;
pub mod problem;
pub mod queues;
pub mod stickers;
pub mod ticketing;
pub mod webhooks;

pub use open::Loose;
pub use paged::Paged;
