//! Tidying queues up: what an operator does, by API, command line or dashboard.
//!
//! Whatever changes something goes through BullMQ's own scripts, so that Node's clients see the same events
//! as if one of them had done it.

use std::time::Duration;

use bullmq::error::error_code::{JOB_NOT_EXIST, JOB_NOT_IN_STATE};
use futures::stream::{self, StreamExt};
use redis::cmd;

use crate::dead_letters::MOST_IN_ONE_CALL;
use crate::names::check_job_to_touch;
use crate::scripts::{self, Again, Slice, SliceRemoved};
use crate::{Error, Queue, Replayed, State, now_ms};

/// Jobs that are retried at the same time.
const RETRY_AT_ONCE: usize = 32;
/// Jobs that are removed in one call: enough to share its costs, few enough to be done in some milliseconds.
const REMOVED_AT_ONCE: usize = 500;

/// A time in milliseconds that never comes, and that Lua can count to.
const HOWEVER_YOUNG: u64 = 1 << 53;

/// Jobs that an operation leaves alone, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delayed {
    /// Delayed jobs stay.
    Keep,
    /// They go too.
    Too,
}

/// Whether a queue may be destroyed while somebody works on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenActive {
    /// Then it is refused.
    Refuse,
    /// Their work is lost.
    Destroy,
}

impl Queue {
    /// Lets no worker take another job, until resumed.
    pub async fn pause(&self) -> Result<(), Error> {
        Ok(self.bull().pause().await?)
    }

    /// Lets workers go on.
    pub async fn resume(&self) -> Result<(), Error> {
        Ok(self.bull().resume().await?)
    }

    /// Whether it is paused.
    pub async fn is_paused(&self) -> Result<bool, Error> {
        self.ask(|| self.bull().is_paused()).await
    }

    /// Removes all jobs that wait; returns how many. What runs, what has ended and the next jobs of schedules stay;
    /// what comes after a removed job in a flow fails.
    ///
    /// BullMQ's own script for this cuts off the wrong end of the list when a schedule's job is in it.
    pub async fn drain(&self, delayed: Delayed) -> Result<usize, Error> {
        let delayed = (delayed == Delayed::Too).then_some(State::Delayed);
        let mut removed = 0;
        for state in State::WAITING.into_iter().chain(delayed) {
            removed += self.clean(state, Duration::ZERO, u32::MAX).await?.len();
        }
        Ok(removed)
    }

    /// Puts failed jobs back to wait, as [`Queue::retry`] does: also those of other software, which makes no
    /// dead letters. The oldest 10,000, so that it ends in time; then the next ones can be asked for.
    pub async fn retry_all(&self) -> Result<Replayed, Error> {
        let mut redis = self.broker().redis();
        let failed = self.keys().part("failed");
        let last = MOST_IN_ONE_CALL - 1;
        let ids: Vec<String> =
            cmd("ZRANGE").arg(failed).arg(0).arg(last).query_async(&mut redis).await?;
        let each = stream::iter(ids).map(|id| async move {
            let retried = self.retry(&id).await;
            (id, retried)
        });
        Replayed::of(each.buffered(RETRY_AT_ONCE)).await
    }

    /// Removes jobs in a state to which nothing has happened for `grace`, at most `limit`, in the order in which they
    /// would be taken or have ended; returns their ids. What comes after a removed job in a flow fails.
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

    /// Removes what stands in a list or set, step by step; tells which jobs are gone.
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
            // Those that stay are passed over next time, and parents that have come to wait, and to fail.
            skip += seen - gone.len() + come;
            left -= gone.len();
            tell(gone);
            if seen < count {
                break;
            }
        }
        Ok(())
    }

    /// Puts a failed job back to wait, with all its attempts, and takes its dead letter away. In a flow, it takes
    /// those along that failed because of it. `Ok(false)`: it has not failed.
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
            // Its time has come meanwhile.
            Err(bullmq::Error::Script { code: JOB_NOT_IN_STATE | JOB_NOT_EXIST, .. }) => Ok(false),
            promoted => Ok(promoted.map(|_| true)?),
        }
    }

    /// Destroys the queue with everything in it; its dead letters stay. Nobody takes jobs from it meanwhile. What
    /// comes after its jobs in flows fails.
    pub async fn obliterate(&self, when_active: WhenActive) -> Result<(), Error> {
        let was_paused = self.is_paused().await?;
        self.pause().await?;
        let destroyed = self.destroy(when_active).await;
        if destroyed.is_err() && !was_paused {
            // As it was before; if that fails, too, there is a reason for both.
            let _ = self.resume().await;
        }
        destroyed
    }

    async fn destroy(&self, when_active: WhenActive) -> Result<(), Error> {
        // Of a paused queue nobody takes another one. (The crate does not ask BullMQ's script to refuse.)
        if when_active == WhenActive::Refuse && self.size(State::Active).await? > 0 {
            return Err(Error::Busy { queue: self.name().to_owned() });
        }
        // Parents first: one whose child is removed comes to wait, and must not be overlooked there.
        let others = State::ALL.into_iter().filter(|state| *state != State::WaitingChildren);
        for state in [State::WaitingChildren].into_iter().chain(others) {
            self.remove_all(state.key(), usize::MAX, HOWEVER_YOUNG, WhenActive::Destroy, drop)
                .await?;
        }
        // What is left: schedules with their next jobs, and all that is not a job.
        Ok(self.bull().obliterate(true, 1000).await?)
    }

    /// Most jobs that all workers together may run at a time; `None` lifts the limit.
    pub async fn set_global_concurrency(&self, jobs: Option<u64>) -> Result<(), Error> {
        match jobs {
            Some(jobs) => Ok(self.bull().set_global_concurrency(jobs).await?),
            None => Ok(self.bull().remove_global_concurrency().await?),
        }
    }

    /// That limit, if there is one.
    pub async fn global_concurrency(&self) -> Result<Option<u64>, Error> {
        let mut redis = self.broker().redis();
        let meta = self.keys().part("meta");
        let set: Option<String> =
            cmd("HGET").arg(meta).arg("concurrency").query_async(&mut redis).await?;
        Ok(set.and_then(|jobs| jobs.parse().ok()))
    }
}
