//! `stampede nodes`: the cluster on the terminal, through the API of a running server.

mod outcome;

use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use stampede_model::{Role, Timestamp};

use self::outcome::{Unfinished, Wish};
use crate::cli::{Nodes, NodesCommand, Patience};
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
        NodesCommand::ScaleUp { node, count, patience } => {
            return send(client, options, node, Wish::Up((*count).into()), *patience).await;
        }
        NodesCommand::ScaleDown { node, count, patience } => {
            return send(client, options, node, Wish::Down((*count).into()), *patience).await;
        }
        NodesCommand::Restart { node, patience } => {
            return send(client, options, node, Wish::Restart, *patience).await;
        }
    };
    if options.json {
        println!("{answer}");
        return Ok(());
    }
    match command {
        NodesCommand::List => print_nodes(&answer),
        NodesCommand::Workers => print_workers(&answer),
        NodesCommand::Cluster => print_cluster(&answer),
        _ => print_history(&answer),
    }
    Ok(())
}

/// Tells nodes what to do, and waits for what comes of it.
async fn send(
    client: &Client,
    options: &Nodes,
    name: &str,
    wish: Wish,
    patience: Patience,
) -> Result<()> {
    // Seen before, or it would not be known what has changed.
    let before = outcome::addressed(&client.get("/api/nodes").await?, name);
    let mut answer = client.post(&format!("/api/nodes/{name}/commands"), &wish.body()).await?;
    if patience.no_wait {
        match (options.json, answer["heard"].as_u64()) {
            (true, _) => println!("{answer}"),
            (false, Some(1) | None) => println!("told; what comes of it: stampede nodes"),
            (false, Some(heard)) => {
                println!("told {heard} nodes; what comes of it: stampede nodes")
            }
        }
        return Ok(());
    }
    let tell = |node: &str, text: &str| {
        if !options.json {
            println!("{node}: {text}");
        }
    };
    let timeout = Duration::from_secs(patience.timeout);
    let result = tokio::select! {
        result = outcome::watch(client, &before, wish, timeout, tell) => result,
        _ = tokio::signal::ctrl_c() => {
            bail!("interrupted; the nodes were told and go on: stampede nodes shows how far they are");
        }
    };
    if options.json {
        let ended = match &result {
            Ok(ended) => Some(ended),
            Err(error) => error.downcast_ref::<Unfinished>().map(|Unfinished(ended)| ended),
        };
        answer["success"] = json!(result.is_ok());
        answer["nodes"] = json!(ended);
        println!("{answer}");
    }
    result.map(drop)
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
