//! One slot: runs a job, finishes it, and goes on with the next one that the finish brought along.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use super::{FreeSlot, Handler, JobContext, PAUSE, Shared, now_ms};
use crate::scripts::{self, Attempt, Claim, Fetched, Finished, LOCK_MISSING, Next, Run, Target};
use crate::{Error, Job, Outcome};

/// Lines of `stacktrace` kept per job.
const STACK_TRACE_LIMIT: usize = 10;

/// What is to be written about a job that has ended.
enum Ending {
    Completed { result: String },
    Failed { reason: String },
    Delayed { delay: Duration, attempt: Attempt, reason: Option<String> },
    RetryNow { reason: String },
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
            match self.work_on(&claim, &job).await {
                After::Next(next) => job = next,
                After::Nothing => return FreeSlot { number: slot, answer_lost: false },
                After::Unknown => return FreeSlot { number: slot, answer_lost: true },
            }
        }
    }

    async fn work_on(&self, claim: &Claim, job: &Job) -> After {
        let held = self.held.hold(&job.id, &claim.token);
        let ending = tokio::select! {
            ending = self.run_handler(job) => ending,
            () = held.lost() => {
                tracing::warn!(job = job.id, "lost its lock; another worker may run it now");
                return After::Nothing;
            }
        };
        self.finish_stubbornly(claim, job, &ending).await
    }

    /// Runs the handler and decides what becomes of the job.
    async fn run_handler(&self, job: &Job) -> Ending {
        let outcome = match &job.deferred_failure {
            Some(reason) => Outcome::Discard(reason.clone()),
            None => {
                let context = JobContext { queue: self.queue.clone(), job_id: job.id.clone() };
                let run = AssertUnwindSafe(async { self.handler.run(job, &context).await });
                run.catch_unwind()
                    .await
                    .unwrap_or_else(|panic| Outcome::Retry(panic_message(&*panic)))
            }
        };
        let ending = decide(job, outcome);
        if let Ending::Failed { reason } = &ending {
            self.settle_failure(job, reason).await;
        }
        ending
    }

    /// The handler hears of a final failure first: what it writes about it must not be missed.
    async fn settle_failure(&self, job: &Job, reason: &str) {
        let mut pause = PAUSE.0;
        loop {
            let settle = AssertUnwindSafe(async { self.handler.exhausted(job, reason).await });
            let settled = settle.catch_unwind().await;
            let Err(error) = settled.unwrap_or_else(|panic| Err(panic_message(&*panic))) else {
                return;
            };
            tracing::warn!(job = job.id, error, retry_in = ?pause, "cannot record a failed job");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Finishes the job; an outage of Redis is waited out, however long: the work is done, and Redis
    /// will say whether the job is still ours.
    async fn finish_stubbornly(&self, claim: &Claim, job: &Job, ending: &Ending) -> After {
        let mut pause = PAUSE.0;
        let mut answer_lost = false;
        loop {
            match self.finish(claim, job, ending).await {
                Ok(Finished::Moved(Fetched::Job(next))) => return After::Next(next),
                Ok(Finished::Moved(Fetched::Nothing { .. })) => return After::Nothing,
                // Most likely our first call did arrive, and perhaps it fetched a job for us.
                Ok(Finished::NotOurs(_)) if answer_lost => return After::Unknown,
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

    async fn finish(&self, claim: &Claim, job: &Job, ending: &Ending) -> Result<Finished, Error> {
        let finished = self.write_ending(claim, job, ending).await?;
        if !matches!(finished, Finished::NotOurs(LOCK_MISSING)) {
            return Ok(finished);
        }
        // Either our call had arrived before, or the lock expired in an outage. As long as the job is
        // active and nobody else has locked it, what was done for it counts.
        if scripts::lock_again(&mut self.redis(), self.queue.keys(), claim, &job.id).await? {
            return self.write_ending(claim, job, ending).await;
        }
        Ok(finished)
    }

    async fn write_ending(
        &self,
        claim: &Claim,
        job: &Job,
        ending: &Ending,
    ) -> Result<Finished, Error> {
        let redis = &mut self.redis();
        let keys = self.queue.keys();
        let next = if self.quiet.is_cancelled() { Next::Leave } else { Next::Fetch };
        let fields = fields(job, ending);
        let run = Run { claim, job, fields: &fields, next, now_ms: now_ms() };
        match ending {
            Ending::Completed { result } => {
                scripts::move_to_finished(redis, keys, &run, Target::Completed(result)).await
            }
            Ending::Failed { reason } => {
                scripts::move_to_finished(redis, keys, &run, Target::Failed(reason)).await
            }
            Ending::Delayed { delay, attempt, .. } => {
                let delay_ms = delay.as_millis() as u64;
                scripts::move_to_delayed(redis, keys, &run, delay_ms, *attempt).await
            }
            Ending::RetryNow { .. } => scripts::retry_job(redis, keys, &run).await,
        }
    }
}

/// What an ending writes into the job's hash, besides what the script itself does.
fn fields(job: &Job, ending: &Ending) -> Vec<(&'static str, String)> {
    let failure = |reason: &String| {
        vec![("failedReason", reason.clone()), ("stacktrace", stack_trace(job, reason))]
    };
    match ending {
        Ending::Completed { .. } => vec![("progress", "100".to_owned())],
        Ending::Failed { reason } | Ending::RetryNow { reason } => failure(reason),
        Ending::Delayed { reason, .. } => reason.as_ref().map(failure).unwrap_or_default(),
    }
}

/// Pure: what an outcome means for a job that has had so many attempts.
fn decide(job: &Job, outcome: Outcome) -> Ending {
    let attempts_made = job.attempts_made + 1;
    match outcome {
        Outcome::Done(value) => Ending::Completed { result: value.to_string() },
        Outcome::Discard(reason) => Ending::Failed { reason },
        Outcome::Snooze(delay) => Ending::Delayed { delay, attempt: Attempt::IsFree, reason: None },
        Outcome::Retry(reason) if attempts_made >= job.attempts => Ending::Failed { reason },
        Outcome::Retry(reason) => {
            match job.backoff.as_ref().map_or(0, |backoff| backoff.delay_ms(attempts_made)) {
                0 => Ending::RetryNow { reason },
                ms => Ending::Delayed {
                    delay: Duration::from_millis(ms),
                    attempt: Attempt::Counts,
                    reason: Some(reason),
                },
            }
        }
    }
}

/// The job's `stacktrace` with one more entry, as JSON.
fn stack_trace(job: &Job, reason: &str) -> String {
    let skip = (job.stack_trace.len() + 1).saturating_sub(STACK_TRACE_LIMIT);
    let lines: Vec<&str> =
        job.stack_trace.iter().map(String::as_str).chain([reason]).skip(skip).collect();
    serde_json::json!(lines).to_string()
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("without a message"))
}
