//! Many processes, one service: the workers of a node, and the nodes of a cluster.
//!
//! ```text
//!   node ── Supervisor ── worker processes (same binary)
//!     ├──── Node: announces itself, hears commands, scales alone without a coordinator
//!     └──── Coordinator: on one node, by lease; decides which node adds or drops workers
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `supervisor.rs`, `supervisor/` | worker processes: start, restart, drain, replace |
//! | `autoscaler.rs` | the number of workers: pure rules |
//! | `yielding.rs` | `auto`: workers make way for the API |
//! | `node.rs`, `node/` | membership, announcements, the node's report, commands, local scaling |
//! | `coordinator.rs`, `coordinator/` | election, cluster-wide decisions, dead nodes, stuck queues |
//! | `command.rs` | commands, and why a flood of them does no harm |
//! | `tasks.rs` | tasks of a process: a panic of one is noticed, the others end in good order |
//! | `machine.rs` | load, memory and processes, read from the system |
//!
//! Failures, and the reaction to each:
//!
//! - *A worker dies*: its seat puts its jobs back on the queue and starts another process. If that dies soon after
//!   its start again and again, the pauses between starts grow.
//! - *The supervisor dies*: its workers see their standard input close, drain and end. The next start adopts none.
//! - *Redis is away*: nothing is known, so nothing is decided; workers stay as they are.
//! - *A coordinator is paused past its lease*: another node leads. Scripts refuse the writes of the first by its
//!   fencing token, and nodes ignore its commands.
//! - *Clocks jump*: durations within a process are measured with [`std::time::Instant`]; times of different machines
//!   are those of Redis.
//!
//! This crate must never know job kinds.

mod autoscaler;
mod command;
mod coordinator;
mod machine;
mod node;
mod roles;
mod supervisor;
mod tasks;
mod yielding;

use std::time::Duration;

pub use autoscaler::{Demand, Limits, Plan, Snapshot, decide};
pub use command::{Action, Command};
pub use node::{JoinError, Membership, Node, NodeConfig, NodeHandle};
pub use roles::Roles;
pub use supervisor::{
    Program, Supervisor, SupervisorConfig, SupervisorHandle, WorkerEnv, WorkerState, WorkerStatus,
};
pub use tasks::all_ended;
pub use yielding::{ApiLimits, ApiSnapshot, LatencyMeter, ceiling};

/// How often nodes and workers announce themselves.
pub const ANNOUNCE_EVERY: Duration = Duration::from_secs(5);
/// A node or worker that has not announced itself for this long is gone.
pub const ENTRY_LIVES: Duration = Duration::from_secs(15);
