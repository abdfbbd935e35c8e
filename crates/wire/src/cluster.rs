//! Nodes, workers, scaling decisions and health.
//!
//! | file | holds |
//! |---|---|
//! | `node.rs` | a node in `workers:stats` and in `/api/nodes` |
//! | `worker.rs` | workers: in their node's list, in `workers:active` and in `workers:heartbeat` |
//! | `queue_metrics.rs` | a node's view of the queues in `queue:metrics` |
//! | `stats.rs` | the whole cluster in `cluster:stats` and in `/api/cluster` |
//! | `scaling.rs` | decisions, events, alerts, `scaling:history` |
//! | `command.rs` | commands on `worker:commands:{node}` |
//! | `health.rs` | `/health` and `/ready` |
//!
//! Nodes of other versions and other software write into the same keys of Redis, so records that stand there
//! keep fields they do not know (`open.rs`).

mod command;
mod health;
mod node;
mod queue_metrics;
mod scaling;
mod stats;
mod worker;

pub use command::{CommandSent, NodeCommand};
pub use health::{ClusterReach, Health, NodeHealth, Readiness, UpOrDown};
pub use node::{NodeStats, NodeView, Nodes};
pub use queue_metrics::QueueMetrics;
pub use scaling::{Alert, By, History, Priority, ScalingAction, ScalingDecision, ScalingEvent};
pub use stats::{ClusterStats, ClusterView, Coordinator, JobTotals};
pub use worker::{
    ActiveWorker, WorkerCounts, WorkerHeartbeat, WorkerLoad, WorkerProcess, WorkerState,
};
