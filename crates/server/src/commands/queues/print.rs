//! Answers as tables and sentences.

use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use stampede_model::Printable;
use stampede_wire::queues::{
    Added, Breakers, BulkResult, Changed, Cleaned, DeadLetters, JobChanged, Jobs, Limits, Schedule,
    Schedules, Status,
};

use super::Answer;
use crate::cli::QueuesCommand;
use crate::commands::myself;
use crate::commands::table::Table;

/// Characters of a payload or reason that a table shows.
const SHOWN: usize = 60;

/// Shows an answer to a person.
pub(super) fn print(command: &QueuesCommand, answer: &Answer) -> Result<()> {
    match answer {
        Answer::Status(status) => print_status(status),
        Answer::Jobs(jobs) => print_jobs(jobs, &nothing_found(command)),
        Answer::Job(job) => println!("{}", serde_json::to_string_pretty(job)?),
        Answer::Added(added) => print_added(added),
        Answer::JobChanged(changed) => print_job_changed(command, changed),
        Answer::Cleaned(cleaned) => print_cleaned(cleaned),
        Answer::Drained(drained) => {
            println!("{} removed", drained.removed);
            print_note(drained.note.as_deref());
        }
        Answer::Bulk(done) => print_bulk(command, done),
        Answer::Letters(letters) => print_letters(letters),
        Answer::Limits(limits) => print_limits(limits),
        Answer::Breakers(breakers) => print_breakers(breakers),
        Answer::Schedules(schedules) => print_schedules(schedules),
        Answer::Changed(changed) => print_changed(command, changed),
    }
    Ok(())
}

/// The sentence for an empty list of jobs.
fn nothing_found(command: &QueuesCommand) -> String {
    match command {
        QueuesCommand::Jobs { state, search: None, skip: 0, .. } => match state.as_deref() {
            Some("all") => "it is empty".to_owned(),
            state => format!("no job is {}", state.unwrap_or("waiting")),
        },
        _ => "none of them".to_owned(),
    }
}

fn print_note(note: Option<&str>) {
    if let Some(note) = note {
        println!("Note: {}", Printable::line(note));
    }
}

fn print_status(status: &Status) {
    let columns =
        ["waiting", "prioritized", "active", "delayed", "waiting-children", "completed", "failed"];
    let mut table = Table::new(["queue"].into_iter().chain(columns).chain([""]));
    for (name, queue) in status {
        let counts = [
            queue.waiting,
            queue.prioritized,
            queue.active,
            queue.delayed,
            queue.waiting_children,
            queue.completed,
            queue.failed,
        ];
        let mut row = vec![name.clone()];
        row.extend(counts.iter().map(u64::to_string));
        let paused = queue.paused.then(|| "paused".to_owned());
        let most = queue.concurrency.map(|jobs| format!("at most {jobs} at a time"));
        let limit = queue.limit.map(|rate| {
            format!("at most {} in any {:?}", rate.max, Duration::from_millis(rate.per_ms))
        });
        row.push(paused.into_iter().chain(most).chain(limit).collect::<Vec<_>>().join(", "));
        table.row(row);
    }
    table.print("no queue has seen a job yet");
}

fn print_jobs(jobs: &Jobs, empty: &str) {
    let mut table = Table::new(["id", "state", "name", "attempts", "data", "reason"]);
    for job in &jobs.jobs {
        table.row(vec![
            job.id.clone(),
            job.state.as_str().to_owned(),
            job.name.clone(),
            job.attempts_made.to_string(),
            short(&job.data.to_string()),
            short(job.failed_reason.as_deref().unwrap_or_default()),
        ]);
    }
    table.print(empty);
    print_more(jobs.next);
}

/// The option that shows the next page.
fn print_more(next: Option<usize>) {
    if let Some(next) = next {
        println!("more: --skip {next}");
    }
}

fn print_added(added: &Added) {
    let id = added.id.as_deref().unwrap_or_default();
    if added.added {
        println!("added as {id}");
    } else {
        println!("{id} is there already, and was left as it is");
    }
    print_note(added.note.as_deref());
}

fn print_job_changed(command: &QueuesCommand, changed: &JobChanged) {
    match command {
        QueuesCommand::Cancel { .. } if changed.state == "cancelling" => println!(
            "told to stop: a worker of Stampede fails it as cancelled; others do not hear of it"
        ),
        QueuesCommand::Cancel { .. } => println!("removed from the queue"),
        _ => println!("waits for a worker"),
    }
    print_note(changed.note.as_deref());
}

fn print_cleaned(cleaned: &Cleaned) {
    for (queue, count) in &cleaned.removed {
        println!("{queue}: {count} removed");
    }
    print_note(cleaned.note.as_deref());
}

fn print_bulk(command: &QueuesCommand, done: &BulkResult) {
    let is_purge = matches!(command, QueuesCommand::Purge { .. });
    println!("{} {}", done.count, if is_purge { "thrown away" } else { "run again" });
    if let QueuesCommand::Replay { queue, all: true, .. } = command
        && done.count == 0
    {
        let myself = myself();
        println!(
            "Jobs that other software has failed have no letter: {myself} queues retry {queue} --all"
        );
    }
    for one in &done.failed {
        println!("not {}: {}", Printable::line(&one.id), Printable::line(&one.error));
    }
}

fn print_changed(command: &QueuesCommand, changed: &Changed) {
    match command {
        QueuesCommand::Remove { .. } => println!("removed from the queue"),
        QueuesCommand::Concurrency { jobs, .. } => match jobs.0 {
            Some(jobs) => println!("at most {jobs} at a time from now on"),
            None => println!("no limit but the workers' slots"),
        },
        QueuesCommand::Limit { name, max, per } => {
            // Workers read the limits of queues every few seconds.
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
    print_note(changed.note.as_deref());
}

fn print_limits(limits: &Limits) {
    let mut table = Table::new(["limit", "most", "in any"]);
    for limit in &limits.limits {
        let per = Duration::from_millis(limit.per_ms);
        table.row(vec![limit.name.clone(), limit.max.to_string(), format!("{per:?}")]);
    }
    table.print("no limit was set; rates that are written in a program are not shown");
}

fn print_breakers(breakers: &Breakers) {
    let mut table = Table::new(["service", "state", "tried again in"]);
    for breaker in &breakers.breakers {
        let wait = Duration::from_millis(breaker.retry_in_ms);
        table.row(vec![breaker.name.clone(), breaker.state.clone(), format!("{wait:.1?}")]);
    }
    table.print("all services are well: no circuit breaker is open");
}

fn print_schedules(schedules: &Schedules) {
    let mut table = Table::new(["id", "job", "when", "next", "so far"]);
    for schedule in &schedules.schedules {
        let next = schedule.next.and_then(|ms| i64::try_from(ms).ok());
        let next = next.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        table.row(vec![
            schedule.key.clone(),
            schedule.name.clone(),
            when(schedule),
            next.map(|next| format!("{next:.0}")).unwrap_or_default(),
            schedule.iteration_count.to_string(),
        ]);
    }
    table.print("no schedules");
}

/// The interval or the cron pattern of a schedule.
fn when(schedule: &Schedule) -> String {
    let pattern = schedule.pattern.as_deref().unwrap_or_default();
    match (schedule.every.map(Duration::from_millis), &schedule.tz) {
        (Some(every), _) => format!("every {every:?}"),
        (None, Some(zone)) => format!("{pattern} {zone}"),
        (None, None) => format!("{pattern} UTC"),
    }
}

fn print_letters(letters: &DeadLetters) {
    let mut table = Table::new(["id", "name", "attempts", "payload", "reason"]);
    for letter in &letters.letters {
        table.row(vec![
            letter.job_id.clone(),
            letter.name.clone(),
            letter.attempts_made.to_string(),
            short(&letter.payload.to_string()),
            short(&letter.reason),
        ]);
    }
    table.print(if letters.total == 0 { "no dead letters" } else { "none of them" });
    println!("{} in all", letters.total);
    print_more(letters.next);
}

/// The first line of a text, cut if it is long.
fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= SHOWN {
        return line.to_owned();
    }
    line.chars().take(SHOWN - 1).chain(['…']).collect()
}
