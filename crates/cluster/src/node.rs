//! One node of the cluster: announces itself, listens to commands, scales its workers.
//!
//! ```text
//!   every 5 s, and when something changes ──▶ announce (registry) ──▶ who coordinates, who else works
//!   worker:commands:{me}, …:all ──▶ added up ──▶ carried out 5 times a second
//!   every tick ──▶ auto: make way for the API   (always, it needs an answer at once)
//!              └─▶ nobody coordinates: decide by ourselves
//! ```
//!
//! Without Redis nothing is known, so nothing is decided: the workers stay as they are.

mod membership;
mod scaling;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stampede_broker::{Announced, Broker, ClaimNode, Leadership, NodeIdentity};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::membership::{JoinError, Membership};
use crate::autoscaler::{Demand, Limits};
use crate::command::Pending;
use crate::coordinator::Coordinator;
use crate::machine::{self, Processors};
use crate::parts::all_ended;
use crate::supervisor::{SupervisorHandle, WorkerState, WorkerStatus};
use crate::yielding::{ApiLimits, LatencyMeter};
use crate::{ANNOUNCE_EVERY, Roles};

/// A coordinator that was not seen for this long is none.
const COORDINATOR_SEEN: Duration = Duration::from_secs(12);
/// A worker that just ended its last job is announced at once, but not more often than this.
const ANNOUNCE_PAUSE: Duration = Duration::from_millis(500);

/// A node that asks its queues for longer announces itself without what they would have said.
const METRICS_WITHIN: Duration = Duration::from_secs(1);

/// What a node is and how it behaves.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// Its name.
    pub name: String,
    /// `WORKER_MODE`, for those who look.
    pub mode: &'static str,
    /// What it is.
    pub roles: Roles,
    /// Fewest workers.
    pub min: usize,
    /// Most workers.
    pub max: usize,
    /// Whether workers make way for the API.
    pub yields: bool,
    /// When to scale.
    pub limits: Limits,
    /// When workers make way.
    pub api: ApiLimits,
    /// How often to look.
    pub interval: Duration,
    /// A queue in which nothing moves for this long is stuck.
    pub stuck_after: Duration,
    /// The queues that its workers take jobs from.
    pub queues: Vec<String>,
    /// Version of the program.
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
    /// Something happened that others should know soon.
    pub(crate) news: Notify,
    commanded: Notify,
}

/// What a node knows by now.
#[derive(Default)]
struct Known {
    /// What the last announcement brought, and when.
    announced: Option<(Announced, Instant)>,
    /// Another process has our name.
    ousted: bool,
    /// This node coordinates.
    leads: bool,
    /// The ceiling over the workers of `auto`, and when it was changed.
    ceiling: Option<usize>,
    ceiling_changed: Option<Instant>,
    /// `auto`: it had to come back because nobody worked, and its API has not recovered since.
    called_back: bool,
    /// When workers were added and taken away.
    up: Option<Instant>,
    down: Option<Instant>,
    refused_commands: u64,
    /// How busy the machine was lately, in cores.
    load: f64,
}

impl Known {
    /// Workers of other nodes, if we have heard of them lately.
    fn other_workers(&self) -> Option<usize> {
        let (announced, at) = self.announced.as_ref()?;
        (at.elapsed() < 2 * ANNOUNCE_EVERY).then_some(announced.other_workers)
    }
}

/// Shows what a node is, for its own health page. Cheap to clone.
#[derive(Clone)]
pub struct NodeHandle {
    shared: Arc<Shared>,
}

impl NodeHandle {
    /// Its name, mode, roles and workers, and whether the cluster can be reached.
    pub fn health(&self) -> Value {
        let shared = &self.shared;
        let known = shared.known();
        let seen = known.announced.as_ref().map(|(_, at)| at.elapsed());
        let leads = known.leads;
        drop(known);
        json!({
            "node": shared.config.name,
            "mode": shared.config.mode,
            "roles": shared.config.roles.names(leads),
            "cluster": if seen.is_some_and(|age| age < 2 * ANNOUNCE_EVERY) { "joined" } else { "away" },
            "coordinator": shared.coordinator().map(|leader| leader.node),
            "workers": shared.worker_counts(&shared.workers()),
        })
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
        // What was just started is not taken away at once because nothing has come in yet.
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

    /// Shows what the node is.
    pub fn handle(&self) -> NodeHandle {
        NodeHandle { shared: self.shared.clone() }
    }

    /// Takes part in the cluster until `stop`; leaves it when its workers have `drained`.
    pub async fn run(self, stop: CancellationToken, drained: CancellationToken) {
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
            // Whoever runs this node has to know.
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

    /// Who coordinates, if we have heard of anybody lately.
    fn coordinator(&self) -> Option<Leadership> {
        let known = self.known();
        let (announced, at) = known.announced.as_ref()?;
        announced.coordinator.clone().filter(|_| at.elapsed() < COORDINATOR_SEEN)
    }

    /// Workers by state.
    fn worker_counts(&self, workers: &[WorkerStatus]) -> Value {
        let count = |state: WorkerState| workers.iter().filter(|w| w.state == state).count();
        json!({
            "target": self.supervisor.as_ref().map_or(0, SupervisorHandle::target),
            "running": count(WorkerState::Running),
            "starting": count(WorkerState::Starting),
            "draining": count(WorkerState::Draining),
            "restarting": count(WorkerState::Restarting),
            "crashLooping": count(WorkerState::CrashLooping),
            "cannotStart": count(WorkerState::CannotStart),
        })
    }

    /// Whatever becomes of a worker is news, until `drained`.
    async fn watch(self: Arc<Self>, mut changes: watch::Receiver<u64>, drained: CancellationToken) {
        loop {
            tokio::select! {
                Ok(()) = changes.changed() => self.news.notify_one(),
                () = drained.cancelled() => return,
            }
        }
    }

    /// Says that this node is there, every few seconds and when there is news, until `drained`.
    async fn announce(self: Arc<Self>, stop: CancellationToken, drained: CancellationToken) {
        let mut last = None;
        loop {
            let told = stop.is_cancelled();
            self.announce_once(&mut last, told).await;
            let news = async {
                tokio::select! {
                    () = self.news.notified() => tokio::time::sleep(ANNOUNCE_PAUSE).await,
                    () = stop.cancelled(), if !told => {}
                }
            };
            tokio::select! {
                () = tokio::time::sleep(ANNOUNCE_EVERY) => {}
                () = news => {}
                () = drained.cancelled() => break,
            }
        }
        let registry = self.registry();
        let leaving = registry.forget_node(&self.config.name, &self.me);
        match tokio::time::timeout(Duration::from_secs(2), leaving).await {
            Ok(Ok(())) => {}
            _ => tracing::debug!("could not say good-bye; our entry will expire"),
        }
    }

    async fn announce_once(&self, last: &mut Option<u64>, stopping: bool) {
        let queue = self.queue_metrics(last).await;
        let mut stats = self.stats();
        stats["stopping"] = json!(stopping);
        let registry = self.registry();
        let announced =
            registry.announce_node(&self.config.name, &self.me, &stats, queue.as_ref(), None).await;
        if announced.is_ok() {
            // Their next announcement would do it too, if there is one.
            let _ = registry.sweep_workers().await;
        }
        let mut known = self.known();
        match announced {
            Ok(ClaimNode::Ours(announced)) => {
                known.announced = Some((announced, Instant::now()));
                if std::mem::replace(&mut known.ousted, false) {
                    tracing::info!(node = self.config.name, "has its name back");
                }
            }
            Ok(ClaimNode::Taken { holder, .. }) => {
                if !std::mem::replace(&mut known.ousted, true) {
                    let name = &self.config.name;
                    tracing::error!(
                        node = name,
                        holder = holder.as_ref().map(tracing::field::display),
                        "another process took this node's name while it was away; set another SERVER_NAME. \
                         Its workers go on, but it takes no commands"
                    );
                }
            }
            Err(error) => tracing::debug!(%error, "could not announce this node"),
        }
    }

    pub(crate) fn registry(&self) -> stampede_broker::Registry {
        self.broker.registry(crate::ENTRY_LIVES)
    }

    /// `workers:stats`: seed 000's fields, and what else is worth knowing.
    fn stats(&self) -> Value {
        let workers = self.workers();
        let running = workers.iter().filter(|w| w.state == WorkerState::Running);
        let (busy, slots) = running.clone().fold((0, 0), |(b, s), w| (b + w.busy, s + w.slots));
        let known = self.known();
        let changed = [known.up, known.down].into_iter().flatten().map(|at| at.elapsed()).min();
        let (leads, refused, busy_cores) = (known.leads, known.refused_commands, known.load);
        let (min, ceiling) = (self.fewest_of(&known), known.ceiling);
        drop(known);
        let mut stats = json!({
            "instanceId": self.config.name,
            "workers": running.count(),
            "load": machine::load_average(),
            "memUsage": self.memory_mb(&workers),
            "host": self.me.host,
            "pid": self.me.pid,
            "version": self.config.version,
            "mode": self.config.mode,
            "roles": self.config.roles.names(leads),
            "cores": self.cores,
            "busyCores": busy_cores,
            "min": min,
            "max": ceiling.unwrap_or(self.config.max).min(self.config.max),
            "busy": busy,
            "slots": slots,
            "states": self.worker_counts(&workers),
            "changedMsAgo": changed.map(|age| age.as_millis() as u64),
            "refusedCommands": refused,
            "workerList": workers,
        });
        if let Some(problem) = self.supervisor.as_ref().and_then(|s| s.restart_problem()) {
            stats["restartProblem"] = problem.into();
        }
        if let Some(latency) = self.latency.ninth_of_ten() {
            stats["apiLatencyMs"] = json!(latency.as_millis() as u64);
        }
        stats
    }

    fn memory_mb(&self, workers: &[WorkerStatus]) -> f64 {
        let own = machine::memory_of(self.me.pid).unwrap_or(0);
        let all = own + workers.iter().map(|worker| worker.memory).sum::<u64>();
        (all as f64 / (1 << 20) as f64 * 10.0).round() / 10.0
    }

    /// `queue:metrics`: seed 000's fields; `None` when Redis does not say.
    async fn queue_metrics(&self, last: &mut Option<u64>) -> Option<Value> {
        let levels = self.broker.levels(&self.config.queues);
        let levels = tokio::time::timeout(METRICS_WITHIN, levels).await.ok()?.ok()?;
        let sum = |field: fn(&stampede_broker::Level) -> u64| levels.iter().map(field).sum::<u64>();
        let (waiting, active) = (sum(|l| l.waiting), sum(|l| l.active));
        let growth = last.replace(waiting).map_or(0, |before| waiting as i64 - before as i64);
        let workers = self.workers();
        Some(json!({
            "waiting": waiting,
            "active": active,
            "completed": sum(|l| l.completed),
            "failed": sum(|l| l.failed),
            "queuePressure": Demand { waiting, active }.pressure(),
            "queueGrowth": growth,
            "workers": workers.iter().filter(|w| w.state == WorkerState::Running).count(),
            "load": machine::load_average(),
            "memUsage": self.memory_mb(&workers),
        }))
    }
}
