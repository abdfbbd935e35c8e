//! Decisions about the cluster: commands to nodes, the history, statistics and alerts.
//!
//! Every coordinator has a fencing token, larger than those before it. A new coordinator first writes its token into
//! the fence of each key it writes ([`Decisions::begin`]). Every write checks the fence in the same script: a node
//! that is not coordinator any more, and does not know it yet, changes nothing. Fence and key share a hash slot, so
//! that this holds in a Redis Cluster, too.

use std::time::Duration;

use redis::cmd;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::counters::COUNTERS;
use super::{Leadership, object};
use crate::link::Listener;
use crate::{Broker, Error};

script!(ALERT);
script!(DECISION);
script!(HISTORY);
script!(RAISE_FENCE);
script!(STEP);
script!(SURVEY);

// Channels and keys, all of them names older software relies on (`docs/compatibility.md`).
const SCALING_EVENTS: &str = "scaling:event";
const SCALING_DECISIONS: &str = "scaling:decisions";
const CLUSTER_ALERTS: &str = "cluster:alert";
const SCALING_HISTORY: &str = "scaling:history";
const STATS: &str = "cluster:stats";
const ALERTS: &str = "cluster:alerts";
/// Entries of the history and of the alerts that are kept.
const KEPT: usize = 100;
/// How long statistics are kept that are not renewed. Older software relies on it (`docs/compatibility.md`).
const STATS_KEPT: Duration = Duration::from_secs(300);
/// How long a fence is kept after its coordinator began; one that leads longer raises it again.
const FENCE_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// The result of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// The node received it, and it is remembered.
    Told,
    /// The node is not subscribed; nothing was written.
    Unheard,
    /// Another node is coordinator by now; nothing was written.
    Fenced,
}

/// Decisions about this cluster. Cheap to clone.
#[derive(Clone)]
pub struct Decisions {
    broker: Broker,
}

impl Broker {
    /// Decisions about the cluster.
    pub fn decisions(&self) -> Decisions {
        Decisions { broker: self.clone() }
    }

    /// Subscribes to channels on a connection of its own.
    pub async fn subscribe(&self, channels: &[String]) -> Result<Subscription, Error> {
        let mut listener = self.listener().await?;
        for channel in channels {
            listener.subscribe(channel).await?;
        }
        Ok(Subscription { listener })
    }
}

/// The channel of commands for one node.
fn commands_to(node: &str) -> String {
    format!("worker:commands:{node}")
}

/// The fence of a key, in the same hash slot.
pub(super) fn fence(key: &str) -> String {
    format!("{{{key}}}:fence")
}

impl Decisions {
    /// Raises the fences for a new coordinator; `false` if there is a newer one already.
    pub async fn begin(&self, leader: &Leadership) -> Result<bool, Error> {
        for key in [SCALING_HISTORY, STATS, ALERTS].into_iter().chain(COUNTERS) {
            let raised: bool = RAISE_FENCE
                .key(fence(key))
                .arg(leader.token)
                .arg(FENCE_KEPT.as_secs())
                .invoke_async(&mut self.broker.redis())
                .await?;
            if !raised {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The channels of commands that a node subscribes to.
    pub fn command_channels(node: &str) -> [String; 2] {
        [commands_to(node), commands_to("all")]
    }

    /// Publishes a decision to its node and remembers it, if `leader` is still coordinator.
    pub async fn decide(
        &self,
        leader: &Leadership,
        node: &str,
        decision: &impl Serialize,
    ) -> Result<Decided, Error> {
        let heard: i64 = DECISION
            .key(fence(SCALING_HISTORY))
            .key(SCALING_HISTORY)
            .arg(leader.token)
            .arg(commands_to(node))
            .arg(object(decision))
            .arg(KEPT)
            .arg(SCALING_DECISIONS)
            .arg(if self.broker.is_cluster() { "cluster" } else { "" })
            .invoke_async(&mut self.broker.redis())
            .await?;
        Ok(match heard {
            -1 => Decided::Fenced,
            0 => Decided::Unheard,
            _ => Decided::Told,
        })
    }

    /// Writes the statistics of a coordinator; `false` if another node is coordinator.
    pub async fn survey(&self, leader: &Leadership, stats: &impl Serialize) -> Result<bool, Error> {
        Ok(SURVEY
            .key(fence(STATS))
            .key(STATS)
            .arg(leader.token)
            .arg(object(stats))
            .arg(STATS_KEPT.as_secs())
            .invoke_async(&mut self.broker.redis())
            .await?)
    }

    /// Raises alerts; `false` if another node is coordinator.
    pub async fn alert(
        &self,
        leader: &Leadership,
        alerts: &[impl Serialize],
    ) -> Result<bool, Error> {
        let mut call = ALERT.prepare_invoke();
        call.key(fence(ALERTS)).key(ALERTS).arg(leader.token).arg(KEPT);
        call.arg(CLUSTER_ALERTS);
        for alert in alerts {
            call.arg(object(alert));
        }
        Ok(call.invoke_async(&mut self.broker.redis()).await?)
    }

    /// Raises an alert from any process, whoever is coordinator: for something that one transaction elsewhere has decided.
    pub async fn raise(&self, alert: &impl Serialize) -> Result<(), Error> {
        let mut call = ALERT.prepare_invoke();
        call.key(fence(ALERTS)).key(ALERTS).arg("").arg(KEPT);
        call.arg(CLUSTER_ALERTS).arg(object(alert));
        call.invoke_async::<i64>(&mut self.broker.redis()).await?;
        Ok(())
    }

    /// Publishes that a node has changed the number of its workers; `remember` is its entry in the history, unless a
    /// coordinator has written one.
    pub async fn step<E: Serialize>(
        &self,
        event: &impl Serialize,
        remember: Option<&E>,
    ) -> Result<(), Error> {
        let _: () = STEP
            .key(SCALING_HISTORY)
            .arg(SCALING_EVENTS)
            .arg(object(event))
            .arg(remember.map(|entry| object(entry)).unwrap_or_default())
            .arg(KEPT)
            .invoke_async(&mut self.broker.redis())
            .await?;
        Ok(())
    }

    /// Sends a command to a node, or to `all`; returns how many subscribers received it, if Redis can tell.
    pub async fn command(
        &self,
        node: &str,
        command: &impl Serialize,
    ) -> Result<Option<u64>, Error> {
        let text = object(command);
        let mut redis = self.broker.redis();
        let heard = cmd("PUBLISH").arg(commands_to(node)).arg(text).query_async(&mut redis).await?;
        Ok(Some(heard).filter(|_| !self.broker.is_cluster()))
    }

    /// The last decisions, newest first, and the time by Redis' clock.
    pub async fn history<T: DeserializeOwned>(&self) -> Result<(Vec<T>, u64), Error> {
        let mut entries: Vec<String> =
            HISTORY.key(SCALING_HISTORY).arg(KEPT).invoke_async(&mut self.broker.redis()).await?;
        let now_ms = entries.pop().and_then(|now| now.parse().ok()).unwrap_or(0);
        Ok((parse_all(&entries), now_ms))
    }

    /// The last alerts, newest first.
    pub async fn alerts<T: DeserializeOwned>(&self) -> Result<Vec<T>, Error> {
        let mut redis = self.broker.redis();
        let entries: Vec<String> =
            cmd("LRANGE").arg(ALERTS).arg(0).arg(KEPT - 1).query_async(&mut redis).await?;
        Ok(parse_all(&entries))
    }

    /// `cluster:stats`, as a coordinator wrote it last.
    pub async fn stats<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let text: Option<String> =
            cmd("GET").arg(STATS).query_async(&mut self.broker.redis()).await?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }
}

fn parse_all<T: DeserializeOwned>(entries: &[String]) -> Vec<T> {
    entries.iter().filter_map(|entry| serde_json::from_str(entry).ok()).collect()
}

/// Messages of channels. Ends when the connection does; a slow reader misses the oldest.
pub struct Subscription {
    listener: Listener,
}

impl Subscription {
    /// The next message; `None` when the connection has ended.
    pub async fn next(&mut self) -> Option<String> {
        let message = self.listener.next().await?;
        Some(String::from_utf8_lossy(message.get_payload_bytes()).into_owned())
    }

    /// The next message with its channel; `None` when the connection has ended.
    pub async fn next_of_channel(&mut self) -> Option<(String, String)> {
        let message = self.listener.next().await?;
        let text = String::from_utf8_lossy(message.get_payload_bytes()).into_owned();
        Some((message.get_channel_name().to_owned(), text))
    }
}
