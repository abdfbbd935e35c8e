//! Writing the end of a run to Redis, through outages; `finishing.rs` decides what follows each answer.

use std::time::{Duration, Instant};

use super::Shared;
use super::disposition::{Disposition, Failure, stack_trace};
use super::finishing::{Answers, Effect, Event, FinishEffect, State, next};
use crate::queue::scripts::{
    self, Attempt, Claim, Fetched, FinishReply, FinishRequest, Next, OurRun, Run, TakenBack,
};
use crate::{DeadLetter, Error, Job, Outcome, now_ms};

impl Shared {
    /// Finishes a job, through outages. `Err`: it cannot be completed, and has this outcome instead.
    pub(super) async fn finish(
        &self,
        slot: usize,
        claim: &Claim,
        job: &Job,
        disposition: &Disposition,
    ) -> Result<FinishEffect, Outcome> {
        let (mut state, mut effect) = (State::START, Effect::Write(Duration::ZERO));
        loop {
            let event = match effect {
                Effect::Write(pause) => {
                    rest(pause).await;
                    self.write(slot, claim, job, disposition).await
                }
                Effect::RemoveId(id) => removed(self.put_aside(&id).await),
                Effect::ForgetJob => {
                    // It was removed while it ran, or other software has put an id there that never was a job.
                    tracing::warn!(job = job.id, "job is gone; there is nothing to finish");
                    let (redis, keys) = (&mut self.redis(), self.queue.keys());
                    removed(scripts::forget_job(redis, keys, &job.id, &claim.token).await)
                }
                Effect::Examine(pause) => {
                    rest(pause).await;
                    self.examine(job, disposition).await
                }
                Effect::Return(effect) => return Ok(effect),
                Effect::FailInstead => {
                    let reason = "cannot be completed: a child of it has failed";
                    return Err(Outcome::Discard(reason.to_owned()));
                }
            };
            if matches!(
                (state, &event),
                (State::Writing { answer: Answers::AllCame, .. }, Event::NotOurs)
            ) {
                tracing::warn!(job = job.id, "job was finished or taken over by another worker");
            }
            (state, effect) = next(state, event);
        }
    }

    /// Writes the end once.
    async fn write(
        &self,
        slot: usize,
        claim: &Claim,
        job: &Job,
        disposition: &Disposition,
    ) -> Event {
        let asked = Instant::now();
        let next = self.what_next(slot, disposition);
        match self.write_or_take_back(claim, job, disposition, next).await {
            Ok(FinishReply::Moved(Fetched::Job(_))) if !self.is_timely(asked) => Event::LateJob,
            Ok(FinishReply::Moved(Fetched::Job(next))) => Event::NextJob(next),
            Ok(FinishReply::Moved(Fetched::Nothing { .. })) => Event::NoJob,
            Ok(FinishReply::Moved(Fetched::NoJob(id))) => Event::InvalidId(id),
            Ok(FinishReply::ChildrenPending) => Event::ChildrenPending,
            Ok(FinishReply::ChildFailed) => Event::ChildFailed,
            Ok(FinishReply::Missing) => Event::Missing,
            Ok(reply @ (FinishReply::Unlocked | FinishReply::NotOurs(_))) => {
                tracing::debug!(job = job.id, ?reply, "job is not ours");
                Event::NotOurs
            }
            Err(error) if error.is_outage() => {
                self.failed();
                // The connection logs the outage, once (`link/state.rs`).
                tracing::debug!(job = job.id, %error, "cannot finish a job");
                Event::Outage
            }
            Err(error) => {
                tracing::error!(
                    job = job.id, %error, "finishing a job met an error; if it is not finished, it runs again"
                );
                Event::Error
            }
        }
    }

    /// Reads whether a job whose end was written without a clear answer has ended by us. It has not when another
    /// worker has begun it since.
    async fn examine(&self, job: &Job, disposition: &Disposition) -> Event {
        let mut look = redis::cmd("HMGET");
        look.arg(self.queue.keys().part(&job.id)).arg("ats").arg("finishedOn");
        let found: Result<(Option<u32>, Option<String>), _> =
            look.query_async(&mut self.redis()).await;
        match found.map_err(Error::from) {
            Err(error) if error.is_outage() => {
                self.failed();
                Event::Outage
            }
            Ok((Some(starts), finished))
                if starts != job.starts || (finished.is_none() && disposition.is_final()) =>
            {
                Event::NotEndedByUs
            }
            // Also when its record is gone: its options may have it removed at its end.
            _ => Event::EndedByUs,
        }
    }

    /// Whether the finish takes a next job: only for a slot that is still wanted. With a rate limit a permit comes
    /// first; and no job is taken while it is doubtful what Redis remembers, or while an alarm may have to be raised.
    fn what_next(&self, slot: usize, disposition: &Disposition) -> Next {
        let wanted = slot < *self.slots.borrow() && !matches!(disposition, Disposition::Failed(_));
        let may_take = self.queue.broker().doubt().is_none();
        if self.quiet.is_cancelled() || !wanted || !may_take || self.is_limited() {
            Next::Leave
        } else {
            Next::Fetch
        }
    }

    /// Whether a job that was asked for then is still locked for us. After a process was suspended, or an answer
    /// took that long, another worker may have the job.
    pub(super) fn is_timely(&self, asked: Instant) -> bool {
        asked.elapsed() < self.config.lock
    }

    /// Writes the end; if the job is not locked, locks it again and writes once more.
    async fn write_or_take_back(
        &self,
        claim: &Claim,
        job: &Job,
        disposition: &Disposition,
        next: Next,
    ) -> Result<FinishReply, Error> {
        let reply = self.write_disposition(claim, job, disposition, next).await?;
        if !matches!(reply, FinishReply::Unlocked) {
            return Ok(reply);
        }
        // Either our call had been executed before, or the lock expired in an outage, or Redis has forgotten it. As
        // long as no other worker has the job, the work done for it counts.
        let (redis, keys) = (&mut self.redis(), self.queue.keys());
        let run = OurRun::of(job, &claim.token);
        if scripts::take_back(redis, keys, claim.lock_ms, &run).await? == TakenBack::Ours {
            return self.write_disposition(claim, job, disposition, Next::Leave).await;
        }
        Ok(reply)
    }

    async fn write_disposition(
        &self,
        claim: &Claim,
        job: &Job,
        disposition: &Disposition,
        next: Next,
    ) -> Result<FinishReply, Error> {
        let redis = &mut self.redis();
        let keys = self.queue.keys();
        let stack = disposition.failure().map(|failure| stack_trace(job, &failure.trace));
        let fields = disposition.fields(stack.as_deref());
        let run = Run { claim, job, fields: &fields, next, now_ms: now_ms() };
        match disposition {
            Disposition::Completed { result, .. } => {
                let request = FinishRequest::completed(&run, result);
                loop {
                    match self.finisher.complete(request.clone()).await? {
                        // It began before its children were done: it waits for them, and runs again.
                        FinishReply::ChildrenPending => {
                            if let Some(moved) = scripts::await_children(redis, keys, &run).await? {
                                return Ok(moved);
                            }
                        }
                        reply => return Ok(reply),
                    }
                }
            }
            Disposition::Failed(Failure { reason, .. }) => {
                let stack = stack.unwrap_or_default();
                let queue = self.queue.name();
                let letter = DeadLetter::of(queue, job, reason, &stack, run.now_ms);
                scripts::fail_permanently(redis, keys, &run, &letter.to_write()).await
            }
            Disposition::Cancelled(Failure { reason, .. }) => {
                scripts::move_to_failed(redis, keys, &run, reason).await
            }
            Disposition::Retried { delay: Duration::ZERO, .. } => {
                scripts::retry_job(redis, keys, &run).await
            }
            Disposition::Retried { delay, .. } => {
                let delay_ms = delay.as_millis() as u64;
                scripts::move_to_delayed(redis, keys, &run, delay_ms, Attempt::Counts).await
            }
            Disposition::Snoozed { delay } => {
                let delay_ms = delay.as_millis() as u64;
                scripts::move_to_delayed(redis, keys, &run, delay_ms, Attempt::IsFree).await
            }
        }
    }
}

async fn rest(pause: Duration) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
}

fn removed(result: Result<(), Error>) -> Event {
    if result.is_ok() { Event::Removed } else { Event::NotRemoved }
}
