//! What is decided about the cluster: commands to nodes, the history, statistics and alerts.
//!
//! Before a new coordinator does anything, it raises a fence with its token beside each of the keys it
//! writes ([`Decisions::begin`]). What a coordinator writes goes through scripts that look at the fence in
//! the same breath: one that is not coordinator any more, and does not know it yet, changes nothing. Fence
//! and key share a hash slot, so that this holds in a Redis Cluster too.

use std::sync::LazyLock;
use std::time::Duration;

use redis::{Script, cmd};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::counters::COUNTERS;
use super::{Leadership, object};
use crate::connection::Listener;
use crate::{Broker, Channel, Error};

static FENCE: Lazy = Lazy::new(|| Script::new(include_str!("raise_fence.lua")));
static DECIDE: Lazy = Lazy::new(|| Script::new(include_str!("decision.lua")));
static SURVEY: Lazy = Lazy::new(|| Script::new(include_str!("survey.lua")));
static ALERT: Lazy = Lazy::new(|| Script::new(include_str!("alert.lua")));
static STEP: Lazy = Lazy::new(|| Script::new(include_str!("step.lua")));
static READ_HISTORY: Lazy = Lazy::new(|| Script::new(include_str!("history.lua")));

type Lazy = LazyLock<Script>;

const HISTORY: &str = "scaling:history";
const STATS: &str = "cluster:stats";
const ALERTS: &str = "cluster:alerts";
/// Entries of the history and of the alerts that are kept.
const KEPT: usize = 100;
/// How long statistics are kept that nobody writes anew, as in seed 000.
const STATS_KEPT: Duration = Duration::from_secs(300);
/// How long a fence stands after its coordinator began; one that leads longer raises it again.
const FENCE_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// What became of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// It was told and remembered.
    Told,
    /// The node does not listen.
    Unheard,
    /// Somebody else coordinates by now; nothing was written.
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

    /// Listens to channels on a connection of its own.
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

/// The fence before a key, in the same hash slot.
pub(super) fn fence(key: &str) -> String {
    format!("{{{key}}}:fence")
}

impl Decisions {
    /// A new coordinator keeps out all before it; `false` if there is a newer one already.
    pub async fn begin(&self, leader: &Leadership) -> Result<bool, Error> {
        for key in [HISTORY, STATS, ALERTS].into_iter().chain(COUNTERS) {
            let raised: bool = FENCE
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

    /// The channels of commands that a node listens to.
    pub fn command_channels(node: &str) -> [String; 2] {
        [commands_to(node), commands_to("all")]
    }

    /// Tells a node what was decided about it and remembers it, if `leader` still coordinates.
    pub async fn decide(
        &self,
        leader: &Leadership,
        node: &str,
        decision: &impl Serialize,
    ) -> Result<Decided, Error> {
        let heard: i64 = DECIDE
            .key(fence(HISTORY))
            .key(HISTORY)
            .arg(leader.token)
            .arg(commands_to(node))
            .arg(object(decision))
            .arg(KEPT)
            .arg(Channel::ScalingDecisions.as_str())
            .arg(if self.broker.is_cluster() { "cluster" } else { "" })
            .invoke_async(&mut self.broker.redis())
            .await?;
        Ok(match heard {
            -1 => Decided::Fenced,
            0 => Decided::Unheard,
            _ => Decided::Told,
        })
    }

    /// Writes what a coordinator has seen; `false` if another coordinates.
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

    /// Raises alerts; `false` if another coordinates.
    pub async fn alert(
        &self,
        leader: &Leadership,
        alerts: &[impl Serialize],
    ) -> Result<bool, Error> {
        let mut call = ALERT.prepare_invoke();
        call.key(fence(ALERTS)).key(ALERTS).arg(leader.token).arg(KEPT);
        call.arg(Channel::ClusterAlert.as_str());
        for alert in alerts {
            call.arg(object(alert));
        }
        Ok(call.invoke_async(&mut self.broker.redis()).await?)
    }

    /// Tells everybody that a node has changed the number of its workers; `remember` is its entry in
    /// the history, unless a coordinator has written one.
    pub async fn step<E: Serialize>(
        &self,
        event: &impl Serialize,
        remember: Option<&E>,
    ) -> Result<(), Error> {
        let _: () = STEP
            .key(HISTORY)
            .arg(Channel::ScalingEvent.as_str())
            .arg(object(event))
            .arg(remember.map(|entry| object(entry)).unwrap_or_default())
            .arg(KEPT)
            .invoke_async(&mut self.broker.redis())
            .await?;
        Ok(())
    }

    /// Sends a command to a node, or to `all`; returns how many heard it, if Redis can tell.
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
            READ_HISTORY.key(HISTORY).arg(KEPT).invoke_async(&mut self.broker.redis()).await?;
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

/// Messages of channels. Ends when the connection does; whoever is slow misses the oldest.
pub struct Subscription {
    listener: Listener,
}

impl Subscription {
    /// The next message; `None` when the connection has ended.
    pub async fn next(&mut self) -> Option<String> {
        let message = self.listener.next().await?;
        Some(String::from_utf8_lossy(message.get_payload_bytes()).into_owned())
    }
}
