//! The code that runs jobs, as its author writes it and as the consumer calls it.

use std::future::Future;
use std::time::Duration;

use futures::future::BoxFuture;

use super::{JobContext, JobPolicy};
use crate::{Job, Outcome};

/// The code that runs jobs.
pub trait Handler: Send + Sync + 'static {
    /// Runs a job. Must be idempotent: it may run more than once for the same job. The future is dropped in the middle
    /// when the job's lock is lost, the job is cancelled or its time limit is over.
    fn run(&self, job: &Job, context: &JobContext) -> impl Future<Output = Outcome> + Send;

    /// Called before a job is failed permanently (attempts used up, discarded, cancelled); repeated until it succeeds,
    /// only then is the job failed.
    fn given_up(
        &self,
        _job: &Job,
        _reason: &str,
    ) -> impl Future<Output = Result<(), String>> + Send {
        async { Ok(()) }
    }

    /// Called after a job has become a dead letter; for raising an alarm.
    fn dead_lettered(&self, _job: &Job, _reason: &str) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// The policy for jobs of this name.
    fn policy(&self, _job_name: &str) -> JobPolicy {
        JobPolicy::default()
    }

    /// The pause before the next attempt of a job with a custom back-off strategy; one second by default.
    fn custom_backoff(&self, _strategy: &str, _job: &Job) -> Duration {
        Duration::from_secs(1)
    }
}

/// A [`Handler`] without its type. The consumer is compiled once instead of once for every handler.
pub(super) trait ErasedHandler: Send + Sync {
    fn run<'a>(&'a self, job: &'a Job, context: &'a JobContext) -> BoxFuture<'a, Outcome>;
    fn given_up<'a>(&'a self, job: &'a Job, reason: &'a str) -> BoxFuture<'a, Result<(), String>>;
    fn dead_lettered<'a>(&'a self, job: &'a Job, reason: &'a str) -> BoxFuture<'a, ()>;
    fn policy(&self, job_name: &str) -> JobPolicy;
    fn custom_backoff(&self, strategy: &str, job: &Job) -> Duration;
}

impl<H: Handler> ErasedHandler for H {
    fn run<'a>(&'a self, job: &'a Job, context: &'a JobContext) -> BoxFuture<'a, Outcome> {
        Box::pin(Handler::run(self, job, context))
    }

    fn given_up<'a>(&'a self, job: &'a Job, reason: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(Handler::given_up(self, job, reason))
    }

    fn dead_lettered<'a>(&'a self, job: &'a Job, reason: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(Handler::dead_lettered(self, job, reason))
    }

    fn policy(&self, job_name: &str) -> JobPolicy {
        Handler::policy(self, job_name)
    }

    fn custom_backoff(&self, strategy: &str, job: &Job) -> Duration {
        Handler::custom_backoff(self, strategy, job)
    }
}
