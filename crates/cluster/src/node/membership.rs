//! Joining the cluster under a name that no other process has.
//!
//! A node that was killed has left its name behind, for as long as an entry lives. When it was a
//! process of this machine, we can see that it is gone; else we wait whether it says another word.
//! One that does is alive, and we do not start.

use std::time::Duration;

use serde_json::json;
use stampede_broker::{Broker, ClaimNode, Error, NodeIdentity};
use tokio::time::Instant;
use uuid::Uuid;

use super::NodeConfig;
use crate::{ENTRY_LIVES, machine};

/// How often to look whether the other still holds the name.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// Why a node cannot join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Another process has its name, and is alive.
    #[error(
        "another node is called {name:?}: process {pid} on {host}. Every node needs a name of its own: \
         set SERVER_NAME, or leave it out for host name and process id"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// Machine of the other.
        host: String,
        /// Process of the other.
        pid: u32,
    },
    /// Redis does not answer.
    #[error(transparent)]
    Broker(#[from] Error),
}

/// The right to a name.
pub struct Membership {
    pub(super) config: NodeConfig,
    pub(super) broker: Broker,
    pub(super) me: NodeIdentity,
}

impl Membership {
    /// Joins the cluster, or says who has the name already.
    pub async fn claim(config: NodeConfig, broker: Broker) -> Result<Self, JoinError> {
        let me = NodeIdentity {
            incarnation: Uuid::now_v7().to_string(),
            host: machine::host(),
            pid: std::process::id(),
            boot: machine::boot(),
        };
        let registry = broker.registry(ENTRY_LIVES);
        let stats = json!({
            "instanceId": config.name, "workers": 0, "load": machine::load_average(),
            "memUsage": 0, "host": me.host, "pid": me.pid, "mode": config.mode,
            "roles": config.roles.names(false),
        });
        let give_up = Instant::now() + ENTRY_LIVES + Duration::from_secs(1);
        let mut dead: Option<NodeIdentity> = None;
        let mut seen: Option<Duration> = None;
        loop {
            let claim =
                registry.announce_node(&config.name, &me, &stats, None, dead.as_ref()).await?;
            let (holder, expires_in) = match claim {
                ClaimNode::Ours(_) => return Ok(Self { config, broker, me }),
                ClaimNode::Taken { holder, expires_in } => (holder, expires_in),
            };
            if let Some(holder) = holder.as_ref().filter(|holder| is_dead(holder, &me)) {
                dead = Some(holder.clone());
                continue;
            }
            // Its time runs down, unless it has said meanwhile that it is alive.
            let alive = seen.is_some_and(|before| expires_in > before);
            if alive || Instant::now() > give_up {
                let (host, pid) = holder.map_or_else(Default::default, |h| (h.host, h.pid));
                return Err(JoinError::NameTaken { name: config.name, host, pid });
            }
            if seen.is_none() {
                tracing::warn!(
                    name = config.name,
                    holder = holder.as_ref().map(tracing::field::display),
                    "a node with this name was here a moment ago; waiting whether it is gone"
                );
            }
            seen = Some(expires_in);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Whether we can see from here that a process is gone.
fn is_dead(holder: &NodeIdentity, me: &NodeIdentity) -> bool {
    let same_machine = holder.host == me.host && holder.boot == me.boot && !me.boot.is_empty();
    // With our own process id it cannot be anybody but a former life of this container.
    same_machine && (holder.pid == me.pid || !machine::lives(holder.pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_of_this_machine_can_be_seen_to_be_dead() {
        let me = NodeIdentity {
            incarnation: "b".into(),
            host: machine::host(),
            pid: std::process::id(),
            boot: "boot".into(),
        };
        let other = |pid, host: &str| NodeIdentity { pid, host: host.into(), ..me.clone() };
        assert!(is_dead(&other(u32::MAX, &me.host), &me));
        assert!(is_dead(&other(me.pid, &me.host), &me));
        assert!(!is_dead(&other(1, &me.host), &me), "process 1 lives");
        assert!(!is_dead(&other(u32::MAX, "elsewhere"), &me));
    }
}
