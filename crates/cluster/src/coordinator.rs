//! The coordinator: one node, elected by lease, looks after the whole cluster.
//!
//! ```text
//!             lease free                    lease lost, or Redis away past its time
//!  candidate ────────────▶ leader ──────────────────────────────────────────────▶ candidate
//!      ▲ every second        │ every tick: look at nodes and queues, write cluster:stats and
//!      └── lease held        │ alerts, tell nodes to add or drop workers
//!                            ▼ stop: gives the lease back
//! ```
//!
//! Two nodes may believe to lead (one was paused past its lease), but only one can act: every write checks the
//! fencing token in the same script. The facts that a new leader needs from its predecessor (the last change of
//! workers, the nodes there were) stand in Redis, in times of Redis' clock.

mod plan;
mod watch;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stampede_broker::{Broker, Decided, Error, Leadership, Lease, Level};
use stampede_wire::Loose;
use stampede_wire::cluster::{
    Alert, ClusterStats, NodeStats, Priority, QueueMetrics, ScalingAction, ScalingDecision,
};
use tokio_util::sync::CancellationToken;

use self::plan::{ClusterView, Decision, NodeView, plan};
use self::watch::{Attendance, StuckQueues, dead_node};
use crate::ANNOUNCE_EVERY;
use crate::autoscaler::Demand;
use crate::node::Shared;

/// A lease expires after this time without renewal.
const LEASE_LASTS: Duration = Duration::from_secs(5);
/// A lease is renewed, or tried for, this often.
const RENEW_EVERY: Duration = Duration::from_secs(1);

/// A node of the registry.
type NodeEntry = stampede_broker::NodeEntry<NodeStats, QueueMetrics>;

/// A node that may coordinate.
pub(crate) struct Coordinator {
    node: Arc<Shared>,
    lease: Lease,
}

/// The state of a leader.
struct Term {
    leadership: Leadership,
    /// The end of the lease by this machine's clock.
    until: Instant,
    nodes: Attendance,
    /// Alerts that are not written yet.
    alerts: Vec<Alert>,
    queues: StuckQueues,
    up: Option<Instant>,
    down: Option<Instant>,
    next_look: Instant,
    next_survey: Instant,
    /// Counters of nodes that are gone may have to be added up.
    unsettled: bool,
}

impl Coordinator {
    pub(crate) fn new(node: Arc<Shared>) -> Self {
        let (name, incarnation) = (&node.config.name, &node.me.incarnation);
        let lease = node.broker.coordinator_lease(name, incarnation, LEASE_LASTS);
        Self { node, lease }
    }

    /// Stands for election until `stop`, and leads when it is elected.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut term: Option<Term> = None;
        let mut ticks = tokio::time::interval(RENEW_EVERY.min(self.node.config.interval));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = stop.cancelled() => break,
            }
            self.tick(&mut term).await;
            self.node.set_leads(term.is_some());
        }
        if let Some(term) = term {
            // Another node takes over at once instead of when the lease expires.
            let release = self.lease.release(&term.leadership);
            let _ = tokio::time::timeout(Duration::from_secs(1), release).await;
        }
    }

    async fn tick(&self, term: &mut Option<Term>) {
        match self.lease.hold().await {
            Ok(Some((leadership, until))) => match term {
                Some(term) if term.leadership == leadership => term.until = until,
                _ => *term = self.begin(leadership, until).await,
            },
            Ok(None) => {
                if term.take().is_some() {
                    tracing::warn!("does not coordinate the cluster any more");
                }
            }
            Err(error) => {
                tracing::debug!(%error, "cannot renew the lease");
                if let Some(term) = term {
                    term.nodes.interrupt(Instant::now());
                }
            }
        }
        if term.as_ref().is_some_and(|term| Instant::now() >= term.until) {
            tracing::warn!("lost its lease; does not coordinate the cluster any more");
            *term = None;
        }
        if let Some(leading) = term
            && Instant::now() >= leading.next_look
        {
            leading.next_look = Instant::now() + self.node.config.interval;
            match self.look(leading).await {
                Ok(true) => {}
                Ok(false) => {
                    tracing::warn!("another node coordinates the cluster by now");
                    *term = None;
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot look at the cluster");
                    leading.nodes.interrupt(Instant::now());
                }
            }
        }
    }

    /// Begins a term with the facts that the predecessor left in Redis.
    async fn begin(&self, leadership: Leadership, until: Instant) -> Option<Term> {
        let decisions = self.broker().decisions();
        let inherited = async {
            // From here on, writes of earlier leaders are refused.
            if !decisions.begin(&leadership).await? {
                return Ok(None);
            }
            let (history, now_ms) = decisions.history::<ScalingDecision>().await?;
            Ok::<_, Error>(Some((history, now_ms, decisions.stats::<ClusterStats>().await?)))
        };
        let inherited = inherited.await;
        let (history, now_ms, stats) = inherited
            .inspect_err(|error| tracing::debug!(%error, "cannot begin to coordinate"))
            .ok()
            .flatten()?;
        tracing::info!(token = leadership.token, "coordinates the cluster from now on");
        let since = |action: ScalingAction| {
            let entry = history.iter().find(|entry| entry.action.as_ref() == Some(&action))?;
            let age = Duration::from_millis(now_ms.saturating_sub(entry.timestamp?));
            // A machine younger than the entry has nothing to wait for.
            Instant::now().checked_sub(age)
        };
        let stats = stats.unwrap_or_default();
        let mut nodes: BTreeSet<String> = stats.nodes.unwrap_or_default().into_keys().collect();
        nodes.extend(stats.missing.unwrap_or_default());
        Some(Term {
            leadership,
            until,
            nodes: Attendance::new(nodes, Instant::now()),
            alerts: Vec::new(),
            queues: StuckQueues::default(),
            up: since(ScalingAction::ScaleUp),
            down: since(ScalingAction::ScaleDown),
            next_look: Instant::now(),
            next_survey: Instant::now(),
            unsettled: true,
        })
    }

    fn broker(&self) -> &Broker {
        &self.node.broker
    }

    /// One round: alerts, statistics, decisions; `false` when another node coordinates by now.
    async fn look(&self, term: &mut Term) -> Result<bool, Error> {
        let config = &self.node.config;
        let nodes: Vec<NodeEntry> = self.node.registry().nodes().await?;
        let levels = self.broker().levels(&config.queues).await?;
        let there: BTreeSet<String> = nodes.iter().map(|node| node.name.clone()).collect();
        self.vanished(term, &there).await?;
        let moves = term.queues.look(&levels, config.stuck_after, Instant::now());
        moves.into_iter().for_each(|alert| term.raise(alert));
        let decisions = self.broker().decisions();
        let raised = !term.alerts.is_empty();
        if raised && !decisions.alert(&term.leadership, &term.alerts).await? {
            return Ok(false);
        }
        term.alerts.clear();
        if raised || Instant::now() >= term.next_survey {
            let mut stats = cluster_stats(&nodes, &levels, &term.leadership);
            // A successor has to know the missing nodes about which no alert was raised yet.
            stats.missing = Some(term.nodes.missing(&there));
            if !decisions.survey(&term.leadership, &stats).await? {
                return Ok(false);
            }
            term.next_survey = Instant::now() + ANNOUNCE_EVERY;
        }
        let complete = term.nodes.missing(&there).is_empty();
        if term.unsettled && complete && term.nodes.is_trusted(Instant::now()) {
            let there: Vec<String> = there.into_iter().collect();
            if !self.node.registry().settle_counters(&term.leadership, &there).await? {
                return Ok(false);
            }
            term.unsettled = false;
        }
        let view = ClusterView {
            nodes: nodes.iter().filter_map(|n| NodeView::read(&n.name, &n.stats, n.age)).collect(),
            demand: Demand {
                waiting: levels.iter().filter(|l| !l.paused).map(|l| l.waiting).sum(),
                active: levels.iter().map(|l| l.active).sum(),
            },
            since_up: term.up.map(|at| at.elapsed()),
            since_down: term.down.map(|at| at.elapsed()),
        };
        // A missing node may still run workers that are not seen: none is dropped meanwhile.
        let fits = |decision: &Decision| complete || decision.to > decision.from;
        for decision in plan(&view, &config.limits).into_iter().filter(fits) {
            match self.tell(term, &decision).await? {
                Decided::Fenced => return Ok(false),
                Decided::Told if decision.to > decision.from => term.up = Some(Instant::now()),
                Decided::Told => term.down = Some(Instant::now()),
                Decided::Unheard => {
                    tracing::warn!(node = decision.node, "does not listen to commands");
                }
            }
        }
        Ok(true)
    }

    async fn tell(&self, term: &Term, decision: &Decision) -> Result<Decided, Error> {
        let Decision { node, action, from, to, reason } = decision;
        tracing::info!(node, from, to, reason, "decided");
        let told = ScalingDecision {
            action: Some(action.clone()),
            node_id: Some(node.clone()),
            reason: Some(reason.clone()),
            priority: Some(if to > from { Priority::High } else { Priority::Low }),
            count: Some(from.abs_diff(*to) as u64),
            workers: Some(*to as u64),
            token: Some(term.leadership.token),
            coordinator: Some(term.leadership.node.clone()),
            ..ScalingDecision::default()
        };
        self.broker().decisions().decide(&term.leadership, node, &told).await
    }

    /// Raises alerts for nodes that are gone and did not leave in good order.
    async fn vanished(&self, term: &mut Term, there: &BTreeSet<String>) -> Result<(), Error> {
        for name in term.nodes.look(there, Instant::now()) {
            if !self.node.registry().has_left(&name).await? {
                term.raise(dead_node(&name));
            }
            term.unsettled = true;
            term.nodes.strike_off(&name);
        }
        Ok(())
    }
}

impl Term {
    /// An alert is kept until it is written.
    fn raise(&mut self, alert: Alert) {
        let Alert { kind, message, .. } = &alert;
        tracing::error!(kind, "{}", message.as_deref().unwrap_or_default());
        self.alerts.push(alert);
    }
}

/// `cluster:stats`.
fn cluster_stats(nodes: &[NodeEntry], levels: &[Level], leader: &Leadership) -> ClusterStats {
    let load: f64 = nodes.iter().filter_map(|node| node.stats.load).sum();
    let shown = nodes.iter().map(|node| {
        let stats = NodeStats {
            // Long, and of no use to readers of the whole cluster.
            worker_list: None,
            kind: Some("worker".to_owned()),
            queue: node.queue.clone(),
            ..node.stats.clone()
        };
        (node.name.clone(), Loose::Known(stats))
    });
    ClusterStats {
        nodes: Some(shown.collect()),
        total_workers: Some(nodes.iter().filter_map(|node| node.stats.workers).sum()),
        total_waiting: Some(levels.iter().map(|level| level.waiting).sum()),
        total_active: Some(levels.iter().map(|level| level.active).sum()),
        avg_load: Some(if nodes.is_empty() { 0.0 } else { load / nodes.len() as f64 }),
        node_count: Some(nodes.len() as u64),
        coordinator: Some(leader.node.clone()),
        token: Some(leader.token),
        ..ClusterStats::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn statistics_of_the_cluster_have_the_fields_that_older_software_reads() {
        let node = |name: &str, stats: serde_json::Value| NodeEntry {
            name: name.to_owned(),
            stats: serde_json::from_value(stats).unwrap(),
            queue: (name == "a").then(|| QueueMetrics { waiting: Some(5), ..Default::default() }),
            age: Duration::ZERO,
        };
        let nodes = [
            node(
                "a",
                json!({ "workers": 2, "load": 1.0, "workerList": [{ "id": "w" }], "colour": "blue" }),
            ),
            node("b", json!({ "workers": 1, "load": 2.0, "timestamp": 9 })),
        ];
        let leader = Leadership { token: 7, node: "a".to_owned(), incarnation: "i".to_owned() };
        let level = Level {
            queue: "tickets".to_owned(),
            waiting: 5,
            active: 2,
            completed: 0,
            failed: 0,
            paused: false,
            last_ended: None,
        };
        let wanted = json!({
            "nodes": {
                "a": { "workers": 2, "load": 1.0, "type": "worker", "queue": { "waiting": 5 }, "colour": "blue" },
                "b": { "workers": 1, "load": 2.0, "type": "worker", "timestamp": 9 },
            },
            "totalWorkers": 3, "totalWaiting": 5, "totalActive": 2, "avgLoad": 1.5, "nodeCount": 2,
            "coordinator": "a", "token": 7,
        });
        let stats = cluster_stats(&nodes, &[level], &leader);
        assert_eq!(serde_json::to_value(stats).unwrap(), wanted);
    }
}
