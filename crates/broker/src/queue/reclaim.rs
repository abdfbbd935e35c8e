//! Putting the jobs of a worker that died back to wait, at once instead of when their locks expire.

use futures::stream::{self, StreamExt, TryStreamExt};
use redis::{cmd, pipe};

use crate::queue::scripts::{count_crash, move_job_from_active_to_wait, repair};
use crate::{Error, Queue};

/// A job whose worker died more often than this is taken for the cause.
const MAX_CRASHES: u32 = 3;

/// Jobs that are given back at the same time: a consumer that stops has little time.
const AT_ONCE: usize = 50;

/// An active job and the token of its lock.
struct LockedJob {
    id: String,
    lock: String,
}

impl Queue {
    /// Puts the jobs of a worker that crashed back to wait. `token` is the consumer's token.
    ///
    /// A job with too many crashes is marked, so that the next worker fails it instead of running it: one poisonous
    /// job must not crash worker after worker.
    pub async fn reclaim_crashed(&self, token: &str) -> Result<usize, Error> {
        Ok(self.hand_back_counting_crashes(|lock| belongs_to(lock, token)).await?.len())
    }

    /// Puts jobs back to wait that crashed their worker or could not be ended, and counts that on them.
    pub(crate) async fn hand_back_counting_crashes(
        &self,
        is_ours: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>, Error> {
        let mut redis = self.broker().redis();
        let mut given_back = Vec::new();
        // One after the other: a job that was counted goes back, or an outage would make it count again.
        for job in self.locked_jobs(is_ours).await? {
            // Before it goes back: the next worker may take it at once.
            count_crash(&mut redis, self.keys(), &job.lock, &job.id, MAX_CRASHES).await?;
            given_back.extend(self.put_back(vec![job]).await?);
        }
        Ok(given_back)
    }

    /// Puts the active jobs back to wait whose lock `is_ours`.
    pub(crate) async fn hand_back(
        &self,
        is_ours: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>, Error> {
        let jobs = self.locked_jobs(is_ours).await?;
        self.put_back(jobs).await
    }

    async fn locked_jobs(&self, is_ours: impl Fn(&str) -> bool) -> Result<Vec<LockedJob>, Error> {
        let keys = self.keys();
        let mut redis = self.broker().redis();
        let active: Vec<Vec<u8>> =
            cmd("LRANGE").arg(keys.part("active")).arg(0).arg(-1).query_async(&mut redis).await?;
        // An id that is not UTF-8 is no job of ours.
        let active: Vec<String> =
            active.into_iter().filter_map(|id| String::from_utf8(id).ok()).collect();
        if active.is_empty() {
            return Ok(Vec::new());
        }
        let mut locks = pipe();
        for id in &active {
            locks.get(keys.lock(id));
        }
        let locks: Vec<Option<String>> = locks.query_async(&mut redis).await?;
        let jobs = active.into_iter().zip(locks);
        let jobs = jobs.filter_map(|(id, lock)| Some(LockedJob { id, lock: lock? }));
        Ok(jobs.filter(|job| is_ours(&job.lock)).collect())
    }

    async fn put_back(&self, jobs: Vec<LockedJob>) -> Result<Vec<String>, Error> {
        let each = stream::iter(jobs).map(|LockedJob { id, lock }| async move {
            let (redis, keys) = (&mut self.broker().redis(), self.keys());
            // A malformed job may have caused the error; then the next script would abort, too.
            repair(redis, keys, &id).await?;
            let is_back = move_job_from_active_to_wait(redis, keys, &lock, &id).await?;
            Ok::<_, Error>(is_back.then_some(id))
        });
        let given_back: Vec<Option<String>> = each.buffered(AT_ONCE).try_collect().await?;
        let given_back: Vec<String> = given_back.into_iter().flatten().collect();
        if !given_back.is_empty() {
            // The script sets no marker for jobs with a priority; without one, idle workers do not wake.
            self.set_marker().await?;
        }
        Ok(given_back)
    }

    /// Wakes one idle worker.
    pub(crate) async fn set_marker(&self) -> Result<(), Error> {
        let mut redis = self.broker().redis();
        let marker = self.keys().part("marker");
        let _: i64 = cmd("ZADD").arg(marker).arg(0).arg("0").query_async(&mut redis).await?;
        Ok(())
    }
}

/// The token of one slot. Each slot has its own, so that after a broken connection it can tell which jobs were given
/// to it in a lost answer.
pub(crate) fn slot_token(token: &str, slot: usize) -> String {
    format!("{token}:{slot}")
}

/// Whether a lock is held by one of the slots of the consumer with this token.
pub(crate) fn belongs_to(lock: &str, token: &str) -> bool {
    let slot = lock.strip_prefix(token).and_then(|rest| rest.strip_prefix(':'));
    slot.is_some_and(|slot| slot.parse::<usize>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_begins_like_another_owns_none_of_its_locks() {
        assert!(belongs_to(&slot_token("node-1:ab", 12), "node-1:ab"));
        assert!(!belongs_to(&slot_token("node-1:ab", 12), "node-1"));
        assert!(!belongs_to(&slot_token("node-1:abc", 12), "node-1:ab"));
    }
}
