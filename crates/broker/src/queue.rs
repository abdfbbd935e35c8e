//! A queue seen from the producer's side: add, look up, remove, count.

use std::time::Duration;

use bullmq::types::{BackoffStrategy, JobState, KeepJobs, RemoveOnFinish, RetryOptions};
use bullmq::{BulkJob, JobOptions};
use redis::{cmd, pipe};
use serde::Serialize;
use stampede_model::{Backoff, JobSpec};

use crate::connection::OfficialQueue;
use crate::keys::Keys;
use crate::names::check_job_id;
use crate::scripts::{self, NewJob};
use crate::{Broker, Error, Letters, now_ms};

/// Jobs on their way to Redis at the same time; enough to fill the pipe, few enough to answer in
/// milliseconds.
const CHUNK: usize = 500;

/// Largest payload of a job, as JSON.
const MAX_PAYLOAD: usize = 256 << 10;

/// Finished jobs stay visible in Bull Board for a day, failed ones for a week.
const KEEP_COMPLETED: (Duration, usize) = (Duration::from_secs(24 * 3600), 10_000);
const KEEP_FAILED: (Duration, usize) = (Duration::from_secs(7 * 24 * 3600), 100_000);

/// A handle on one queue. Cheap to clone.
#[derive(Clone)]
pub struct Queue {
    broker: Broker,
    bull: OfficialQueue,
    keys: Keys,
}

/// What Redis knows of a job id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Nothing.
    Missing,
    /// It waits, runs or is delayed.
    Live,
    /// It completed or failed.
    Finished,
}

/// How many jobs are in which state; the names are BullMQ's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Waiting without priority.
    pub waiting: u64,
    /// Waiting with priority.
    pub prioritized: u64,
    /// Being worked on.
    pub active: u64,
    /// Waiting for their time, retries among them.
    pub delayed: u64,
    /// Done and still kept.
    pub completed: u64,
    /// Failed and still kept.
    pub failed: u64,
}

impl Queue {
    pub(crate) fn new(broker: Broker, bull: OfficialQueue) -> Self {
        let keys = Keys::new(broker.prefix(), bull.name());
        Self { broker, bull, keys }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.bull.name()
    }

    /// The official crate's handle.
    pub(crate) fn bull(&self) -> &bullmq::Queue {
        &self.bull
    }

    /// Asks something through the official crate's own connection. That it broke while nobody used it
    /// shows only now; it is mended already, so the question is put once more.
    pub(crate) async fn ask<T, F>(&self, question: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, bullmq::Error>>,
    {
        match question().await.map_err(Error::from) {
            Err(error) if error.is_outage() => Ok(question().await?),
            answer => answer,
        }
    }

    pub(crate) fn broker(&self) -> &Broker {
        &self.broker
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Adds jobs. Ids that exist already are left as they are, so doing this twice is harmless.
    pub async fn enqueue(&self, jobs: &[JobSpec]) -> Result<(), Error> {
        for chunk in jobs.chunks(CHUNK) {
            match self.add(chunk).await {
                // That a connection broke while nobody used it shows only now; it is mended already.
                Err(error) if error.is_outage() => self.add(chunk).await?,
                added => added?,
            }
        }
        Ok(())
    }

    async fn add(&self, jobs: &[JobSpec]) -> Result<(), Error> {
        let jobs = jobs.iter().map(new_job).collect::<Result<Vec<_>, _>>()?;
        scripts::add(&self.broker.redis(), &self.keys, &jobs, now_ms()).await
    }

    /// Adds jobs whose former run may still be kept as finished: that record makes room.
    pub async fn enqueue_again(&self, jobs: &[JobSpec]) -> Result<(), Error> {
        let ids: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
        let mut ended = Vec::new();
        for (id, presence) in ids.iter().zip(self.presence(&ids).await?) {
            if presence == Presence::Finished {
                self.bull.remove(id).await?;
                ended.push((*id).to_owned());
            }
        }
        self.enqueue(jobs).await?;
        // What runs again is not dead any more.
        if !ended.is_empty() {
            self.dead_letters().await?.purge(&Letters::These(ended)).await?;
        }
        Ok(())
    }

    /// Runs a failed job again with all its attempts: the one that is still kept (and whose parent, in
    /// a flow, still waits for it), or a new one made of what is known of it.
    pub(crate) async fn run_again(
        &self,
        id: &str,
        name: &str,
        data: &str,
        options: &str,
    ) -> Result<(), Error> {
        let data: serde_json::Value = serde_json::from_str(data).unwrap_or(data.into());
        if let Some(mut kept) = self.bull.get_job(id).await?
            && self.bull.get_job_state(id).await? == JobState::Failed
        {
            if *kept.data() != data {
                kept.update_data(data).await?;
            }
            let anew = RetryOptions { reset_attempts_made: true, reset_attempts_started: true };
            return Ok(kept.retry("failed", Some(anew)).await?);
        }
        let options = job_options(options).job_id(id);
        self.bull.add_bulk(vec![BulkJob::with_options(name, data, options)]).await?;
        Ok(())
    }

    /// Results of a job's children, by the key of the child.
    pub(crate) async fn children_values(
        &self,
        job_id: &str,
    ) -> Result<std::collections::HashMap<String, serde_json::Value>, Error> {
        self.ask(|| self.bull.get_children_values(job_id)).await
    }

    /// Removes a job, unless it is being worked on: then the answer is `false`.
    pub async fn remove(&self, job_id: &str) -> Result<bool, Error> {
        Ok(self.bull.remove(job_id).await?)
    }

    /// What Redis knows of each id.
    pub async fn presence(&self, job_ids: &[&str]) -> Result<Vec<Presence>, Error> {
        let mut redis = self.broker.redis();
        let mut found = Vec::with_capacity(job_ids.len());
        for chunk in job_ids.chunks(CHUNK) {
            let mut pipe = pipe();
            for id in chunk {
                pipe.add_command(
                    cmd("HMGET")
                        .arg(self.keys.part(id))
                        .arg("timestamp")
                        .arg("finishedOn")
                        .to_owned(),
                );
            }
            let rows: Vec<(Option<String>, Option<String>)> = pipe.query_async(&mut redis).await?;
            found.extend(rows.into_iter().map(|row| match row {
                (_, Some(_)) => Presence::Finished,
                (Some(_), None) => Presence::Live,
                (None, None) => Presence::Missing,
            }));
        }
        Ok(found)
    }

    /// Results of the jobs completed last, newest first, as they were returned.
    pub async fn latest_results(&self, count: usize) -> Result<Vec<serde_json::Value>, Error> {
        let last = count as i64 - 1;
        let jobs = self.ask(|| self.bull.get_completed(0, last)).await?;
        Ok(jobs.iter().filter_map(|job| serde_json::from_str(job.returnvalue()).ok()).collect())
    }

    /// How many jobs are in which state.
    pub async fn counts(&self) -> Result<Counts, Error> {
        let counts = self.ask(|| self.bull.get_job_counts()).await?;
        Ok(Counts {
            waiting: counts.waiting,
            prioritized: counts.prioritized,
            active: counts.active,
            delayed: counts.delayed,
            completed: counts.completed,
            failed: counts.failed,
        })
    }
}

/// Refuses what should not be on a queue; the payload as JSON.
pub(crate) fn check(job: &JobSpec) -> Result<String, Error> {
    check_job_id(&job.id)?;
    if job.id.bytes().all(|byte| byte.is_ascii_digit()) {
        let reason = "it is a number, which BullMQ gives to jobs without an id".to_owned();
        return Err(Error::InvalidName { what: "job id", name: job.id.clone(), reason });
    }
    let data = job.data.to_string();
    let bytes = data.len();
    if bytes > MAX_PAYLOAD {
        return Err(Error::PayloadTooLarge { id: job.id.clone(), bytes, limit: MAX_PAYLOAD });
    }
    Ok(data)
}

fn new_job(job: &JobSpec) -> Result<NewJob<'_>, Error> {
    Ok(NewJob { name: job.name, data: check(job)?, options: options_of(job) })
}

/// Options as they stand in a job's hash, each read by itself: one odd value resets no other. Neither
/// a delay nor a parent from another time is kept.
fn job_options(text: &str) -> JobOptions {
    let Ok(serde_json::Value::Object(all)) = serde_json::from_str(text) else {
        return JobOptions::default();
    };
    let readable = |(name, value): &(String, serde_json::Value)| {
        let alone = serde_json::json!({ name: value });
        !matches!(name.as_str(), "delay" | "parent" | "timestamp")
            && serde_json::from_value::<JobOptions>(alone).is_ok()
    };
    let kept: serde_json::Map<_, _> = all.into_iter().filter(readable).collect();
    serde_json::from_value(kept.into()).unwrap_or_default()
}

/// The options of a job as BullMQ has them.
pub(crate) fn options_of(spec: &JobSpec) -> JobOptions {
    let Backoff::Exponential { base_ms } = spec.backoff;
    let keep = |(age, count): (Duration, usize)| {
        // BullMQ's scripts read the age in seconds, whatever the crate's documentation says.
        RemoveOnFinish::Options(KeepJobs {
            age: Some(age.as_secs()),
            count: Some(count),
            limit: None,
        })
    };
    let options = JobOptions::new()
        .job_id(spec.id.as_str())
        .attempts(spec.attempts)
        .backoff(BackoffStrategy::Exponential(base_ms))
        .remove_on_complete(keep(KEEP_COMPLETED))
        .remove_on_fail(keep(KEEP_FAILED));
    // Without one it stands in no order of priorities at all.
    if spec.priority > 0 { options.priority(spec.priority) } else { options }
}
