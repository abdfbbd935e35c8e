//! A queue seen from the producer's side: adding, looking up, removing and counting jobs.

use std::collections::HashMap;

use redis::{cmd, pipe};
use serde::Serialize;
use serde_json::Value;

use crate::queue::names::check_job_to_touch;
use crate::queue::options::{check, options_of};
use crate::queue::scripts::{self, NewJob, Removal};
use crate::{Error, JobSpec, Queue, now_ms};

/// Jobs sent to Redis before the next ones: enough to fill the connection, few enough to be answered in
/// milliseconds.
const CHUNK: usize = 500;

/// Whether Redis knows a job id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// There is no such job.
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
    /// Waiting for their children in a flow.
    #[serde(rename = "waiting-children")]
    pub waiting_children: u64,
}

impl Queue {
    /// Adds jobs and returns their ids. Idempotent: a job whose id exists already is left as it is. A job that was
    /// skipped because of its deduplication id ([`JobSpec::deduplication`]) has the id of the job that stands for it.
    ///
    /// Jobs without priority or delay keep their order, and so do jobs with a priority and jobs with a delay.
    pub async fn enqueue(&self, jobs: &[JobSpec]) -> Result<Vec<String>, Error> {
        let most = self.broker().max_payload();
        // All are checked first: when one is refused, none is added.
        let jobs = jobs.iter().map(|job| new_job(job, most)).collect::<Result<Vec<_>, _>>()?;
        let mut ids = Vec::with_capacity(jobs.len());
        for chunk in jobs.chunks(CHUNK) {
            ids.extend(match self.add(chunk).await {
                // A connection that broke while it was idle fails at its first use, and is replaced.
                Err(error) if error.is_outage() => {
                    self.broker().suspect();
                    self.add(chunk).await?
                }
                added => added?,
            });
        }
        Ok(ids)
    }

    /// Checks whether a job could be added; the error says why not.
    pub fn check(&self, job: &JobSpec) -> Result<(), Error> {
        check(job, self.broker().max_payload()).map(drop)
    }

    async fn add(&self, jobs: &[NewJob<'_>]) -> Result<Vec<String>, Error> {
        scripts::add(&self.broker().redis(), self.keys(), jobs, now_ms()).await
    }

    /// Adds jobs whose former run may still be kept as finished: that record is removed first.
    pub async fn enqueue_again(&self, jobs: &[JobSpec]) -> Result<(), Error> {
        let ids: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
        let letters = self.dead_letters();
        let mut ended = Vec::new();
        for (id, presence) in ids.iter().zip(self.presence(&ids).await?) {
            if presence == Presence::Finished {
                if let Some(written) = letters.written(id).await? {
                    ended.push((*id, written));
                }
                self.remove(id).await?;
            }
        }
        self.enqueue(jobs).await?;
        for (id, written) in ended {
            // A job that runs again needs no letter. If it failed again at once, it has a new letter, which stays.
            letters.forget(id, Some(&written)).await?;
        }
        Ok(())
    }

    /// Results of a job's children, by the key of the child.
    pub(crate) async fn children_values(
        &self,
        job_id: &str,
    ) -> Result<HashMap<String, Value>, Error> {
        self.ask(|| self.bull().get_children_values(job_id)).await
    }

    /// Failure reasons of a job's children that were allowed to fail, by the key of the child.
    pub(crate) async fn children_failures(
        &self,
        job_id: &str,
    ) -> Result<HashMap<String, String>, Error> {
        self.ask(|| self.bull().get_failed_children_values(job_id)).await
    }

    /// Removes a job with its children. `Ok(false)`: a worker has the job or one of its children. The parents of a
    /// removed job fail, because the work before them was not done.
    pub async fn remove(&self, job_id: &str) -> Result<bool, Error> {
        check_job_to_touch(job_id)?;
        match scripts::remove(&mut self.broker().redis(), self.keys(), job_id).await? {
            Removal::Gone => Ok(true),
            Removal::Locked => Ok(false),
            Removal::OfSchedule => Err(Error::OfSchedule { id: job_id.to_owned() }),
        }
    }

    /// Whether Redis knows each id.
    pub async fn presence(&self, job_ids: &[&str]) -> Result<Vec<Presence>, Error> {
        let mut redis = self.broker().redis();
        let mut found = Vec::with_capacity(job_ids.len());
        for chunk in job_ids.chunks(CHUNK) {
            let mut pipe = pipe();
            for id in chunk {
                pipe.add_command(
                    cmd("HMGET")
                        .arg(self.keys().part(id))
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
    pub async fn latest_results(&self, count: usize) -> Result<Vec<Value>, Error> {
        let last = count as i64 - 1;
        let jobs = self.ask(|| self.bull().get_completed(0, last)).await?;
        Ok(jobs.iter().filter_map(|job| serde_json::from_str(job.returnvalue()).ok()).collect())
    }

    /// How many jobs are in which state.
    pub async fn counts(&self) -> Result<Counts, Error> {
        let counts = self.ask(|| self.bull().get_job_counts()).await?;
        Ok(Counts {
            waiting: counts.waiting,
            prioritized: counts.prioritized,
            active: counts.active,
            delayed: counts.delayed,
            completed: counts.completed,
            failed: counts.failed,
            waiting_children: counts.waiting_children,
        })
    }
}

fn new_job(job: &JobSpec, max_payload: usize) -> Result<NewJob<'_>, Error> {
    Ok(NewJob { name: &job.name, data: check(job, max_payload)?, options: options_of(job) })
}
