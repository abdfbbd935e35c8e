//! What came of a command to nodes: their workers are watched until they are as many as wanted, or
//! until patience ends.
//!
//! [`look`] is pure: a node before and after, and what was wanted, give how far it is.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::commands::client::Client;

/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Nodes announce a change at once, and themselves every 5 s: this long one may seem not to have heard.
const HEARD_WITHIN: Duration = Duration::from_secs(7);

/// What nodes were told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Up(u64),
    Down(u64),
    Restart,
}

impl Wish {
    pub(super) fn body(self) -> Value {
        match self {
            Self::Up(count) => json!({ "action": "scale_up", "count": count }),
            Self::Down(count) => json!({ "action": "scale_down", "count": count }),
            Self::Restart => json!({ "action": "restart" }),
        }
    }

    /// How many workers a node should have then.
    fn target(self, node: &Value) -> u64 {
        let (now, min, max) = (target(node), number(&node["min"]), number(&node["max"]));
        match self {
            Self::Up(count) => (now + count).min(max.max(min)).max(now.min(max)),
            Self::Down(count) => now.saturating_sub(count).max(min.min(now)),
            Self::Restart => now,
        }
    }
}

/// How far a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Done(String),
    Failed(String),
    Under(String),
}

/// Which nodes a command to `name` is for: those with workers.
pub(super) fn addressed(answer: &Value, name: &str) -> Vec<Value> {
    let nodes = answer["nodes"].as_array().into_iter().flatten();
    let works = |node: &&Value| {
        node["roles"].as_array().is_some_and(|roles| roles.iter().any(|role| role == "worker"))
    };
    nodes.filter(|node| name == "all" || node["id"] == name).filter(works).cloned().collect()
}

/// Pure: how far a node is.
pub(super) fn look(before: &Value, after: Option<&Value>, wish: Wish, waited: Duration) -> State {
    let Some(after) = after else { return State::Failed("is not in the cluster any more".into()) };
    let (wanted, was, now) = (wish.target(before), target(before), target(after));
    let states = &after["states"];
    let count = |state: &str| number(&states[state]);
    if after["refusedCommands"].as_u64() > before["refusedCommands"].as_u64() {
        return State::Failed("refused the command; its log says why".into());
    }
    if let Some(problem) = stuck(after) {
        return State::Failed(problem);
    }
    if wish == Wish::Restart {
        let given_up = after["restartProblem"].as_str();
        if let Some(problem) =
            given_up.filter(|_| after["restartProblem"] != before["restartProblem"])
        {
            return State::Failed(format!("gave up, the old workers stay: {problem}"));
        }
        let old =
            processes(before).filter(|pid| processes(after).any(|other| other == *pid)).count();
        if old > 0 || count("running") < now {
            let all = processes(before).count();
            return State::Under(format!("{} of {all} workers replaced", all - old));
        }
        return State::Done(format!("{} replaced", workers(count("running"))));
    }
    if wanted == was && now == was {
        return State::Done(unchanged(before, wish, was));
    }
    if now == was && waited < HEARD_WITHIN {
        return State::Under(format!("still {}", workers(was)));
    }
    if now == was {
        return State::Failed(format!("still has {}: it may be cut off", workers(was)));
    }
    let unsettled = count("starting") + count("draining") + count("restarting");
    if count("running") != now || unsettled > 0 {
        let said = format!("{was} → {now} workers, {} running", count("running"));
        return State::Under(match count("draining") {
            0 => said,
            draining => format!("{said}, {draining} end their last jobs"),
        });
    }
    let moved = if now == wanted { "" } else { "; the load moved it further meanwhile" };
    State::Done(format!("{was} → {}, all running{moved}", workers(now)))
}

/// Why a number stays as it is.
fn unchanged(node: &Value, wish: Wish, workers_now: u64) -> String {
    let (min, max) = (number(&node["min"]), number(&node["max"]));
    let why = match wish {
        Wish::Up(_) => format!("as many as it may have (MAX_WORKERS, {max} now)"),
        _ => format!("as few as it may have (MIN_WORKERS, {min} now)"),
    };
    format!("stays at {}, {why}", workers(workers_now))
}

/// Workers that will not come up by waiting.
fn stuck(node: &Value) -> Option<String> {
    let list = node["workerProcesses"].as_array()?;
    let broken = |worker: &&Value| {
        matches!(worker["state"].as_str(), Some("crash-looping" | "cannot-start"))
    };
    let worker = list.iter().find(broken)?;
    let problem = worker["problem"].as_str().unwrap_or("its log says why");
    Some(format!("worker {} does not start: {problem}", worker["id"].as_str().unwrap_or_default()))
}

/// The number of workers a node is to have.
fn target(node: &Value) -> u64 {
    number(&node["states"]["target"])
}

fn processes(node: &Value) -> impl Iterator<Item = u64> {
    node["workerProcesses"].as_array().into_iter().flatten().filter_map(|w| w["pid"].as_u64())
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn workers(count: u64) -> String {
    if count == 1 { "1 worker".to_owned() } else { format!("{count} workers") }
}

/// Watches nodes until all have done what they were told; tells about each as it ends.
pub(super) async fn watch(
    client: &Client,
    before: &[Value],
    wish: Wish,
    patience: Duration,
    mut tell: impl FnMut(&str, &str),
) -> Result<Vec<Value>> {
    let began = Instant::now();
    let mut left: Vec<&Value> = before.iter().collect();
    let mut ended = Vec::new();
    let mut failures = 0;
    loop {
        let answer: Value = client.get("/api/nodes").await?;
        let nodes = answer["nodes"].as_array().cloned().unwrap_or_default();
        let late = began.elapsed() >= patience;
        left.retain(|node| {
            let name = node["id"].as_str().unwrap_or_default();
            let after = nodes.iter().find(|other| other["id"] == node["id"]);
            let (outcome, text) = match look(node, after, wish, began.elapsed()) {
                State::Done(text) => ("done", text),
                State::Failed(text) => ("failed", text),
                State::Under(text) if late => ("unfinished", format!("{text}, after {patience:?}")),
                State::Under(_) => return true,
            };
            failures += usize::from(outcome != "done");
            tell(name, &text);
            ended.push(json!({ "id": name, "outcome": outcome, "message": text }));
            false
        });
        if left.is_empty() {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    match failures {
        0 => Ok(ended),
        _ => bail!(Unfinished(ended)),
    }
}

/// Not all nodes did what they were told.
#[derive(Debug)]
pub(super) struct Unfinished(pub(super) Vec<Value>);

impl std::error::Error for Unfinished {}

impl std::fmt::Display for Unfinished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let failed: Vec<&str> = self
            .0
            .iter()
            .filter(|node| node["outcome"] != "done")
            .filter_map(|node| node["id"].as_str())
            .collect();
        write!(f, "not done on {}; look again with: stampede nodes", failed.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(target: u64, running: u64, more: Value) -> Value {
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
        node
    }

    fn looked(before: &Value, after: &Value, wish: Wish) -> State {
        look(before, Some(after), wish, Duration::from_secs(1))
    }

    #[test]
    fn a_number_of_workers_is_reached_when_all_of_them_run() {
        let two = node(2, 2, json!({}));
        let under = looked(&two, &node(4, 3, json!({})), Wish::Up(2));
        assert_eq!(under, State::Under("2 → 4 workers, 3 running".into()));
        let done = looked(&two, &node(4, 4, json!({})), Wish::Up(2));
        assert_eq!(done, State::Done("2 → 4 workers, all running".into()));
        let draining = json!({ "states": { "target": 1, "running": 1, "draining": 1 } });
        let State::Under(text) = looked(&two, &node(1, 1, draining), Wish::Down(1)) else {
            panic!()
        };
        assert!(text.contains("1 end their last jobs"), "{text}");
        let done = looked(&two, &node(1, 1, json!({})), Wish::Down(1));
        assert_eq!(done, State::Done("2 → 1 worker, all running".into()));
        let moved = looked(&two, &node(4, 4, json!({})), Wish::Up(1));
        assert!(matches!(moved, State::Done(text) if text.contains("the load moved it")));
    }

    #[test]
    fn bounds_are_given_as_the_reason_why_nothing_changes() {
        let full = node(4, 4, json!({}));
        let State::Done(text) = looked(&full, &full, Wish::Up(1)) else { panic!() };
        assert!(text.contains("stays at 4 workers") && text.contains("MAX_WORKERS"), "{text}");
        let least = node(1, 1, json!({}));
        let State::Done(text) = looked(&least, &least, Wish::Down(3)) else { panic!() };
        assert!(text.contains("stays at 1 worker,") && text.contains("MIN_WORKERS"), "{text}");
    }

    #[test]
    fn trouble_is_told_instead_of_waited_for() {
        let two = node(2, 2, json!({}));
        assert!(matches!(looked(&two, &two, Wish::Up(1)), State::Under(_)));
        let deaf = look(&two, Some(&two), Wish::Up(1), Duration::from_secs(8));
        assert!(matches!(deaf, State::Failed(text) if text.contains("cut off")));
        let gone = look(&two, None, Wish::Up(1), Duration::ZERO);
        assert!(matches!(gone, State::Failed(_)));
        let crashing = json!({ "workerProcesses":
            [{ "id": "w-3", "state": "crash-looping", "problem": "no space" }] });
        let State::Failed(text) = looked(&two, &node(3, 2, crashing), Wish::Up(1)) else {
            panic!()
        };
        assert_eq!(text, "worker w-3 does not start: no space");
        let refused = looked(&two, &node(2, 2, json!({ "refusedCommands": 1 })), Wish::Up(1));
        assert!(matches!(refused, State::Failed(text) if text.contains("refused")));
    }

    #[test]
    fn a_restart_is_done_when_no_old_process_is_left() {
        let two = node(2, 2, json!({}));
        let half = json!({ "workerProcesses":
            [{ "pid": 100, "state": "running" }, { "pid": 200, "state": "running" }] });
        let under = looked(&two, &node(2, 2, half), Wish::Restart);
        assert_eq!(under, State::Under("1 of 2 workers replaced".into()));
        let new = json!({ "workerProcesses":
            [{ "pid": 200, "state": "running" }, { "pid": 201, "state": "running" }] });
        let done = looked(&two, &node(2, 2, new), Wish::Restart);
        assert_eq!(done, State::Done("2 workers replaced".into()));
        let broken = node(2, 2, json!({ "restartProblem": "no such file" }));
        assert!(matches!(looked(&two, &broken, Wish::Restart), State::Failed(_)));
        assert!(
            matches!(looked(&broken, &broken, Wish::Restart), State::Under(_)),
            "it is from before"
        );
    }

    #[test]
    fn nodes_without_workers_are_not_waited_for() {
        let api = json!({ "id": "api", "roles": ["api"] });
        let answer = json!({ "nodes": [api, node(2, 2, json!({}))] });
        assert_eq!(addressed(&answer, "all").len(), 1);
        assert_eq!(addressed(&answer, "api"), Vec::<Value>::new());
        assert_eq!(addressed(&answer, "a").len(), 1);
    }
}
