//! Jobs come into being.

use bullmq::JobOptions;
use futures::future::join_all;
use redis::Value;

use super::many::{self, ADD_MANY_PRIORITIZED, ADD_MANY_STANDARD};
use super::{Script, packed};
use crate::Error;
use crate::connection::Link;
use crate::keys::Keys;

/// Jobs added by one call: enough for its costs to be shared, few enough for others to be served in
/// between.
const AT_ONCE: usize = 50;

/// A job to be added.
pub(crate) struct NewJob<'a> {
    pub(crate) name: &'a str,
    /// Its payload as JSON.
    pub(crate) data: String,
    /// With its id; neither delayed nor the child of another job.
    pub(crate) options: JobOptions,
}

/// Adds jobs; an id that exists already is left as it is. One that cannot be added does not keep
/// others from being so.
pub(crate) async fn add(
    redis: &Link,
    keys: &Keys,
    jobs: &[NewJob<'_>],
    now_ms: u64,
) -> Result<(), Error> {
    let (prioritized, standard): (Vec<_>, Vec<_>) =
        jobs.iter().partition(|job| job.options.priority.is_some_and(|priority| priority > 0));
    let standard_keys =
        ["wait", "paused", "meta", "id", "completed", "delayed", "active", "events", "marker"];
    let prioritized_keys =
        ["marker", "meta", "id", "prioritized", "delayed", "completed", "active", "events", "pc"];
    // All are on their way at the same time.
    let calls = standard
        .chunks(AT_ONCE)
        .map(|jobs| (&ADD_MANY_STANDARD, standard_keys, jobs))
        .chain(
            prioritized.chunks(AT_ONCE).map(|jobs| (&ADD_MANY_PRIORITIZED, prioritized_keys, jobs)),
        )
        .map(|(script, parts, jobs)| {
            add_at_once(redis.clone(), script, keys, keys.parts(parts), jobs, now_ms)
        });
    join_all(calls).await.into_iter().collect()
}

async fn add_at_once(
    mut redis: Link,
    script: &Script,
    keys: &Keys,
    script_keys: [String; 9],
    jobs: &[&NewJob<'_>],
    now_ms: u64,
) -> Result<(), Error> {
    let mut call = script.prepare_invoke();
    for key in script_keys {
        call.key(key);
    }
    for job in jobs {
        let id = job.options.job_id.as_deref().unwrap_or_default();
        // At the end: no parent (its key, its dependencies, itself), no schedule, no deduplication.
        call.arg(packed(&(&keys.prefix, id, job.name, now_ms, (), (), (), (), ())));
        call.arg(&job.data);
        call.arg(packed(&job.options));
    }
    let answer = call.invoke_async(&mut redis).await?;
    for added in many::answers("addJob", answer, jobs.len())? {
        match added? {
            Value::BulkString(_) | Value::SimpleString(_) => {}
            answer => {
                return Err(Error::Protocol { script: "addJob", answer: format!("{answer:?}") });
            }
        }
    }
    Ok(())
}
