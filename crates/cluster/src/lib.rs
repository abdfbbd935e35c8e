//! Many processes, one service: the workers of a node, and the nodes of a cluster.
//!
//! ```text
//!   node ── Supervisor ── worker processes (same binary)
//!     ├──── Node: announces itself, hears commands, scales alone when nobody coordinates
//!     └──── Coordinator: on one node, by lease; decides which node adds or drops workers
//! ```
//!
//! | file | what |
//! |---|---|
//! | `supervisor.rs`, `supervisor/` | processes: start, restart, drain, replace |
//! | `autoscaler.rs` | how many workers: pure rules |
//! | `yielding.rs` | `auto`: workers make way for the API |
//! | `node.rs`, `node/` | membership, announcements, commands, local scaling |
//! | `coordinator.rs`, `coordinator/` | election, cluster-wide decisions, dead nodes, stuck queues |
//! | `command.rs` | what a command says, and why a flood does no harm |
//! | `parts.rs` | tasks of a process: a panic of one is noticed, the others end in good order |
//! | `machine.rs` | load, memory and processes as the system tells them |
//!
//! What may fail, and what happens then:
//!
//! - *A worker dies*: its seat gives its jobs back and starts another, more and more seldom if it
//!   dies of its start.
//! - *The supervisor dies*, whatever it was doing: its workers see their standard input close, drain
//!   and end. Nothing is adopted by the next start.
//! - *Redis is away*: nothing is known, so nothing is decided; workers stay as they are.
//! - *A coordinator is paused past its lease*: another leads; what the first still writes is refused
//!   by the scripts, and nodes ignore its commands.
//! - *Clocks jump*: times between two moments of one process are measured with [`std::time::Instant`];
//!   times of different machines are those of Redis.
//!
//! This crate must never know what jobs there are.

mod autoscaler;
mod command;
mod coordinator;
mod machine;
mod node;
mod parts;
mod roles;
mod supervisor;
mod yielding;

use std::time::Duration;

pub use autoscaler::{Demand, Limits, Plan, Snapshot, decide};
pub use command::{Action, Command};
pub use node::{JoinError, Membership, Node, NodeConfig, NodeHandle};
pub use parts::all_ended;
pub use roles::Roles;
pub use supervisor::{
    Program, Supervisor, SupervisorConfig, SupervisorHandle, WorkerEnv, WorkerState, WorkerStatus,
};
pub use yielding::{ApiLimits, ApiSnapshot, LatencyMeter, ceiling};

/// How often nodes and workers announce themselves.
pub const ANNOUNCE_EVERY: Duration = Duration::from_secs(5);
/// Who has not announced itself for this long is gone.
pub const ENTRY_LIVES: Duration = Duration::from_secs(15);
