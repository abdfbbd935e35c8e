//! A lease: leadership that ends by itself unless it is renewed.
//!
//! Every new leader gets a token larger than all before it, and before it does anything it raises a
//! fence with that token (`decisions.rs`). Whatever a leader writes is checked against the fence in the
//! same script, so one that was paused past its time and wakes up believing in its lease changes nothing.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use redis::{Script, cmd};

use crate::{Broker, Error};

static HOLD: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("lease.lua")));

/// The lease of the coordinator.
const COORDINATOR: &str = "stampede:{coordinator}";
const LAST_TOKEN: &str = "stampede:{coordinator}:token";

/// Who leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leadership {
    /// Larger than that of every leader before.
    pub token: u64,
    /// The node that leads.
    pub node: String,
    /// Unique for every start of a node.
    pub incarnation: String,
}

impl Leadership {
    /// As it stands in Redis.
    fn text(&self) -> String {
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
    node: String,
    incarnation: String,
    lasts: Duration,
}

impl Broker {
    /// A candidate for coordinating the cluster; the lease lasts so long without being renewed.
    pub fn coordinator_lease(&self, node: &str, incarnation: &str, lasts: Duration) -> Lease {
        Lease {
            broker: self.clone(),
            node: node.to_owned(),
            incarnation: incarnation.to_owned(),
            lasts,
        }
    }

    /// Who coordinates now, if anybody does.
    pub async fn coordinator(&self) -> Result<Option<Leadership>, Error> {
        let held: Option<String> =
            cmd("GET").arg(COORDINATOR).query_async(&mut self.redis()).await?;
        Ok(held.as_deref().and_then(Leadership::parse))
    }
}

impl Lease {
    /// Takes the lease if it is free, renews it if it is ours. `Some`: ours, until this moment by our
    /// own clock at the latest.
    pub async fn hold(&self) -> Result<Option<(Leadership, Instant)>, Error> {
        // Before the call: Redis counts from a moment after this one.
        let asked = Instant::now();
        let (ours, token, _): (bool, u64, String) = HOLD
            .key(COORDINATOR)
            .key(LAST_TOKEN)
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
        static RELEASE: LazyLock<Script> = LazyLock::new(|| {
            Script::new(
                "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end",
            )
        });
        let _: () = RELEASE
            .key(COORDINATOR)
            .arg(held.text())
            .invoke_async(&mut self.broker.redis())
            .await?;
        Ok(())
    }
}
