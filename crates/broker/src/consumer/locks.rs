//! Locks: which jobs we hold, renewing them, and rescuing jobs whose holder is gone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio_util::sync::CancellationToken;

use super::{EventKind, Handler, Shared, cancel, now_ms};
use crate::scripts;

/// How often a job may lose its holder before it is failed instead of run again.
const MAX_STALLED: u32 = 3;

/// The jobs being worked on here, by id.
#[derive(Default)]
pub(super) struct HeldLocks {
    jobs: Mutex<HashMap<String, HeldLock>>,
}

#[derive(Clone)]
struct HeldLock {
    token: String,
    lost: CancellationToken,
    /// Set when somebody wants it cancelled; then the reason stands in `why`.
    cancelled: CancellationToken,
    why: Arc<OnceLock<String>>,
}

/// A job being worked on. Its lock is renewed until this is dropped, in whatever way that happens.
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

    /// Returns when somebody wants the job cancelled, with the reason.
    pub(super) async fn cancelled(&self) -> String {
        self.lock.cancelled.cancelled().await;
        self.lock.why.get().cloned().unwrap_or_default()
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut jobs = self.locks.lock();
        if jobs.get(self.job_id).is_some_and(|lock| lock.token == self.lock.token) {
            jobs.remove(self.job_id);
        }
    }
}

impl HeldLocks {
    /// Notes a job as held by the slot with this token.
    pub(super) fn hold<'a>(&'a self, job_id: &'a str, token: &str) -> Held<'a> {
        let lock = HeldLock {
            token: token.to_owned(),
            lost: CancellationToken::new(),
            cancelled: CancellationToken::new(),
            why: Arc::default(),
        };
        if let Some(other_slot) = self.lock().insert(job_id.to_owned(), lock.clone()) {
            // It was given out anew: the slot that had it before has lost it without noticing.
            other_slot.lost.cancel();
        }
        Held { locks: self, job_id, lock }
    }

    /// Whether a job is being worked on here.
    pub(super) fn holds(&self, job_id: &str) -> bool {
        self.lock().contains_key(job_id)
    }

    /// Makes whoever works on a job here drop it.
    pub(super) fn cancel(&self, job_id: &str, reason: &str) {
        if let Some(held) = self.lock().get(job_id) {
            // The first reason stands.
            let _ = held.why.set(reason.to_owned());
            held.cancelled.cancel();
        }
    }

    fn snapshot(&self) -> HashMap<String, HeldLock> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, HeldLock>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Renews all locks, in one call, three times within their life. Ends with `ended`.
pub(super) async fn renew<H: Handler>(shared: Arc<Shared<H>>, ended: CancellationToken) {
    let lock_ms = shared.config.lock.as_millis() as u64;
    let mut ticks = tokio::time::interval(shared.config.lock / 3);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = ended.cancelled() => return,
        }
        // What is cancelled below is what stands here, not what holds the same id by then.
        let held = shared.held.snapshot();
        if held.is_empty() {
            continue;
        }
        let (ids, tokens): (Vec<_>, Vec<_>) =
            held.iter().map(|(id, lock)| (id.as_str(), lock.token.as_str())).unzip();
        let mut redis = shared.redis();
        match scripts::extend_locks(&mut redis, shared.queue.keys(), lock_ms, &ids, &tokens).await {
            Ok(lost) => {
                for (id, lock) in lost.iter().filter_map(|id| held.get_key_value(id)) {
                    tracing::debug!(job = id, "its lock is lost, or it has just ended");
                    lock.lost.cancel();
                }
            }
            Err(error) => tracing::warn!(%error, jobs = ids.len(), "cannot renew locks"),
        }
        // The message may have been lost with a connection.
        if let Err(error) = cancel::look_for(&shared, &ids).await {
            tracing::debug!(%error, "cannot look for jobs to cancel");
        }
    }
}

/// Puts jobs without a holder back to wait: at start, and again and again. Ends with `stop`.
pub(super) async fn rescue_stalled<H: Handler>(shared: Arc<Shared<H>>, stop: CancellationToken) {
    let interval = shared.config.stalled_interval;
    // Slightly shorter than ours, so that our own next check is not the one that is refused.
    let guard_ms = interval.as_millis() as u64 * 9 / 10;
    let mut ticks = tokio::time::interval(interval);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = stop.cancelled() => return,
        }
        shared.look_for_limit().await;
        let keys = shared.queue.keys();
        let mut redis = shared.redis();
        match scripts::move_stalled_jobs_to_wait(&mut redis, keys, MAX_STALLED, guard_ms, now_ms())
            .await
        {
            Ok(jobs) if jobs.is_empty() => {}
            Ok(jobs) => {
                tracing::warn!(?jobs, "jobs whose worker vanished go back to wait");
                jobs.iter().for_each(|job| shared.events.tell(job, EventKind::Stalled));
            }
            Err(error) => tracing::debug!(%error, "cannot look for stalled jobs"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_given_out_anew_is_lost_for_the_slot_that_had_it() {
        let locks = HeldLocks::default();
        let first = locks.hold("job", "token:0");
        let second = locks.hold("job", "token:1");
        assert!(first.lock.lost.is_cancelled());
        drop(first);
        assert_eq!(locks.snapshot()["job"].token, "token:1", "the second is still renewed");
        assert!(!second.lock.lost.is_cancelled());
        drop(second);
        assert!(locks.snapshot().is_empty());
    }
}
