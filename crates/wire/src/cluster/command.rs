//! Commands to nodes, on `worker:commands:{node}` and `worker:commands:all`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::open::open_record;

open_record! {
    /// A command as it is sent. A coordinator's decision ([`super::ScalingDecision`]) has these fields too.
    pub struct NodeCommand {
        /// `scale_up`, `scale_down` or `restart`.
        action: String = "action",
        /// Workers more or fewer; 1 if absent.
        count: u64 = "count",
        /// Workers the node is to have; a coordinator's commands have it.
        workers: u64 = "workers",
        /// The reason, for people.
        reason: String = "reason",
        /// The coordinator's fencing token.
        token: u64 = "token",
    }
}

/// `POST /api/nodes/{id}/commands`, answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandSent {
    /// Always true.
    pub success: bool,
    /// Nodes that heard it; `null` in a Redis Cluster, where a publisher is not told.
    pub heard: Option<u64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_names_are_those_that_nodes_of_all_versions_read() {
        let command = json!({
            "action": "scale_up", "count": 2, "workers": 3, "reason": "r", "token": 7,
        });
        let read: NodeCommand = serde_json::from_value(command.clone()).unwrap();
        assert!(read.other.is_empty());
        assert_eq!(serde_json::to_value(&read).unwrap(), command);
        let sent = serde_json::to_value(CommandSent { success: true, heard: None }).unwrap();
        assert_eq!(sent, json!({ "success": true, "heard": null }));
    }
}
