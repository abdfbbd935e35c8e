//! Removing jobs, with BullMQ's `removeJob`; the parents of removed jobs fail.
//!
//! BullMQ lets a parent run when a child that it waits for is removed, although the work before it was not done.
//! Here the parent fails instead, unless the child was allowed to fail; an operator who wants it to run all the
//! same replays it. BullMQ's own scripts for many jobs look at a number of jobs at one end of a list and stop when
//! these stay, as the next jobs of schedules do; ours goes on with the next ones.

use redis::Value;

use crate::Error;
use crate::link::Link;
use crate::queue::redis_keys::Keys;

script!(REMOVE);
script!(REMOVE_SLICE);
script!(REMOVE_UNPROCESSED_CHILDREN);

/// Whether jobs that a worker has may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenActive {
    /// They may not: the operation is refused.
    Refuse,
    /// They may: their work is lost.
    Destroy,
}

/// The result of removing a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    /// The job is gone, or was not there.
    Gone,
    /// A worker has the job, or a child of it.
    Locked,
    /// The job is the next one of a schedule.
    OfSchedule,
}

/// Removes a job with its children and all its keys, unless a worker has one of them.
pub(crate) async fn remove(redis: &mut Link, keys: &Keys, job_id: &str) -> Result<Removal, Error> {
    let mut call = REMOVE.prepare_invoke();
    call.key(keys.part(job_id)).key(keys.part("repeat"));
    match call.arg(job_id).arg("1").arg(&keys.prefix).invoke_async(redis).await? {
        Value::Int(1) => Ok(Removal::Gone),
        Value::Int(0) => Ok(Removal::Locked),
        Value::Int(-8) => Ok(Removal::OfSchedule),
        answer => Err(Error::Protocol { script: "removeJob", answer: format!("{answer:?}") }),
    }
}

/// Which jobs of a list or set to remove.
pub(crate) struct Slice<'a> {
    /// The list or set: `wait`, `failed`, …
    pub(crate) part: &'a str,
    /// How many to skip.
    pub(crate) skip: usize,
    /// How many to look at.
    pub(crate) count: usize,
    /// How many to remove at most.
    pub(crate) most: usize,
    /// Only jobs that have not changed since then.
    pub(crate) since_ms: u64,
    /// Whether jobs that a worker has are removed, too.
    pub(crate) when_active: WhenActive,
}

/// The result of removing a slice.
pub(crate) struct SliceRemoved {
    /// How many were looked at.
    pub(crate) seen: usize,
    /// Ids of the removed jobs.
    pub(crate) gone: Vec<String>,
    /// How many jobs were added to the same end of the list meanwhile: parents of the removed jobs.
    pub(crate) come: usize,
}

/// Removes jobs without their children.
pub(crate) async fn remove_slice(
    redis: &mut Link,
    keys: &Keys,
    slice: &Slice<'_>,
) -> Result<SliceRemoved, Error> {
    let mut call = REMOVE_SLICE.prepare_invoke();
    for key in keys.parts([slice.part, "repeat", "events"]) {
        call.key(key);
    }
    call.arg(&keys.prefix).arg(slice.part).arg(slice.skip).arg(slice.count).arg(slice.most);
    call.arg(slice.since_ms).arg(if slice.when_active == WhenActive::Destroy { "1" } else { "" });
    let (seen, gone, come): (usize, Vec<Vec<u8>>, usize) = call.invoke_async(redis).await?;
    let gone = gone.iter().map(|id| String::from_utf8_lossy(id).into_owned()).collect();
    Ok(SliceRemoved { seen, gone, come })
}

/// Removes the children of a job that no worker has begun.
pub(crate) async fn remove_unprocessed_children(
    redis: &mut Link,
    keys: &Keys,
    job_id: &str,
) -> Result<(), Error> {
    let mut call = REMOVE_UNPROCESSED_CHILDREN.prepare_invoke();
    call.key(keys.part(job_id)).key(keys.part("meta"));
    Ok(call.arg(&keys.prefix).arg(job_id).invoke_async(redis).await?)
}
