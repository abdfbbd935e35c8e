//! Changes of the number of workers: decisions, events, alerts, and the history of the last 100.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Loose;
use crate::open::open_record;

/// A change of a node's workers, as commands, decisions and the history name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScalingAction {
    /// More workers.
    ScaleUp,
    /// Fewer workers.
    ScaleDown,
    /// All workers are replaced, one by one.
    Restart,
    /// An action of other software.
    #[serde(untagged)]
    Other(String),
}

impl ScalingAction {
    /// The action's name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::ScaleUp => "scale_up",
            Self::ScaleDown => "scale_down",
            Self::Restart => "restart",
            Self::Other(name) => name,
        }
    }
}

/// How urgent a decision is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// More workers are needed.
    High,
    /// A node changed its workers by itself or by command.
    Normal,
    /// Workers are idle.
    Low,
}

/// The author of an entry in the history that no coordinator wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A command from outside.
    Command,
    /// The node itself.
    Node,
}

impl By {
    /// The author's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Node => "node",
        }
    }
}

open_record! {
    /// A decision about one node: told to the node on `worker:commands:{node}`, published on
    /// `scaling:decisions`, kept in `scaling:history`.
    pub struct ScalingDecision {
        /// The change.
        action: ScalingAction = "action",
        /// The node.
        node_id: String = "nodeId",
        /// The reason, for people.
        reason: String = "reason",
        /// The urgency.
        priority: Priority = "priority",
        /// Workers more or fewer, if a coordinator decided.
        count: u64 = "count",
        /// Workers the node is to have.
        workers: u64 = "workers",
        /// The coordinator's fencing token.
        token: u64 = "token",
        /// The node that coordinates.
        coordinator: String = "coordinator",
        /// The author, if no coordinator decided.
        by: By = "by",
        /// Milliseconds since 1970 by Redis' clock; a script adds it.
        timestamp: u64 = "timestamp",
    }
}

open_record! {
    /// A node has changed the number of its workers, or replaces them: published on `scaling:event`.
    pub struct ScalingEvent {
        /// The node.
        instance_id: String = "instanceId",
        /// The change.
        action: ScalingAction = "action",
        /// The reason, for people.
        reason: String = "reason",
        /// Workers the node is to have now.
        workers: u64 = "workers",
        /// Milliseconds since 1970 by Redis' clock; a script adds it.
        timestamp: u64 = "timestamp",
    }
}

open_record! {
    /// A message to operators: published on `cluster:alert`, kept in `cluster:alerts`.
    pub struct Alert {
        /// The kind: `node-dead`, `queue-stuck`, `queue-moves`, `campaign-paused` or `account-blocked`.
        kind: String = "kind",
        /// The node, queue, campaign or account.
        subject: String = "subject",
        /// The message, in a sentence.
        message: String = "message",
        /// Milliseconds since 1970 by Redis' clock; a script adds it.
        timestamp: u64 = "timestamp",
    }
}

impl Alert {
    /// An alert that no script has given a time yet.
    pub fn new(kind: &str, subject: &str, message: String) -> Self {
        Self {
            kind: Some(kind.to_owned()),
            subject: Some(subject.to_owned()),
            message: Some(message),
            ..Self::default()
        }
    }
}

/// `GET /api/scaling/history`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// The last 100 decisions, newest first.
    pub history: Vec<Loose<ScalingDecision>>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_of_the_history_are_read_whoever_wrote_them() {
        let by_coordinator = json!({
            "action": "scale_up", "nodeId": "a", "reason": "r", "priority": "high", "count": 2, "workers": 4,
            "token": 7, "coordinator": "b", "timestamp": 5,
        });
        let by_node = json!({
            "action": "restart", "nodeId": "a", "reason": "command", "priority": "normal", "workers": 2,
            "by": "command", "timestamp": 5,
        });
        let older = json!({
            "action": "scale_down", "nodeId": "a", "reason": "Idle queue", "priority": "low", "timestamp": 5,
        });
        let foreign =
            json!({ "action": "explode", "priority": 3, "timestamp": "now", "extra": [1] });
        for entry in [&by_coordinator, &by_node, &older, &foreign] {
            let read: ScalingDecision = serde_json::from_value(entry.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), *entry);
        }
        let read: ScalingDecision = serde_json::from_value(by_coordinator).unwrap();
        assert_eq!((read.action, read.token), (Some(ScalingAction::ScaleUp), Some(7)));
        assert!(read.other.is_empty(), "all fields that we write are known");
        let read: ScalingDecision = serde_json::from_value(foreign).unwrap();
        assert_eq!(read.action.unwrap().as_str(), "explode");
    }
}
