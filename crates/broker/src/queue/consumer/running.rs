//! Running the handler of a job, and deciding what happens to the job.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use futures::FutureExt;

use super::disposition::{Disposition, Failure, decide};
use super::{FIRST_PAUSE, JobContext, LONGEST_PAUSE, Shared, panics};
use crate::queue::scripts;
use crate::{Job, Outcome};

impl Shared {
    /// Runs the handler and decides what happens to the job.
    /// Notes how long the handler ran in `took`.
    pub(super) async fn run_handler(&self, job: &Job, took: &OnceLock<Duration>) -> Disposition {
        if let Some(reason) = self.must_not_run(job) {
            self.repair(job).await;
            return self.fail(job, reason.into()).await;
        }
        let context = JobContext::new(&self.queue, job);
        if let Some(wait) = job.first_wait() {
            self.config.observer.waited(wait);
        }
        let began = Instant::now();
        // Cancels the work that the handler has begun elsewhere, however the run ends.
        let _over = context.cancellation().drop_guard();
        let run = async {
            // Dropped after its context knows that its time is over.
            let mut run = std::pin::pin!(self.handler.run(job, &context));
            match self.handler.policy(&job.name).timeout {
                None => run.await,
                Some(limit) => tokio::select! {
                    // In this order: finished work counts, however late.
                    biased;
                    outcome = &mut run => outcome,
                    () = tokio::time::sleep(limit) => {
                        context.set_overdue();
                        Outcome::Retry(format!("took longer than its limit of {limit:?}"))
                    }
                },
            }
        };
        let ended = AssertUnwindSafe(run).catch_unwind().await;
        // Set only here, and once.
        self.config.observer.ran(*took.get_or_init(|| began.elapsed()));
        match ended {
            Ok(outcome) => match self.dispose(job, outcome, None).await {
                Disposition::Completed { result, .. } => {
                    Disposition::Completed { result, progress: context.shows_progress() }
                }
                disposition => disposition,
            },
            Err(panic) => {
                let (message, trace) = panics::describe(&*panic);
                self.dispose(job, Outcome::Retry(message), Some(trace)).await
            }
        }
    }

    /// Why a job is failed instead of run; `None`: it may run.
    fn must_not_run(&self, job: &Job) -> Option<String> {
        let (bytes, most) = (job.raw_data.len(), self.queue.broker().max_payload());
        job.deferred_failure.clone().or_else(|| {
            (bytes > most).then(|| format!("its payload has {bytes} bytes, and {most} is the most"))
        })
    }

    /// Repairs a malformed job, so that the script that fails it does not abort.
    async fn repair(&self, job: &Job) {
        while let Err(error) = scripts::repair(&mut self.redis(), self.queue.keys(), &job.id).await
        {
            if !error.is_outage() {
                tracing::error!(job = job.id, %error, "cannot repair a malformed job");
                return;
            }
            self.failed();
            tokio::time::sleep(LONGEST_PAUSE).await;
        }
    }

    /// Decides what happens to a job with this outcome; a permanent failure is settled first.
    pub(super) async fn dispose(
        &self,
        job: &Job,
        outcome: Outcome,
        trace: Option<String>,
    ) -> Disposition {
        let decided = catch_unwind(AssertUnwindSafe(|| {
            let policy = self.handler.policy(&job.name);
            decide(job, outcome, policy.retry.attempts, |attempts_made| {
                let pause = job.pause.clone().unwrap_or_else(|| policy.retry.pause());
                let named = |name: &str| self.handler.custom_backoff(name, job);
                pause.after(attempts_made, fastrand::f64(), named)
            })
        }));
        // The policy or back-off of the handler panicked: another attempt would meet the same.
        let disposition = decided.unwrap_or_else(|panic| {
            let (reason, trace) = panics::describe(&*panic);
            Disposition::Failed(Failure { reason, trace })
        });
        match disposition {
            Disposition::Failed(failure) => self.fail(job, failure.with(trace)).await,
            Disposition::Retried { delay, failure } => {
                Disposition::Retried { delay, failure: failure.with(trace) }
            }
            disposition => disposition,
        }
    }

    /// Fails a job permanently, after the handler has been told.
    async fn fail(&self, job: &Job, failure: Failure) -> Disposition {
        Disposition::Failed(self.settled(job, failure).await)
    }

    /// Calls [`Handler::given_up`] until it succeeds: what it records must not be missed.
    pub(super) async fn settled(&self, job: &Job, failure: Failure) -> Failure {
        let mut pause = FIRST_PAUSE;
        loop {
            let settle =
                AssertUnwindSafe(async { self.handler.given_up(job, &failure.reason).await });
            let settled = settle.catch_unwind().await;
            let Err(error) = settled.unwrap_or_else(|panic| Err(panics::describe(&*panic).0))
            else {
                return failure;
            };
            tracing::warn!(job = job.id, error, retry_in = ?pause, "cannot record that a job is given up");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
