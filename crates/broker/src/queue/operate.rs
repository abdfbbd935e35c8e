//! Operating queues: pause, drain, clean, retry, promote, obliterate; by API, command line or dashboard.
//!
//! Every change goes through BullMQ's own scripts, so that Node's clients see the same events as if one of them had
//! made it.

use std::time::Duration;

use bullmq::error::error_code::{JOB_NOT_EXIST, JOB_NOT_IN_STATE};
use futures::stream::{self, StreamExt};
use redis::cmd;

use crate::queue::dead_letters::MOST_IN_ONE_CALL;
use crate::queue::names::check_job_to_touch;
use crate::queue::scripts::{self, Again, Slice, SliceRemoved};
use crate::{BulkResult, Error, Queue, State, WhenActive, now_ms};

/// Jobs that are retried at the same time.
const RETRY_AT_ONCE: usize = 32;
/// Jobs that are removed in one call: enough to share its costs, few enough to take only milliseconds.
const REMOVED_AT_ONCE: usize = 500;

/// Jobs that are drained before the next look at whether any is left.
const DRAINED_AT_ONCE: usize = 10_000;

/// A time in milliseconds that never comes, and that Lua's numbers can represent.
const HOWEVER_YOUNG: u64 = 1 << 53;

/// Whether draining removes delayed jobs, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delayed {
    /// Delayed jobs stay.
    Keep,
    /// Delayed jobs are removed, too.
    Too,
}

impl Queue {
    /// Pauses the queue: no worker takes another job until it is resumed.
    pub async fn pause(&self) -> Result<(), Error> {
        Ok(self.bull().pause().await?)
    }

    /// Resumes a paused queue.
    pub async fn resume(&self) -> Result<(), Error> {
        Ok(self.bull().resume().await?)
    }

    /// Whether it is paused.
    pub async fn is_paused(&self) -> Result<bool, Error> {
        self.ask(|| self.bull().is_paused()).await
    }

    /// Removes all jobs that wait; returns how many. Running and ended jobs and the next jobs of schedules stay; the
    /// parents of removed jobs fail.
    ///
    /// BullMQ's own script for this cuts off the wrong end of the list when a schedule's job is in it.
    pub async fn drain(&self, delayed: Delayed) -> Result<usize, Error> {
        let mut removed = 0;
        loop {
            let portion = self.drain_some(delayed, DRAINED_AT_ONCE).await?;
            removed += portion;
            if portion < DRAINED_AT_ONCE {
                return Ok(removed);
            }
        }
    }

    /// Removes at most so many jobs that wait, as [`Queue::drain`] does; returns how many. Fewer: no job waits any more.
    pub async fn drain_some(&self, delayed: Delayed, most: usize) -> Result<usize, Error> {
        let delayed = (delayed == Delayed::Too).then_some(State::Delayed);
        let mut removed = 0;
        for state in State::WAITING.into_iter().chain(delayed) {
            let left = most.saturating_sub(removed);
            if left > 0 {
                let left = u32::try_from(left).unwrap_or(u32::MAX);
                removed += self.clean(state, Duration::ZERO, left).await?.len();
            }
        }
        Ok(removed)
    }

    /// The number of jobs that [`Queue::drain`] would remove.
    pub async fn drainable(&self, delayed: Delayed) -> Result<usize, Error> {
        let delayed = (delayed == Delayed::Too).then_some(State::Delayed);
        let mut size = 0;
        for state in State::WAITING.into_iter().chain(delayed) {
            size += self.size(state).await?;
        }
        Ok(size)
    }

    /// Puts failed jobs back to wait, as [`Queue::retry`] does, also those without a dead letter, which other software
    /// has failed. One call handles the oldest 10,000, so that it ends in time.
    pub async fn retry_all(&self) -> Result<BulkResult, Error> {
        let mut redis = self.broker().redis();
        let failed = self.keys().part("failed");
        let last = MOST_IN_ONE_CALL - 1;
        let ids: Vec<String> =
            cmd("ZRANGE").arg(failed).arg(0).arg(last).query_async(&mut redis).await?;
        let each = stream::iter(ids).map(|id| async move {
            let retried = self.retry(&id).await;
            (id, retried)
        });
        BulkResult::of(each.buffered(RETRY_AT_ONCE)).await
    }

    /// Removes at most `limit` jobs in a state that have not changed for `grace`, in the order in which they would be
    /// taken or have ended; returns their ids. The parents of removed jobs fail.
    pub async fn clean(
        &self,
        state: State,
        grace: Duration,
        limit: u32,
    ) -> Result<Vec<String>, Error> {
        let since_ms = now_ms().saturating_sub(grace.as_millis() as u64);
        let mut removed = Vec::new();
        self.remove_all(state.key(), limit as usize, since_ms, WhenActive::Refuse, |ids| {
            removed.extend(ids)
        })
        .await?;
        Ok(removed)
    }

    /// Removes the jobs of a list or set in steps; passes the ids of removed jobs to `tell`.
    async fn remove_all(
        &self,
        part: &str,
        limit: usize,
        since_ms: u64,
        when_active: WhenActive,
        mut tell: impl FnMut(Vec<String>),
    ) -> Result<(), Error> {
        let mut redis = self.broker().redis();
        let (mut left, mut skip) = (limit, 0);
        while left > 0 {
            let count = REMOVED_AT_ONCE;
            let slice = Slice { part, skip, count, most: left, since_ms, when_active };
            let SliceRemoved { seen, gone, come } =
                scripts::remove_slice(&mut redis, self.keys(), &slice).await?;
            // The next call skips the jobs that stay, and parents that were added to be failed.
            skip += seen - gone.len() + come;
            left -= gone.len();
            tell(gone);
            if seen < count {
                break;
            }
        }
        Ok(())
    }

    /// Puts a failed job back to wait, with all its attempts, and removes its dead letter. Parents in a flow that
    /// failed because of it wait for it again. `Ok(false)`: it is not among the failed jobs.
    pub async fn retry(&self, job_id: &str) -> Result<bool, Error> {
        let mut redis = self.broker().redis();
        check_job_to_touch(job_id)?;
        match scripts::replay(&mut redis, self.keys(), job_id, None, None, now_ms()).await? {
            Again::Waits => self.wake_parents(job_id).await.map(|()| true),
            Again::NotFailed | Again::Missing | Again::Changed => Ok(false),
            Again::Blocked(child) => Err(Error::ChildFailed { id: job_id.to_owned(), child }),
        }
    }

    /// Lets a delayed job begin now. `Ok(false)`: it is not delayed.
    pub async fn promote(&self, job_id: &str) -> Result<bool, Error> {
        let Some(job) = self.bull().get_job(job_id).await? else { return Ok(false) };
        if self.state_of(job_id).await? != Some(State::Delayed) {
            return Ok(false);
        }
        match job.promote().await {
            // It became due meanwhile.
            Err(bullmq::Error::Script { code: JOB_NOT_IN_STATE | JOB_NOT_EXIST, .. }) => Ok(false),
            promoted => Ok(promoted.map(|_| true)?),
        }
    }

    /// Destroys the queue with all its jobs; its dead letters stay. It is paused meanwhile. The parents of its jobs in
    /// other queues fail.
    pub async fn obliterate(&self, when_active: WhenActive) -> Result<(), Error> {
        self.obliterate_some(when_active, usize::MAX).await.map(|_| ())
    }

    /// Destroys at most so many jobs, and with the last one the queue; returns how many are left. It stays paused until it is
    /// destroyed.
    pub async fn obliterate_some(
        &self,
        when_active: WhenActive,
        most: usize,
    ) -> Result<usize, Error> {
        let was_paused = self.is_paused().await?;
        self.pause().await?;
        let destroyed = self.destroy(when_active, most).await;
        if destroyed.is_err() && !was_paused {
            // As it was before; if this fails, too, it is for the same reason.
            let _ = self.resume().await;
        }
        destroyed
    }

    /// The number of jobs in all states.
    async fn all_jobs(&self) -> Result<usize, Error> {
        let mut size = 0;
        for state in State::ALL {
            size += self.size(state).await?;
        }
        Ok(size)
    }

    async fn destroy(&self, when_active: WhenActive, most: usize) -> Result<usize, Error> {
        // No worker takes another job of a paused queue. (The crate does not ask BullMQ's script to refuse.)
        if when_active == WhenActive::Refuse && self.size(State::Active).await? > 0 {
            return Err(Error::Busy { queue: self.name().to_owned() });
        }
        // Parents first: a parent whose child is removed is moved to wait, and must not be missed there.
        let others = State::ALL.into_iter().filter(|state| *state != State::WaitingChildren);
        let mut removed = 0;
        for state in [State::WaitingChildren].into_iter().chain(others) {
            let most = most - removed;
            let count = |ids: Vec<String>| removed += ids.len();
            self.remove_all(state.key(), most, HOWEVER_YOUNG, WhenActive::Destroy, count).await?;
        }
        if removed >= most {
            let left = self.all_jobs().await?;
            if left > 0 {
                return Ok(left);
            }
        }
        // This removes the rest: schedules with their next jobs, and all keys that are not jobs.
        self.bull().obliterate(true, 1000).await?;
        Ok(0)
    }

    /// Sets how many jobs all workers together may run at a time; `None` removes the limit.
    pub async fn set_global_concurrency(&self, jobs: Option<u64>) -> Result<(), Error> {
        match jobs {
            Some(jobs) => Ok(self.bull().set_global_concurrency(jobs).await?),
            None => Ok(self.bull().remove_global_concurrency().await?),
        }
    }

    /// How many jobs all workers together may run at a time, if that is limited.
    pub async fn global_concurrency(&self) -> Result<Option<u64>, Error> {
        let mut redis = self.broker().redis();
        let meta = self.keys().part("meta");
        let set: Option<String> =
            cmd("HGET").arg(meta).arg("concurrency").query_async(&mut redis).await?;
        Ok(set.and_then(|jobs| jobs.parse().ok()))
    }
}
