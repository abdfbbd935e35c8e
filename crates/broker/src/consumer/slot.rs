//! One slot: runs a job, finishes it, and goes on with the next one that the finish brought along.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;

use super::ending::{Ending, Failure, decide, stack_trace};
use super::fetch::Admitted;
use super::{EventKind, FreeSlot, Handler, JobContext, Left, PAUSE, Shared, panics};
use crate::scripts::{self, Attempt, Claim, End, Fetched, Finished, Next, OurRun, Run, TakenBack};
use crate::{DeadLetter, Error, Job, Outcome, now_ms};

/// What a slot has after it finished a job.
enum After {
    /// The next job.
    Next(Box<Job>),
    Nothing,
    /// Perhaps a job: an answer of Redis was lost.
    Unknown,
    /// Its own job still, which could not be ended.
    Culprit,
}

/// Whether the end of a run is the end of its job, and what the slot has then.
enum Written {
    Ours(After),
    /// It is not: the job waits for children of it that are not done, and runs again.
    Later,
    /// Somebody else has ended the job, or will; or it is gone.
    NotOurs(After),
}

impl<H: Handler> Shared<H> {
    /// Works on a job and on all that follow it; returns the slot when there is none left.
    pub(super) async fn work(self: Arc<Self>, slot: usize, admitted: Admitted) -> FreeSlot {
        let working = AssertUnwindSafe(self.work_on_all(slot, admitted));
        // Handlers' panics end elsewhere. Whatever this one was, a slot and its job must not vanish.
        working.catch_unwind().await.unwrap_or(FreeSlot { number: slot, left: Left::Culprit })
    }

    async fn work_on_all(&self, slot: usize, mut admitted: Admitted) -> FreeSlot {
        let claim = self.claim(slot);
        loop {
            match self.work_on(slot, &claim, admitted).await {
                After::Next(job) => admitted = Admitted { job, permit: None },
                After::Nothing => return FreeSlot { number: slot, left: Left::Nothing },
                After::Unknown => return FreeSlot { number: slot, left: Left::Perhaps },
                After::Culprit => return FreeSlot { number: slot, left: Left::Culprit },
            }
        }
    }

    async fn work_on(&self, slot: usize, claim: &Claim, admitted: Admitted) -> After {
        let Admitted { job, permit } = admitted;
        let job = &*job;
        let _running = self.events.running();
        let held = self.held.hold(job, &claim.token);
        let running = async {
            self.schedule_next(job).await;
            if let Some(delay) = self.must_wait(permit).await {
                return Ending::Snoozed { delay };
            }
            self.events.tell(&job.id, EventKind::Started);
            self.run_handler(job).await
        };
        let mut ending = tokio::select! {
            // Whoever was told to cancel it before it began does not begin.
            biased;
            () = held.lost() => {
                tracing::warn!(job = job.id, "lost its lock; another worker may run it now");
                self.events.tell(&job.id, EventKind::LockLost);
                return After::Nothing;
            }
            reason = held.cancelled() => {
                tracing::info!(job = job.id, reason, "was cancelled");
                // Its schedule was not. (Done twice is like once.)
                self.schedule_next(job).await;
                Ending::Cancelled(self.settled(job, format!("cancelled: {reason}").into()).await)
            }
            ending = running => ending,
        };
        let written = loop {
            let finished = self.finish_stubbornly(slot, claim, job, &ending).await;
            self.outages.worked();
            match finished {
                Ok(written) => break written,
                // Only a completion is refused: what comes instead of it is not.
                Err(outcome) => ending = self.end(job, outcome, None).await,
            }
        };
        let after = match written {
            Written::Ours(after) => after,
            Written::Later => {
                self.events.tell(&job.id, EventKind::Snoozed);
                return After::Nothing;
            }
            Written::NotOurs(after) => {
                self.events.tell(&job.id, EventKind::LockLost);
                return after;
            }
        };
        self.events.tell(&job.id, ending.event());
        // Whoever is alarmed may replay it at once: it is not ours any more.
        drop(held);
        if let Ending::Failed(failure) = &ending {
            let (queue, reason) = (self.queue.name(), &failure.reason);
            tracing::warn!(
                job = job.id,
                queue,
                reason,
                "failed for good, and is a dead letter now"
            );
            self.handler.dead_lettered(job, &failure.reason).await;
        }
        after
    }

    /// Puts the next job of a schedule on the queue: without it the schedule would be over.
    async fn schedule_next(&self, job: &Job) {
        let mut pause = PAUSE.0;
        while let Err(error) = self.queue.schedule_next(job, now_ms()).await {
            if !error.is_outage() {
                // The stalled check does not see this, so it must be told.
                tracing::error!(job = job.id, %error, "cannot add the next job of its schedule");
                return;
            }
            self.failed();
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Runs the handler and decides what becomes of the job.
    async fn run_handler(&self, job: &Job) -> Ending {
        if let Some(reason) = self.must_not_run(job) {
            self.mend(job).await;
            return self.fail(job, reason.into()).await;
        }
        let context = JobContext::new(&self.queue, job);
        // Whatever the handler has begun elsewhere hears of its end, in whatever way that comes.
        let _over = context.cancellation().drop_guard();
        let run = async {
            // Dropped after it was told that its time is over.
            let mut run = std::pin::pin!(self.handler.run(job, &context));
            match self.handler.policy(&job.name).timeout {
                None => run.await,
                Some(limit) => tokio::select! {
                    // What is done is done, however late.
                    biased;
                    outcome = &mut run => outcome,
                    () = tokio::time::sleep(limit) => {
                        context.set_overdue();
                        Outcome::Retry(format!("took longer than its limit of {limit:?}"))
                    }
                },
            }
        };
        match AssertUnwindSafe(run).catch_unwind().await {
            Ok(outcome) => match self.end(job, outcome, None).await {
                Ending::Completed { result, .. } => {
                    Ending::Completed { result, progress: context.shows_progress() }
                }
                ending => ending,
            },
            Err(panic) => {
                let (message, trace) = panics::describe(&*panic);
                self.end(job, Outcome::Retry(message), Some(trace)).await
            }
        }
    }

    /// Why a job is failed instead of run.
    fn must_not_run(&self, job: &Job) -> Option<String> {
        let (bytes, most) = (job.raw_data.len(), self.queue.broker().max_payload());
        job.deferred_failure.clone().or_else(|| {
            (bytes > most).then(|| format!("its payload has {bytes} bytes, and {most} is the most"))
        })
    }

    /// Makes sure that no script stumbles over what other software has left in a job.
    async fn mend(&self, job: &Job) {
        while let Err(error) = scripts::mend(&mut self.redis(), self.queue.keys(), &job.id).await {
            if !error.is_outage() {
                tracing::error!(job = job.id, %error, "cannot be mended");
                return;
            }
            self.failed();
            tokio::time::sleep(PAUSE.1).await;
        }
    }

    /// Decides what becomes of a job with this outcome; a failure for good is settled first.
    async fn end(&self, job: &Job, outcome: Outcome, trace: Option<String>) -> Ending {
        let decided = catch_unwind(AssertUnwindSafe(|| {
            let policy = self.handler.policy(&job.name);
            decide(job, outcome, policy.retry.attempts, |attempts_made| {
                let pause = job.pause.clone().unwrap_or_else(|| policy.retry.pause());
                let named = |name: &str| self.handler.custom_backoff(name, job);
                pause.after(attempts_made, fastrand::f64(), named)
            })
        }));
        // A handler that cannot even say how to go on: nothing would be gained by another attempt.
        let ending = decided.unwrap_or_else(|panic| {
            let (reason, trace) = panics::describe(&*panic);
            Ending::Failed(Failure { reason, trace })
        });
        match ending {
            Ending::Failed(failure) => self.fail(job, failure.with(trace)).await,
            Ending::Retried { delay, failure } => {
                Ending::Retried { delay, failure: failure.with(trace) }
            }
            ending => ending,
        }
    }

    /// Fails a job for good, after the handler has heard of it.
    async fn fail(&self, job: &Job, failure: Failure) -> Ending {
        Ending::Failed(self.settled(job, failure).await)
    }

    /// Tells the handler that a job fails for good: what it writes about that must not be missed.
    async fn settled(&self, job: &Job, failure: Failure) -> Failure {
        let mut pause = PAUSE.0;
        loop {
            let settle =
                AssertUnwindSafe(async { self.handler.exhausted(job, &failure.reason).await });
            let settled = settle.catch_unwind().await;
            let Err(error) = settled.unwrap_or_else(|panic| Err(panics::describe(&*panic).0))
            else {
                return failure;
            };
            tracing::warn!(job = job.id, error, retry_in = ?pause, "cannot record a failed job");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Finishes the job; an outage of Redis is waited out, however long: the work is done, and Redis
    /// will say whether the job is still ours. `Err`: it cannot be completed, and this is what to
    /// make of it.
    async fn finish_stubbornly(
        &self,
        slot: usize,
        claim: &Claim,
        job: &Job,
        ending: &Ending,
    ) -> Result<Written, Outcome> {
        let mut pause = PAUSE.0;
        let mut answer_lost = false;
        loop {
            let asked = Instant::now();
            let error = match self.finish(claim, job, ending, self.what_next(slot, ending)).await {
                Ok(Finished::Moved(Fetched::Job(_))) if !self.is_timely(asked) => {
                    return Ok(Written::Ours(After::Unknown));
                }
                Ok(Finished::Moved(Fetched::Job(next))) => {
                    return Ok(Written::Ours(After::Next(next)));
                }
                Ok(Finished::Moved(Fetched::Nothing { .. })) => {
                    return Ok(Written::Ours(After::Nothing));
                }
                Ok(Finished::Moved(Fetched::NoJob(id))) => {
                    let aside = self.put_aside(&id).await;
                    let after = if aside.is_ok() { After::Nothing } else { After::Unknown };
                    return Ok(Written::Ours(after));
                }
                // Most likely our first call did arrive, and perhaps it fetched a job for us.
                Ok(Finished::Missing | Finished::Unlocked | Finished::NotOurs(_))
                    if answer_lost =>
                {
                    return Ok(self.look_what_became_of(job, ending).await);
                }
                Ok(Finished::ChildrenPending) => return Ok(Written::Later),
                Ok(Finished::ChildFailed) => {
                    let reason = "cannot be completed: a child of it has failed";
                    return Err(Outcome::Discard(reason.to_owned()));
                }
                Ok(Finished::Missing) => {
                    // Somebody removed it while it ran, or put an id there that never was a job.
                    tracing::warn!(job = job.id, "is gone; nothing is left to finish");
                    let (redis, keys) = (&mut self.redis(), self.queue.keys());
                    let forgotten = scripts::forget(redis, keys, &job.id, &claim.token).await;
                    let after = if forgotten.is_ok() { After::Nothing } else { After::Unknown };
                    return Ok(Written::NotOurs(after));
                }
                Ok(finished @ (Finished::Unlocked | Finished::NotOurs(_))) => {
                    let id = &job.id;
                    tracing::warn!(job = id, ?finished, "was finished or taken over by another");
                    return Ok(Written::NotOurs(After::Nothing));
                }
                Err(error) => error,
            };
            if error.is_outage() {
                self.failed();
                answer_lost = true;
                // The connection tells of the outage, once (`connection/state.rs`).
                tracing::debug!(job = job.id, %error, retry_in = ?pause, "cannot finish");
            } else {
                tracing::error!(job = job.id, %error, "was finished with an error; if it was not, it runs again");
                // The same would happen at once, and again: it must neither spin nor go on for ever.
                tokio::time::sleep(PAUSE.1).await;
                return Ok(match self.look_what_became_of(job, ending).await {
                    Written::Ours(_) => Written::Ours(After::Culprit),
                    _ => Written::NotOurs(After::Culprit),
                });
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Whose a job is whose end was written without a clear answer: ours, unless it has not ended, or
    /// somebody has begun it since.
    async fn look_what_became_of(&self, job: &Job, ending: &Ending) -> Written {
        let mut look = redis::cmd("HMGET");
        look.arg(self.queue.keys().part(&job.id)).arg("ats").arg("finishedOn");
        loop {
            let found: Result<(Option<u32>, Option<String>), _> =
                look.query_async(&mut self.redis()).await;
            return match found.map_err(Error::from) {
                Err(error) if error.is_outage() => {
                    self.failed();
                    tokio::time::sleep(PAUSE.1).await;
                    continue;
                }
                Ok((Some(starts), finished))
                    if starts != job.starts || (finished.is_none() && ending.is_final()) =>
                {
                    Written::NotOurs(After::Unknown)
                }
                // Or it did not stay, as its options may have it.
                _ => Written::Ours(After::Unknown),
            };
        }
    }

    /// Only slots that are still wanted take another job, with a limit only after a permit, and none
    /// while it is doubtful what Redis remembers, or while somebody may have to be alarmed first.
    fn what_next(&self, slot: usize, ending: &Ending) -> Next {
        let wanted = slot < *self.slots.borrow() && !matches!(ending, Ending::Failed(_));
        let may_take = self.queue.broker().doubt().is_none();
        if self.quiet.is_cancelled() || !wanted || !may_take || self.is_limited() {
            Next::Leave
        } else {
            Next::Fetch
        }
    }

    /// Whether a job that was asked for then is still locked for us. A process that was stopped in
    /// between, or an answer that took so long, may be behind the times: another has the job now.
    pub(super) fn is_timely(&self, asked: Instant) -> bool {
        asked.elapsed() < self.config.lock
    }

    async fn finish(
        &self,
        claim: &Claim,
        job: &Job,
        ending: &Ending,
        next: Next,
    ) -> Result<Finished, Error> {
        let finished = self.write_ending(claim, job, ending, next).await?;
        if !matches!(finished, Finished::Unlocked) {
            return Ok(finished);
        }
        // Either our call had arrived before, or the lock expired in an outage, or Redis has forgotten
        // it. As long as nobody else has the job, what was done for it counts.
        let (redis, keys) = (&mut self.redis(), self.queue.keys());
        let run = OurRun::of(job, &claim.token);
        if scripts::take_back(redis, keys, claim.lock_ms, &run).await? == TakenBack::Ours {
            return self.write_ending(claim, job, ending, Next::Leave).await;
        }
        Ok(finished)
    }

    async fn write_ending(
        &self,
        claim: &Claim,
        job: &Job,
        ending: &Ending,
        next: Next,
    ) -> Result<Finished, Error> {
        let redis = &mut self.redis();
        let keys = self.queue.keys();
        let stack = ending.failure().map(|failure| stack_trace(job, &failure.trace));
        let fields = ending.fields(stack.as_deref());
        let run = Run { claim, job, fields: &fields, next, now_ms: now_ms() };
        match ending {
            Ending::Completed { result, .. } => {
                let end = End::completed(&run, result);
                loop {
                    match self.finisher.complete(end.clone()).await? {
                        // It began before they were done: it waits for them, and runs again.
                        Finished::ChildrenPending => {
                            if let Some(moved) = scripts::await_children(redis, keys, &run).await? {
                                return Ok(moved);
                            }
                        }
                        finished => return Ok(finished),
                    }
                }
            }
            Ending::Failed(Failure { reason, .. }) => {
                let stack = stack.unwrap_or_default();
                let queue = self.queue.name();
                let letter = DeadLetter::of(queue, job, reason, &stack, run.now_ms);
                scripts::fail_for_good(redis, keys, &run, &letter).await
            }
            Ending::Cancelled(Failure { reason, .. }) => {
                scripts::move_to_failed(redis, keys, &run, reason).await
            }
            Ending::Retried { delay: Duration::ZERO, .. } => {
                scripts::retry_job(redis, keys, &run).await
            }
            Ending::Retried { delay, .. } => {
                let delay_ms = delay.as_millis() as u64;
                scripts::move_to_delayed(redis, keys, &run, delay_ms, Attempt::Counts).await
            }
            Ending::Snoozed { delay } => {
                let delay_ms = delay.as_millis() as u64;
                scripts::move_to_delayed(redis, keys, &run, delay_ms, Attempt::IsFree).await
            }
        }
    }
}
