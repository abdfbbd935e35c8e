//! A queue seen from the producer's side: add, look up, remove, count.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use redis::{cmd, pipe};
use serde::Serialize;
use stampede_model::JobSpec;

use crate::connection::OfficialQueue;
use crate::keys::Keys;
use crate::names::check_job_to_touch;
use crate::options::{check, options_of};
use crate::scripts::{self, NewJob, Removal};
use crate::{Broker, Error, now_ms};

/// Jobs on their way to Redis at the same time; enough to fill the pipe, few enough to answer in
/// milliseconds.
const CHUNK: usize = 500;

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
    /// Waiting for their children in a flow.
    #[serde(rename = "waiting-children")]
    pub waiting_children: u64,
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

    /// What BullMQ's clients call a connection that does something for this queue.
    pub(crate) fn client_name(&self, what: &str) -> String {
        let name =
            format!("{}:{}{what}", self.broker.prefix(), BASE64_STANDARD.encode(self.name()));
        // Redis takes neither blanks nor what does not show.
        name.replace(|c: char| !c.is_ascii_graphic(), "-")
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Adds jobs; their ids as they are on the queue now: that of another job where it was left out beside
    /// that one ([`JobSpec::deduplication`]). Ids that exist already are left as they are, so doing this
    /// twice is harmless.
    ///
    /// Those without priority or delay, those with a priority and those with a delay each keep their order
    /// among themselves.
    pub async fn enqueue(&self, jobs: &[JobSpec]) -> Result<Vec<String>, Error> {
        let most = self.broker.max_payload();
        // All of them first: either none is refused or none is added.
        let jobs = jobs.iter().map(|job| new_job(job, most)).collect::<Result<Vec<_>, _>>()?;
        let mut ids = Vec::with_capacity(jobs.len());
        for chunk in jobs.chunks(CHUNK) {
            ids.extend(match self.add(chunk).await {
                // That a connection broke while nobody used it shows only now; it is mended already.
                Err(error) if error.is_outage() => {
                    self.broker.suspect();
                    self.add(chunk).await?
                }
                added => added?,
            });
        }
        Ok(ids)
    }

    /// Why a job would be refused, if so.
    pub fn check(&self, job: &JobSpec) -> Result<(), Error> {
        check(job, self.broker.max_payload()).map(drop)
    }

    async fn add(&self, jobs: &[NewJob<'_>]) -> Result<Vec<String>, Error> {
        scripts::add(&self.broker.redis(), &self.keys, jobs, now_ms()).await
    }

    /// Adds jobs whose former run may still be kept as finished: that record makes room.
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
            // What runs again is not dead any more. If it died again at once, that letter is another.
            letters.forget(id, Some(&written)).await?;
        }
        Ok(())
    }

    /// Results of a job's children, by the key of the child.
    pub(crate) async fn children_values(
        &self,
        job_id: &str,
    ) -> Result<std::collections::HashMap<String, serde_json::Value>, Error> {
        self.ask(|| self.bull.get_children_values(job_id)).await
    }

    /// Reasons of a job's children that failed and may do so, by the key of the child.
    pub(crate) async fn children_failures(
        &self,
        job_id: &str,
    ) -> Result<std::collections::HashMap<String, String>, Error> {
        self.ask(|| self.bull.get_failed_children_values(job_id)).await
    }

    /// Removes a job with its children, unless one of them is being worked on: then the answer is `false`. What
    /// comes after it in a flow fails, for nobody has done what had to be done before.
    pub async fn remove(&self, job_id: &str) -> Result<bool, Error> {
        check_job_to_touch(job_id)?;
        match scripts::remove(&mut self.broker.redis(), &self.keys, job_id).await? {
            Removal::Gone => Ok(true),
            Removal::Locked => Ok(false),
            Removal::OfSchedule => Err(Error::OfSchedule { id: job_id.to_owned() }),
        }
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
            waiting_children: counts.waiting_children,
        })
    }
}

fn new_job(job: &JobSpec, max_payload: usize) -> Result<NewJob<'_>, Error> {
    Ok(NewJob { name: &job.name, data: check(job, max_payload)?, options: options_of(job) })
}
