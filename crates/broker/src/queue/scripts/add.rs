//! Adding jobs.

use bullmq::JobOptions;
use futures::future::join_all;
use redis::Value;

use super::{many, packed};
use crate::Error;
use crate::link::Link;
use crate::queue::redis_keys::Keys;

script!(ADD_MANY_DELAYED);
script!(ADD_MANY_PRIORITIZED);
script!(ADD_MANY_STANDARD);

/// Jobs added by one call: enough to share its costs, few enough to serve other clients in between.
const AT_ONCE: usize = 50;

/// A job to be added.
pub(crate) struct NewJob<'a> {
    pub(crate) name: &'a str,
    /// Its payload as JSON.
    pub(crate) data: String,
    /// Its options with its id; it has no parent.
    pub(crate) options: JobOptions,
}

impl NewJob<'_> {
    /// The three arguments of the scripts that add a job.
    pub(super) fn arguments(&self, keys: &Keys, now_ms: u64) -> [Vec<u8>; 3] {
        let Self { name, data, options } = self;
        let id = options.job_id.as_deref().unwrap_or_default();
        let twins = options.deduplication.as_ref();
        let twins = twins.map(|twins| keys.part(&format!("de:{}", twins.id)));
        // The four empty values: parent key, parent dependencies, parent, schedule.
        let job = packed(&(&keys.prefix, id, name, now_ms, (), (), (), (), twins));
        [job, data.clone().into_bytes(), packed(options)]
    }
}

/// BullMQ's ways to add a job.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Way {
    Standard,
    Prioritized,
    Delayed,
}

impl Way {
    pub(super) fn of(options: &JobOptions) -> Self {
        if options.delay.is_some_and(|ms| ms > 0) {
            // Its priority counts when it is due.
            Self::Delayed
        } else if options.priority.is_some_and(|priority| priority > 0) {
            Self::Prioritized
        } else {
            Self::Standard
        }
    }

    /// The script that adds jobs in this way.
    fn script(self) -> &'static redis::Script {
        match self {
            Self::Standard => &ADD_MANY_STANDARD,
            Self::Prioritized => &ADD_MANY_PRIORITIZED,
            Self::Delayed => &ADD_MANY_DELAYED,
        }
    }

    /// The keys of that script.
    pub(super) fn keys(self) -> &'static str {
        match self {
            Self::Standard => "wait paused meta id completed delayed active events marker",
            Self::Prioritized => "marker meta id prioritized delayed completed active events pc",
            Self::Delayed => "marker meta id delayed completed events",
        }
    }
}

/// Adds jobs and returns their ids; a job whose id exists already is left as it is. A job that was skipped by
/// deduplication has the id of the job that stands for it. A job that cannot be added does not stop the others.
pub(crate) async fn add(
    redis: &Link,
    keys: &Keys,
    jobs: &[NewJob<'_>],
    now_ms: u64,
) -> Result<Vec<String>, Error> {
    let calls = [Way::Standard, Way::Prioritized, Way::Delayed].into_iter().flat_map(|way| {
        let of_it = (0..jobs.len()).filter(|job| Way::of(&jobs[*job].options) == way);
        let of_it: Vec<usize> = of_it.collect();
        let chunks: Vec<Vec<usize>> = of_it.chunks(AT_ONCE).map(<[_]>::to_vec).collect();
        chunks.into_iter().map(move |chunk| async move {
            let added = add_at_once(redis.clone(), keys, way, jobs, &chunk, now_ms).await?;
            Ok::<_, Error>(chunk.into_iter().zip(added))
        })
    });
    // All calls are sent at the same time.
    let mut ids = vec![String::new(); jobs.len()];
    for added in join_all(calls).await {
        added?.for_each(|(job, id)| ids[job] = id);
    }
    Ok(ids)
}

async fn add_at_once(
    mut redis: Link,
    keys: &Keys,
    way: Way,
    jobs: &[NewJob<'_>],
    chunk: &[usize],
    now_ms: u64,
) -> Result<Vec<String>, Error> {
    let mut call = way.script().prepare_invoke();
    for part in way.keys().split(' ') {
        call.key(keys.part(part));
    }
    for job in chunk.iter().map(|job| &jobs[*job]) {
        for argument in job.arguments(keys, now_ms) {
            call.arg(argument);
        }
    }
    let answer = call.invoke_async(&mut redis).await?;
    many::answers("addJob", answer, chunk.len())?.into_iter().map(|id| id_of(id?)).collect()
}

fn id_of(answer: Value) -> Result<String, Error> {
    match answer {
        Value::BulkString(id) => Ok(String::from_utf8_lossy(&id).into_owned()),
        Value::SimpleString(id) => Ok(id),
        answer => Err(Error::Protocol { script: "addJob", answer: format!("{answer:?}") }),
    }
}
