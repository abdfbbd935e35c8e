//! The cluster in Redis: who is there, who leads, what was decided, and what the queues look like.
//!
//! | file | what | keys |
//! |---|---|---|
//! | `registry.rs` | nodes and workers that are alive | `workers:stats`, `queue:metrics`, `workers:active`, `workers:heartbeat` |
//! | `counters.rs` | jobs that ended, by node | `stats:*` |
//! | `lease.rs` | leadership with a time limit and a token that only grows | `stampede:{coordinator}` |
//! | `decisions.rs` | commands, history, statistics, alerts | `worker:commands:*`, `scaling:*`, `cluster:stats` |
//! | `levels.rs` | how full the queues are, and whether they move | BullMQ's |
//!
//! Clocks of servers may differ, so only that of Redis counts: scripts read `TIME` and write the
//! times that outside readers see. Texts are JSON objects that a script completes with its time, as
//! `{…,"timestamp":…}`. The keys of one call share a hash slot, for Redis Clusters.

mod counters;
mod decisions;
mod lease;
mod levels;
mod registry;

pub use self::counters::Tallies;
pub use self::decisions::{Decided, Decisions, Subscription};
pub use self::lease::{Leadership, Lease};
pub use self::levels::Level;
pub use self::registry::{
    Announced, ClaimNode, Holder, NodeEntry, Registry, WorkerEntry, WorkerPresence,
};

/// A JSON object as text; a script may complete it.
pub(crate) fn object(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    if text.starts_with('{') { text } else { "{}".to_owned() }
}
