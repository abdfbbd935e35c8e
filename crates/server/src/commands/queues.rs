//! `stampede queues`: what is on the queues, what holds them back, and tidying them up, through a running
//! server.

mod print;

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use serde_json::{Value, json};
use stampede_model::Role;
use url::form_urlencoded::byte_serialize;

use self::print::print;
use crate::cli::{Queues, QueuesCommand};
use crate::commands::client::Client;
use crate::commands::session::Session;
use crate::settings::Settings;

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
    let answer = ask(&session.client, &options.command).await?;
    if options.json {
        println!("{answer}");
    } else {
        print(&options.command, &answer);
    }
    match (answer["failed"].as_array().map_or(0, Vec::len), &options.command) {
        (0, _) => Ok(()),
        (failed, QueuesCommand::Purge { .. }) => bail!("{failed} of them are not there"),
        (failed, _) => bail!("{failed} of them cannot run again"),
    }
}

async fn ask(client: &Client, command: &QueuesCommand) -> Result<Value> {
    use QueuesCommand as Command;
    match command {
        Command::Status => client.get("/api/queues/status").await,
        Command::Jobs { queue, state, search, skip, count } => {
            let query = [("state", state.as_ref()), ("search", search.as_ref())];
            client.get(&page(&queue_path(queue, "jobs"), &query, *skip, *count)).await
        }
        Command::Job { queue, id } => client.get(&job_path(queue, id)).await,
        Command::Add { queue, name, data, id, delay, priority, attempts } => {
            let body = json!({
                "name": name, "data": data, "id": id, "priority": priority, "attempts": attempts,
                "delayMs": delay.map(milliseconds),
            });
            client.post(&queue_path(queue, "jobs"), &body).await
        }
        Command::Pause { queue } => client.post(&queue_path(queue, "pause"), &json!({})).await,
        Command::Resume { queue } => client.post(&queue_path(queue, "resume"), &json!({})).await,
        Command::Concurrency { queue, jobs } => {
            client.post(&queue_path(queue, "concurrency"), &json!({ "jobs": jobs.0 })).await
        }
        Command::Drain { queue, delayed } => {
            client.post(&queue_path(queue, "drain"), &json!({ "delayed": delayed })).await
        }
        Command::Obliterate { queue, confirm, .. } if queue != confirm => {
            bail!("--confirm must be the name of the queue once more: {queue}");
        }
        Command::Obliterate { queue, confirm, force } => {
            let body = json!({ "confirm": confirm, "force": force });
            client.post(&queue_path(queue, "obliterate"), &body).await
        }
        Command::Clean { queue, state, grace, limit, .. } => {
            let body = json!({
                "queue": queue, "state": state, "graceMs": milliseconds(*grace), "limit": limit,
            });
            client.post("/api/queues/clean", &body).await
        }
        Command::Retry { queue, id: Some(id), .. } => change_job(client, queue, id, "retry").await,
        Command::Retry { queue, id: None, .. } => {
            until_done(client, &queue_path(queue, "retry"), &json!({})).await
        }
        Command::Promote { queue, id } => change_job(client, queue, id, "promote").await,
        Command::Cancel { queue, id } => change_job(client, queue, id, "cancel").await,
        Command::Remove { queue, id } => delete(client, &job_path(queue, id)).await,
        Command::DeadLetters { queue, search, skip, count } => {
            let query = [("search", search.as_ref())];
            client.get(&page(&queue_path(queue, "dead-letters"), &query, *skip, *count)).await
        }
        Command::Replay { queue, ids, all, data } => {
            letters(client, queue, "replay", ids, *all, data.as_ref()).await
        }
        Command::Purge { queue, ids, all } => {
            letters(client, queue, "purge", ids, *all, None).await
        }
        Command::Limits => client.get("/api/limits").await,
        Command::Limit { name, max, per } => {
            let body = json!({ "max": max, "perMs": milliseconds(*per) });
            client.put(&format!("/api/limits/{}", segment(name)), &body).await
        }
        Command::Unlimit { name } => {
            delete(client, &format!("/api/limits/{}", segment(name))).await
        }
        Command::Breakers => client.get("/api/breakers").await,
        Command::CloseBreaker { name } => {
            delete(client, &format!("/api/breakers/{}", segment(name))).await
        }
        Command::Schedules { queue } => client.get(&queue_path(queue, "schedules")).await,
        Command::Schedule { queue, id, name, cron, time_zone, every, data } => {
            let body = json!({
                "name": name, "data": data, "cron": cron, "timeZone": time_zone,
                "everyMs": every.map(milliseconds),
            });
            client.put(&schedule_path(queue, id), &body).await
        }
        Command::Unschedule { queue, id } => delete(client, &schedule_path(queue, id)).await,
    }
}

/// A name as a part of a path. Spaces do not become plus signs there.
fn segment(name: &str) -> String {
    byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
}

fn queue_path(queue: &str, what: &str) -> String {
    format!("/api/queues/{}/{what}", segment(queue))
}

fn job_path(queue: &str, id: &str) -> String {
    queue_path(queue, &format!("jobs/{}", segment(id)))
}

fn schedule_path(queue: &str, id: &str) -> String {
    queue_path(queue, &format!("schedules/{}", segment(id)))
}

/// Part of a list, or what to look for in it.
fn page(path: &str, query: &[(&str, Option<&String>)], skip: usize, count: usize) -> String {
    let mut page = format!("{path}?skip={skip}&count={count}");
    for (name, value) in query {
        if let Some(value) = value {
            page.extend(["&", name, "="]);
            page.extend(byte_serialize(value.as_bytes()));
        }
    }
    page
}

fn milliseconds(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

async fn change_job(client: &Client, queue: &str, id: &str, verb: &str) -> Result<Value> {
    client.post(&format!("{}/{verb}", job_path(queue, id)), &json!({})).await
}

async fn delete(client: &Client, path: &str) -> Result<Value> {
    Ok(client.delete(path).await?.unwrap_or_else(|| json!({ "success": true })))
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
    let path = queue_path(queue, &format!("dead-letters/{verb}"));
    if all { until_done(client, &path, &body).await } else { client.post(&path, &body).await }
}

/// As many as one request replays, retries or purges.
const IN_ONE_REQUEST: u64 = 10_000;

/// Asks again for the rest of very many. Those that fail again at once are not asked for twice: there are as many
/// requests as it takes for those that were there at first.
async fn until_done(client: &Client, path: &str, body: &Value) -> Result<Value> {
    let mut answer = client.post(path, body).await?;
    let number = |answer: &Value, name: &str| answer[name].as_u64().unwrap_or(0);
    let mut count = number(&answer, "count");
    let requests = (count + number(&answer, "left")).div_ceil(IN_ONE_REQUEST);
    for _ in 1..requests {
        if answer["count"] == 0 {
            break;
        }
        answer = client.post(path, body).await?;
        count += number(&answer, "count");
    }
    answer["count"] = json!(count);
    Ok(answer)
}
