//! Running failed jobs again. The job waits and its dead letter is removed in one step: concurrent replays of the
//! same job run it once, and a replay that dies in the middle loses nothing.

use redis::Value;

use super::add::{NewJob, Way};
use crate::Error;
use crate::link::Link;
use crate::queue::redis_keys::Keys;

script!(PURGE_LETTER);
script!(REPLAY);
script!(REPLAY_ANEW_PRIORITIZED);
script!(REPLAY_ANEW_STANDARD);

/// The result of replaying a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Again {
    /// The job waits, for a worker or for its children.
    Waits,
    /// The job is not among the failed ones; its letter is removed.
    NotFailed,
    /// There is no such job (any more).
    Missing,
    /// The letter has changed since it was read, or was replayed by another caller.
    Changed,
    /// The job cannot run: a child of it, with this key, has failed.
    Blocked(String),
}

/// Runs a failed job again with all its attempts, with other data if given. `letter` is its dead letter as it was
/// read: when it has changed since, nothing happens.
pub(crate) async fn replay(
    redis: &mut Link,
    keys: &Keys,
    job_id: &str,
    letter: Option<&str>,
    data: Option<&str>,
    now_ms: u64,
) -> Result<Again, Error> {
    let mut call = REPLAY.prepare_invoke();
    for key in keys.parts([
        job_id,
        "events",
        "failed",
        "wait",
        "meta",
        "active",
        "marker",
        "prioritized",
        "pc",
    ]) {
        call.key(key);
    }
    call.key(&letter_keys(keys, job_id)).key(keys.part("waiting-children"));
    // The attempts are counted anew, the starts are not: they tell a run that was cut off by an outage from the
    // runs after it (`take_back.lua`).
    call.arg(job_id).arg("LPUSH").arg("failedReason").arg("failed").arg("1").arg("0");
    call.arg(letter.unwrap_or_default()).arg(data.unwrap_or_default()).arg(now_ms);
    Ok(match call.invoke_async(redis).await? {
        Value::Int(1 | 2) => Again::Waits,
        Value::Int(0) => Again::NotFailed,
        Value::Int(-1) => Again::Missing,
        Value::BulkString(child) => Again::Blocked(String::from_utf8_lossy(&child).into_owned()),
        // -2, and -3 of reprocessJob, which does not occur: the job was in its set a moment ago.
        _ => Again::Changed,
    })
}

/// Adds a job anew whose record is gone and whose letter is left.
pub(crate) async fn replay_anew(
    redis: &mut Link,
    keys: &Keys,
    job: &NewJob<'_>,
    letter: &str,
    now_ms: u64,
) -> Result<Again, Error> {
    let way = Way::of(&job.options);
    let (script, parts) = match way {
        Way::Prioritized => (&REPLAY_ANEW_PRIORITIZED, way.keys()),
        // A delayed job has waited long enough.
        _ => (&REPLAY_ANEW_STANDARD, Way::Standard.keys()),
    };
    let id = job.options.job_id.as_deref().unwrap_or_default();
    let mut call = script.prepare_invoke();
    for part in parts.split(' ') {
        call.key(keys.part(part));
    }
    call.key(keys.part(id)).key(&letter_keys(keys, id));
    for argument in job.arguments(keys, now_ms) {
        call.arg(argument);
    }
    Ok(match call.arg(letter).arg(id).invoke_async(redis).await? {
        Value::Int(1) => Again::Waits,
        _ => Again::Changed,
    })
}

/// Removes a letter; with `letter`, only if it has not changed since it was read.
pub(crate) async fn forget_letter(
    redis: &mut Link,
    keys: &Keys,
    job_id: &str,
    letter: Option<&str>,
) -> Result<bool, Error> {
    let mut call = PURGE_LETTER.prepare_invoke();
    call.key(&letter_keys(keys, job_id)).arg(job_id).arg(letter.unwrap_or_default());
    Ok(call.invoke_async(redis).await?)
}

/// The letter of a job, and wait and events of the dead-letter queue.
fn letter_keys(keys: &Keys, job_id: &str) -> [String; 3] {
    keys.dead().parts([job_id, "wait", "events"])
}
