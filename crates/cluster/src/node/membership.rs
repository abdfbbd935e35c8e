//! Joining the cluster under a name that no other process has.
//!
//! The name of a killed node stays taken until its entry expires. If the killed process ran on this machine, its
//! death can be seen from here. Otherwise this node waits: if the entry is renewed meanwhile, the other node is
//! alive, and this one does not start.

use std::time::Duration;

use stampede_broker::{Broker, ClaimNode, Error, NodeIdentity};
use stampede_wire::cluster::NodeStats;
use tokio::time::Instant;
use uuid::Uuid;

use super::NodeConfig;
use crate::{ENTRY_LIVES, machine};

/// Time between two attempts to claim a name that another node holds.
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

/// The claim to a name, held in the registry.
pub struct Membership {
    pub(super) config: NodeConfig,
    pub(super) broker: Broker,
    pub(super) me: NodeIdentity,
}

impl Membership {
    /// Joins the cluster, or names the process that holds the name.
    pub async fn claim(config: NodeConfig, broker: Broker) -> Result<Self, JoinError> {
        let me = NodeIdentity {
            incarnation: Uuid::now_v7().to_string(),
            host: machine::host(),
            pid: std::process::id(),
            boot: machine::boot(),
        };
        let registry = broker.registry(ENTRY_LIVES);
        let stats = NodeStats {
            instance_id: Some(config.name.clone()),
            workers: Some(0),
            load: Some(machine::load_average()),
            mem_usage: Some(0.0),
            host: Some(me.host.clone()),
            pid: Some(me.pid),
            mode: Some(config.mode.to_owned()),
            roles: Some(config.roles.names(false)),
            ..NodeStats::default()
        };
        let give_up = Instant::now() + ENTRY_LIVES + Duration::from_secs(1);
        let mut dead: Option<NodeIdentity> = None;
        let mut seen: Option<Duration> = None;
        loop {
            let claim = registry.announce_node(&config.name, &me, &stats, dead.as_ref()).await?;
            let (holder, expires_in) = match claim {
                ClaimNode::Ours(_) => return Ok(Self { config, broker, me }),
                ClaimNode::Taken { holder, expires_in } => (holder, expires_in),
            };
            if let Some(holder) = holder.as_ref().filter(|holder| is_dead(holder, &me)) {
                dead = Some(holder.clone());
                continue;
            }
            // The remaining time only grows when the holder renews its entry.
            let alive = seen.is_some_and(|before| expires_in > before);
            if alive || Instant::now() > give_up {
                let (host, pid) = holder.map_or_else(Default::default, |h| (h.host, h.pid));
                return Err(JoinError::NameTaken { name: config.name, host, pid });
            }
            if seen.is_none() {
                tracing::warn!(
                    name = config.name,
                    holder = holder.as_ref().map(tracing::field::display),
                    "another node held this name a moment ago; waiting whether it is gone"
                );
            }
            seen = Some(expires_in);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Whether the holder ran on this machine and its process is gone.
fn is_dead(holder: &NodeIdentity, me: &NodeIdentity) -> bool {
    let same_machine = holder.host == me.host && holder.boot == me.boot && !me.boot.is_empty();
    // A holder with our own process id is a former start of this container.
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
