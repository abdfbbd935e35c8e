//! The whole cluster: `cluster:stats`, written by the coordinator, and `GET /api/cluster`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Alert, NodeStats};
use crate::Loose;
use crate::open::open_record;

open_record! {
    /// The cluster as its coordinator saw it.
    pub struct ClusterStats {
        /// The nodes that are alive, by name.
        nodes: BTreeMap<String, Loose<NodeStats>> = "nodes",
        /// Workers of all nodes that take jobs.
        total_workers: u64 = "totalWorkers",
        /// Jobs that could begin.
        total_waiting: u64 = "totalWaiting",
        /// Jobs that run.
        total_active: u64 = "totalActive",
        /// The mean of the nodes' load averages.
        avg_load: f64 = "avgLoad",
        /// Nodes that are alive.
        node_count: u64 = "nodeCount",
        /// The node that coordinates.
        coordinator: String = "coordinator",
        /// The coordinator's fencing token.
        token: u64 = "token",
        /// Nodes that should be there and are not, about which no alert was raised yet.
        missing: Vec<String> = "missing",
        /// Milliseconds since 1970 by Redis' clock; a script adds it.
        timestamp: u64 = "timestamp",
    }
}

/// `GET /api/cluster`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterView {
    /// The coordinator, if there is one.
    pub coordinator: Option<Coordinator>,
    /// The coordinator's last survey.
    pub stats: Option<ClusterStats>,
    /// Jobs that ended, since the data of Redis began.
    pub jobs: JobTotals,
    /// The last 100 alerts, newest first.
    pub alerts: Vec<Loose<Alert>>,
}

/// The node that coordinates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coordinator {
    /// The node.
    pub node: String,
    /// Its fencing token.
    pub token: u64,
}

/// Jobs that ended, by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobTotals {
    /// Completed jobs.
    pub completed: u64,
    /// Permanently failed jobs.
    pub failed: u64,
    /// Jobs that lost their worker.
    pub stalled: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_names_are_those_that_older_software_reads() {
        let stats = json!({
            "nodes": { "n": { "workers": 2, "type": "worker", "queue": { "waiting": 1 } }, "odd": null },
            "totalWorkers": 2, "totalWaiting": 5, "totalActive": 1, "avgLoad": 0.5, "nodeCount": 1,
            "coordinator": "n", "token": 7, "missing": ["m"], "timestamp": 9,
        });
        let read: ClusterStats = serde_json::from_value(stats.clone()).unwrap();
        assert!(read.other.is_empty());
        assert_eq!(serde_json::to_value(&read).unwrap(), stats);
        let view = json!({
            "coordinator": { "node": "n", "token": 7 }, "stats": null,
            "jobs": { "completed": 1, "failed": 2, "stalled": 3 }, "alerts": [5, { "kind": "node-dead" }],
        });
        let read: ClusterView = serde_json::from_value(view.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), view);
    }
}
