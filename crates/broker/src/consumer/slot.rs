//! One slot: runs a job, finishes it, and goes on with the next one that the finish brought along.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use super::{EventKind, FreeSlot, Handler, JobContext, PAUSE, Shared, now_ms, panics};
use crate::scripts::{
    self, Attempt, Claim, Fetched, Finished, JOB_MISSING, LOCK_MISSING, Next, Run,
};
use crate::{DeadLetter, Error, Job, Outcome};

/// What is to be written about a job that has ended.
enum Ending {
    Completed { result: String },
    Failed(Failure),
    Retried { delay: Duration, failure: Failure },
    Snoozed { delay: Duration },
}

/// Why an attempt failed.
struct Failure {
    reason: String,
    /// The entry for the job's `stacktrace`.
    trace: String,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self { trace: reason.clone(), reason }
    }
}

/// What a slot has after it finished a job.
enum After {
    /// The next job.
    Next(Box<Job>),
    Nothing,
    /// Perhaps a job: an answer of Redis was lost.
    Unknown,
}

impl<H: Handler> Shared<H> {
    /// Works on `job` and on all that follow it; returns the slot when there is none left.
    pub(super) async fn work(self: Arc<Self>, slot: usize, job: Box<Job>) -> FreeSlot {
        let working = AssertUnwindSafe(self.work_on_all(slot, job));
        // Handlers' panics end elsewhere. Whatever this one was, a slot and its job must not vanish.
        working.catch_unwind().await.unwrap_or(FreeSlot { number: slot, answer_lost: true })
    }

    async fn work_on_all(&self, slot: usize, mut job: Box<Job>) -> FreeSlot {
        let claim = self.claim(slot);
        loop {
            match self.work_on(slot, &claim, &job).await {
                After::Next(next) => job = next,
                After::Nothing => return FreeSlot { number: slot, answer_lost: false },
                After::Unknown => return FreeSlot { number: slot, answer_lost: true },
            }
        }
    }

    async fn work_on(&self, slot: usize, claim: &Claim, job: &Job) -> After {
        let _running = self.events.running();
        let held = self.held.hold(&job.id, &claim.token);
        self.events.tell(&job.id, EventKind::Started);
        if let Err(error) = self.queue.schedule_next(job, now_ms()).await {
            // The stalled check does not see this, so it must be told.
            tracing::error!(job = job.id, %error, "cannot add the next job of its schedule");
        }
        let ending = tokio::select! {
            ending = self.run_handler(job) => ending,
            reason = held.cancelled() => {
                tracing::info!(job = job.id, reason, "was cancelled");
                self.fail(job, format!("cancelled: {reason}").into()).await
            }
            () = held.lost() => {
                tracing::warn!(job = job.id, "lost its lock; another worker may run it now");
                self.events.tell(&job.id, EventKind::LockLost);
                return After::Nothing;
            }
        };
        // Only slots that are still wanted take another job, and with a limit only after a permit.
        let wanted = slot < *self.slots.borrow();
        let next = if self.quiet.is_cancelled() || !wanted || self.is_limited() {
            Next::Leave
        } else {
            Next::Fetch
        };
        let after = self.finish_stubbornly(claim, job, &ending, next).await;
        self.events.tell(&job.id, ending.event());
        if let Ending::Failed(failure) = &ending {
            self.handler.dead_lettered(job, &failure.reason).await;
        }
        after
    }

    /// Runs the handler and decides what becomes of the job.
    async fn run_handler(&self, job: &Job) -> Ending {
        if let Some(reason) = &job.deferred_failure {
            return self.fail(job, reason.clone().into()).await;
        }
        let policy = self.handler.policy(&job.name);
        let context = JobContext::new(&self.queue, job);
        let run = AssertUnwindSafe(async { self.handler.run(job, &context).await }).catch_unwind();
        let ended = match policy.timeout {
            None => run.await,
            Some(limit) => tokio::time::timeout(limit, run).await.unwrap_or_else(|_| {
                Ok(Outcome::Retry(format!("took longer than its limit of {limit:?}")))
            }),
        };
        let (outcome, trace) = match ended {
            Ok(outcome) => (outcome, None),
            Err(panic) => {
                let (message, trace) = panics::describe(&*panic);
                (Outcome::Retry(message), Some(trace))
            }
        };
        let backoff = |attempts_made: u32| {
            let backoff = job.backoff.as_ref().unwrap_or(&policy.retry.backoff);
            match backoff.custom_name() {
                Some(name) => self.handler.custom_backoff(name, job),
                None => backoff.delay(attempts_made, fastrand::f64()).unwrap_or_default(),
            }
        };
        match decide(job, outcome, policy.retry.attempts, backoff) {
            Ending::Failed(failure) => self.fail(job, failure.with(trace)).await,
            Ending::Retried { delay, failure } => {
                Ending::Retried { delay, failure: failure.with(trace) }
            }
            ending => ending,
        }
    }

    /// Fails a job for good, after the handler has heard of it.
    async fn fail(&self, job: &Job, failure: Failure) -> Ending {
        self.settle_failure(job, &failure.reason).await;
        Ending::Failed(failure)
    }

    /// The handler hears of a final failure first: what it writes about it must not be missed.
    async fn settle_failure(&self, job: &Job, reason: &str) {
        let mut pause = PAUSE.0;
        loop {
            let settle = AssertUnwindSafe(async { self.handler.exhausted(job, reason).await });
            let settled = settle.catch_unwind().await;
            let Err(error) = settled.unwrap_or_else(|panic| Err(panics::describe(&*panic).0))
            else {
                return;
            };
            tracing::warn!(job = job.id, error, retry_in = ?pause, "cannot record a failed job");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Finishes the job; an outage of Redis is waited out, however long: the work is done, and Redis
    /// will say whether the job is still ours.
    async fn finish_stubbornly(
        &self,
        claim: &Claim,
        job: &Job,
        ending: &Ending,
        next: Next,
    ) -> After {
        let mut pause = PAUSE.0;
        let mut answer_lost = false;
        loop {
            match self.finish(claim, job, ending, next).await {
                Ok(Finished::Moved(Fetched::Job(next))) => return After::Next(next),
                Ok(Finished::Moved(Fetched::Nothing { .. })) => return After::Nothing,
                // Most likely our first call did arrive, and perhaps it fetched a job for us.
                Ok(Finished::NotOurs(_)) if answer_lost => return After::Unknown,
                Ok(Finished::NotOurs(JOB_MISSING)) => {
                    // Somebody removed it while it ran, or put an id there that never was a job.
                    tracing::warn!(job = job.id, "is gone; nothing is left to finish");
                    let forgotten =
                        scripts::forget(&mut self.redis(), self.queue.keys(), &job.id).await;
                    return if forgotten.is_ok() { After::Nothing } else { After::Unknown };
                }
                Ok(Finished::NotOurs(code)) => {
                    tracing::warn!(
                        job = job.id,
                        code,
                        "was finished or taken over by someone else"
                    );
                    return After::Nothing;
                }
                Err(error) if error.is_outage() => {
                    tracing::warn!(job = job.id, %error, retry_in = ?pause, "cannot finish");
                    answer_lost = true;
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE.1);
                }
                Err(error) => {
                    tracing::error!(job = job.id, %error, "gave up finishing; it will run again");
                    return After::Unknown;
                }
            }
        }
    }

    async fn finish(
        &self,
        claim: &Claim,
        job: &Job,
        ending: &Ending,
        next: Next,
    ) -> Result<Finished, Error> {
        let finished = self.write_ending(claim, job, ending, next).await?;
        if !matches!(finished, Finished::NotOurs(LOCK_MISSING)) {
            return Ok(finished);
        }
        // Either our call had arrived before, or the lock expired in an outage. As long as the job is
        // active and nobody else has locked it, what was done for it counts.
        if scripts::lock_again(&mut self.redis(), self.queue.keys(), claim, &job.id).await? {
            return self.write_ending(claim, job, ending, next).await;
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
        let fields = fields(ending, stack.as_deref());
        let run = Run { claim, job, fields: &fields, next, now_ms: now_ms() };
        match ending {
            Ending::Completed { result } => {
                scripts::move_to_completed(redis, keys, &run, result).await
            }
            Ending::Failed(Failure { reason, .. }) => {
                let stack = stack.unwrap_or_default();
                let queue = self.queue.name();
                let letter = DeadLetter::of(queue, job, reason, &stack, run.now_ms);
                scripts::fail_for_good(redis, keys, &run, &letter).await
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

impl Failure {
    /// With the stack trace of the panic that it was, if it was one.
    fn with(self, trace: Option<String>) -> Self {
        Self { trace: trace.unwrap_or(self.trace), ..self }
    }
}

impl Ending {
    fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed(failure) | Self::Retried { failure, .. } => Some(failure),
            Self::Completed { .. } | Self::Snoozed { .. } => None,
        }
    }

    fn event(&self) -> EventKind {
        match self {
            Self::Completed { .. } => EventKind::Completed,
            Self::Failed(failure) => EventKind::Failed(failure.reason.clone()),
            Self::Retried { failure, .. } => EventKind::Retried(failure.reason.clone()),
            Self::Snoozed { .. } => EventKind::Snoozed,
        }
    }
}

/// What an ending writes into the job's hash, besides what the script itself does.
fn fields(ending: &Ending, stack: Option<&[String]>) -> Vec<(&'static str, String)> {
    match (ending, stack) {
        (Ending::Completed { .. }, _) => vec![("progress", "100".to_owned())],
        (Ending::Failed(failure) | Ending::Retried { failure, .. }, stack) => vec![
            ("failedReason", failure.reason.clone()),
            ("stacktrace", serde_json::json!(stack.unwrap_or_default()).to_string()),
        ],
        (Ending::Snoozed { .. }, _) => Vec::new(),
    }
}

/// Pure: what an outcome means for a job that has had so many attempts.
fn decide(
    job: &Job,
    outcome: Outcome,
    attempts_of_type: u32,
    backoff: impl Fn(u32) -> Duration,
) -> Ending {
    let attempts_made = job.attempts_made + 1;
    let attempts = if job.attempts > 0 { job.attempts } else { attempts_of_type };
    let (reason, delay) = match outcome {
        Outcome::Done(value) => return Ending::Completed { result: value.to_string() },
        Outcome::Discard(reason) => return Ending::Failed(reason.into()),
        Outcome::Snooze(delay) => return Ending::Snoozed { delay },
        Outcome::Retry(reason) => (reason, None),
        Outcome::RetryAfter(reason, delay) => (reason, Some(delay)),
    };
    if attempts_made >= attempts {
        return Ending::Failed(reason.into());
    }
    let delay = delay.unwrap_or_else(|| backoff(attempts_made));
    Ending::Retried { delay, failure: reason.into() }
}

/// The job's `stacktrace` with one more entry.
fn stack_trace(job: &Job, entry: &str) -> Vec<String> {
    let skip = (job.stack_trace.len() + 1).saturating_sub(job.stack_trace_limit);
    job.stack_trace.iter().cloned().chain([entry.to_owned()]).skip(skip).collect()
}
