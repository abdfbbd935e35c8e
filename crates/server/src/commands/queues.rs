//! `stampede queues`: inspecting and changing queues through a running server.

mod print;

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use serde::Serialize;
use stampede_client::{Client, JobQuery, LetterQuery, Page};
use stampede_model::Role;
use stampede_wire::queues::{
    Added, Breakers, BulkResult, Changed, Clean, Cleaned, DeadLetters, Done, Drained, JobChanged,
    JobWithLog, Jobs, Limits, NewJob, NewSchedule, Obliterated, Rate, Schedules, Selection, Status,
};

use self::print::print;
use crate::cli::{Queues, QueuesCommand};
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
        println!("{}", serde_json::to_string(&answer)?);
    } else {
        print(&options.command, &answer)?;
    }
    let failed = match &answer {
        Answer::Bulk(done) => done.failed.len(),
        _ => 0,
    };
    match (failed, &options.command) {
        (0, _) => Ok(()),
        (failed, QueuesCommand::Purge { .. }) => bail!("{failed} of them are not there"),
        (failed, _) => bail!("{failed} of them cannot run again"),
    }
}

/// The server's answer to a command.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Status(Status),
    Jobs(Jobs),
    Job(Box<JobWithLog>),
    Added(Added),
    JobChanged(JobChanged),
    Cleaned(Cleaned),
    Drained(Drained),
    Bulk(BulkResult),
    Letters(DeadLetters),
    Limits(Limits),
    Breakers(Breakers),
    Schedules(Schedules),
    Changed(Changed),
}

impl From<Done> for Answer {
    fn from(Done { success }: Done) -> Self {
        Self::Changed(Changed { success, note: None })
    }
}

async fn ask(client: &Client, command: &QueuesCommand) -> Result<Answer> {
    use QueuesCommand as Command;
    Ok(match command {
        Command::Status => Answer::Status(client.queue_status().await?),
        Command::Jobs { queue, state, search, skip, count } => {
            let page = Page { skip: *skip, count: *count };
            let query = JobQuery { state: state.clone(), search: search.clone(), page };
            Answer::Jobs(client.jobs(queue, &query).await?)
        }
        Command::Job { queue, id } => Answer::Job(Box::new(client.job(queue, id).await?)),
        Command::Add { queue, name, data, id, delay, priority, attempts } => {
            let job = NewJob {
                name: name.clone(),
                data: Some(data.clone()),
                id: id.clone(),
                delay_ms: delay.map(milliseconds),
                priority: *priority,
                attempts: *attempts,
                backoff: None,
            };
            Answer::Added(client.add_job(queue, &job).await?)
        }
        Command::Pause { queue } => Answer::Changed(client.pause_queue(queue).await?),
        Command::Resume { queue } => Answer::Changed(client.resume_queue(queue).await?),
        Command::Concurrency { queue, jobs } => {
            Answer::Changed(client.set_concurrency(queue, jobs.0).await?)
        }
        Command::Drain { queue, delayed: true } => Answer::Drained(
            until_drained(async || client.drain_queue_and_delayed(queue).await).await?,
        ),
        Command::Drain { queue, delayed: false } => {
            Answer::Drained(until_drained(async || client.drain_queue(queue).await).await?)
        }
        Command::Obliterate { queue, confirm, .. } if queue != confirm => {
            bail!("--confirm must be the name of the queue once more: {queue}");
        }
        Command::Obliterate { queue, force: true, .. } => {
            until_destroyed(async || client.obliterate_busy_queue(queue).await).await?
        }
        Command::Obliterate { queue, force: false, .. } => {
            until_destroyed(async || client.obliterate_queue(queue).await).await?
        }
        Command::Clean { queue, state, grace, limit, .. } => {
            let clean = Clean {
                queue: queue.clone(),
                state: Some(state.clone()),
                grace_ms: Some(milliseconds(*grace)),
                limit: Some(*limit),
            };
            Answer::Cleaned(until_cleaned(client, clean).await?)
        }
        Command::Retry { queue, id: Some(id), .. } => {
            Answer::JobChanged(client.retry_job(queue, id).await?)
        }
        Command::Retry { queue, id: None, .. } => {
            Answer::Bulk(until_done(async || client.retry_failed(queue).await).await?)
        }
        Command::Promote { queue, id } => Answer::JobChanged(client.promote_job(queue, id).await?),
        Command::Cancel { queue, id } => Answer::JobChanged(client.cancel_job(queue, id).await?),
        Command::Remove { queue, id } => Answer::Changed(client.remove_job(queue, id).await?),
        Command::DeadLetters { queue, search, skip, count } => {
            let page = Page { skip: *skip, count: *count };
            let query = LetterQuery { search: search.clone(), page };
            Answer::Letters(client.dead_letters(queue, &query).await?)
        }
        Command::Replay { queue, ids, all, data } => {
            let which = Selection { data: data.clone(), ..selection(ids, *all) };
            Answer::Bulk(match all {
                true => until_done(async || client.replay(queue, &which).await).await?,
                false => client.replay(queue, &which).await?,
            })
        }
        Command::Purge { queue, ids, all } => {
            let which = selection(ids, *all);
            Answer::Bulk(match all {
                true => until_done(async || client.purge(queue, &which).await).await?,
                false => client.purge(queue, &which).await?,
            })
        }
        Command::Limits => Answer::Limits(client.limits().await?),
        Command::Limit { name, max, per } => {
            let rate = Rate { max: *max, per_ms: milliseconds(*per) };
            client.set_limit(name, rate).await?.into()
        }
        Command::Unlimit { name } => Answer::Changed(client.remove_limit(name).await?),
        Command::Breakers => Answer::Breakers(client.breakers().await?),
        Command::CloseBreaker { name } => Answer::Changed(client.close_breaker(name).await?),
        Command::Schedules { queue } => Answer::Schedules(client.schedules(queue).await?),
        Command::Schedule { queue, id, name, cron, time_zone, every, data } => {
            let schedule = NewSchedule {
                name: name.clone(),
                data: Some(data.clone()),
                cron: cron.clone(),
                time_zone: time_zone.clone(),
                every_ms: every.map(milliseconds),
            };
            client.set_schedule(queue, id, &schedule).await?.into()
        }
        Command::Unschedule { queue, id } => {
            Answer::Changed(client.remove_schedule(queue, id).await?)
        }
    })
}

/// Repeats a request until the jobs are removed that were there at first.
async fn until_drained(ask: impl AsyncFn() -> stampede_client::Result<Drained>) -> Result<Drained> {
    let mut sum = ask().await?;
    let most = sum.removed + sum.left;
    while sum.left > 0 && sum.removed < most {
        let more = ask().await?;
        if more.removed == 0 {
            break;
        }
        sum = Drained { removed: sum.removed + more.removed, ..more };
    }
    Ok(sum)
}

/// Repeats a request until the queue is destroyed.
async fn until_destroyed(
    ask: impl AsyncFn() -> stampede_client::Result<Obliterated>,
) -> Result<Answer> {
    let mut answer = ask().await?;
    while answer.left > 0 {
        let before = answer.left;
        answer = ask().await?;
        if answer.left >= before {
            bail!("{} jobs are left: something adds jobs to the queue", answer.left);
        }
    }
    Ok(Answer::Changed(Changed { success: answer.success, note: answer.note }))
}

/// Repeats a request for the queues in which jobs are left.
async fn until_cleaned(client: &Client, clean: Clean) -> Result<Cleaned> {
    let mut sum = client.clean_queues(&clean).await?;
    while let Some((queue, left)) = sum.left.pop_first() {
        let limit = Some(left as u64);
        let one = Clean { queue: Some(queue.clone()), limit, ..clean.clone() };
        let more = client.clean_queues(&one).await?;
        let gone = more.removed.get(&queue).copied().unwrap_or_default();
        *sum.removed.entry(queue).or_default() += gone;
        if gone > 0 {
            sum.left.extend(more.left);
        }
        sum.note = more.note.or(sum.note);
    }
    Ok(sum)
}

fn milliseconds(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

fn selection(ids: &[String], all: bool) -> Selection {
    Selection { ids: (!all).then(|| ids.to_vec()), all, data: None }
}

/// Jobs that one request replays, retries or purges at most.
const IN_ONE_REQUEST: u64 = 10_000;

/// Repeats a request until all jobs that were there at first are done. Jobs that fail again meanwhile are not asked for
/// twice: there are only as many requests as the first answer makes necessary.
async fn until_done(
    ask: impl AsyncFn() -> stampede_client::Result<BulkResult>,
) -> Result<BulkResult> {
    let mut answer = ask().await?;
    let mut count = answer.count;
    let requests = (count + answer.left).div_ceil(IN_ONE_REQUEST);
    for _ in 1..requests {
        if answer.count == 0 {
            break;
        }
        answer = ask().await?;
        count += answer.count;
    }
    Ok(BulkResult { count, ..answer })
}
