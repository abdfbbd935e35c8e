//! `stampede nodes`: the cluster on the terminal, through the API of a running server.

use anyhow::Result;
use serde_json::{Value, json};
use stampede_model::{Role, Timestamp};

use crate::cli::{Nodes, NodesCommand};
use crate::commands::client::Client;
use crate::commands::session::Session;
use crate::commands::table::Table;
use crate::settings::Settings;

pub(crate) async fn run(settings: Settings, options: Nodes) -> Result<()> {
    let session = Session::open(&settings, &options.server, Role::Admin).await?;
    let done = carry_out(&session.client, &options).await;
    session.close().await?;
    done
}

async fn carry_out(client: &Client, options: &Nodes) -> Result<()> {
    let command = options.command.as_ref().unwrap_or(&NodesCommand::List);
    let answer: Value = match command {
        NodesCommand::List | NodesCommand::Workers => client.get("/api/nodes").await?,
        NodesCommand::Cluster => client.get("/api/cluster").await?,
        NodesCommand::History => client.get("/api/scaling/history").await?,
        NodesCommand::ScaleUp { node, count } => send(client, node, "scale_up", *count).await?,
        NodesCommand::ScaleDown { node, count } => send(client, node, "scale_down", *count).await?,
        NodesCommand::Restart { node } => send(client, node, "restart", 1).await?,
    };
    if options.json {
        println!("{answer}");
        return Ok(());
    }
    match command {
        NodesCommand::List => print_nodes(&answer),
        NodesCommand::Workers => print_workers(&answer),
        NodesCommand::Cluster => print_cluster(&answer),
        NodesCommand::History => print_history(&answer),
        _ => match answer["heard"].as_u64() {
            Some(1) | None => println!("told"),
            Some(heard) => println!("told {heard} nodes"),
        },
    }
    Ok(())
}

async fn send(client: &Client, node: &str, action: &str, count: u32) -> Result<Value> {
    let body = json!({ "action": action, "count": count });
    client.post(&format!("/api/nodes/{node}/commands"), &body).await
}

fn print_nodes(answer: &Value) {
    let head =
        ["node", "roles", "mode", "workers", "min", "max", "busy", "load", "memory", "seen", ""];
    let mut table = Table::new(head);
    for node in rows(&answer["nodes"]) {
        let roles: Vec<String> = rows(&node["roles"]).map(text).collect();
        table.row(vec![
            text(&node["id"]),
            roles.join(","),
            text(&node["mode"]),
            text(&node["workers"]),
            text(&node["min"]),
            text(&node["max"]),
            format!("{}/{}", text(&node["busy"]), text(&node["slots"])),
            format!("{:.2}", node["load"].as_f64().unwrap_or(0.0)),
            format!("{:.0} MB", node["memUsage"].as_f64().unwrap_or(0.0)),
            format!("{:.1} s ago", node["ageMs"].as_f64().unwrap_or(0.0) / 1000.0),
            remarks(node),
        ]);
    }
    table.print("no node has announced itself");
}

/// What is out of the ordinary.
fn remarks(node: &Value) -> String {
    let states = &node["states"];
    let mut remarks = Vec::new();
    for (field, word) in [
        ("starting", "starting"),
        ("draining", "draining"),
        ("restarting", "restarting"),
        ("crashLooping", "crash-looping"),
        ("cannotStart", "cannot start"),
    ] {
        if let Some(count @ 1..) = states[field].as_u64() {
            remarks.push(format!("{count} {word}"));
        }
    }
    if let Some(problem) = node["restartProblem"].as_str() {
        remarks.push(format!("restart given up: {problem}"));
    }
    remarks.join(", ")
}

fn print_workers(answer: &Value) {
    let mut table = Table::new(["worker", "state", "pid", "busy", "memory", "deaths", "problem"]);
    for node in rows(&answer["nodes"]) {
        for worker in rows(&node["workerProcesses"]) {
            table.row(vec![
                text(&worker["id"]),
                text(&worker["state"]),
                text(&worker["pid"]),
                format!("{}/{}", text(&worker["busy"]), text(&worker["slots"])),
                format!("{} MB", worker["memory"].as_u64().unwrap_or(0) >> 20),
                text(&worker["deaths"]),
                text(&worker["problem"]),
            ]);
        }
    }
    table.print("no node runs workers");
}

fn print_cluster(answer: &Value) {
    let stats = &answer["stats"];
    match answer["coordinator"]["node"].as_str() {
        Some(node) => println!("coordinator  {node} (token {})", answer["coordinator"]["token"]),
        None => println!("coordinator  none"),
    }
    println!("nodes        {}", text(&stats["nodeCount"]));
    println!("workers      {}", text(&stats["totalWorkers"]));
    println!("waiting      {}", text(&stats["totalWaiting"]));
    let jobs = &answer["jobs"];
    println!("jobs         {} completed, {} failed", jobs["completed"], jobs["failed"]);
    let mut table = Table::new(["when", "alert", "message"]);
    for alert in rows(&answer["alerts"]) {
        table.row(vec![when(alert), text(&alert["kind"]), text(&alert["message"])]);
    }
    table.print("no alerts");
}

fn print_history(answer: &Value) {
    let mut table = Table::new(["when", "node", "action", "workers", "by", "reason"]);
    for entry in rows(&answer["history"]) {
        let by = entry["coordinator"].as_str().or(entry["by"].as_str()).unwrap_or_default();
        table.row(vec![
            when(entry),
            text(&entry["nodeId"]),
            text(&entry["action"]),
            text(&entry["workers"]),
            by.to_owned(),
            text(&entry["reason"]),
        ]);
    }
    table.print("nothing was decided yet");
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn when(entry: &Value) -> String {
    let time = entry["timestamp"].as_i64().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map(|time| time.to_string()).unwrap_or_default()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
