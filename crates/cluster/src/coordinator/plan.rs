//! Decides which node adds or drops workers: pure, by the rules of [`crate::autoscaler`] for the whole cluster.

use std::time::Duration;

use stampede_wire::cluster::{NodeStats, ScalingAction};

use crate::ANNOUNCE_EVERY;
use crate::autoscaler::{Demand, Limits, is_over};

/// A node whose report is older than this is probably dead.
const STALE: Duration = ANNOUNCE_EVERY.saturating_mul(2);

/// A node as its coordinator sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeView {
    pub(crate) name: String,
    /// Workers there should be.
    pub(crate) workers: usize,
    /// Workers that take jobs.
    pub(crate) running: usize,
    pub(crate) draining: usize,
    pub(crate) busy: usize,
    pub(crate) slots: usize,
    pub(crate) load: f64,
    pub(crate) cores: usize,
    pub(crate) min: usize,
    pub(crate) max: usize,
    /// Time since the node changed the number of its workers.
    pub(crate) changed: Option<Duration>,
}

impl NodeView {
    /// The view of a node whose report is `age` old. `None` for a node that has no workers, stops, reports too
    /// little (other software), or has missed an announcement: nothing is decided on old data.
    pub(crate) fn read(name: &str, stats: &NodeStats, age: Duration) -> Option<Self> {
        if stats.stopping == Some(true) || age > STALE {
            return None;
        }
        let states = stats.states.as_ref()?;
        let average = stats.load.unwrap_or(0.0);
        let changed = stats.changed_ms_ago.flatten();
        Some(Self {
            name: name.to_owned(),
            workers: states.target? as usize,
            running: stats.workers? as usize,
            draining: states.draining? as usize,
            busy: stats.busy? as usize,
            slots: stats.slots? as usize,
            load: average.max(stats.busy_cores.unwrap_or(0.0)),
            cores: (stats.cores? as usize).max(1),
            min: stats.min? as usize,
            max: stats.max? as usize,
            changed: changed.map(|ms| Duration::from_millis(ms) + age),
        })
        .filter(|node| node.max > 0 || node.workers > 0)
    }
}

/// The whole cluster.
#[derive(Debug, Clone)]
pub(crate) struct ClusterView {
    pub(crate) nodes: Vec<NodeView>,
    pub(crate) demand: Demand,
    pub(crate) since_up: Option<Duration>,
    pub(crate) since_down: Option<Duration>,
}

/// A decision about one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) node: String,
    pub(crate) action: ScalingAction,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) reason: String,
}

/// Decides; mostly nothing.
pub(crate) fn plan(now: &ClusterView, limits: &Limits) -> Vec<Decision> {
    let total: usize = now.nodes.iter().map(|node| node.workers).sum();
    if now.demand.waiting > 0 && total == 0 {
        // One job is enough to start a worker.
        return spread(now, 1, f64::INFINITY, "Nobody works".to_owned());
    }
    if now.demand.excess(limits) > 1.0 {
        if !is_over(now.since_up, limits.up_cooldown) {
            return Vec::new();
        }
        let more = now.demand.wanted(total, limits) - total;
        return spread(now, more, limits.load, now.demand.reason());
    }
    let (busy, slots) =
        now.nodes.iter().fold((0, 0), |(busy, slots), n| (busy + n.busy, slots + n.slots));
    let idle = now.demand.waiting == 0 && (busy as f64) < slots as f64 * limits.busy;
    let settled = is_over(now.since_up, limits.down_cooldown)
        && is_over(now.since_down, limits.down_cooldown)
        && now.nodes.iter().all(|node| node.draining == 0);
    if !idle || !settled {
        return Vec::new();
    }
    let candidates = now
        .nodes
        .iter()
        .filter(|node| node.workers > node.min && is_over(node.changed, limits.down_cooldown));
    let most = candidates.max_by_key(|node| (node.workers, std::cmp::Reverse(&node.name)));
    let decision = most.map(|node| Decision {
        node: node.name.clone(),
        action: ScalingAction::ScaleDown,
        from: node.workers,
        to: node.workers - 1,
        reason: format!("Idle queue: {busy} of {slots} slots busy"),
    });
    decision.into_iter().collect()
}

/// Distributes `more` new workers to the nodes with the most free processors.
fn spread(now: &ClusterView, more: usize, load: f64, reason: String) -> Vec<Decision> {
    let mut nodes: Vec<(&NodeView, usize)> = now
        .nodes
        .iter()
        .filter(|node| node.load < load * node.cores as f64)
        .map(|node| (node, 0))
        .collect();
    for _ in 0..more {
        let room = |(node, added): &&mut (&NodeView, usize)| {
            node.workers + added < node.max.saturating_sub(node.draining)
        };
        // Processors that are busy already, and those that the new workers will need.
        let used = |(node, added): &(&NodeView, usize)| {
            (node.load + node.workers as f64 + *added as f64) / node.cores as f64
        };
        let free = nodes.iter_mut().filter(room);
        let Some(best) = free.min_by(|a, b| used(a).total_cmp(&used(b))) else { break };
        best.1 += 1;
    }
    let decision = |(node, added): (&NodeView, usize)| Decision {
        node: node.name.clone(),
        action: ScalingAction::ScaleUp,
        from: node.workers,
        to: node.workers + added,
        reason: reason.clone(),
    };
    nodes.into_iter().filter(|(_, added)| *added > 0).map(decision).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, workers: usize) -> NodeView {
        NodeView {
            name: name.to_owned(),
            workers,
            running: workers,
            draining: 0,
            busy: 0,
            slots: workers * 16,
            load: 0.2,
            cores: 4,
            min: 1,
            max: 8,
            changed: None,
        }
    }

    fn cluster(nodes: Vec<NodeView>, waiting: u64) -> ClusterView {
        let demand = Demand { waiting, active: if waiting > 0 { 48 } else { 0 } };
        ClusterView { nodes, demand, since_up: None, since_down: None }
    }

    fn decided(cluster: &ClusterView) -> Vec<(String, usize)> {
        let decisions = plan(cluster, &Limits::default());
        decisions.into_iter().map(|decision| (decision.node, decision.to)).collect()
    }

    #[test]
    fn more_work_goes_where_most_is_to_spare() {
        let mut three = cluster(vec![node("a", 1), node("b", 1), node("c", 1)], 120);
        assert_eq!(decided(&three), [("a".to_owned(), 2)], "a little more: one worker");
        three.nodes[0].load = 3.9;
        assert_eq!(decided(&three), [("b".to_owned(), 2)], "not on a busy machine");
        three.demand.waiting = 10_000;
        assert_eq!(decided(&three), [("b".to_owned(), 8), ("c".to_owned(), 8)]);
        three.nodes[1].max = 0;
        three.nodes[2].draining = 6;
        assert_eq!(decided(&three), [("c".to_owned(), 2)], "whoever drains still takes a place");
        three.since_up = Some(Duration::from_secs(29));
        assert_eq!(decided(&three), []);
        three.since_up = Some(Duration::from_secs(30));
        assert_eq!(decided(&three).len(), 1);
    }

    #[test]
    fn the_largest_idle_node_drops_one() {
        let mut two = cluster(vec![node("a", 2), node("b", 5)], 0);
        assert_eq!(decided(&two), [("b".to_owned(), 4)]);
        two.nodes[1].changed = Some(Duration::from_secs(5));
        assert_eq!(decided(&two), [("a".to_owned(), 1)], "what somebody just added stays");
        two.nodes[0].draining = 1;
        assert_eq!(decided(&two), [], "one after the other");
        let mut small = cluster(vec![node("a", 1), node("b", 1)], 0);
        assert_eq!(decided(&small), [], "never below the minimum");
        small.nodes[0].workers = 3;
        small.nodes[0].busy = 16;
        assert_eq!(decided(&small), [], "not while half is busy");
        let mut lately = cluster(vec![node("a", 4)], 0);
        lately.since_down = Some(Duration::from_secs(59));
        assert_eq!(decided(&lately), []);
    }

    #[test]
    fn nothing_is_decided_about_nodes_that_stop_or_are_silent() {
        let stats = |more: serde_json::Value| {
            let mut stats = serde_json::json!({
                "workers": 2, "busy": 0, "slots": 32, "load": 0.5, "busyCores": 1.5, "cores": 2, "min": 1,
                "max": 4, "changedMsAgo": 1_000, "states": { "target": 2, "draining": 0 },
            });
            for (name, value) in more.as_object().unwrap() {
                stats[name] = value.clone();
            }
            serde_json::from_value::<NodeStats>(stats).unwrap()
        };
        let read =
            |stats: &NodeStats, seconds| NodeView::read("n", stats, Duration::from_secs(seconds));
        let usual = stats(serde_json::json!({}));
        let node = read(&usual, 3).unwrap();
        assert_eq!((node.load, node.changed), (1.5, Some(Duration::from_secs(4))));
        assert_eq!(read(&usual, 11), None, "too old");
        assert_eq!(read(&stats(serde_json::json!({ "stopping": true })), 0), None);
        assert_eq!(read(&stats(serde_json::json!({ "slots": "many" })), 0), None);
        let api = serde_json::json!({ "workers": 0, "max": 0, "states": { "target": 0 } });
        assert_eq!(read(&serde_json::from_value(api).unwrap(), 0), None);
    }

    #[test]
    fn however_little_waits_somebody_works() {
        let mut none = cluster(vec![node("a", 0), node("b", 0)], 1);
        none.nodes[0].load = 9.0;
        none.nodes[1].load = 7.0;
        assert_eq!(decided(&none), [("b".to_owned(), 1)]);
        assert_eq!(decided(&cluster(Vec::new(), 500)), [], "no node, no decision");
    }
}
