//! The leader holds a lease that expires unless it is renewed.
//!
//! Every election increments a fencing token; every write checks it in the same script (`decisions.rs`). So a leader
//! that was suspended past the end of its lease, and still believes in it, changes nothing.

use std::time::{Duration, Instant};

use redis::cmd;

use crate::{Broker, Error};

script!(LEASE);
script!(RELEASE_LEASE);

/// The lease of the coordinator.
const COORDINATOR: &str = "stampede:{coordinator}";
/// The lease of the node that relays the outbox to the feed. The stream shares its hash slot.
pub(crate) const RELAY: &str = "stampede:{feed}:relay";

/// The last fencing token of a lease, in the same hash slot.
fn last_token(lease: &str) -> String {
    format!("{lease}:token")
}

/// The leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leadership {
    /// The fencing token: larger than that of every leader before.
    pub token: u64,
    /// The node that leads.
    pub node: String,
    /// Unique for every start of a node.
    pub incarnation: String,
}

impl Leadership {
    /// The value of the key in Redis.
    pub(crate) fn text(&self) -> String {
        format!("{} {}", self.token, holder(&self.node, &self.incarnation))
    }

    fn parse(text: &str) -> Option<Self> {
        let (token, holder) = text.split_once(' ')?;
        let (node, incarnation) = holder.split_once(' ')?;
        Some(Self {
            token: token.parse().ok()?,
            node: node.to_owned(),
            incarnation: incarnation.to_owned(),
        })
    }
}

fn holder(node: &str, incarnation: &str) -> String {
    format!("{node} {incarnation}")
}

/// One candidate for a lease.
#[derive(Clone)]
pub struct Lease {
    broker: Broker,
    key: &'static str,
    node: String,
    incarnation: String,
    lasts: Duration,
}

impl Broker {
    /// A candidate for the lease of the coordinator, which expires after `lasts` unless it is renewed.
    pub fn coordinator_lease(&self, node: &str, incarnation: &str, lasts: Duration) -> Lease {
        self.lease(COORDINATOR, node, incarnation, lasts)
    }

    /// A candidate for the lease of the relay, which expires after `lasts` unless it is renewed.
    pub fn relay_lease(&self, node: &str, incarnation: &str, lasts: Duration) -> Lease {
        self.lease(RELAY, node, incarnation, lasts)
    }

    fn lease(&self, key: &'static str, node: &str, incarnation: &str, lasts: Duration) -> Lease {
        Lease {
            broker: self.clone(),
            key,
            node: node.to_owned(),
            incarnation: incarnation.to_owned(),
            lasts,
        }
    }

    /// The coordinator, if there is one.
    pub async fn coordinator(&self) -> Result<Option<Leadership>, Error> {
        let held: Option<String> =
            cmd("GET").arg(COORDINATOR).query_async(&mut self.redis()).await?;
        Ok(held.as_deref().and_then(Leadership::parse))
    }
}

impl Lease {
    /// Takes the lease if it is free, renews it if it is ours. `Some`: it is ours, until this moment by our own clock
    /// at the latest.
    pub async fn hold(&self) -> Result<Option<(Leadership, Instant)>, Error> {
        // Before the call: Redis counts from a later moment.
        let asked = Instant::now();
        let (ours, token, _): (bool, u64, String) = LEASE
            .key(self.key)
            .key(last_token(self.key))
            .arg(holder(&self.node, &self.incarnation))
            .arg(self.lasts.as_millis() as u64)
            .invoke_async(&mut self.broker.redis())
            .await?;
        let leadership =
            || Leadership { token, node: self.node.clone(), incarnation: self.incarnation.clone() };
        Ok(ours.then(|| (leadership(), asked + self.lasts)))
    }

    /// Gives the lease back, so that another node takes over at once.
    pub async fn release(&self, held: &Leadership) -> Result<(), Error> {
        let _: () = RELEASE_LEASE
            .key(self.key)
            .arg(held.text())
            .invoke_async(&mut self.broker.redis())
            .await?;
        Ok(())
    }
}
