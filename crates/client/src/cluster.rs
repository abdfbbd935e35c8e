//! Nodes, the cluster, scaling history, health.

use stampede_wire::cluster::{
    ClusterView, CommandSent, Health, History, NodeCommand, Nodes, Readiness,
};

use crate::{Client, Result, segment};

impl Client {
    /// The nodes that are alive, each with its workers.
    pub async fn nodes(&self) -> Result<Nodes> {
        self.get("/api/nodes").await
    }

    /// The whole cluster.
    pub async fn cluster(&self) -> Result<ClusterView> {
        self.get("/api/cluster").await
    }

    /// The last 100 scaling decisions.
    pub async fn scaling_history(&self) -> Result<History> {
        self.get("/api/scaling/history").await
    }

    /// Sends a command to a node, or to `all`.
    pub async fn command(&self, node: &str, command: &NodeCommand) -> Result<CommandSent> {
        self.post(&format!("/api/nodes/{}/commands", segment(node)), command).await
    }

    /// The server's health; administrators also see its node.
    pub async fn health(&self) -> Result<Health> {
        self.get("/health").await
    }

    /// Whether the server can do its work. The error is the answer of a server that cannot, `None` if no server
    /// answers.
    pub async fn readiness(&self) -> std::result::Result<Readiness, Option<Readiness>> {
        let answer = self.http.get(format!("{}/ready", self.base)).send().await;
        let answer = answer.map_err(|_| None)?;
        let is_ready = answer.status().is_success();
        let readiness = answer.json().await.map_err(|_| None)?;
        if is_ready { Ok(readiness) } else { Err(Some(readiness)) }
    }
}
