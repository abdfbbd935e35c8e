//! A run ends: done, failed for good, to be tried again, or later.

use redis::Value;
use serde::Serialize;

use super::fetch::{Fetched, parse_fetched};
use super::holding::OurRun;
use super::many::{self, FINISH_MANY};
use super::{
    Claim, MOVE_TO_DELAYED, MOVE_TO_FINISHED, MOVE_TO_FINISHED_TEXT, MOVE_TO_WAITING_CHILDREN,
    RETRY_JOB, Script, packed, packed_fields,
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
    /// It is not completed: children of it are not done yet.
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
#[derive(Clone, Copy)]
enum Target {
    Completed,
    Failed,
}

/// What `moveToFinished` wants to know of a job that has ended.
#[derive(Clone)]
pub(crate) struct End {
    pub(crate) run: OurRun,
    /// The JSON of its result, or why it failed.
    value: String,
    next: Next,
    /// How many jobs like it are kept.
    keep: KeepJobs,
    options: Vec<u8>,
    fields: Vec<u8>,
}

impl End {
    /// The end of a job that is done, with the JSON of its result.
    pub(crate) fn completed(run: &Run<'_>, result: &str) -> Self {
        Self::new(run, result, &run.job.keep_completed)
    }

    fn failed(run: &Run<'_>, reason: &str) -> Self {
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

    /// To be written without taking the next job.
    pub(crate) fn leave_next(&mut self) {
        self.next = Next::Leave;
    }

    /// How much memory it takes, about.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>() + self.value.len() + self.options.len() + self.fields.len()
    }

    /// Whether both can be written by one call, which clears up old jobs once for all.
    pub(crate) fn goes_with(&self, other: &Self) -> bool {
        self.keep == other.keep && !self.keep.is_limited()
    }
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

/// Moves jobs from active to completed; those that are more than one go together ([`End::goes_with`]).
/// Answers for each of them.
pub(crate) async fn move_to_completed(
    redis: &mut Link,
    keys: &Keys,
    ends: &[End],
    now_ms: u64,
) -> Result<Vec<Result<Finished, Error>>, Error> {
    let script = "moveToFinished";
    let answers = if let [end] = ends {
        vec![Ok(move_to(redis, keys, Target::Completed, end, now_ms).await?)]
    } else {
        let mut call = FINISH_MANY.prepare_invoke();
        let job_keys = ends.iter().map(|end| keys.part(&end.run.job_id));
        for key in finish_keys(keys, Target::Completed, "").into_iter().chain(job_keys) {
            call.key(key);
        }
        call.arg(now_ms).arg(&keys.prefix);
        for end in ends {
            call.arg(&end.run.job_id).arg(&end.value).arg(end.next.flag());
            call.arg(&end.options).arg(&end.fields);
        }
        many::answers(script, call.invoke_async(redis).await?, ends.len())?
    };
    Ok(answers.into_iter().map(|answer| parse_finished(script, answer?)).collect())
}

/// Moves a job from active to failed, and leaves it at that.
pub(crate) async fn move_to_failed(
    redis: &mut Link,
    keys: &Keys,
    run: &Run<'_>,
    reason: &str,
) -> Result<Finished, Error> {
    let end = End::failed(run, reason);
    let answer = move_to(redis, keys, Target::Failed, &end, run.now_ms).await?;
    parse_finished("moveToFinished", answer)
}

async fn move_to(
    redis: &mut Link,
    keys: &Keys,
    target: Target,
    end: &End,
    now_ms: u64,
) -> Result<Value, Error> {
    let mut call = MOVE_TO_FINISHED.prepare_invoke();
    for key in finish_keys(keys, target, &end.run.job_id) {
        call.key(key);
    }
    for argument in finish_arguments(keys, target, end, now_ms) {
        call.arg(argument);
    }
    Ok(call.invoke_async(redis).await?)
}

/// Moves a job from active to failed, and into its dead-letter queue with the same breath.
pub(crate) async fn fail_for_good(
    redis: &mut Link,
    keys: &Keys,
    run: &Run<'_>,
    letter: &DeadLetter,
) -> Result<Finished, Error> {
    let (dead_keys, dead_arguments) = dead_letters::script_call(keys, &run.claim.token, letter);
    let end = End::failed(run, &letter.reason);
    let arguments = finish_arguments(keys, Target::Failed, &end, run.now_ms);
    let keys = finish_keys(keys, Target::Failed, &end.run.job_id);
    let mut pipe = redis::pipe();
    // By text, not by hash: inside a transaction there is no loading of a script that is missing.
    let mut bury = redis::cmd("EVAL");
    bury.arg(include_str!("../dead_letter.lua")).arg(dead_keys.len());
    bury.arg(dead_keys).arg(dead_arguments);
    let mut finish = redis::cmd("EVAL");
    finish.arg(MOVE_TO_FINISHED_TEXT).arg(keys.len()).arg(&keys).arg(&arguments);
    pipe.atomic().add_command(bury).ignore().add_command(finish);
    let (answer,): (Value,) = pipe.query_async(redis).await?;
    parse_finished("moveToFinished", answer)
}

/// KEYS of `moveToFinished`.
fn finish_keys(keys: &Keys, target: Target, job_id: &str) -> [String; 14] {
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
fn finish_arguments(keys: &Keys, target: Target, end: &End, now_ms: u64) -> [Vec<u8>; 9] {
    let (set, field) = match target {
        Target::Completed => ("completed", "returnvalue"),
        Target::Failed => ("failed", "failedReason"),
    };
    [
        end.run.job_id.clone().into_bytes(),
        now_ms.to_string().into_bytes(),
        field.into(),
        end.value.clone().into_bytes(),
        set.into(),
        end.next.flag().into(),
        keys.prefix.clone().into_bytes(),
        end.options.clone(),
        end.fields.clone(),
    ]
}

/// Lets a job whose children are not done wait for them. `None`: they are by now.
pub(crate) async fn await_children(
    redis: &mut Link,
    keys: &Keys,
    run: &Run<'_>,
) -> Result<Option<Finished>, Error> {
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
        Value::Int(0) => Ok(Some(Finished::ChildrenPending)),
        Value::Int(1) => Ok(None),
        answer => parse_finished("moveToWaitingChildren", answer).map(Some),
    }
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
        .arg(if job.lifo { "RPUSH" } else { "LPUSH" })
        .arg(&job.id)
        .arg(&claim.token)
        .arg(packed_fields(run.fields));
    let answer = call.invoke_async(redis).await?;
    parse_finished("retryJob", answer)
}

// Another may have been added with the same id meanwhile, and be running elsewhere.
static FORGET: Script = Script::new(|| {
    redis::Script::new(
        "local holder = redis.call('GET', KEYS[2])
         if redis.call('EXISTS', KEYS[1]) == 0 and (not holder or holder == ARGV[2]) then
           redis.call('LREM', KEYS[3], 0, ARGV[1])
           redis.call('SREM', KEYS[4], ARGV[1])
           redis.call('DEL', KEYS[2])
         end",
    )
});

/// Forgets an id that stands in `active` though its job is gone.
pub(crate) async fn forget(
    redis: &mut Link,
    keys: &Keys,
    job_id: &str,
    token: &str,
) -> Result<(), Error> {
    let mut call = FORGET.prepare_invoke();
    call.key(keys.part(job_id)).key(keys.lock(job_id));
    call.key(keys.part("active")).key(keys.part("stalled"));
    Ok(call.arg(job_id).arg(token).invoke_async(redis).await?)
}

/// Takes out of `active` what we were given and what no job can be called.
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
