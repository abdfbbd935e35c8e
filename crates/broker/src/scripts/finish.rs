//! A run ends: done, failed for good, to be tried again, or later.

use redis::Value;
use serde::Serialize;

use super::fetch::{Fetched, parse_fetched};
use super::{
    Claim, MOVE_TO_DELAYED, MOVE_TO_FINISHED, MOVE_TO_FINISHED_TEXT, RETRY_JOB, packed,
    packed_fields,
};
use crate::Error;
use crate::connection::Link;
use crate::dead_letters::{self, DeadLetter};
use crate::job::{Job, KeepJobs};
use crate::keys::Keys;

/// How a finishing script answered.
#[derive(Debug)]
pub(crate) enum Finished {
    /// The job is finished; here is what was fetched next, if asked for.
    Moved(Fetched),
    /// It cannot be completed: children of it are not done yet.
    ChildrenPending,
    /// It cannot be completed: a child of it has failed.
    ChildFailed,
    /// There is no such job.
    Missing,
    /// Nobody holds its lock.
    Unlocked,
    /// Somebody else has finished it or taken it over; BullMQ's code for how.
    NotOurs(#[allow(dead_code, reason = "read by people, in logs")] i64),
}

/// What every script that ends a run needs to know.
pub(crate) struct Run<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) job: &'a Job,
    /// Fields to write into the job's hash.
    pub(crate) fields: &'a [(&'static str, String)],
    pub(crate) next: Next,
    pub(crate) now_ms: u64,
}

/// Where a finished job goes.
pub(crate) enum Target<'a> {
    /// With the JSON of its result.
    Completed(&'a str),
    /// With the reason.
    Failed(&'a str),
}

/// Whether a finishing script should bring the next job along.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Fetch,
    Leave,
}

impl Next {
    fn flag(self) -> &'static str {
        if self == Self::Fetch { "1" } else { "0" }
    }
}

/// Moves a job from active to completed.
pub(crate) async fn move_to_completed(
    redis: &mut Link,
    keys: &Keys,
    run: &Run<'_>,
    result: &str,
) -> Result<Finished, Error> {
    let (keys, arguments) = finish_call(keys, run, Target::Completed(result));
    let mut call = MOVE_TO_FINISHED.prepare_invoke();
    for key in keys {
        call.key(key);
    }
    for argument in arguments {
        call.arg(argument);
    }
    let answer = call.invoke_async(redis).await?;
    parse_finished("moveToFinished", answer)
}

/// Moves a job from active to failed, and into its dead-letter queue with the same breath.
pub(crate) async fn fail_for_good(
    redis: &mut Link,
    keys: &Keys,
    run: &Run<'_>,
    letter: &DeadLetter,
) -> Result<Finished, Error> {
    let (dead_keys, dead_arguments) = dead_letters::script_call(keys, &run.claim.token, letter);
    let (keys, arguments) = finish_call(keys, run, Target::Failed(&letter.reason));
    let mut pipe = redis::pipe();
    // By text, not by hash: inside a transaction there is no loading of a script that is missing.
    let mut bury = redis::cmd("EVAL");
    bury.arg(include_str!("../dead_letter.lua")).arg(dead_keys.len());
    bury.arg(dead_keys).arg(dead_arguments);
    let mut finish = redis::cmd("EVAL");
    finish.arg(MOVE_TO_FINISHED_TEXT).arg(keys.len()).arg(keys).arg(arguments);
    pipe.atomic().add_command(bury).ignore().add_command(finish);
    let (answer,): (Value,) = pipe.query_async(redis).await?;
    parse_finished("moveToFinished", answer)
}

/// KEYS and ARGV of `moveToFinished`.
fn finish_call(keys: &Keys, run: &Run<'_>, target: Target<'_>) -> (Vec<String>, Vec<Vec<u8>>) {
    let Run { claim, job, .. } = *run;
    let (set, field, value, keep) = match target {
        Target::Completed(value) => ("completed", "returnvalue", value, &job.keep_completed),
        Target::Failed(reason) => ("failed", "failedReason", reason, &job.keep_failed),
    };
    let all = keys.parts([
        "wait",
        "active",
        "prioritized",
        "events",
        "stalled",
        "limiter",
        "delayed",
        "paused",
        "meta",
        "pc",
        set,
        &job.id,
        &format!("metrics:{set}"),
        "marker",
    ]);
    let options = FinishOptions {
        token: &claim.token,
        keep,
        lock_ms: claim.lock_ms,
        attempts: job.attempts.max(1),
        max_metrics_size: "",
        fpof: job.parent_rules.fail,
        cpof: job.parent_rules.go_on,
        idof: job.parent_rules.ignore,
        rdof: job.parent_rules.remove,
        name: &claim.name,
    };
    let bytes = |text: &str| text.as_bytes().to_vec();
    let arguments = vec![
        bytes(&job.id),
        bytes(&run.now_ms.to_string()),
        bytes(field),
        bytes(value),
        bytes(set),
        bytes(run.next.flag()),
        bytes(&keys.prefix),
        packed(&options),
        packed_fields(run.fields),
    ];
    (all.to_vec(), arguments)
}

/// Whether a job that goes back to wait has used up an attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    Counts,
    IsFree,
}

/// Moves a job from active to delayed.
pub(crate) async fn move_to_delayed(
    redis: &mut Link,
    keys: &Keys,
    run: &Run<'_>,
    delay_ms: u64,
    attempt: Attempt,
) -> Result<Finished, Error> {
    let Run { claim, job, .. } = *run;
    let mut call = MOVE_TO_DELAYED.prepare_invoke();
    for key in keys.parts([
        "marker",
        "active",
        "prioritized",
        "delayed",
        &job.id,
        "events",
        "meta",
        "stalled",
        "wait",
        "limiter",
        "pc",
    ]) {
        call.key(key);
    }
    call.arg(&keys.prefix)
        .arg(run.now_ms)
        .arg(&job.id)
        .arg(&claim.token)
        .arg(delay_ms)
        .arg(if attempt == Attempt::IsFree { "1" } else { "0" })
        .arg(packed_fields(run.fields))
        .arg(run.next.flag())
        .arg(claim.packed());
    let answer = call.invoke_async(redis).await?;
    parse_finished("moveToDelayed", answer)
}

/// Puts a failed job back to wait at once. Does not fetch.
pub(crate) async fn retry_job(
    redis: &mut Link,
    keys: &Keys,
    run: &Run<'_>,
) -> Result<Finished, Error> {
    let Run { claim, job, .. } = *run;
    let mut call = RETRY_JOB.prepare_invoke();
    for key in keys.parts([
        "active",
        "wait",
        "paused",
        &job.id,
        "meta",
        "events",
        "delayed",
        "prioritized",
        "pc",
        "marker",
        "stalled",
    ]) {
        call.key(key);
    }
    call.arg(&keys.prefix)
        .arg(run.now_ms)
        .arg("LPUSH")
        .arg(&job.id)
        .arg(&claim.token)
        .arg(packed_fields(run.fields));
    let answer = call.invoke_async(redis).await?;
    parse_finished("retryJob", answer)
}

/// Forgets an id that stands in `active` though its job is gone.
pub(crate) async fn forget(redis: &mut Link, keys: &Keys, job_id: &str) -> Result<(), Error> {
    let mut pipe = redis::pipe();
    pipe.atomic().lrem(keys.part("active"), 0, job_id).ignore();
    pipe.srem(keys.part("stalled"), job_id).ignore().del(keys.lock(job_id)).ignore();
    Ok(pipe.query_async(redis).await?)
}

#[derive(Serialize)]
struct FinishOptions<'a> {
    token: &'a str,
    #[serde(rename = "keepJobs")]
    keep: &'a KeepJobs,
    #[serde(rename = "lockDuration")]
    lock_ms: u64,
    attempts: u32,
    #[serde(rename = "maxMetricsSize")]
    max_metrics_size: &'static str,
    fpof: bool,
    cpof: bool,
    idof: bool,
    rdof: bool,
    name: &'a str,
}

fn parse_finished(script: &'static str, answer: Value) -> Result<Finished, Error> {
    Ok(match answer {
        Value::Int(-1) => Finished::Missing,
        Value::Int(-2) => Finished::Unlocked,
        Value::Int(-4) => Finished::ChildrenPending,
        Value::Int(-9) => Finished::ChildFailed,
        Value::Int(code) if code < 0 => Finished::NotOurs(code),
        Value::Int(_) | Value::Nil => Finished::Moved(Fetched::NOTHING),
        answer => Finished::Moved(parse_fetched(script, answer)?),
    })
}
