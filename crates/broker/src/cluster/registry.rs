//! The registry of live nodes and workers: each sends heartbeats, and disappears when it does not.
//!
//! Outside readers see hashes with one field for each node or worker (`workers:stats`, `queue:metrics`,
//! `workers:active`, `workers:heartbeat`). Redis 7.0 cannot let a field expire. So each entry ends with the time when
//! it was written, by the clock of Redis, and every heartbeat of a node removes entries that are too old. When no
//! node is left, the hashes expire as a whole.
//!
//! The name of a node belongs to one process at a time, which `stampede:node:{name}` names. Every call uses one
//! key, as a Redis Cluster requires.

use std::collections::BTreeMap;
use std::time::Duration;

use redis::cmd;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Leadership;
use super::object;
use crate::{Broker, Error};

script!(ANNOUNCE);
script!(CLAIM);
script!(ENTRIES);
script!(FORGET);
script!(RELEASE);

/// A hash with an entry for each node or worker.
#[derive(Clone, Copy)]
struct Hash {
    key: &'static str,
    /// The name of the time at the end of its entries.
    time: &'static str,
}

// All of them names older software relies on (`docs/compatibility.md`).
const STATS: Hash = Hash { key: "workers:stats", time: "timestamp" };
const METRICS: Hash = Hash { key: "queue:metrics", time: "timestamp" };
const ACTIVE: Hash = Hash { key: "workers:active", time: "last_seen" };
const HEARTBEAT: Hash = Hash { key: "workers:heartbeat", time: "last_heartbeat" };
/// How long it is remembered that a node left in good order.
const LEFT: Duration = Duration::from_secs(300);

/// The process that holds the name of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeIdentity {
    /// Unique for every start.
    pub incarnation: String,
    /// The name of its machine.
    pub host: String,
    /// The id of its process.
    pub pid: u32,
    /// Changes with every start of the machine.
    pub boot: String,
}

impl std::fmt::Display for NodeIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}

impl NodeIdentity {
    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The result of claiming the name of a node.
#[derive(Debug)]
pub enum ClaimNode {
    /// The name is ours; this is what the node learns.
    Ours(Announced),
    /// Another process holds the name.
    Taken {
        /// That process, if its entry is readable.
        holder: Option<NodeIdentity>,
        /// When its entry expires, unless it sends a heartbeat.
        expires_in: Duration,
    },
}

/// What a node learns from its heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Announced {
    /// The coordinator, if there is one.
    pub coordinator: Option<Leadership>,
    /// Workers of all other nodes that take jobs.
    pub other_workers: usize,
}

/// A live node.
#[derive(Debug, Clone)]
pub struct NodeEntry<S, Q> {
    /// Its name.
    pub name: String,
    /// Its report about itself (`workers:stats`); the default if that cannot be read.
    pub stats: S,
    /// Its report about the queues (`queue:metrics`), if there is one that can be read.
    pub queue: Option<Q>,
    /// The age of its last heartbeat, by the clock of Redis.
    pub age: Duration,
}

/// A live worker.
#[derive(Debug, Clone)]
pub struct WorkerEntry<A, H> {
    /// Its name.
    pub id: String,
    /// `workers:active`, if that can be read.
    pub active: Option<A>,
    /// `workers:heartbeat`; the default if that cannot be read.
    pub heartbeat: H,
    /// The age of its last heartbeat, by the clock of Redis.
    pub age: Duration,
}

/// What a worker tells about itself in its heartbeats.
#[derive(Debug, Clone)]
pub struct WorkerPresence {
    /// Its name.
    pub id: String,
    /// The name of its node.
    pub node: String,
    /// Unique for every start.
    pub incarnation: String,
    /// When it was started, in seconds since 1970.
    pub start_time: u64,
    /// The id of its process.
    pub pid: u32,
}

/// Nodes and workers in this Redis. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    pub(super) broker: Broker,
    lives: Duration,
}

impl Broker {
    /// The registry of nodes and workers; entries expire after `lives` without a heartbeat.
    pub fn registry(&self, lives: Duration) -> Registry {
        Registry { broker: self.clone(), lives }
    }
}

impl Registry {
    fn lives_ms(&self) -> u64 {
        self.lives.as_millis() as u64
    }

    /// Sends the heartbeat of a node, unless its name belongs to another process. `dead` is a process that is known to
    /// be dead.
    pub async fn announce_node(
        &self,
        name: &str,
        me: &NodeIdentity,
        stats: &impl Serialize,
        dead: Option<&NodeIdentity>,
    ) -> Result<ClaimNode, Error> {
        let (ours, holder, expires_ms): (bool, String, i64) = CLAIM
            .key(node_key(name))
            .arg(me.text())
            .arg(self.lives_ms())
            .arg(dead.map(NodeIdentity::text).unwrap_or_default())
            .invoke_async(&mut self.broker.redis())
            .await?;
        if !ours {
            return Ok(ClaimNode::Taken {
                holder: serde_json::from_str(&holder).ok(),
                expires_in: Duration::from_millis(expires_ms.max(0) as u64),
            });
        }
        // If it dies from here on, it did not leave in good order.
        let mut redis = self.broker.redis();
        let _: () = cmd("DEL").arg(left_key(name)).query_async(&mut redis).await?;
        let other_workers = self.announce(STATS, name, &started(stats, me), Sweep::Old).await?;
        Ok(ClaimNode::Ours(Announced {
            coordinator: self.broker.coordinator().await?,
            other_workers,
        }))
    }

    /// Writes a node's report about the queues; its name must have been announced.
    pub async fn announce_metrics(
        &self,
        name: &str,
        me: &NodeIdentity,
        queue: &impl Serialize,
    ) -> Result<(), Error> {
        self.announce(METRICS, name, &started(queue, me), Sweep::Old).await.map(drop)
    }

    /// Removes workers without a heartbeat for too long. Nodes do this: a thousand workers would do it too often.
    pub async fn sweep_workers(&self) -> Result<(), Error> {
        for hash in [ACTIVE, HEARTBEAT] {
            self.entries(hash, Sweep::Old).await?;
        }
        Ok(())
    }

    /// Removes a node that leaves in good order.
    pub async fn forget_node(&self, name: &str, me: &NodeIdentity) -> Result<(), Error> {
        self.forget(STATS, name, &me.incarnation).await?;
        self.forget(METRICS, name, &me.incarnation).await?;
        let mut redis = self.broker.redis();
        let held: Option<String> = cmd("GET").arg(node_key(name)).query_async(&mut redis).await?;
        if held == Some(me.text()) {
            let mut set = cmd("SET");
            set.arg(left_key(name)).arg(1).arg("PX").arg(LEFT.as_millis() as u64);
            let _: () = set.query_async(&mut redis).await?;
            // The name may have expired and been taken just now; then it is not ours to give back.
            let released: bool =
                RELEASE.key(node_key(name)).arg(me.text()).invoke_async(&mut redis).await?;
            if !released {
                let _: () = cmd("DEL").arg(left_key(name)).query_async(&mut redis).await?;
            }
        }
        Ok(())
    }

    /// Whether a node that is gone left in good order.
    pub async fn has_left(&self, name: &str) -> Result<bool, Error> {
        Ok(cmd("EXISTS").arg(left_key(name)).query_async(&mut self.broker.redis()).await?)
    }

    /// Sends the heartbeat of a worker.
    pub async fn announce_worker(
        &self,
        worker: &WorkerPresence,
        status: &str,
        more: &impl Serialize,
    ) -> Result<(), Error> {
        let start = json!({ "incarnation": worker.incarnation });
        let active = json!({
            "instance_id": worker.node, "start_time": worker.start_time, "status": status,
            "pid": worker.pid,
        });
        let heartbeat = with(
            &json!({ "worker_id": worker.id, "instance_id": worker.node, "status": status }),
            json!(more),
        );
        self.announce(ACTIVE, &worker.id, &with(&active, start.clone()), Sweep::Nothing).await?;
        self.announce(HEARTBEAT, &worker.id, &with(&heartbeat, start), Sweep::Nothing).await?;
        Ok(())
    }

    /// Removes a worker that is gone.
    pub async fn forget_worker(&self, id: &str, incarnation: &str) -> Result<(), Error> {
        self.forget(ACTIVE, id, incarnation).await?;
        self.forget(HEARTBEAT, id, incarnation).await
    }

    /// The live nodes, by name.
    pub async fn nodes<S, Q>(&self) -> Result<Vec<NodeEntry<S, Q>>, Error>
    where
        S: DeserializeOwned + Default,
        Q: DeserializeOwned,
    {
        let mut queues = self.read(METRICS).await?;
        let nodes = self.read(STATS).await?;
        let entry = |(name, (stats, age)): (String, (Option<S>, Duration))| NodeEntry {
            queue: queues.remove(&name).and_then(|(queue, _)| queue),
            name,
            stats: stats.unwrap_or_default(),
            age,
        };
        Ok(nodes.into_iter().map(entry).collect())
    }

    /// The live workers, by name.
    pub async fn workers<A, H>(&self) -> Result<Vec<WorkerEntry<A, H>>, Error>
    where
        A: DeserializeOwned,
        H: DeserializeOwned + Default,
    {
        let mut active = self.read(ACTIVE).await?;
        let heartbeats = self.read(HEARTBEAT).await?;
        let entry = |(id, (heartbeat, age)): (String, (Option<H>, Duration))| WorkerEntry {
            active: active.remove(&id).and_then(|(active, _)| active),
            id,
            heartbeat: heartbeat.unwrap_or_default(),
            age,
        };
        Ok(heartbeats.into_iter().map(entry).collect())
    }

    async fn announce(
        &self,
        Hash { key, time }: Hash,
        field: &str,
        value: &Value,
        sweep: Sweep,
    ) -> Result<usize, Error> {
        let others: usize = ANNOUNCE
            .key(key)
            .arg(field)
            .arg(object(value))
            .arg(self.lives_ms())
            .arg(time)
            .arg(sweep.word())
            .invoke_async(&mut self.broker.redis())
            .await?;
        Ok(others)
    }

    async fn forget(
        &self,
        Hash { key, .. }: Hash,
        field: &str,
        incarnation: &str,
    ) -> Result<(), Error> {
        let start = json!({ "incarnation": incarnation }).to_string();
        let start = start.trim_matches(['{', '}']);
        let _: () =
            FORGET.key(key).arg(field).arg(start).invoke_async(&mut self.broker.redis()).await?;
        Ok(())
    }

    async fn read<T: DeserializeOwned>(&self, hash: Hash) -> Result<Entries<T>, Error> {
        let texts = self.entries(hash, Sweep::Nothing).await?;
        let entries = texts.chunks_exact(3).map(|entry| {
            let age = Duration::from_millis(entry[2].parse().unwrap_or(0));
            (entry[0].clone(), (serde_json::from_str(&entry[1]).ok(), age))
        });
        Ok(entries.collect())
    }

    async fn entries(&self, Hash { key, time }: Hash, sweep: Sweep) -> Result<Vec<String>, Error> {
        Ok(ENTRIES
            .key(key)
            .arg(self.lives_ms())
            .arg(time)
            .arg(sweep.word())
            .invoke_async(&mut self.broker.redis())
            .await?)
    }
}

/// Whether entries that are too old are removed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sweep {
    Old,
    Nothing,
}

impl Sweep {
    fn word(self) -> &'static str {
        if self == Self::Old { "sweep" } else { "" }
    }
}

/// Entries of a hash by name, as far as they can be read, each with its age.
type Entries<T> = BTreeMap<String, (Option<T>, Duration)>;

/// A report of a node, with the start of the node that wrote it.
fn started(report: &impl Serialize, me: &NodeIdentity) -> Value {
    with(&json!(report), json!({ "incarnation": me.incarnation }))
}

/// One object with the fields of another added.
fn with(value: &Value, more: Value) -> Value {
    let mut sum = value.as_object().cloned().unwrap_or_default();
    if let Value::Object(more) = more {
        sum.extend(more);
    }
    sum.into()
}

fn node_key(name: &str) -> String {
    format!("stampede:node:{name}")
}

fn left_key(name: &str) -> String {
    format!("stampede:left:{name}")
}
