//! `stampede queues`: what is on the queues, and tidying them up, through a running server.

use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use stampede_model::Role;

use crate::cli::{Queues, QueuesCommand};
use crate::commands::client::Client;
use crate::commands::session::Session;
use crate::commands::table::Table;
use crate::settings::Settings;

/// Letters of a payload or reason that a table shows.
const SHOWN: usize = 60;

pub(crate) async fn run(settings: Settings, options: Queues) -> Result<()> {
    let session = Session::open(&settings, &options.server, Role::Admin).await?;
    let result = tokio::select! {
        result = act(&session, &options) => result,
        _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted")),
    };
    session.close().await?;
    result
}

async fn act(session: &Session, options: &Queues) -> Result<()> {
    session.must_be_ready().await?;
    let client = &session.client;
    let answer = match &options.command {
        QueuesCommand::Status => client.get("/api/queues/status").await?,
        QueuesCommand::Jobs { queue, state, search, skip, count } => {
            let mut path =
                format!("/api/queues/{queue}/jobs?state={state}&skip={skip}&count={count}");
            if let Some(text) = search {
                path.push_str("&search=");
                path.extend(url::form_urlencoded::byte_serialize(text.as_bytes()));
            }
            client.get(&path).await?
        }
        QueuesCommand::Job { queue, id } => {
            client.get(&format!("/api/queues/{queue}/jobs/{id}")).await?
        }
        QueuesCommand::Pause { queue } => change(client, queue, "pause", json!({})).await?,
        QueuesCommand::Resume { queue } => change(client, queue, "resume", json!({})).await?,
        QueuesCommand::Drain { queue, delayed } => {
            change(client, queue, "drain", json!({ "delayed": delayed })).await?
        }
        QueuesCommand::Obliterate { queue, confirm, force } => {
            let body = json!({ "confirm": confirm, "force": force });
            change(client, queue, "obliterate", body).await?
        }
        QueuesCommand::Clean { queue, state, grace_s, limit } => {
            let body = json!({
                "queue": queue, "state": state, "graceMs": grace_s * 1000, "limit": limit,
            });
            client.post("/api/queues/clean", &body).await?
        }
        QueuesCommand::Retry { queue, id } => change_job(client, queue, id, "retry").await?,
        QueuesCommand::Promote { queue, id } => change_job(client, queue, id, "promote").await?,
        QueuesCommand::Cancel { queue, id } => change_job(client, queue, id, "cancel").await?,
        QueuesCommand::Remove { queue, id } => {
            let told = client.delete(&format!("/api/queues/{queue}/jobs/{id}")).await?;
            told.unwrap_or_else(|| json!({ "success": true }))
        }
        QueuesCommand::DeadLetters { queue, search, skip, count } => {
            let mut path = format!("/api/queues/{queue}/dead-letters?skip={skip}&count={count}");
            if let Some(text) = search {
                path.push_str("&search=");
                path.extend(url::form_urlencoded::byte_serialize(text.as_bytes()));
            }
            client.get(&path).await?
        }
        QueuesCommand::Replay { queue, ids, all, data } => {
            letters(client, queue, "replay", ids, *all, data.as_ref()).await?
        }
        QueuesCommand::Purge { queue, ids, all } => {
            letters(client, queue, "purge", ids, *all, None).await?
        }
    };
    if options.json {
        println!("{answer}");
    } else {
        print(&options.command, &answer);
    }
    Ok(())
}

async fn change(client: &Client, queue: &str, verb: &str, body: Value) -> Result<Value> {
    client.post(&format!("/api/queues/{queue}/{verb}"), &body).await
}

async fn change_job(client: &Client, queue: &str, id: &str, verb: &str) -> Result<Value> {
    client.post(&format!("/api/queues/{queue}/jobs/{id}/{verb}"), &json!({})).await
}

async fn letters(
    client: &Client,
    queue: &str,
    verb: &str,
    ids: &[String],
    all: bool,
    data: Option<&Value>,
) -> Result<Value> {
    let mut body = if all { json!({ "all": true }) } else { json!({ "ids": ids }) };
    if let Some(data) = data {
        body["data"] = data.clone();
    }
    client.post(&format!("/api/queues/{queue}/dead-letters/{verb}"), &body).await
}

fn print(command: &QueuesCommand, answer: &Value) {
    match command {
        QueuesCommand::Status => print_status(answer),
        QueuesCommand::Jobs { state, .. } => print_jobs(answer, state),
        QueuesCommand::DeadLetters { .. } => print_letters(answer),
        QueuesCommand::Job { .. } => {
            println!("{}", serde_json::to_string_pretty(answer).unwrap_or_default());
        }
        QueuesCommand::Clean { .. } => {
            for (queue, count) in answer["removed"].as_object().into_iter().flatten() {
                println!("{queue}: {count} removed");
            }
        }
        QueuesCommand::Replay { .. } => println!("{} replayed", answer["count"]),
        QueuesCommand::Purge { .. } => println!("{} thrown away", answer["count"]),
        QueuesCommand::Cancel { .. } if answer["state"] == "cancelling" => {
            println!("whoever works on it was told to stop; it will have failed as cancelled");
        }
        QueuesCommand::Cancel { .. } | QueuesCommand::Remove { .. } => {
            println!("removed from the queue");
        }
        QueuesCommand::Retry { .. } | QueuesCommand::Promote { .. } => {
            println!("waits for a worker")
        }
        _ => println!("done"),
    }
    if let Some(note) = answer["note"].as_str() {
        println!("Note: {note}");
    }
}

fn print_status(answer: &Value) {
    let columns = ["waiting", "prioritized", "active", "delayed", "completed", "failed"];
    let mut table = Table::new(["queue"].into_iter().chain(columns).chain([""]));
    for (name, queue) in answer.as_object().into_iter().flatten() {
        let mut row = vec![name.clone()];
        row.extend(columns.iter().map(|column| queue[column].to_string()));
        row.push(if queue["paused"] == true { "paused" } else { "" }.to_owned());
        table.row(row);
    }
    table.print("no queue has seen a job yet");
}

fn print_jobs(answer: &Value, state: &str) {
    let mut table = Table::new(["id", "state", "name", "attempts", "data", "reason"]);
    for job in answer["jobs"].as_array().into_iter().flatten() {
        table.row(vec![
            text(&job["id"]),
            text(&job["state"]),
            text(&job["name"]),
            job["attemptsMade"].to_string(),
            short(&job["data"].to_string()),
            short(&text(&job["failedReason"])),
        ]);
    }
    table.print(&format!("no job is {state}"));
    if let Some(next) = answer["next"].as_u64() {
        println!("more: --skip {next}");
    }
}

fn print_letters(answer: &Value) {
    let mut table = Table::new(["id", "name", "attempts", "payload", "reason"]);
    for letter in answer["letters"].as_array().into_iter().flatten() {
        table.row(vec![
            text(&letter["jobId"]),
            text(&letter["name"]),
            letter["attemptsMade"].to_string(),
            short(&letter["payload"].to_string()),
            short(&text(&letter["reason"])),
        ]);
    }
    table.print("no dead letters");
    println!("{} in all", answer["total"]);
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// On one line, and not too long.
fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= SHOWN {
        return line.to_owned();
    }
    line.chars().take(SHOWN - 1).chain(['…']).collect()
}
