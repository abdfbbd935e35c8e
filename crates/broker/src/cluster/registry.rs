//! Who is there: nodes and workers announce themselves again and again, and vanish when they do not.
//!
//! Outside readers see hashes with one field for each (`workers:stats`, `queue:metrics`,
//! `workers:active`, `workers:heartbeat`). Redis 7.0 cannot let a field expire, so the time when each
//! expires stands in a sorted set beside them, by Redis' own clock, and whoever announces itself
//! removes those that are past it. When nobody is left to do so, the hashes expire as a whole.
//!
//! The name of a node belongs to one process at a time: `stampede:node:{name}` says to which.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use redis::{Script, cmd};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::lease::{COORDINATOR, Leadership};
use super::object;
use crate::{Broker, Error};

static ANNOUNCE_NODE: Lazy = Lazy::new(|| Script::new(include_str!("announce_node.lua")));
static ANNOUNCE_WORKER: Lazy = Lazy::new(|| Script::new(include_str!("announce_worker.lua")));
static FORGET: Lazy = Lazy::new(|| Script::new(include_str!("forget.lua")));
static ENTRIES: Lazy = Lazy::new(|| Script::new(include_str!("entries.lua")));

type Lazy = LazyLock<Script>;

const NODES: &str = "stampede:nodes";
const WORKERS: &str = "stampede:workers";
const NODE_HASHES: [&str; 2] = ["workers:stats", "queue:metrics"];
const WORKER_HASHES: [&str; 2] = ["workers:active", "workers:heartbeat"];
const COUNTERS: [&str; 3] = ["stats:completed", "stats:failed", "stats:stalled"];
/// How long it is known that a node left in good order.
const LEFT: Duration = Duration::from_secs(300);

/// Which process holds the name of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// New for every start.
    pub incarnation: String,
    /// Name of its machine.
    pub host: String,
    /// Id of its process there.
    pub pid: u32,
    /// Changes with every start of the machine.
    pub boot: String,
}

impl Holder {
    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// What became of a wish to be called so.
#[derive(Debug)]
pub enum ClaimNode {
    /// It is, and this is what the cluster looks like.
    Ours(Announced),
    /// Somebody else is, and expires after this time unless it announces itself again.
    Taken {
        /// Who, if that can be read.
        holder: Option<Holder>,
        /// Its entry lasts so long.
        expires_in: Duration,
    },
}

/// What a node learns when it announces itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Announced {
    /// Who coordinates.
    pub coordinator: Option<Leadership>,
    /// Workers of all other nodes that take jobs.
    pub other_workers: usize,
}

/// A node that is there.
#[derive(Debug, Clone)]
pub struct NodeEntry {
    /// Its name.
    pub name: String,
    /// What it says of itself (`workers:stats`).
    pub stats: Value,
    /// What it says of the queues (`queue:metrics`).
    pub queue: Value,
    /// How long ago it said so, by Redis' clock.
    pub age: Duration,
}

/// A worker that is there.
#[derive(Debug, Clone)]
pub struct WorkerEntry {
    /// Its name.
    pub id: String,
    /// `workers:active`.
    pub active: Value,
    /// `workers:heartbeat`.
    pub heartbeat: Value,
    /// How long ago it said so, by Redis' clock.
    pub age: Duration,
}

/// A worker as it announces itself.
#[derive(Debug, Clone)]
pub struct WorkerPresence {
    /// Its name.
    pub id: String,
    /// The name of its node.
    pub node: String,
    /// New for every start.
    pub incarnation: String,
    /// When it was started, in seconds since 1970.
    pub start_time: u64,
    /// Id of its process.
    pub pid: u32,
}

/// Jobs that ended, by how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tallies {
    /// Done.
    pub completed: u64,
    /// Failed for good.
    pub failed: u64,
    /// Found without a holder.
    pub stalled: u64,
}

impl Tallies {
    /// What was added since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            completed: self.completed.saturating_sub(before.completed),
            failed: self.failed.saturating_sub(before.failed),
            stalled: self.stalled.saturating_sub(before.stalled),
        }
    }
}

/// Nodes and workers in this Redis. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    broker: Broker,
    lives: Duration,
}

impl Broker {
    /// The registry of nodes and workers; entries last so long unless they are announced again.
    pub fn registry(&self, lives: Duration) -> Registry {
        Registry { broker: self.clone(), lives }
    }
}

impl Registry {
    fn lives_ms(&self) -> u64 {
        self.lives.as_millis() as u64
    }

    /// Announces a node under its name, unless that belongs to another process. `dead` is a holder that
    /// is known to be dead.
    pub async fn announce_node(
        &self,
        name: &str,
        me: &Holder,
        stats: &Value,
        queue: Option<&Value>,
        dead: Option<&Holder>,
    ) -> Result<ClaimNode, Error> {
        let mut call = ANNOUNCE_NODE.prepare_invoke();
        call.key(node_key(name)).key(NODES);
        for key in NODE_HASHES.iter().chain(&COUNTERS) {
            call.key(*key);
        }
        call.key(COORDINATOR).key(left_key(name));
        call.arg(name).arg(me.text()).arg(self.lives_ms()).arg(object(stats));
        call.arg(queue.map(object).unwrap_or_default());
        call.arg(dead.map(Holder::text).unwrap_or_default());
        let (ours, text, number): (bool, String, i64) =
            call.invoke_async(&mut self.broker.redis()).await?;
        if ours {
            return Ok(ClaimNode::Ours(Announced {
                coordinator: Leadership::parse(&text),
                other_workers: number.max(0) as usize,
            }));
        }
        Ok(ClaimNode::Taken {
            holder: serde_json::from_str(&text).ok(),
            expires_in: Duration::from_millis(number.max(0) as u64),
        })
    }

    /// A node leaves in good order.
    pub async fn forget_node(&self, name: &str, me: &Holder) -> Result<(), Error> {
        let mut call = FORGET.prepare_invoke();
        call.key(node_key(name)).key(NODES).key(NODE_HASHES[0]).key(NODE_HASHES[1]);
        call.key(left_key(name)).arg(name).arg(me.text()).arg(LEFT.as_millis() as u64);
        Ok(call.invoke_async(&mut self.broker.redis()).await?)
    }

    /// Whether a node that is not there any more left in good order.
    pub async fn has_left(&self, name: &str) -> Result<bool, Error> {
        Ok(cmd("EXISTS").arg(left_key(name)).query_async(&mut self.broker.redis()).await?)
    }

    /// Announces a worker, and adds what it has done to the counters of its node.
    pub async fn announce_worker(
        &self,
        worker: &WorkerPresence,
        status: &str,
        more: &Value,
        done: Tallies,
    ) -> Result<(), Error> {
        let active = json!({
            "instance_id": worker.node, "start_time": worker.start_time, "status": status,
            "pid": worker.pid,
        });
        let mut heartbeat = json!({
            "worker_id": worker.id, "instance_id": worker.node, "status": status,
        });
        if let (Some(heartbeat), Some(more)) = (heartbeat.as_object_mut(), more.as_object()) {
            heartbeat.extend(more.clone());
        }
        let mut call = ANNOUNCE_WORKER.prepare_invoke();
        call.key(worker_key(&worker.id)).key(WORKERS);
        for key in WORKER_HASHES.iter().chain(&COUNTERS) {
            call.key(*key);
        }
        call.arg(&worker.id).arg(&worker.incarnation).arg(self.lives_ms());
        call.arg(object(&active)).arg(object(&heartbeat)).arg(&worker.node);
        call.arg(done.completed).arg(done.failed).arg(done.stalled);
        Ok(call.invoke_async(&mut self.broker.redis()).await?)
    }

    /// A worker is gone.
    pub async fn forget_worker(&self, id: &str, incarnation: &str) -> Result<(), Error> {
        let mut call = FORGET.prepare_invoke();
        call.key(worker_key(id)).key(WORKERS).key(WORKER_HASHES[0]).key(WORKER_HASHES[1]);
        call.key(left_key(id)).arg(id).arg(incarnation).arg(0);
        Ok(call.invoke_async(&mut self.broker.redis()).await?)
    }

    /// The nodes that are there, by name.
    pub async fn nodes(&self) -> Result<Vec<NodeEntry>, Error> {
        let entries = self.entries(NODES, NODE_HASHES).await?;
        let entry = |(name, stats, queue, age_ms): Entry| NodeEntry {
            name,
            stats: parse(&stats),
            queue: parse(&queue),
            age: Duration::from_millis(age_ms),
        };
        Ok(entries.into_iter().map(entry).collect())
    }

    /// The workers that are there, by name.
    pub async fn workers(&self) -> Result<Vec<WorkerEntry>, Error> {
        let entries = self.entries(WORKERS, WORKER_HASHES).await?;
        let entry = |(id, active, heartbeat, age_ms): Entry| WorkerEntry {
            id,
            active: parse(&active),
            heartbeat: parse(&heartbeat),
            age: Duration::from_millis(age_ms),
        };
        Ok(entries.into_iter().map(entry).collect())
    }

    /// Jobs that ended on each node; what nodes did that are gone stands under `(departed)`.
    pub async fn counters(&self) -> Result<BTreeMap<String, Tallies>, Error> {
        let mut pipe = redis::pipe();
        for key in COUNTERS {
            pipe.hgetall(key);
        }
        let [completed, failed, stalled]: [BTreeMap<String, u64>; 3] =
            pipe.query_async(&mut self.broker.redis()).await?;
        let mut all: BTreeMap<String, Tallies> = BTreeMap::new();
        for (name, n) in completed {
            all.entry(name).or_default().completed = n;
        }
        for (name, n) in failed {
            all.entry(name).or_default().failed = n;
        }
        for (name, n) in stalled {
            all.entry(name).or_default().stalled = n;
        }
        Ok(all)
    }

    async fn entries(&self, set: &str, hashes: [&str; 2]) -> Result<Vec<Entry>, Error> {
        let texts: Vec<String> = ENTRIES
            .key(set)
            .key(hashes[0])
            .key(hashes[1])
            .arg(self.lives_ms())
            .invoke_async(&mut self.broker.redis())
            .await?;
        let mut entries: Vec<Entry> = texts
            .chunks_exact(4)
            .map(|e| (e[0].clone(), e[1].clone(), e[2].clone(), e[3].parse().unwrap_or(0)))
            .collect();
        entries.sort();
        Ok(entries)
    }
}

type Entry = (String, String, String, u64);

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn node_key(name: &str) -> String {
    format!("stampede:node:{name}")
}

fn worker_key(id: &str) -> String {
    format!("stampede:worker:{id}")
}

fn left_key(name: &str) -> String {
    format!("stampede:left:{name}")
}
