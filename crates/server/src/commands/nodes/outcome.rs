//! The effect of a command to nodes: their workers are watched until there are as many as wanted, or until the time is
//! up.
//!
//! [`look`] is pure: a node before and after, and the wish, give the progress.

use std::time::{Duration, Instant};

use crate::commands::myself;
use anyhow::{Result, bail};
use serde::Serialize;
use stampede_client::Client;
use stampede_wire::cluster::{NodeCommand, NodeView, Nodes, WorkerState};

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Nodes announce changes at once and themselves every 5 s: for this long a node may seem not to have heard.
const HEARD_WITHIN: Duration = Duration::from_secs(7);

/// The change that nodes are told to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Up(u64),
    Down(u64),
    Restart,
}

impl Wish {
    pub(super) fn command(self) -> NodeCommand {
        let (action, count) = match self {
            Self::Up(count) => ("scale_up", Some(count)),
            Self::Down(count) => ("scale_down", Some(count)),
            Self::Restart => ("restart", None),
        };
        NodeCommand { action: Some(action.to_owned()), count, ..NodeCommand::default() }
    }

    /// Workers that a node should have then.
    fn target(self, node: &NodeView) -> u64 {
        let (now, min, max) = (target(node), least(node), most(node));
        match self {
            Self::Up(count) => (now + count).min(max.max(min)).max(now.min(max)),
            Self::Down(count) => now.saturating_sub(count).max(min.min(now)),
            Self::Restart => now,
        }
    }
}

/// A node's progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    Done(String),
    Failed(String),
    Under(String),
}

/// The nodes that a command to `name` is for: those with workers.
pub(super) fn addressed(answer: Nodes, name: &str) -> Vec<NodeView> {
    let works = |node: &NodeView| {
        node.stats.roles.as_ref().is_some_and(|roles| roles.iter().any(|role| role == "worker"))
    };
    let nodes = answer.nodes.into_iter();
    nodes.filter(|node| (name == "all" || node.id == name) && works(node)).collect()
}

/// The progress of a node.
pub(super) fn look(
    before: &NodeView,
    after: Option<&NodeView>,
    wish: Wish,
    waited: Duration,
) -> Progress {
    let Some(after) = after else {
        return Progress::Failed("is not in the cluster any more".into());
    };
    let (wanted, was, now) = (wish.target(before), target(before), target(after));
    let states = after.states();
    let running = states.running.unwrap_or(0);
    if after.stats.refused_commands > before.stats.refused_commands {
        return Progress::Failed("refused the command; its log says why".into());
    }
    if let Some(problem) = stuck(after) {
        return Progress::Failed(problem);
    }
    if wish == Wish::Restart {
        return look_at_restart(before, after, running, now);
    }
    if wanted == was && now == was {
        return Progress::Done(unchanged(before, wish, was));
    }
    if now == was && waited < HEARD_WITHIN {
        return Progress::Under(format!("still {}", workers(was)));
    }
    if now == was {
        return Progress::Failed(format!("still has {}: it may be cut off", workers(was)));
    }
    let draining = states.draining.unwrap_or(0);
    let unsettled = states.starting.unwrap_or(0) + draining + states.restarting.unwrap_or(0);
    if running != now || unsettled > 0 {
        let said = format!("{was} → {now} workers, {running} running");
        return Progress::Under(match draining {
            0 => said,
            draining => format!("{said}, {draining} end their last jobs"),
        });
    }
    let moved = if now == wanted { "" } else { "; the load moved it further meanwhile" };
    Progress::Done(format!("{was} → {}, all running{moved}", workers(now)))
}

fn look_at_restart(before: &NodeView, after: &NodeView, running: u64, target: u64) -> Progress {
    let given_up = after.stats.restart_problem.as_ref();
    if let Some(problem) =
        given_up.filter(|_| after.stats.restart_problem != before.stats.restart_problem)
    {
        return Progress::Failed(format!("gave up, the old workers stay: {problem}"));
    }
    let old = processes(before).filter(|pid| processes(after).any(|other| other == *pid)).count();
    if old > 0 || running < target {
        let all = processes(before).count();
        return Progress::Under(format!("{} of {all} workers replaced", all - old));
    }
    Progress::Done(format!("{} replaced", workers(running)))
}

/// The reason why a number stays as it is.
fn unchanged(node: &NodeView, wish: Wish, workers_now: u64) -> String {
    let why = match wish {
        Wish::Up(_) => format!("as many as it may have (MAX_WORKERS, {} now)", most(node)),
        _ => format!("as few as it may have (MIN_WORKERS, {} now)", least(node)),
    };
    format!("stays at {}, {why}", workers(workers_now))
}

/// A worker that will not start by waiting.
fn stuck(node: &NodeView) -> Option<String> {
    let broken = [Some(WorkerState::CrashLooping), Some(WorkerState::CannotStart)];
    let worker = node.workers().find(|worker| broken.contains(&worker.state))?;
    let problem = worker.problem.as_deref().unwrap_or("its log says why");
    let id = worker.id.as_deref().unwrap_or_default();
    Some(format!("worker {id} does not start: {problem}"))
}

/// Workers that a node is to have.
fn target(node: &NodeView) -> u64 {
    node.states().target.unwrap_or(0)
}

fn least(node: &NodeView) -> u64 {
    node.stats.min.unwrap_or(0)
}

fn most(node: &NodeView) -> u64 {
    node.stats.max.unwrap_or(0)
}

fn processes(node: &NodeView) -> impl Iterator<Item = u32> {
    node.workers().filter_map(|worker| worker.pid)
}

fn workers(count: u64) -> String {
    if count == 1 { "1 worker".to_owned() } else { format!("{count} workers") }
}

/// The end of a command on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct NodeOutcome {
    /// The node.
    id: String,
    outcome: Outcome,
    /// The outcome, for people.
    message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Done,
    Failed,
    Unfinished,
}

/// Watches nodes until each has done what it was told, has failed, or the time is up; tells about each as it ends.
pub(super) async fn watch(
    client: &Client,
    before: &[NodeView],
    wish: Wish,
    patience: Duration,
    mut tell: impl FnMut(&str, &str),
) -> Result<Vec<NodeOutcome>> {
    let began = Instant::now();
    let mut left: Vec<&NodeView> = before.iter().collect();
    let mut ended = Vec::new();
    loop {
        let nodes = client.nodes().await?.nodes;
        let late = began.elapsed() >= patience;
        left.retain(|node| {
            let after = nodes.iter().find(|other| other.id == node.id);
            let (outcome, message) = match look(node, after, wish, began.elapsed()) {
                Progress::Done(text) => (Outcome::Done, text),
                Progress::Failed(text) => (Outcome::Failed, text),
                Progress::Under(text) if late => {
                    (Outcome::Unfinished, format!("{text}, after {patience:?}"))
                }
                Progress::Under(_) => return true,
            };
            tell(&node.id, &message);
            ended.push(NodeOutcome { id: node.id.clone(), outcome, message });
            false
        });
        if left.is_empty() {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    if ended.iter().any(|node| node.outcome != Outcome::Done) {
        bail!(Unfinished(ended));
    }
    Ok(ended)
}

/// Not all nodes did what they were told.
#[derive(Debug)]
pub(super) struct Unfinished(pub(super) Vec<NodeOutcome>);

impl std::error::Error for Unfinished {}

impl std::fmt::Display for Unfinished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let failed = self.0.iter().filter(|node| node.outcome != Outcome::Done);
        let failed: Vec<&str> = failed.map(|node| node.id.as_str()).collect();
        write!(f, "not done on {}; look again with: {} nodes", failed.join(", "), myself())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(target: u64, running: u64, more: Value) -> NodeView {
        let pids = (0..running)
            .map(|n| json!({ "id": format!("w-{n}"), "pid": 100 + n, "state": "running" }));
        let mut node = json!({
            "id": "a", "roles": ["api", "worker"], "min": 1, "max": 4,
            "states": { "target": target, "running": running },
            "workerProcesses": pids.collect::<Vec<_>>(),
        });
        for (name, value) in more.as_object().unwrap() {
            node[name] = value.clone();
        }
        serde_json::from_value(node).unwrap()
    }

    fn looked(before: &NodeView, after: &NodeView, wish: Wish) -> Progress {
        look(before, Some(after), wish, Duration::from_secs(1))
    }

    #[test]
    fn a_number_of_workers_is_reached_when_all_of_them_run() {
        let two = node(2, 2, json!({}));
        let under = looked(&two, &node(4, 3, json!({})), Wish::Up(2));
        assert_eq!(under, Progress::Under("2 → 4 workers, 3 running".into()));
        let done = looked(&two, &node(4, 4, json!({})), Wish::Up(2));
        assert_eq!(done, Progress::Done("2 → 4 workers, all running".into()));
        let draining = json!({ "states": { "target": 1, "running": 1, "draining": 1 } });
        let Progress::Under(text) = looked(&two, &node(1, 1, draining), Wish::Down(1)) else {
            panic!()
        };
        assert!(text.contains("1 end their last jobs"), "{text}");
        let done = looked(&two, &node(1, 1, json!({})), Wish::Down(1));
        assert_eq!(done, Progress::Done("2 → 1 worker, all running".into()));
        let moved = looked(&two, &node(4, 4, json!({})), Wish::Up(1));
        assert!(matches!(moved, Progress::Done(text) if text.contains("the load moved it")));
    }

    #[test]
    fn bounds_are_given_as_the_reason_why_nothing_changes() {
        let full = node(4, 4, json!({}));
        let Progress::Done(text) = looked(&full, &full, Wish::Up(1)) else { panic!() };
        assert!(text.contains("stays at 4 workers") && text.contains("MAX_WORKERS"), "{text}");
        let least = node(1, 1, json!({}));
        let Progress::Done(text) = looked(&least, &least, Wish::Down(3)) else { panic!() };
        assert!(text.contains("stays at 1 worker,") && text.contains("MIN_WORKERS"), "{text}");
    }

    #[test]
    fn trouble_is_told_instead_of_waited_for() {
        let two = node(2, 2, json!({}));
        assert!(matches!(looked(&two, &two, Wish::Up(1)), Progress::Under(_)));
        let deaf = look(&two, Some(&two), Wish::Up(1), Duration::from_secs(8));
        assert!(matches!(deaf, Progress::Failed(text) if text.contains("cut off")));
        let gone = look(&two, None, Wish::Up(1), Duration::ZERO);
        assert!(matches!(gone, Progress::Failed(_)));
        let crashing = json!({ "workerProcesses":
            [{ "id": "w-3", "state": "crash-looping", "problem": "no space" }] });
        let Progress::Failed(text) = looked(&two, &node(3, 2, crashing), Wish::Up(1)) else {
            panic!()
        };
        assert_eq!(text, "worker w-3 does not start: no space");
        let refused = looked(&two, &node(2, 2, json!({ "refusedCommands": 1 })), Wish::Up(1));
        assert!(matches!(refused, Progress::Failed(text) if text.contains("refused")));
    }

    #[test]
    fn a_restart_is_done_when_no_old_process_is_left() {
        let two = node(2, 2, json!({}));
        let half = json!({ "workerProcesses":
            [{ "pid": 100, "state": "running" }, { "pid": 200, "state": "running" }] });
        let under = looked(&two, &node(2, 2, half), Wish::Restart);
        assert_eq!(under, Progress::Under("1 of 2 workers replaced".into()));
        let new = json!({ "workerProcesses":
            [{ "pid": 200, "state": "running" }, { "pid": 201, "state": "running" }] });
        let done = looked(&two, &node(2, 2, new), Wish::Restart);
        assert_eq!(done, Progress::Done("2 workers replaced".into()));
        let broken = node(2, 2, json!({ "restartProblem": "no such file" }));
        assert!(matches!(looked(&two, &broken, Wish::Restart), Progress::Failed(_)));
        assert!(
            matches!(looked(&broken, &broken, Wish::Restart), Progress::Under(_)),
            "it is from before"
        );
    }

    #[test]
    fn nodes_without_workers_are_not_waited_for() {
        let api = serde_json::from_value(json!({ "id": "api", "roles": ["api"] })).unwrap();
        let answer = Nodes { nodes: vec![api, node(2, 2, json!({}))] };
        assert_eq!(addressed(answer.clone(), "all").len(), 1);
        assert_eq!(addressed(answer.clone(), "api"), []);
        assert_eq!(addressed(answer, "a").len(), 1);
    }
}
