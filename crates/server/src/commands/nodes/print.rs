//! Nodes, workers, the cluster and its history as tables.

use stampede_model::Timestamp;
use stampede_wire::Loose;
use stampede_wire::cluster::{ClusterView, History, NodeView, Nodes, WorkerProcess, WorkerState};

use crate::commands::table::Table;

pub(super) fn nodes(answer: &Nodes) {
    let head =
        ["node", "roles", "mode", "workers", "min", "max", "busy", "load", "memory", "seen", ""];
    let mut table = Table::new(head);
    for node in &answer.nodes {
        let stats = &node.stats;
        table.row(vec![
            node.id.clone(),
            stats.roles.clone().unwrap_or_default().join(","),
            stats.mode.clone().unwrap_or_default(),
            number(stats.workers),
            number(stats.min),
            number(stats.max),
            format!("{}/{}", number(stats.busy), number(stats.slots)),
            format!("{:.2}", stats.load.unwrap_or(0.0)),
            format!("{:.0} MB", stats.mem_usage.unwrap_or(0.0)),
            format!("{:.1} s ago", node.age_ms as f64 / 1000.0),
            remarks(node),
        ]);
    }
    table.print("no node has announced itself");
}

/// Deviations from the normal state.
fn remarks(node: &NodeView) -> String {
    let states = node.states();
    let mut remarks = Vec::new();
    for (count, word) in [
        (states.starting, "starting"),
        (states.draining, "draining"),
        (states.restarting, "restarting"),
        (states.crash_looping, "crash-looping"),
        (states.cannot_start, "cannot start"),
    ] {
        if let Some(count @ 1..) = count {
            remarks.push(format!("{count} {word}"));
        }
    }
    if let Some(problem) = &node.stats.restart_problem {
        remarks.push(format!("restart given up: {problem}"));
    }
    remarks.join(", ")
}

pub(super) fn workers(answer: &Nodes) {
    let mut table = Table::new(["worker", "state", "pid", "busy", "memory", "deaths", "problem"]);
    for worker in answer.nodes.iter().flat_map(NodeView::workers) {
        table.row(vec![
            worker.id.clone().unwrap_or_default(),
            state(worker),
            worker.pid.map(|pid| pid.to_string()).unwrap_or_default(),
            format!("{}/{}", number(worker.busy), number(worker.slots)),
            format!("{} MB", worker.memory.unwrap_or(0) >> 20),
            number(worker.deaths),
            worker.problem.clone().unwrap_or_default(),
        ]);
    }
    table.print("no node runs workers");
}

/// The state's name; that of a newer version is shown as it is.
fn state(worker: &WorkerProcess) -> String {
    let foreign = worker.other.get("state").and_then(|state| state.as_str());
    worker.state.map(WorkerState::as_str).or(foreign).unwrap_or_default().to_owned()
}

pub(super) fn cluster(answer: &ClusterView) {
    let stats = answer.stats.clone().unwrap_or_default();
    match &answer.coordinator {
        Some(leader) => println!("coordinator  {} (token {})", leader.node, leader.token),
        None => println!("coordinator  none"),
    }
    println!("nodes        {}", number(stats.node_count));
    println!("workers      {}", number(stats.total_workers));
    println!("waiting      {}", number(stats.total_waiting));
    println!("jobs         {} completed, {} failed", answer.jobs.completed, answer.jobs.failed);
    let mut table = Table::new(["when", "alert", "message"]);
    for alert in answer.alerts.iter().filter_map(Loose::known) {
        table.row(vec![
            when(alert.timestamp),
            alert.kind.clone().unwrap_or_default(),
            alert.message.clone().unwrap_or_default(),
        ]);
    }
    table.print("no alerts");
}

pub(super) fn history(answer: &History) {
    let mut table = Table::new(["when", "node", "action", "workers", "by", "reason"]);
    for entry in answer.history.iter().filter_map(Loose::known) {
        let author = entry.coordinator.as_deref().or(entry.by.map(|by| by.as_str()));
        table.row(vec![
            when(entry.timestamp),
            entry.node_id.clone().unwrap_or_default(),
            entry.action.as_ref().map(|action| action.as_str().to_owned()).unwrap_or_default(),
            number(entry.workers),
            author.unwrap_or_default().to_owned(),
            entry.reason.clone().unwrap_or_default(),
        ]);
    }
    table.print("nothing was decided yet");
}

fn when(ms: Option<u64>) -> String {
    let time = ms.and_then(|ms| i64::try_from(ms).ok());
    let time = time.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map(|time| time.to_string()).unwrap_or_default()
}

fn number(value: Option<u64>) -> String {
    value.map(|number| number.to_string()).unwrap_or_default()
}
