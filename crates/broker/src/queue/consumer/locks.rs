//! Locks: which jobs run here, renewing their locks, and putting stalled jobs back to wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio_util::sync::CancellationToken;

use super::{EventKind, LONGEST_PAUSE, Shared, cancel};
use crate::queue::scripts::{self, OurRun, TakenBack};
use crate::{ConnectionState, Error, Job, now_ms};

/// How often a job may stall before it is failed instead of run again.
const MAX_STALLED: u32 = 3;

/// The jobs that run here, by id.
#[derive(Default)]
pub(super) struct HeldLocks {
    jobs: Mutex<HashMap<String, HeldLock>>,
}

#[derive(Clone)]
struct HeldLock {
    run: OurRun,
    /// The attempt of the job.
    attempt: Arc<str>,
    lost: CancellationToken,
    /// Set when the job is to be cancelled; the reason is in `why`.
    cancelled: CancellationToken,
    why: Arc<OnceLock<String>>,
}

impl HeldLock {
    /// Cancels the run; `wish` is the attempt and the reason.
    fn cancel(&self, wish: &str) {
        if let Some((attempt, reason)) = wish.split_once(':')
            && attempt == &*self.attempt
        {
            // The first reason counts.
            let _ = self.why.set(reason.to_owned());
            self.cancelled.cancel();
        }
    }
}

/// A job that runs. Its lock is renewed until this is dropped.
pub(super) struct Held<'a> {
    locks: &'a HeldLocks,
    job_id: &'a str,
    lock: HeldLock,
}

impl Held<'_> {
    /// Returns when another worker may have the job.
    pub(super) async fn lost(&self) {
        self.lock.lost.cancelled().await;
    }

    /// Returns when the job is to be cancelled, with the reason.
    pub(super) async fn cancelled(&self) -> String {
        self.lock.cancelled.cancelled().await;
        self.lock.why.get().cloned().unwrap_or_default()
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut jobs = self.locks.lock();
        if jobs.get(self.job_id).is_some_and(|lock| lock.run.token == self.lock.run.token) {
            jobs.remove(self.job_id);
        }
    }
}

impl HeldLocks {
    /// Notes that the slot with this token runs a job.
    pub(super) fn hold<'a>(&'a self, job: &'a Job, token: &str) -> Held<'a> {
        let lock = HeldLock {
            run: OurRun::of(job, token),
            attempt: job.attempt.as_str().into(),
            lost: CancellationToken::new(),
            cancelled: CancellationToken::new(),
            why: Arc::default(),
        };
        if let Some(other_slot) = self.lock().insert(job.id.clone(), lock.clone()) {
            // The job was taken again: the slot that ran it before has lost it without noticing.
            other_slot.lost.cancel();
        }
        if let Some(wish) = &job.wish {
            lock.cancel(wish);
        }
        Held { locks: self, job_id: &job.id, lock }
    }

    /// Whether a job runs here.
    pub(super) fn holds(&self, job_id: &str) -> bool {
        self.lock().contains_key(job_id)
    }

    /// Cancels the run of a job, if it is the attempt that the wish names.
    pub(super) fn cancel(&self, job_id: &str, wish: &str) {
        if let Some(held) = self.lock().get(job_id) {
            held.cancel(wish);
        }
    }

    fn snapshot(&self) -> HashMap<String, HeldLock> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, HeldLock>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Renews all locks in one call: three times within their life, soon again when that failed, and at once when Redis
/// was restarted, because it may have forgotten that these jobs run. Ends with `ended`.
pub(super) async fn renew(shared: Arc<Shared>, ended: CancellationToken) {
    let period = shared.config.lock / 3;
    // There must be time for a second try before the locks expire.
    let patience = (shared.config.lock / 5).max(Duration::from_secs(1));
    let mut wait = period;
    let mut restarts = shared.queue.broker().restarts();
    loop {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = restarts.next() => {}
            () = ended.cancelled() => return,
        }
        // Below, only runs of this snapshot are cancelled, not later runs of the same job.
        let held = shared.held.snapshot();
        wait = period;
        if held.is_empty() {
            continue;
        }
        match tokio::time::timeout(patience, renew_all(&shared, &held)).await {
            Ok(Ok(())) => shared.outages.worked(),
            failed => {
                // The connection logs outages, once (`link/state.rs`).
                match failed {
                    Ok(Err(error)) if !error.is_outage() => {
                        tracing::warn!(%error, jobs = held.len(), "cannot renew locks");
                    }
                    _ => tracing::debug!(jobs = held.len(), "cannot renew locks"),
                }
                shared.failed();
                wait = LONGEST_PAUSE.min(period);
                continue;
            }
        }
        // A request to cancel a job may have been lost with a connection.
        let ids: Vec<&str> = held.keys().map(String::as_str).collect();
        let looked = tokio::time::timeout(patience, cancel::look_for(&shared, &ids)).await;
        if !matches!(looked, Ok(Ok(()))) {
            tracing::debug!(?looked, "cannot look for jobs to cancel");
            wait = LONGEST_PAUSE.min(period);
        }
    }
}

async fn renew_all(shared: &Shared, held: &HashMap<String, HeldLock>) -> Result<(), Error> {
    let lock_ms = shared.config.lock.as_millis() as u64;
    let (redis, keys) = (&mut shared.redis(), shared.queue.keys());
    let (ids, tokens): (Vec<_>, Vec<_>) =
        held.iter().map(|(id, lock)| (id.as_str(), lock.run.token.as_str())).unzip();
    let lost = scripts::extend_locks(redis, keys, lock_ms, &ids, &tokens).await?;
    // All at the same time: after a restart other workers wait only a short time before they take jobs.
    let taking_back = lost.iter().filter_map(|id| held.get(id)).map(|lock| async move {
        match scripts::take_back(&mut shared.redis(), keys, lock_ms, &lock.run).await? {
            TakenBack::Ours => {}
            TakenBack::NotOurs => {
                tracing::debug!(job = lock.run.job_id, "job has lost its lock, or has just ended");
                lock.lost.cancel();
            }
            // No other worker can have it, so this is its only run.
            TakenBack::Unknown => {
                tracing::debug!(job = lock.run.job_id, "Redis does not know a job that runs")
            }
        }
        Ok(())
    });
    join_all(taking_back).await.into_iter().collect()
}

/// Puts jobs without a lock back to wait: at start, and at every interval. Ends with `stop`.
pub(super) async fn rescue_stalled(shared: Arc<Shared>, stop: CancellationToken) {
    let mut wait = Duration::ZERO;
    let mut unwell_since = None;
    loop {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = stop.cancelled() => return,
        }
        wait = shared.config.stalled_interval;
        // A Redis that accepts no writes renews no locks either.
        if shared.queue.broker().connection_state() != ConnectionState::Connected {
            unwell_since.get_or_insert_with(Instant::now);
            wait = wait.min(LONGEST_PAUSE);
            continue;
        }
        if let Some(since) = unwell_since.take() {
            shared.outages.was_unwell(since);
        }
        // Also shows whether Redis answers. The check must not be the call that waits for Redis to come back: it would
        // be the first to act, before any worker could renew its locks.
        let asked = Instant::now();
        if let Err(error) = shared.look_for_limit().await {
            tracing::debug!(%error, "cannot look for stalled jobs");
            shared.failed();
            continue;
        }
        shared.outages.worked_since(asked);
        if let Some(grace) = shared.outages.grace_left() {
            wait = grace;
            continue;
        }
        match rescue(&shared).await {
            Ok(()) => shared.outages.worked(),
            Err(error) => {
                tracing::debug!(%error, "cannot look for stalled jobs");
                shared.failed();
            }
        }
    }
}

async fn rescue(shared: &Shared) -> Result<(), Error> {
    // Slightly shorter than our interval, so that our own next check is not refused.
    let guard_ms = shared.config.stalled_interval.as_millis() as u64 * 9 / 10;
    let (redis, keys) = (&mut shared.redis(), shared.queue.keys());
    scripts::repair_stalled(redis, keys).await?;
    let jobs =
        scripts::move_stalled_jobs_to_wait(redis, keys, MAX_STALLED, guard_ms, now_ms()).await?;
    if !jobs.is_empty() {
        tracing::warn!(?jobs, "jobs whose worker disappeared go back to wait");
        jobs.iter().for_each(|job| shared.events.tell(job, EventKind::Stalled));
        shared.config.observer.stalled(jobs.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_given_out_anew_is_lost_for_the_slot_that_had_it() {
        let locks = HeldLocks::default();
        let job = Job::from_hash("job".to_owned(), HashMap::new());
        let first = locks.hold(&job, "token:0");
        let second = locks.hold(&job, "token:1");
        assert!(first.lock.lost.is_cancelled());
        drop(first);
        assert_eq!(locks.snapshot()["job"].run.token, "token:1", "the second is still renewed");
        assert!(!second.lock.lost.is_cancelled());
        drop(second);
        assert!(locks.snapshot().is_empty());
    }
}
