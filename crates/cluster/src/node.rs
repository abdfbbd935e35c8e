//! One node of the cluster: announces itself, listens to commands, scales its workers.
//!
//! ```text
//!   every 5 s, and on changes ──▶ announce (registry) ──▶ the coordinator, the workers of other nodes
//!   worker:commands:{node}, …:all ──▶ added up ──▶ carried out 5 times a second
//!   every tick ──▶ auto: workers make way for the API   (always: the API needs an answer at once)
//!              └─▶ no coordinator: this node decides alone
//! ```
//!
//! | file | duty |
//! |---|---|
//! | `node/membership.rs` | claiming a name that no other process has |
//! | `node/announce.rs` | announcing the node, and leaving the cluster |
//! | `node/stats.rs` | the node's report: `workers:stats`, `queue:metrics`, health |
//! | `node/scaling.rs` | commands, local scaling, making way for the API |
//!
//! Without Redis nothing is known, so nothing is decided: the workers stay as they are.

mod announce;
mod membership;
mod scaling;
mod stats;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use stampede_broker::{Announced, Broker, Leadership, NodeIdentity};
use stampede_telemetry::ClusterLevels;
use stampede_wire::cluster::NodeHealth;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::membership::{JoinError, Membership};
use crate::autoscaler::Limits;
use crate::command::Pending;
use crate::coordinator::Coordinator;
use crate::machine::{self, Processors};
use crate::supervisor::{SupervisorHandle, WorkerStatus};
use crate::tasks::all_ended;
use crate::yielding::{ApiLimits, LatencyMeter};
use crate::{ANNOUNCE_EVERY, Roles};

/// A coordinator that was not seen for this long does not count.
const COORDINATOR_SEEN: Duration = Duration::from_secs(12);

/// The identity and the behaviour of a node.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// The node's name.
    pub name: String,
    /// `WORKER_MODE`, for operators.
    pub mode: &'static str,
    /// The node's roles.
    pub roles: Roles,
    /// Fewest workers.
    pub min: usize,
    /// Most workers.
    pub max: usize,
    /// Workers make way for the API.
    pub yields: bool,
    /// Thresholds of scaling.
    pub limits: Limits,
    /// Thresholds of making way for the API.
    pub api: ApiLimits,
    /// Time between two ticks.
    pub interval: Duration,
    /// A queue in which nothing moves for this long is stuck.
    pub stuck_after: Duration,
    /// The queues that the node's workers serve.
    pub queues: Vec<String>,
    /// The program's version.
    pub version: &'static str,
}

/// A node that has joined the cluster.
pub struct Node {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) config: NodeConfig,
    pub(crate) broker: Broker,
    pub(crate) me: NodeIdentity,
    supervisor: Option<SupervisorHandle>,
    latency: LatencyMeter,
    processors: Processors,
    cores: usize,
    known: Mutex<Known>,
    pending: Mutex<Pending>,
    /// Something changed that the next announcement should tell soon.
    pub(crate) news: Notify,
    commanded: Notify,
}

/// A node's knowledge of itself and of the cluster.
#[derive(Default)]
struct Known {
    /// The answer to the last announcement, and its time.
    announced: Option<(Announced, Instant)>,
    /// Another process holds this node's name.
    ousted: bool,
    /// This node coordinates.
    leads: bool,
    /// `auto`: most workers for now, and the time of the last change.
    ceiling: Option<usize>,
    ceiling_changed: Option<Instant>,
    /// `auto`: a worker was started because no other node had one, and the API has not recovered since.
    called_back: bool,
    /// The last time workers were added.
    up: Option<Instant>,
    /// The last time workers were removed.
    down: Option<Instant>,
    refused_commands: u64,
    /// Processors of the machine that were busy lately.
    load: f64,
}

impl Known {
    /// Workers of other nodes, if the last announcement is recent enough.
    fn other_workers(&self) -> Option<usize> {
        let (announced, at) = self.announced.as_ref()?;
        (at.elapsed() < 2 * ANNOUNCE_EVERY).then_some(announced.other_workers)
    }
}

/// Shows a node to its own health page. Cheap to clone.
#[derive(Clone)]
pub struct NodeHandle {
    shared: Arc<Shared>,
}

impl NodeHandle {
    /// The node's name, mode, roles and workers, and whether it reaches the cluster.
    pub fn health(&self) -> NodeHealth {
        self.shared.health()
    }

    /// What metrics show of the node. How many nodes there are is not known here.
    pub fn levels(&self) -> ClusterLevels {
        self.shared.levels()
    }

    /// Workers of this node that take jobs.
    pub fn running_workers(&self) -> usize {
        stats::running(&self.shared.workers()).count()
    }
}

impl Node {
    /// A node that has joined; nothing happens before [`Node::run`].
    pub fn new(
        membership: Membership,
        supervisor: Option<SupervisorHandle>,
        latency: LatencyMeter,
    ) -> Self {
        let Membership { config, broker, me } = membership;
        // Workers that were just started are not removed at once because no job has come in yet.
        let known =
            Known { ceiling: Some(config.max), down: Some(Instant::now()), ..Known::default() };
        let shared = Shared {
            known: Mutex::new(known),
            config,
            broker,
            me,
            supervisor,
            latency,
            processors: Processors::default(),
            cores: machine::cores(),
            pending: Mutex::default(),
            news: Notify::new(),
            commanded: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// A handle for the health page.
    pub fn handle(&self) -> NodeHandle {
        NodeHandle { shared: self.shared.clone() }
    }

    /// Takes part in the cluster until `stop`; leaves it when its workers have `drained`.
    pub fn run(
        self,
        stop: CancellationToken,
        drained: CancellationToken,
    ) -> BoxFuture<'static, ()> {
        // Boxed: compiled here, and not in the crate of the command line.
        Box::pin(self.take_part(stop, drained))
    }

    async fn take_part(self, stop: CancellationToken, drained: CancellationToken) {
        let shared = self.shared;
        let mut tasks = JoinSet::new();
        tasks.spawn(shared.clone().announce(stop.clone(), drained.clone()));
        if let Some(supervisor) = &shared.supervisor {
            tasks.spawn(shared.clone().watch(supervisor.changes(), drained.clone()));
            tasks.spawn(scaling::listen(shared.clone(), stop.clone()));
            tasks.spawn(scaling::carry_out(shared.clone(), stop.clone()));
            tasks.spawn(scaling::scale(shared.clone(), stop.clone()));
        }
        if shared.config.roles.coordinator {
            tasks.spawn(Coordinator::new(shared.clone()).run(stop.clone()));
        }
        if let Err(error) = all_ended(&mut tasks, &stop).await
            && let Ok(panic) = error.try_into_panic()
        {
            // The caller has to know.
            std::panic::resume_unwind(panic);
        }
    }
}

impl Shared {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn workers(&self) -> Vec<WorkerStatus> {
        self.supervisor.as_ref().map(SupervisorHandle::workers).unwrap_or_default()
    }

    pub(crate) fn set_leads(&self, leads: bool) {
        let mut known = self.known();
        if std::mem::replace(&mut known.leads, leads) != leads {
            drop(known);
            self.news.notify_one();
        }
    }

    /// The coordinator, if the last announcement that named it is recent enough.
    fn coordinator(&self) -> Option<Leadership> {
        let known = self.known();
        let (announced, at) = known.announced.as_ref()?;
        announced.coordinator.clone().filter(|_| at.elapsed() < COORDINATOR_SEEN)
    }

    pub(crate) fn registry(&self) -> stampede_broker::Registry {
        self.broker.registry(crate::ENTRY_LIVES)
    }
}
