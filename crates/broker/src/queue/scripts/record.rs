//! Log, progress and schedule of a job while it runs.

use redis::Value;

use super::packed;
use crate::Error;
use crate::link::Link;
use crate::queue::job::Job;
use crate::queue::redis_keys::Keys;

script!(ADD_LOG);
script!(UPDATE_JOB_SCHEDULER);
script!(UPDATE_PROGRESS);

/// Writes a job's progress, with an event.
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
    // -1 means that the job was removed meanwhile.
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
    // Nil, when the schedule was ended or the next job is there already.
    let _id: Value = call.invoke_async(redis).await?;
    Ok(())
}
