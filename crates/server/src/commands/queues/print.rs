//! Answers as tables and sentences.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::cli::QueuesCommand;
use crate::commands::table::Table;

/// Letters of a payload or reason that a table shows.
const SHOWN: usize = 60;

/// Shows an answer to a person.
pub(super) fn print(command: &QueuesCommand, answer: &Value) {
    match command {
        QueuesCommand::Status => print_status(answer),
        QueuesCommand::Jobs { state, search: None, skip: 0, .. } => match state.as_deref() {
            Some("all") => print_jobs(answer, "it is empty"),
            state => print_jobs(answer, &format!("no job is {}", state.unwrap_or("waiting"))),
        },
        QueuesCommand::Jobs { .. } => print_jobs(answer, "none of them"),
        QueuesCommand::DeadLetters { .. } => print_letters(answer),
        QueuesCommand::Job { .. } => {
            println!("{}", serde_json::to_string_pretty(answer).unwrap_or_default());
        }
        QueuesCommand::Clean { .. } => {
            for (queue, count) in answer["removed"].as_object().into_iter().flatten() {
                println!("{queue}: {count} removed");
            }
        }
        QueuesCommand::Replay { .. }
        | QueuesCommand::Purge { .. }
        | QueuesCommand::Retry { id: None, .. } => {
            let is_purge = matches!(command, QueuesCommand::Purge { .. });
            let what = if is_purge { "thrown away" } else { "run again" };
            println!("{} {what}", answer["count"]);
            if let QueuesCommand::Replay { queue, all: true, .. } = command
                && answer["count"] == 0
            {
                println!(
                    "Jobs that other software has failed have no letter: stampede queues retry {queue} --all"
                );
            }
            for letter in answer["failed"].as_array().into_iter().flatten() {
                println!("not {}: {}", text(&letter["id"]), text(&letter["error"]));
            }
        }
        QueuesCommand::Cancel { .. } if answer["state"] == "cancelling" => {
            println!(
                "told to stop: a worker of Stampede fails it as cancelled; others do not hear of it"
            );
        }
        QueuesCommand::Cancel { .. } | QueuesCommand::Remove { .. } => {
            println!("removed from the queue");
        }
        QueuesCommand::Retry { .. } | QueuesCommand::Promote { .. } => {
            println!("waits for a worker")
        }
        QueuesCommand::Add { .. } if answer["added"] == false => {
            println!("{} is there already, and was left as it is", text(&answer["id"]));
        }
        QueuesCommand::Add { .. } => println!("added as {}", text(&answer["id"])),
        QueuesCommand::Drain { .. } => println!("{} removed", answer["removed"]),
        QueuesCommand::Limits => print_limits(answer),
        QueuesCommand::Breakers => print_breakers(answer),
        QueuesCommand::Schedules { .. } => print_schedules(answer),
        QueuesCommand::Concurrency { jobs, .. } => match jobs.0 {
            Some(jobs) => println!("at most {jobs} at a time from now on"),
            None => println!("no limit but the workers' slots"),
        },
        QueuesCommand::Limit { name, max, per } => {
            // Those who take jobs look for the limits of queues now and then.
            let when = if name.starts_with("queue:") { "within seconds" } else { "from now on" };
            println!("{name}: at most {max} in any {per:?} {when}");
            if name.starts_with("queue:") {
                println!("Note: workers of Stampede keep to it, others do not hear of it");
            }
        }
        QueuesCommand::Pause { queue } => println!("nobody takes another job of {queue}"),
        QueuesCommand::Resume { queue } => println!("{queue} goes on"),
        QueuesCommand::Obliterate { queue, .. } => {
            println!("{queue} is destroyed; its dead letters stay until they are purged");
        }
        _ => println!("done"),
    }
    if let Some(note) = answer["note"].as_str() {
        println!("Note: {note}");
    }
}

fn print_status(answer: &Value) {
    let columns =
        ["waiting", "prioritized", "active", "delayed", "waiting-children", "completed", "failed"];
    let mut table = Table::new(["queue"].into_iter().chain(columns).chain([""]));
    for (name, queue) in answer.as_object().into_iter().flatten() {
        let mut row = vec![name.clone()];
        row.extend(columns.iter().map(|column| queue[column].to_string()));
        let paused = (queue["paused"] == true).then(|| "paused".to_owned());
        let most = queue["concurrency"].as_u64().map(|jobs| format!("at most {jobs} at a time"));
        let limit = queue["limit"]["max"].as_u64().map(|max| {
            let per = Duration::from_millis(queue["limit"]["perMs"].as_u64().unwrap_or(0));
            format!("at most {max} in any {per:?}")
        });
        row.push(paused.into_iter().chain(most).chain(limit).collect::<Vec<_>>().join(", "));
        table.row(row);
    }
    table.print("no queue has seen a job yet");
}

fn print_jobs(answer: &Value, empty: &str) {
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
    table.print(empty);
    print_more(answer);
}

/// Where to go on.
fn print_more(answer: &Value) {
    if let Some(next) = answer["next"].as_u64() {
        println!("more: --skip {next}");
    }
}

fn print_limits(answer: &Value) {
    let mut table = Table::new(["limit", "most", "in any"]);
    for limit in answer["limits"].as_array().into_iter().flatten() {
        let per = Duration::from_millis(limit["perMs"].as_u64().unwrap_or(0));
        table.row(vec![text(&limit["name"]), limit["max"].to_string(), format!("{per:?}")]);
    }
    table.print("no limit was set; rates that are written in a program are not shown");
}

fn print_breakers(answer: &Value) {
    let mut table = Table::new(["service", "state", "tried again in"]);
    for breaker in answer["breakers"].as_array().into_iter().flatten() {
        let wait = Duration::from_millis(breaker["retryInMs"].as_u64().unwrap_or(0));
        table.row(vec![text(&breaker["name"]), text(&breaker["state"]), format!("{wait:.1?}")]);
    }
    table.print("all services are well: no circuit breaker is open");
}

fn print_schedules(answer: &Value) {
    let mut table = Table::new(["id", "job", "when", "next", "so far"]);
    for schedule in answer["schedules"].as_array().into_iter().flatten() {
        let every = schedule["every"].as_u64().map(Duration::from_millis);
        let when = match (every, schedule["tz"].as_str()) {
            (Some(every), _) => format!("every {every:?}"),
            (None, Some(zone)) => format!("{} {zone}", text(&schedule["pattern"])),
            (None, None) => format!("{} UTC", text(&schedule["pattern"])),
        };
        let next = schedule["next"].as_i64().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let next = next.map(|next| format!("{next:.0}")).unwrap_or_default();
        let count = schedule["iterationCount"].as_u64().unwrap_or(0).to_string();
        table.row(vec![text(&schedule["key"]), text(&schedule["name"]), when, next, count]);
    }
    table.print("no schedules");
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
    table.print(if answer["total"] == 0 { "no dead letters" } else { "none of them" });
    println!("{} in all", answer["total"]);
    print_more(answer);
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
