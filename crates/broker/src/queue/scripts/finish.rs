//! Ending a run: completed, failed, retried at once or later, waiting for children.

use redis::Value;
use serde::Serialize;

use super::fetch::{Fetched, parse_fetched};
use super::holding::OurRun;
use super::{Claim, many, packed, packed_fields};
use crate::Error;
use crate::link::Link;
use crate::queue::job::{Job, KeepJobs};
use crate::queue::redis_keys::Keys;

script!(FINISH_MANY);
script!(FORGET_JOB);
script!(MOVE_TO_DELAYED);
script!(MOVE_TO_FINISHED);
script!(MOVE_TO_WAITING_CHILDREN);
script!(RETRY_JOB);

/// The answer of a script that ends a run.
#[derive(Debug)]
pub(crate) enum FinishReply {
    /// The job is finished; this is the next job, if one was asked for.
    Moved(Fetched),
    /// It is not completed: some of its children are not done.
    ChildrenPending,
    /// It cannot be completed: a child of it has failed.
    ChildFailed,
    /// There is no such job.
    Missing,
    /// It is not locked.
    Unlocked,
    /// Another worker has finished it or taken it over; this is BullMQ's code.
    NotOurs(#[allow(dead_code, reason = "read by people, in logs")] i64),
}

/// What every script that ends a run needs.
pub(crate) struct Run<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) job: &'a Job,
    /// Fields to write into the job's hash.
    pub(crate) fields: &'a [(&'static str, String)],
    pub(crate) next: Next,
    pub(crate) now_ms: u64,
}

/// The set that a finished job is moved to.
#[derive(Clone, Copy)]
pub(super) enum Target {
    Completed,
    Failed,
}

/// The arguments of `moveToFinished` for one job.
#[derive(Clone)]
pub(crate) struct FinishRequest {
    pub(crate) run: OurRun,
    /// The JSON of its result, or why it failed.
    value: String,
    next: Next,
    /// How many jobs like it are kept.
    keep: KeepJobs,
    options: Vec<u8>,
    fields: Vec<u8>,
}

impl FinishRequest {
    /// Completes a job, with its result as JSON.
    pub(crate) fn completed(run: &Run<'_>, result: &str) -> Self {
        Self::new(run, result, &run.job.keep_completed)
    }

    /// Fails a job, with the reason.
    pub(super) fn failed(run: &Run<'_>, reason: &str) -> Self {
        Self::new(run, reason, &run.job.keep_failed)
    }

    fn new(run: &Run<'_>, value: &str, keep: &KeepJobs) -> Self {
        let Run { claim, job, .. } = *run;
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
        Self {
            run: OurRun::of(job, &claim.token),
            value: value.to_owned(),
            next: run.next,
            keep: keep.clone(),
            options: packed(&options),
            fields: packed_fields(run.fields),
        }
    }

    /// Asks for no next job.
    pub(crate) fn leave_next(&mut self) {
        self.next = Next::Leave;
    }

    /// The memory it takes, roughly.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>() + self.value.len() + self.options.len() + self.fields.len()
    }

    /// Whether both can be sent in one call, which removes old jobs once for all.
    pub(crate) fn goes_with(&self, other: &Self) -> bool {
        self.keep == other.keep && !self.keep.is_limited()
    }
}

/// Whether a script that ends a run takes the next job.
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

/// Moves jobs from active to completed; several must go together ([`FinishRequest::goes_with`]). Answers for each.
pub(crate) async fn move_to_completed(
    redis: &mut Link,
    keys: &Keys,
    requests: &[FinishRequest],
    now_ms: u64,
) -> Result<Vec<Result<FinishReply, Error>>, Error> {
    let script = "moveToFinished";
    let answers = if let [request] = requests {
        vec![Ok(move_to(redis, keys, Target::Completed, request, now_ms).await?)]
    } else {
        let mut call = FINISH_MANY.prepare_invoke();
        let job_keys = requests.iter().map(|request| keys.part(&request.run.job_id));
        for key in finish_keys(keys, Target::Completed, "").into_iter().chain(job_keys) {
            call.key(key);
        }
        call.arg(now_ms).arg(&keys.prefix);
        for request in requests {
            call.arg(&request.run.job_id).arg(&request.value).arg(request.next.flag());
            call.arg(&request.options).arg(&request.fields);
        }
        many::answers(script, call.invoke_async(redis).await?, requests.len())?
    };
    Ok(answers.into_iter().map(|answer| parse_finished(script, answer?)).collect())
}

/// Moves a job from active to failed, without a dead letter.
pub(crate) async fn move_to_failed(
    redis: &mut Link,
    keys: &Keys,
    run: &Run<'_>,
    reason: &str,
) -> Result<FinishReply, Error> {
    let request = FinishRequest::failed(run, reason);
    let answer = move_to(redis, keys, Target::Failed, &request, run.now_ms).await?;
    parse_finished("moveToFinished", answer)
}

async fn move_to(
    redis: &mut Link,
    keys: &Keys,
    target: Target,
    request: &FinishRequest,
    now_ms: u64,
) -> Result<Value, Error> {
    let mut call = MOVE_TO_FINISHED.prepare_invoke();
    for key in finish_keys(keys, target, &request.run.job_id) {
        call.key(key);
    }
    for argument in finish_arguments(keys, target, request, now_ms) {
        call.arg(argument);
    }
    Ok(call.invoke_async(redis).await?)
}

/// KEYS of `moveToFinished`.
pub(super) fn finish_keys(keys: &Keys, target: Target, job_id: &str) -> [String; 14] {
    let (set, metrics) = match target {
        Target::Completed => ("completed", "metrics:completed"),
        Target::Failed => ("failed", "metrics:failed"),
    };
    keys.parts([
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
        job_id,
        metrics,
        "marker",
    ])
}

/// ARGV of `moveToFinished`.
pub(super) fn finish_arguments(
    keys: &Keys,
    target: Target,
    request: &FinishRequest,
    now_ms: u64,
) -> [Vec<u8>; 9] {
    let (set, field) = match target {
        Target::Completed => ("completed", "returnvalue"),
        Target::Failed => ("failed", "failedReason"),
    };
    [
        request.run.job_id.clone().into_bytes(),
        now_ms.to_string().into_bytes(),
        field.into(),
        request.value.clone().into_bytes(),
        set.into(),
        request.next.flag().into(),
        keys.prefix.clone().into_bytes(),
        request.options.clone(),
        request.fields.clone(),
    ]
}

/// Lets a job wait for its children. `None`: they are done by now.
pub(crate) async fn await_children(
    redis: &mut Link,
    keys: &Keys,
    run: &Run<'_>,
) -> Result<Option<FinishReply>, Error> {
    let Run { claim, job, .. } = *run;
    let mut call = MOVE_TO_WAITING_CHILDREN.prepare_invoke();
    let [dependencies, unsuccessful] =
        ["dependencies", "unsuccessful"].map(|part| format!("{}:{part}", job.id));
    for key in keys.parts([
        "active",
        "waiting-children",
        &job.id,
        &dependencies,
        &unsuccessful,
        "stalled",
        "events",
    ]) {
        call.key(key);
    }
    call.arg(&claim.token).arg("").arg(run.now_ms).arg(&job.id).arg(&keys.prefix);
    match call.invoke_async(redis).await? {
        Value::Int(0) => Ok(Some(FinishReply::ChildrenPending)),
        Value::Int(1) => Ok(None),
        answer => parse_finished("moveToWaitingChildren", answer).map(Some),
    }
}

/// Whether a job that goes back to wait has used an attempt.
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
) -> Result<FinishReply, Error> {
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
) -> Result<FinishReply, Error> {
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
        .arg(if job.lifo { "RPUSH" } else { "LPUSH" })
        .arg(&job.id)
        .arg(&claim.token)
        .arg(packed_fields(run.fields));
    let answer = call.invoke_async(redis).await?;
    parse_finished("retryJob", answer)
}

/// Removes an id from `active` whose job is gone.
pub(crate) async fn forget_job(
    redis: &mut Link,
    keys: &Keys,
    job_id: &str,
    token: &str,
) -> Result<(), Error> {
    let mut call = FORGET_JOB.prepare_invoke();
    call.key(keys.part(job_id)).key(keys.lock(job_id));
    call.key(keys.part("active")).key(keys.part("stalled"));
    Ok(call.arg(job_id).arg(token).invoke_async(redis).await?)
}

/// Removes from `active` an id that we were given and that no job can have.
pub(crate) async fn put_aside(redis: &mut Link, keys: &Keys, id: &[u8]) -> Result<(), Error> {
    let lock = [keys.prefix.as_bytes(), id, b":lock"].concat();
    let mut pipe = redis::pipe();
    pipe.atomic().lrem(keys.part("active"), 0, id).ignore();
    pipe.srem(keys.part("stalled"), id).ignore().del(lock).ignore();
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

pub(super) fn parse_finished(script: &'static str, answer: Value) -> Result<FinishReply, Error> {
    Ok(match answer {
        Value::Int(-1) => FinishReply::Missing,
        Value::Int(-2) => FinishReply::Unlocked,
        Value::Int(-4) => FinishReply::ChildrenPending,
        Value::Int(-9) => FinishReply::ChildFailed,
        Value::Int(code) if code < 0 => FinishReply::NotOurs(code),
        Value::Int(_) | Value::Nil => FinishReply::Moved(Fetched::NOTHING),
        answer => FinishReply::Moved(parse_fetched(script, answer)?),
    })
}
