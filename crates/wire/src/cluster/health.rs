//! `GET /health` and `GET /ready`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WorkerCounts;

/// `GET /health`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Always `ok`: the process answers.
    pub status: String,
    /// The node, for administrators only.
    #[serde(flatten)]
    pub node: Option<NodeHealth>,
}

/// A node, as it sees itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeHealth {
    /// The program's version.
    pub version: String,
    /// The node's name.
    pub node: String,
    /// `WORKER_MODE`.
    pub mode: String,
    /// Any of `api`, `worker` and `coordinator`.
    pub roles: Vec<String>,
    /// Whether the node has reached the cluster lately.
    pub cluster: ClusterReach,
    /// The node that coordinates, if this one has heard of it lately.
    pub coordinator: Option<String>,
    /// Workers by state.
    pub workers: WorkerCounts,
}

/// Whether a node has reached the cluster lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClusterReach {
    /// Its last report was accepted.
    Joined,
    /// Redis does not answer, or the node's name is taken.
    Away,
}

/// `GET /ready`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Readiness {
    /// `ready` or `not ready`.
    pub status: String,
    /// The database answers and accepts writes.
    pub database: UpOrDown,
    /// Redis answers and accepts writes.
    pub redis: UpOrDown,
    /// PDFs can be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<UpOrDown>,
    /// A worker runs; only for nodes that only work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<UpOrDown>,
    /// Seconds since Redis does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis_down_seconds: Option<u64>,
    /// Why Redis cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis_reason: Option<String>,
    /// Why the database cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_reason: Option<String>,
    /// Why PDFs cannot be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_reason: Option<String>,
}

/// Whether a dependency answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UpOrDown {
    /// It answers.
    Up,
    /// It does not.
    Down,
}

impl From<bool> for UpOrDown {
    fn from(up: bool) -> Self {
        if up { Self::Up } else { Self::Down }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_names_are_those_that_balancers_and_people_read() {
        let stranger = json!({ "status": "ok" });
        let read: Health = serde_json::from_value(stranger.clone()).unwrap();
        assert!(read.node.is_none() && serde_json::to_value(&read).unwrap() == stranger);
        let admin = json!({
            "status": "ok", "version": "0.1.0", "node": "n", "mode": "both", "roles": ["api"],
            "cluster": "joined", "coordinator": null, "workers": { "target": 0, "running": 0 },
        });
        let read: Health = serde_json::from_value(admin.clone()).unwrap();
        assert!(read.node.is_some() && serde_json::to_value(&read).unwrap() == admin);
        let ready = json!({ "status": "ready", "database": "up", "redis": "up" });
        let read: Readiness = serde_json::from_value(ready.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), ready);
        let not = json!({
            "status": "not ready", "database": "up", "redis": "down", "workers": "down",
            "redisDownSeconds": 3, "redisReason": "refused",
            "files": "down", "filesReason": "no room", "databaseReason": "disk full",
        });
        let read: Readiness = serde_json::from_value(not.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), not);
    }
}
