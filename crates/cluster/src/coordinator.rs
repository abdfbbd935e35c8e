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
//! Two may believe to lead (one was paused past its lease), but only one can act: every write is
//! checked against the lease in the same script. What a new leader needs to know of its predecessor
//! (when workers were last added or dropped, which nodes there were) stands in Redis, in times of
//! Redis' clock.

mod plan;
mod watch;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use stampede_broker::{Alert, Broker, Decided, Error, Leadership, Lease, Level, NodeEntry};
use tokio_util::sync::CancellationToken;

use self::plan::{ClusterView, Decision, NodeView, plan};
use self::watch::{Attendance, StuckQueues, dead_node};
use crate::ANNOUNCE_EVERY;
use crate::autoscaler::Demand;
use crate::node::Shared;

/// How long a lease lasts without being renewed, and how often it is.
const LEASE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(1));

/// A node that may coordinate.
pub(crate) struct Coordinator {
    node: Arc<Shared>,
    lease: Lease,
}

/// What a leader remembers.
struct Term {
    leadership: Leadership,
    /// By our own clock the lease is over then, whatever Redis would say.
    until: Instant,
    nodes: Attendance,
    /// Alerts that are not written yet.
    alerts: Vec<Alert>,
    queues: StuckQueues,
    up: Option<Instant>,
    down: Option<Instant>,
    next_look: Instant,
    next_survey: Instant,
    /// Counts of nodes that are gone may have to be added up.
    unsettled: bool,
}

impl Coordinator {
    pub(crate) fn new(node: Arc<Shared>) -> Self {
        let lease = node.broker.coordinator_lease(&node.config.name, &node.me.incarnation, LEASE.0);
        Self { node, lease }
    }

    /// Stands for election until `stop`, and leads when it is elected.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut term: Option<Term> = None;
        let mut ticks = tokio::time::interval(LEASE.1.min(self.node.config.interval));
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
            // Another takes over at once instead of when the lease ends.
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

    /// A term begins with what the predecessor left.
    async fn begin(&self, leadership: Leadership, until: Instant) -> Option<Term> {
        let decisions = self.broker().decisions();
        let inherited = async {
            // Whoever led before is kept out from here on.
            if !decisions.begin(&leadership).await? {
                return Ok(None);
            }
            let (history, now_ms) = decisions.history().await?;
            Ok::<_, Error>(Some((history, now_ms, decisions.stats().await?)))
        };
        let inherited = inherited.await;
        let (history, now_ms, stats) = inherited
            .inspect_err(|error| tracing::debug!(%error, "cannot begin to coordinate"))
            .ok()
            .flatten()?;
        tracing::info!(token = leadership.token, "coordinates the cluster from now on");
        let since = |action: &str| {
            let entry = history.iter().find(|entry| entry["action"] == action)?;
            let age = Duration::from_millis(now_ms.saturating_sub(entry["timestamp"].as_u64()?));
            // A machine younger than the entry has nothing to wait for.
            Instant::now().checked_sub(age)
        };
        let nodes = stats.as_ref().and_then(|stats| stats["nodes"].as_object());
        let mut nodes: BTreeSet<String> = nodes.into_iter().flat_map(Map::keys).cloned().collect();
        let missing = stats.as_ref().and_then(|stats| stats["missing"].as_array());
        nodes.extend(missing.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
        Some(Term {
            leadership,
            until,
            nodes: Attendance::new(nodes, Instant::now()),
            alerts: Vec::new(),
            queues: StuckQueues::default(),
            up: since("scale_up"),
            down: since("scale_down"),
            next_look: Instant::now(),
            next_survey: Instant::now(),
            unsettled: true,
        })
    }

    fn broker(&self) -> &Broker {
        &self.node.broker
    }

    /// One look at everything; `false` when another coordinates by now.
    async fn look(&self, term: &mut Term) -> Result<bool, Error> {
        let config = &self.node.config;
        let nodes = self.node.registry().nodes().await?;
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
            // A successor has to know of those that nobody was told about yet.
            stats["missing"] = json!(term.nodes.missing(&there));
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
        // While somebody is missing who may come back, what they do is not seen.
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
        let text = json!({
            "action": action,
            "nodeId": node,
            "reason": reason,
            "priority": if to > from { "high" } else { "low" },
            "count": from.abs_diff(*to),
            "workers": to,
            "token": term.leadership.token,
            "coordinator": term.leadership.node,
        });
        self.broker().decisions().decide(&term.leadership, node, &text).await
    }

    /// Nodes that were there before and left without a word.
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
        tracing::error!(kind = alert.kind, "{}", alert.message);
        self.alerts.push(alert);
    }
}

/// `cluster:stats`: seed 000's fields, and who wrote it.
fn cluster_stats(nodes: &[NodeEntry], levels: &[Level], leader: &Leadership) -> Value {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let workers: f64 = nodes.iter().map(|node| number(&node.stats["workers"])).sum();
    let load: f64 = nodes.iter().map(|node| number(&node.stats["load"])).sum();
    let shown: Map<String, Value> = nodes
        .iter()
        .map(|node| {
            let mut stats = node.stats.clone();
            if let Some(stats) = stats.as_object_mut() {
                // Long, and of no use to anybody who reads the whole cluster.
                stats.remove("workerList");
                stats.insert("type".to_owned(), json!("worker"));
                if !node.queue.is_null() {
                    stats.insert("queue".to_owned(), node.queue.clone());
                }
            }
            (node.name.clone(), stats)
        })
        .collect();
    json!({
        "nodes": shown,
        "totalWorkers": workers as u64,
        "totalWaiting": levels.iter().map(|level| level.waiting).sum::<u64>(),
        "totalActive": levels.iter().map(|level| level.active).sum::<u64>(),
        "avgLoad": if nodes.is_empty() { 0.0 } else { load / nodes.len() as f64 },
        "nodeCount": nodes.len(),
        "coordinator": leader.node,
        "token": leader.token,
    })
}
