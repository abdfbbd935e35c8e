//! A node: its entry in `workers:stats`, and its row in `/api/nodes`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{QueueMetrics, WorkerCounts, WorkerProcess};
use crate::Loose;
use crate::open::open_record;

open_record! {
    /// A node's report about itself. `instanceId`, `workers`, `load`, `memUsage` and `timestamp` are the names
    /// that older software reads and writes (docs/compatibility.md).
    pub struct NodeStats {
        /// The node's name.
        instance_id: String = "instanceId",
        /// Workers that take jobs.
        workers: u64 = "workers",
        /// The machine's load average.
        load: f64 = "load",
        /// Memory of the node and its workers in megabytes.
        mem_usage: f64 = "memUsage",
        /// The machine.
        host: String = "host",
        /// The id of the node's process there.
        pid: u32 = "pid",
        /// The program's version.
        version: String = "version",
        /// `WORKER_MODE`.
        mode: String = "mode",
        /// Any of `api`, `worker` and `coordinator`.
        roles: Vec<String> = "roles",
        /// The machine's processors.
        cores: u64 = "cores",
        /// Processors that were busy lately.
        busy_cores: f64 = "busyCores",
        /// Fewest workers now.
        min: u64 = "min",
        /// Most workers now.
        max: u64 = "max",
        /// Jobs that its workers run.
        busy: u64 = "busy",
        /// Jobs that its workers could run at a time.
        slots: u64 = "slots",
        /// Workers by state.
        states: WorkerCounts = "states",
        /// Milliseconds since the node changed the number of its workers; `null`: never.
        changed_ms_ago: Option<u64> = "changedMsAgo",
        /// Commands that the node has refused.
        refused_commands: u64 = "refusedCommands",
        /// The node's workers.
        worker_list: Vec<Loose<WorkerProcess>> = "workerList",
        /// Why the last rolling restart was given up.
        restart_problem: String = "restartProblem",
        /// Nine of ten requests were answered within so many milliseconds lately.
        api_latency_ms: u64 = "apiLatencyMs",
        /// The node is shutting down.
        stopping: bool = "stopping",
        /// Unique for every start of the node.
        incarnation: String = "incarnation",
        /// Always `worker`. Only in `cluster:stats`.
        kind: String = "type",
        /// The node's view of the queues. Only in `cluster:stats`.
        queue: QueueMetrics = "queue",
        /// Milliseconds since 1970 by Redis' clock; a script adds it.
        timestamp: u64 = "timestamp",
    }
}

/// `GET /api/nodes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Nodes {
    /// The nodes that are alive, by name.
    pub nodes: Vec<NodeView>,
}

/// A node in `/api/nodes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeView {
    /// The node's name.
    pub id: String,
    /// Milliseconds since its last report.
    #[serde(default)]
    pub age_ms: u64,
    /// The node coordinates the cluster.
    #[serde(default)]
    pub is_coordinator: bool,
    /// The node's view of the queues.
    #[serde(default)]
    pub queue: Option<QueueMetrics>,
    /// The node's workers; other software may write anything there.
    #[serde(default = "no_workers")]
    pub worker_processes: Loose<Vec<Loose<WorkerProcess>>>,
    /// The node's report about itself.
    #[serde(flatten)]
    pub stats: NodeStats,
}

fn no_workers() -> Loose<Vec<Loose<WorkerProcess>>> {
    Loose::Known(Vec::new())
}

impl NodeView {
    /// A node with its report, which came so many milliseconds ago.
    pub fn new(id: String, mut stats: NodeStats, age_ms: u64) -> Self {
        let workers = match (stats.worker_list.take(), stats.other.remove("workerList")) {
            (Some(list), _) => Loose::Known(list),
            (None, Some(foreign)) => Loose::Foreign(foreign),
            (None, None) => no_workers(),
        };
        // For the registry only.
        stats.incarnation = None;
        stats.queue = None;
        // A report of other software must not hide the fields of this view.
        for name in ["incarnation", "id", "ageMs", "isCoordinator", "queue", "workerProcesses"] {
            stats.other.remove(name);
        }
        Self { id, age_ms, is_coordinator: false, queue: None, worker_processes: workers, stats }
    }

    /// The node's workers, as far as they can be read.
    pub fn workers(&self) -> impl Iterator<Item = &WorkerProcess> {
        self.worker_processes.known().into_iter().flatten().filter_map(Loose::known)
    }

    /// The node's workers, to be changed.
    pub fn workers_mut(&mut self) -> impl Iterator<Item = &mut WorkerProcess> {
        self.worker_processes.known_mut().into_iter().flatten().filter_map(Loose::known_mut)
    }

    /// The number of workers in each state, as far as the node reports them.
    pub fn states(&self) -> WorkerCounts {
        self.stats.states.clone().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entry() -> Value {
        json!({
            "instanceId": "n", "workers": 2, "load": 0.5, "memUsage": 80.5, "host": "h", "pid": 7,
            "version": "0.1.0", "mode": "auto", "roles": ["api", "worker"], "cores": 4, "busyCores": 1.5,
            "min": 1, "max": 4, "busy": 3, "slots": 32,
            "states": { "target": 2, "running": 2, "starting": 0, "draining": 0, "restarting": 0,
                "crashLooping": 0, "cannotStart": 0 },
            "changedMsAgo": null, "refusedCommands": 0,
            "workerList": [{ "id": "n-worker-0", "state": "running", "pid": 8, "busy": 3, "slots": 16,
                "memory": 1024, "deaths": 0 }],
            "restartProblem": "gone", "apiLatencyMs": 12, "stopping": false, "incarnation": "i", "timestamp": 9,
        })
    }

    #[test]
    fn field_names_are_those_that_stand_in_redis() {
        let read: NodeStats = serde_json::from_value(entry()).unwrap();
        assert!(read.other.is_empty() && read.states.as_ref().unwrap().other.is_empty());
        assert_eq!(serde_json::to_value(&read).unwrap(), entry());
    }

    #[test]
    fn nodes_of_older_and_newer_versions_come_out_as_they_went_in() {
        let older = json!({ "instanceId": "n", "workers": 2, "load": 0.5, "memUsage": 80.5, "timestamp": 9 });
        let newer = json!({
            "instanceId": "n", "workers": "many", "roles": "all", "regions": ["eu"], "timestamp": 9,
        });
        for entry in [older, newer] {
            let read: NodeStats = serde_json::from_value(entry.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), entry);
        }
    }

    #[test]
    fn a_row_shows_the_report_without_what_is_for_the_registry() {
        let mut stats: NodeStats = serde_json::from_value(entry()).unwrap();
        stats.other.insert("id".into(), json!("somebody else"));
        let mut view = NodeView::new("n".into(), stats, 300);
        view.workers_mut().for_each(|worker| worker.heartbeat_ms_ago = Some(Some(5)));
        let shown = serde_json::to_value(&view).unwrap();
        assert_eq!((&shown["id"], &shown["ageMs"]), (&json!("n"), &json!(300)));
        assert_eq!((&shown["isCoordinator"], &shown["queue"]), (&json!(false), &Value::Null));
        assert_eq!(shown["workerProcesses"][0]["heartbeatMsAgo"], 5);
        assert!(shown.get("workerList").is_none() && shown.get("incarnation").is_none(), "{shown}");
        assert_eq!(serde_json::from_value::<NodeView>(shown).unwrap(), view);
    }

    #[test]
    fn what_other_software_wrote_into_the_list_of_workers_is_shown_as_it_is() {
        let list = json!([5, "x", null, ["a"], { "id": "a" }, { "id": 1 }]);
        let stats = serde_json::from_value(json!({ "workerList": list })).unwrap();
        let mut view = NodeView::new("n".into(), stats, 0);
        for worker in view.workers_mut() {
            let is_a = worker.id.as_deref() == Some("a");
            worker.heartbeat_ms_ago = Some(is_a.then_some(7));
        }
        let wanted = json!([
            5, "x", null, ["a"],
            { "id": "a", "heartbeatMsAgo": 7 },
            { "id": 1, "heartbeatMsAgo": null },
        ]);
        assert_eq!(serde_json::to_value(&view).unwrap()["workerProcesses"], wanted);
        let stats = serde_json::from_value(json!({ "workerList": "none" })).unwrap();
        let shown = serde_json::to_value(NodeView::new("n".into(), stats, 0)).unwrap();
        assert_eq!(shown["workerProcesses"], json!("none"));
    }
}
