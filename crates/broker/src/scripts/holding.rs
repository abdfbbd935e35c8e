//! Locks, and jobs whose holder is gone.

use super::{
    EXTEND_LOCKS, MOVE_JOB_FROM_ACTIVE_TO_WAIT, MOVE_STALLED_JOBS_TO_WAIT, Script, packed,
};
use crate::connection::Link;
use crate::keys::Keys;
use crate::{Error, Job};

// Our own, for what BullMQ has no script for.
static COUNT_CRASH: Script = Script::new(|| redis::Script::new(include_str!("../count_crash.lua")));
static TAKE_BACK: Script = Script::new(|| redis::Script::new(include_str!("../take_back.lua")));

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

/// A run of a job by us, and what tells it from others.
#[derive(Debug, Clone)]
pub(crate) struct OurRun {
    pub(crate) job_id: String,
    /// Who holds its lock.
    pub(crate) token: String,
    /// When the job was added.
    pub(crate) added: u64,
    /// When this run of it began.
    pub(crate) began: u64,
}

impl OurRun {
    pub(crate) fn of(job: &Job, token: &str) -> Self {
        Self {
            job_id: job.id.clone(),
            token: token.to_owned(),
            added: job.timestamp,
            began: job.processed_on,
        }
    }
}

/// Locks a job anew for us who run it: its lock has expired, or Redis has forgotten that we took it.
/// `Ok(false)`: it has ended, or somebody else has it.
pub(crate) async fn take_back(
    redis: &mut Link,
    keys: &Keys,
    lock_ms: u64,
    run: &OurRun,
) -> Result<bool, Error> {
    let mut call = TAKE_BACK.prepare_invoke();
    for key in keys.parts(["active", "wait", "prioritized", "stalled", &run.job_id]) {
        call.key(key);
    }
    call.key(keys.lock(&run.job_id));
    call.arg(&run.job_id).arg(&run.token).arg(lock_ms).arg(run.added).arg(run.began);
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
