//! Workers: in the list of their node, in `workers:active` and in `workers:heartbeat`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::open::open_record;

/// The phase of a worker's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerState {
    /// The process runs, but has not reported yet that it takes jobs.
    Starting,
    /// The worker takes jobs.
    Running,
    /// The worker finishes its last jobs.
    Draining,
    /// The process died, and is started again in a moment.
    Restarting,
    /// The process dies again and again soon after its start; the pauses between starts grow.
    CrashLooping,
    /// The process cannot be started at all, as when the process table is full.
    CannotStart,
}

impl WorkerState {
    /// The state's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Restarting => "restarting",
            Self::CrashLooping => "crash-looping",
            Self::CannotStart => "cannot-start",
        }
    }
}

open_record! {
    /// The number of a node's workers in each state.
    pub struct WorkerCounts {
        /// Workers the node is to have.
        target: u64 = "target",
        /// Workers that take jobs.
        running: u64 = "running",
        /// Workers whose processes have just been started.
        starting: u64 = "starting",
        /// Workers that finish their last jobs.
        draining: u64 = "draining",
        /// Workers that died and are started again.
        restarting: u64 = "restarting",
        /// Workers that die again and again soon after their start.
        crash_looping: u64 = "crashLooping",
        /// Workers whose processes cannot be started.
        cannot_start: u64 = "cannotStart",
    }
}

open_record! {
    /// A worker as its supervisor knows it.
    pub struct WorkerProcess {
        /// The worker's name.
        id: String = "id",
        /// The phase of its life.
        state: WorkerState = "state",
        /// The id of its process.
        pid: u32 = "pid",
        /// Jobs it runs.
        busy: u64 = "busy",
        /// Jobs it could run at a time.
        slots: u64 = "slots",
        /// Memory of its process in bytes.
        memory: u64 = "memory",
        /// Deaths in a row, each soon after a start.
        deaths: u64 = "deaths",
        /// The last thing that went wrong.
        problem: String = "problem",
        /// Milliseconds since the worker's last heartbeat; `null` if none is known. Only in `/api/nodes`.
        heartbeat_ms_ago: Option<u64> = "heartbeatMsAgo",
    }
}

open_record! {
    /// A worker in `workers:active`.
    pub struct ActiveWorker {
        /// The worker's node.
        instance_id: String = "instance_id",
        /// Seconds since 1970 when it was started.
        start_time: u64 = "start_time",
        /// `running` or `draining`.
        status: String = "status",
        /// The id of its process.
        pid: u32 = "pid",
        /// Unique for every start.
        incarnation: String = "incarnation",
        /// Milliseconds since 1970 by Redis' clock; a script adds it.
        last_seen: u64 = "last_seen",
    }
}

open_record! {
    /// A worker in `workers:heartbeat`.
    pub struct WorkerHeartbeat {
        /// The worker's name.
        worker_id: String = "worker_id",
        /// The worker's node.
        instance_id: String = "instance_id",
        /// `running` or `draining`.
        status: String = "status",
        /// Jobs it runs.
        busy: u64 = "busy",
        /// Jobs it could run at a time.
        slots: u64 = "slots",
        /// Unique for every start.
        incarnation: String = "incarnation",
        /// Seconds since 1970 by Redis' clock; a script adds it.
        last_heartbeat: u64 = "last_heartbeat",
    }
}

/// How busy a worker is: part of its heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerLoad {
    /// Jobs it runs.
    pub busy: u64,
    /// Jobs it could run at a time.
    pub slots: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn entries_of_workers_are_read_as_they_stand_in_redis() {
        let active = json!({
            "instance_id": "n", "start_time": 5, "status": "running", "pid": 7, "incarnation": "i", "last_seen": 9,
        });
        let read: ActiveWorker = serde_json::from_value(active.clone()).unwrap();
        assert!(read.other.is_empty() && serde_json::to_value(&read).unwrap() == active);
        let heartbeat = json!({
            "worker_id": "w", "instance_id": "n", "status": "draining", "busy": 1, "slots": 16,
            "incarnation": "i", "last_heartbeat": 9,
        });
        let read: WorkerHeartbeat = serde_json::from_value(heartbeat.clone()).unwrap();
        assert!(read.other.is_empty() && serde_json::to_value(&read).unwrap() == heartbeat);
        // Older software writes less.
        let older = json!({ "status": "idle", "last_heartbeat": 9 });
        let read: WorkerHeartbeat = serde_json::from_value(older.clone()).unwrap();
        assert_eq!((read.status.as_deref(), read.busy), (Some("idle"), None));
        assert_eq!(serde_json::to_value(&read).unwrap(), older);
    }

    #[test]
    fn field_names_of_a_listed_worker_are_pinned() {
        let listed = json!({
            "id": "w", "state": "crash-looping", "pid": 7, "busy": 1, "slots": 16, "memory": 1024,
            "deaths": 3, "problem": "no space", "heartbeatMsAgo": null,
        });
        let read: WorkerProcess = serde_json::from_value(listed.clone()).unwrap();
        assert!(read.other.is_empty() && read.state == Some(WorkerState::CrashLooping));
        assert_eq!(serde_json::to_value(&read).unwrap(), listed);
        let newer = json!({ "id": "w", "state": "asleep" });
        let read: WorkerProcess = serde_json::from_value(newer.clone()).unwrap();
        assert_eq!((read.state, serde_json::to_value(&read).unwrap()), (None, newer));
        for state in [
            WorkerState::Starting,
            WorkerState::Running,
            WorkerState::Draining,
            WorkerState::Restarting,
            WorkerState::CrashLooping,
            WorkerState::CannotStart,
        ] {
            assert_eq!(serde_json::to_value(state).unwrap(), Value::from(state.as_str()));
        }
    }
}
