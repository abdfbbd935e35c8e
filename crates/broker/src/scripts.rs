//! BullMQ's Lua scripts as functions: each puts KEYS and ARGV in the order its header documents.
//!
//! The texts come from the pinned `bullmq-official` crate (see `build.rs`). `redis::Script` runs
//! them by hash and loads them when the server does not know them (yet, or any more).

use std::sync::LazyLock;

use crate::connection::Link;
use redis::Value;
use serde::Serialize;

use crate::Error;
use crate::dead_letters::{self, DeadLetter};
use crate::job::{Job, KeepJobs};
use crate::keys::Keys;

type Script = LazyLock<redis::Script>;

include!(concat!(env!("OUT_DIR"), "/scripts.rs"));

// Our own, for what BullMQ has no script for.
static COUNT_CRASH: Script = Script::new(|| redis::Script::new(include_str!("count_crash.lua")));
static LOCK_AGAIN: Script = Script::new(|| redis::Script::new(include_str!("lock_again.lua")));

/// What a worker tells the scripts about itself.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    /// Who holds the locks.
    pub(crate) token: String,
    /// Shown as `processedBy`.
    pub(crate) name: String,
    /// How long a lock lives without renewal.
    pub(crate) lock_ms: u64,
}

/// What a fetch brought.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// A job, now active and locked by us.
    Job(Box<Job>),
    /// Nothing to do now. `due_ms`: when the next delayed job is due; `limited_ms`: how long the
    /// queue's rate limit lasts.
    Nothing { due_ms: Option<u64>, limited_ms: u64 },
}

impl Fetched {
    /// Nothing, and nothing known about later.
    const NOTHING: Self = Self::Nothing { due_ms: None, limited_ms: 0 };
}

/// How a finishing script answered.
#[derive(Debug)]
pub(crate) enum Finished {
    /// The job is finished; here is what was fetched next, if asked for.
    Moved(Fetched),
    /// We do not hold the job any more: it was finished before, or taken over by another worker.
    NotOurs(i64),
}

/// The code of [`Finished::NotOurs`] when there is no such job.
pub(crate) const JOB_MISSING: i64 = -1;
/// The code of [`Finished::NotOurs`] when nobody holds the lock.
pub(crate) const LOCK_MISSING: i64 = -2;

#[derive(Serialize)]
struct FetchOptions<'a> {
    token: &'a str,
    #[serde(rename = "lockDuration")]
    lock_ms: u64,
    name: &'a str,
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

/// Takes the next job, if there is one.
pub(crate) async fn move_to_active(
    redis: &mut Link,
    keys: &Keys,
    claim: &Claim,
    now_ms: u64,
) -> Result<Fetched, Error> {
    let mut call = MOVE_TO_ACTIVE.prepare_invoke();
    for key in keys.parts([
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
        "marker",
    ]) {
        call.key(key);
    }
    call.arg(&keys.prefix).arg(now_ms).arg(packed(&fetch_options(claim)));
    let answer = call.invoke_async(redis).await?;
    parse_fetched("moveToActive", answer)
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
    bury.arg(include_str!("dead_letter.lua")).arg(dead_keys.len());
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
        .arg(packed(&fetch_options(claim)));
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

/// Locks an active job anew whose lock has expired. `Ok(false)`: it is not active or not free.
pub(crate) async fn lock_again(
    redis: &mut Link,
    keys: &Keys,
    claim: &Claim,
    job_id: &str,
) -> Result<bool, Error> {
    let mut call = LOCK_AGAIN.prepare_invoke();
    call.key(keys.part("active")).key(keys.lock(job_id));
    call.arg(job_id).arg(&claim.token).arg(claim.lock_ms);
    Ok(call.invoke_async(redis).await?)
}

/// Notes on a job that its holder died. Past `allowed` crashes the job is marked as failed for the
/// next worker. Does nothing unless `token` still holds it.
pub(crate) async fn count_crash(
    redis: &mut Link,
    keys: &Keys,
    token: &str,
    job_id: &str,
    allowed: u32,
) -> Result<(), Error> {
    let mut call = COUNT_CRASH.prepare_invoke();
    call.key(keys.part(job_id)).key(keys.lock(job_id));
    Ok(call.arg(token).arg(allowed).invoke_async(redis).await?)
}

/// Hands an active job back to wait without counting an attempt. `Ok(false)`: not held by `token`.
pub(crate) async fn move_job_from_active_to_wait(
    redis: &mut Link,
    keys: &Keys,
    token: &str,
    job_id: &str,
) -> Result<bool, Error> {
    let mut call = MOVE_JOB_FROM_ACTIVE_TO_WAIT.prepare_invoke();
    for key in keys.parts([
        "active",
        "wait",
        "stalled",
        "paused",
        "meta",
        "limiter",
        "prioritized",
        "marker",
        "events",
    ]) {
        call.key(key);
    }
    call.arg(job_id).arg(token).arg(keys.part(job_id));
    let code: i64 = call.invoke_async(redis).await?;
    Ok(code >= 0)
}

/// Puts jobs without a lock back to wait; returns their ids.
pub(crate) async fn move_stalled_jobs_to_wait(
    redis: &mut Link,
    keys: &Keys,
    max_stalled: u32,
    interval_ms: u64,
    now_ms: u64,
) -> Result<Vec<String>, Error> {
    let mut call = MOVE_STALLED_JOBS_TO_WAIT.prepare_invoke();
    for key in keys.parts([
        "stalled",
        "wait",
        "active",
        "stalled-check",
        "meta",
        "paused",
        "marker",
        "events",
        "repeat",
    ]) {
        call.key(key);
    }
    call.arg(max_stalled).arg(&keys.prefix).arg(now_ms).arg(interval_ms);
    Ok(call.invoke_async(redis).await?)
}

/// Renews the locks of all jobs in one call; returns the ids whose lock is lost.
pub(crate) async fn extend_locks(
    redis: &mut Link,
    keys: &Keys,
    lock_ms: u64,
    job_ids: &[&str],
    tokens: &[&str],
) -> Result<Vec<String>, Error> {
    let mut call = EXTEND_LOCKS.prepare_invoke();
    call.key(keys.part("stalled"))
        .arg(&keys.prefix)
        .arg(packed(&tokens))
        .arg(packed(&job_ids))
        .arg(lock_ms);
    Ok(call.invoke_async(redis).await?)
}

/// Writes a job's progress and tells those who listen.
pub(crate) async fn update_progress(
    redis: &mut Link,
    keys: &Keys,
    job_id: &str,
    progress: &str,
) -> Result<(), Error> {
    let mut call = UPDATE_PROGRESS.prepare_invoke();
    for key in keys.parts([job_id, "events", "meta"]) {
        call.key(key);
    }
    // -1 means that the job was removed meanwhile; there is nobody left to tell.
    let _code: i64 = call.arg(job_id).arg(progress).invoke_async(redis).await?;
    Ok(())
}

/// Adds a line to a job's log; keeps only the newest `keep`.
pub(crate) async fn add_log(
    redis: &mut Link,
    keys: &Keys,
    job_id: &str,
    line: &str,
    keep: Option<u64>,
) -> Result<(), Error> {
    let mut call = ADD_LOG.prepare_invoke();
    call.key(keys.part(job_id)).key(keys.part(&format!("{job_id}:logs")));
    call.arg(job_id).arg(line).arg(keep.map(|count| count.to_string()).unwrap_or_default());
    let _code: i64 = call.invoke_async(redis).await?;
    Ok(())
}

/// Puts the next job of a schedule on the queue; `options` are those it will have.
pub(crate) async fn update_job_scheduler(
    redis: &mut Link,
    keys: &Keys,
    schedule: &str,
    job: &Job,
    options: &serde_json::Value,
    next_ms: u64,
    now_ms: u64,
) -> Result<(), Error> {
    let mut call = UPDATE_JOB_SCHEDULER.prepare_invoke();
    for key in keys.parts([
        "repeat",
        "delayed",
        "wait",
        "paused",
        "meta",
        "prioritized",
        "marker",
        "id",
        "events",
        "pc",
        &job.id,
        "active",
    ]) {
        call.key(key);
    }
    call.arg(next_ms).arg(schedule).arg(&job.raw_data).arg(packed(options));
    call.arg(now_ms).arg(&keys.prefix).arg(&job.id);
    // Nothing, when the schedule was ended or the next job is there already.
    let _id: Value = call.invoke_async(redis).await?;
    Ok(())
}

/// Forgets an id that stands in `active` though its job is gone.
pub(crate) async fn forget(redis: &mut Link, keys: &Keys, job_id: &str) -> Result<(), Error> {
    let mut pipe = redis::pipe();
    pipe.atomic().lrem(keys.part("active"), 0, job_id).ignore();
    pipe.srem(keys.part("stalled"), job_id).ignore().del(keys.lock(job_id)).ignore();
    Ok(pipe.query_async(redis).await?)
}

fn fetch_options(claim: &Claim) -> FetchOptions<'_> {
    FetchOptions { token: &claim.token, lock_ms: claim.lock_ms, name: &claim.name }
}

/// MessagePack with field names, as `cmsgpack.unpack` in the scripts wants it.
fn packed<T: Serialize>(value: &T) -> Vec<u8> {
    // Strings, numbers and booleans in memory always serialise.
    rmp_serde::to_vec_named(value).unwrap_or_default()
}

/// `[name, value, name, value, …]` for HMSET inside the scripts; empty when there is nothing to set.
fn packed_fields(fields: &[(&'static str, String)]) -> Vec<u8> {
    if fields.is_empty() {
        return Vec::new();
    }
    packed(&fields.iter().flat_map(|(name, value)| [*name, value.as_str()]).collect::<Vec<_>>())
}

fn parse_finished(script: &'static str, answer: Value) -> Result<Finished, Error> {
    match answer {
        Value::Int(code) if code < 0 => Ok(Finished::NotOurs(code)),
        Value::Int(_) | Value::Nil => Ok(Finished::Moved(Fetched::NOTHING)),
        answer => Ok(Finished::Moved(parse_fetched(script, answer)?)),
    }
}

/// Reads `{fields, id, rate-limit ms, next due ms}`; without a job, fields and id are 0.
fn parse_fetched(script: &'static str, answer: Value) -> Result<Fetched, Error> {
    let unexpected =
        |answer: &dyn std::fmt::Debug| Error::Protocol { script, answer: format!("{answer:?}") };
    let Value::Array(parts) = answer else { return Err(unexpected(&answer)) };
    let [fields, id, limited_ms, due_ms] = parts.as_slice() else { return Err(unexpected(&parts)) };
    if let Value::Int(0) = fields {
        return Ok(Fetched::Nothing {
            due_ms: number(due_ms).filter(|due| *due > 0),
            limited_ms: number(limited_ms).unwrap_or(0),
        });
    }
    let Value::Array(fields) = fields else { return Err(unexpected(&parts)) };
    let fields = fields.chunks_exact(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect();
    Ok(Fetched::Job(Box::new(Job::from_hash(text(id), fields))))
}

/// Bytes that are not UTF-8 are replaced: a job that cannot be read must fail, not block the queue.
fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::Int(number) => number.to_string(),
        _ => String::new(),
    }
}

/// Lua numbers arrive as integers, or as text when they have a fraction.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(n) => u64::try_from(*n).ok(),
        Value::BulkString(bytes) => {
            std::str::from_utf8(bytes).ok()?.parse::<f64>().ok().map(|n| n as u64)
        }
        Value::Double(n) => Some(*n as u64),
        _ => None,
    }
}
