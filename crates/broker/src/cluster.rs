//! The cluster in Redis: nodes, workers, leadership, decisions, and the sizes of queues.
//!
//! | file | what | keys |
//! |---|---|---|
//! | `registry.rs` | nodes and workers that are alive | `workers:stats`, `queue:metrics`, `workers:active`, `workers:heartbeat` |
//! | `counters.rs` | jobs that ended, by node | `stats:*` |
//! | `lease.rs` | leadership: a lease that expires, and a fencing token that only grows | `stampede:{coordinator}`, `stampede:{feed}:relay` |
//! | `decisions.rs` | commands, history, statistics, alerts | `worker:commands:*`, `scaling:*`, `cluster:stats` |
//! | `levels.rs` | how many jobs wait and run, and whether queues move | BullMQ's |
//!
//! Clocks of servers may differ, so only the clock of Redis counts: scripts read `TIME` and write the times that
//! outside readers see. Texts are JSON objects to which a script appends the time, as `{…,"timestamp":…}`. The
//! keys of one call share a hash slot, for Redis Clusters.

/// A script of `stampede_scripts::cluster`, under the same name.
macro_rules! script {
    ($name:ident) => {
        static $name: std::sync::LazyLock<redis::Script> =
            std::sync::LazyLock::new(|| redis::Script::new(stampede_scripts::cluster::$name));
    };
}

mod counters;
mod decisions;
pub(crate) mod lease;
mod levels;
mod registry;

pub use self::counters::Tallies;
pub use self::decisions::{Decided, Decisions, Subscription};
pub use self::lease::{Leadership, Lease};
pub use self::levels::Level;
pub use self::registry::{
    Announced, ClaimNode, NodeEntry, NodeIdentity, Registry, WorkerEntry, WorkerPresence,
};

/// A JSON object as text; a script may append a field.
pub(crate) fn object(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    if text.starts_with('{') { text } else { "{}".to_owned() }
}
