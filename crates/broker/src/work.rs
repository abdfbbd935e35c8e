//! Jobs as types. A type that implements [`Work`] is one kind of job: its fields are the payload, its
//! constants say where it is queued, its functions say what is done.
//!
//! A [`JobList`] is all kinds that a worker process runs. Everything that depends on the kinds reads the
//! list: the queues a worker serves and their slots ([`JobList::queues`], [`JobList::slots`]), the handler
//! of a queue ([`JobList::handler`]), the jobs that are added again after they were removed
//! ([`JobList::comes_back`]).
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use serde_json::json;
//! use stampede_broker::{JobContext, JobList, JobPolicy, Outcome, Work};
//!
//! #[derive(Serialize, Deserialize)]
//! struct SendMail {
//!     to: String,
//! }
//!
//! impl Work for SendMail {
//!     const QUEUE: &'static str = "mails";
//!     const NAME: &'static str = "send-mail";
//!     const VERSION: u32 = 1;
//!     type Env = ();
//!
//!     fn policy() -> JobPolicy {
//!         JobPolicy::default()
//!     }
//!
//!     async fn run(&self, _: &(), _: &JobContext) -> Outcome {
//!         Outcome::Done(json!({ "sent": self.to }))
//!     }
//! }
//!
//! let list = JobList::default().with::<SendMail>(());
//! assert_eq!(list.queues(), ["mails"]);
//! let job = SendMail { to: "ann@example.com".to_owned() }.spec();
//! assert_eq!(job.data, json!({ "to": "ann@example.com", "v": 1 }));
//! ```

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Handler, Job, JobContext, JobPolicy, JobSpec, Outcome, RequestId};

/// One kind of job. The type itself is the payload: small, and ids instead of records.
pub trait Work: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The queue its jobs are added to.
    const QUEUE: &'static str;
    /// The name of the kind, as it stands in every job.
    const NAME: &'static str;
    /// Version of the payload, its member `v`. A job with a newer one is refused, not guessed at.
    const VERSION: u32;
    /// What the job may touch.
    type Env: Clone + Send + Sync + 'static;

    /// Attempts, back-off and time limit of its jobs.
    fn policy() -> JobPolicy;

    /// Does the work. It may run more than once for one job and must then have the effect of one run.
    fn run(&self, env: &Self::Env, context: &JobContext) -> impl Future<Output = Outcome> + Send;

    /// Called before a job is failed permanently; repeated until it succeeds, only then is the job failed.
    fn given_up(
        &self,
        _env: &Self::Env,
        _reason: &str,
    ) -> impl Future<Output = Result<(), String>> + Send {
        async { Ok(()) }
    }

    /// Jobs that a worker runs at the same time, of `JOB_CONCURRENCY`. Kinds of one queue share its slots.
    fn slots(job_concurrency: usize) -> usize {
        job_concurrency
    }

    /// For kinds whose jobs are added again from records: what an operator who removed this job should
    /// know. `None`: the job is gone.
    fn comes_back(_env: &Self::Env, _job_id: &str) -> impl Future<Output = Option<String>> + Send {
        async { None }
    }

    /// What an operator who emptied the queue should know; `None`: the jobs are gone.
    fn all_come_back() -> Option<&'static str> {
        None
    }

    /// The job as it is added to its queue: the payload with its version and the id of the request that caused it, attempts and
    /// back-off of the policy.
    fn spec(&self) -> JobSpec {
        let retry = Self::policy().retry;
        let mut data = serde_json::to_value(self).unwrap_or_default();
        if let Value::Object(fields) = &mut data {
            fields.insert("v".to_owned(), Self::VERSION.into());
        }
        RequestId::add_to(&mut data);
        // A job's own back-off has no jitter: with one, the worker's policy has to decide.
        let backoff = (retry.jitter == 0.0).then_some(retry.backoff);
        JobSpec { attempts: Some(retry.attempts), backoff, ..JobSpec::new(Self::NAME, data) }
    }

    /// Reads the payload of a job.
    fn parse(data: &Value) -> Result<Self, PayloadError> {
        let Some(version) = data.get("v").and_then(Value::as_u64).filter(|v| *v > 0) else {
            return Err(PayloadError::Shape("its version v is missing or no number".to_owned()));
        };
        if version > u64::from(Self::VERSION) {
            return Err(PayloadError::Version { found: version, known: Self::VERSION });
        }
        Self::deserialize(data).map_err(|error| PayloadError::Shape(error.to_string()))
    }
}

/// Why a payload was refused. Such a job is not retried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// Not the expected fields.
    #[error("unreadable payload: {0}")]
    Shape(String),
    /// Written by a newer version of this software.
    #[error("payload version {found} is newer than this worker understands ({known})")]
    Version {
        /// The version of the payload.
        found: u64,
        /// The newest version that is understood.
        known: u32,
    },
}

/// All kinds of jobs that a worker runs, each with what it may touch. Cheap to clone.
#[derive(Clone, Default)]
pub struct JobList {
    kinds: Vec<Arc<dyn Kind>>,
}

impl JobList {
    /// The list with one more kind.
    ///
    /// # Panics
    ///
    /// If the queue has a kind of that name already: jobs would be given to the first of the two, and the second
    /// would never run. The list is written by hand, so the program does not start.
    #[must_use]
    pub fn with<W: Work>(mut self, env: W::Env) -> Self {
        let is_known = self.names().any(|known| known == (W::QUEUE, W::NAME));
        assert!(
            !is_known,
            "the list of jobs has {:?} of queue {:?} twice; remove one, or give it another NAME",
            W::NAME,
            W::QUEUE
        );
        self.kinds.push(Arc::new(Bound::<W> { env }));
        self
    }

    /// The queues of all kinds, each once.
    pub fn queues(&self) -> Vec<&'static str> {
        let mut queues = Vec::new();
        for kind in &self.kinds {
            if !queues.contains(&kind.queue()) {
                queues.push(kind.queue());
            }
        }
        queues
    }

    /// Queue and name of every kind.
    pub fn names(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.kinds.iter().map(|kind| (kind.queue(), kind.name()))
    }

    /// Slots that a worker has for a queue: the most that one of its kinds asks for, at least one.
    pub fn slots(&self, queue: &str, job_concurrency: usize) -> usize {
        let slots = self.of(queue).map(|kind| kind.slots(job_concurrency));
        slots.max().unwrap_or(job_concurrency).max(1)
    }

    /// The handler of a queue: gives each job to its kind and refuses kinds that are not on the list.
    pub fn handler(&self, queue: &str) -> QueueJobs {
        QueueJobs { kinds: self.of(queue).cloned().collect() }
    }

    /// What an operator who removed this job should know, if the job will be added again.
    pub async fn comes_back(&self, queue: &str, job_id: &str) -> Option<String> {
        for kind in self.of(queue) {
            if let Some(note) = kind.comes_back(job_id).await {
                return Some(note);
            }
        }
        None
    }

    /// What an operator who emptied this queue should know, if its jobs will be added again.
    pub fn all_come_back(&self, queue: &str) -> Option<&'static str> {
        self.of(queue).find_map(|kind| kind.all_come_back())
    }

    fn of(&self, queue: &str) -> impl Iterator<Item = &Arc<dyn Kind>> {
        self.kinds.iter().filter(move |kind| kind.queue() == queue)
    }
}

/// Runs the jobs of one queue, each by its kind.
pub struct QueueJobs {
    kinds: Vec<Arc<dyn Kind>>,
}

impl QueueJobs {
    fn kind(&self, name: &str) -> Option<&dyn Kind> {
        self.kinds.iter().find(|kind| kind.name() == name).map(|kind| &**kind)
    }
}

impl Handler for QueueJobs {
    async fn run(&self, job: &Job, context: &JobContext) -> Outcome {
        match self.kind(&job.name) {
            Some(kind) => kind.run(job, context).await,
            None => Outcome::Discard(format!("no job type is called {:?} here", job.name)),
        }
    }

    async fn given_up(&self, job: &Job, reason: &str) -> Result<(), String> {
        match self.kind(&job.name) {
            Some(kind) => kind.given_up(job, reason).await,
            None => Ok(()),
        }
    }

    fn policy(&self, job_name: &str) -> JobPolicy {
        self.kind(job_name).map(Kind::policy).unwrap_or_default()
    }
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// [`Work`] without its type, so that a list can hold many kinds.
trait Kind: Send + Sync {
    fn queue(&self) -> &'static str;
    fn name(&self) -> &'static str;
    fn policy(&self) -> JobPolicy;
    fn slots(&self, job_concurrency: usize) -> usize;
    fn run<'a>(&'a self, job: &'a Job, context: &'a JobContext) -> Answer<'a, Outcome>;
    fn given_up<'a>(&'a self, job: &'a Job, reason: &'a str) -> Answer<'a, Result<(), String>>;
    fn comes_back<'a>(&'a self, job_id: &'a str) -> Answer<'a, Option<String>>;
    fn all_come_back(&self) -> Option<&'static str>;
}

/// A kind with what it may touch.
struct Bound<W: Work> {
    env: W::Env,
}

impl<W: Work> Kind for Bound<W> {
    fn queue(&self) -> &'static str {
        W::QUEUE
    }

    fn name(&self) -> &'static str {
        W::NAME
    }

    fn policy(&self) -> JobPolicy {
        W::policy()
    }

    fn slots(&self, job_concurrency: usize) -> usize {
        W::slots(job_concurrency)
    }

    fn run<'a>(&'a self, job: &'a Job, context: &'a JobContext) -> Answer<'a, Outcome> {
        Box::pin(async move {
            match W::parse(&job.data) {
                Ok(work) => work.run(&self.env, context).await,
                Err(error) => Outcome::Discard(error.to_string()),
            }
        })
    }

    fn given_up<'a>(&'a self, job: &'a Job, reason: &'a str) -> Answer<'a, Result<(), String>> {
        Box::pin(async move {
            match W::parse(&job.data) {
                Ok(work) => work.given_up(&self.env, reason).await,
                // A payload that cannot be read names no record that could be marked as failed.
                Err(_) => Ok(()),
            }
        })
    }

    fn comes_back<'a>(&'a self, job_id: &'a str) -> Answer<'a, Option<String>> {
        Box::pin(W::comes_back(&self.env, job_id))
    }

    fn all_come_back(&self) -> Option<&'static str> {
        W::all_come_back()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::{Backoff, RetryPolicy};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Count {
        to: u32,
    }

    impl Work for Count {
        const QUEUE: &'static str = "numbers";
        const NAME: &'static str = "count";
        const VERSION: u32 = 2;
        type Env = ();

        fn policy() -> JobPolicy {
            let backoff = Backoff::Fixed(Duration::from_secs(1));
            let retry = RetryPolicy { attempts: 4, backoff, ..RetryPolicy::default() };
            JobPolicy { retry, ..JobPolicy::default() }
        }

        async fn run(&self, _: &(), _: &JobContext) -> Outcome {
            Outcome::Done(json!(self.to))
        }

        fn slots(job_concurrency: usize) -> usize {
            job_concurrency / 2
        }

        fn all_come_back() -> Option<&'static str> {
            Some("counted again")
        }
    }

    #[test]
    fn a_payload_of_a_newer_version_is_refused() {
        assert_eq!(Count::parse(&json!({ "v": 2, "to": 5 })), Ok(Count { to: 5 }));
        assert_eq!(Count::parse(&json!({ "v": 1, "to": 5 })), Ok(Count { to: 5 }));
        let newer = Count::parse(&json!({ "v": 3, "until": 5 })).unwrap_err().to_string();
        assert_eq!(newer, "payload version 3 is newer than this worker understands (2)");
        for data in [json!({ "to": 5 }), json!({ "v": 0, "to": 5 }), json!({ "v": 2 }), json!(7)] {
            assert!(matches!(Count::parse(&data), Err(PayloadError::Shape(_))), "{data}");
        }
    }

    #[test]
    fn a_job_carries_its_version_and_the_policy_of_its_kind() {
        let spec = Count { to: 5 }.spec();
        assert_eq!((spec.name.as_ref(), &spec.data), ("count", &json!({ "to": 5, "v": 2 })));
        assert_eq!(spec.attempts, Some(4));
        assert_eq!(spec.backoff, Some(Backoff::Fixed(Duration::from_secs(1))));
    }

    #[test]
    #[should_panic(expected = "the list of jobs has \"count\" of queue \"numbers\" twice")]
    fn a_kind_that_is_on_the_list_already_is_refused() {
        let _ = JobList::default().with::<Count>(()).with::<Count>(());
    }

    #[test]
    fn a_list_says_which_queues_are_served_and_with_how_many_slots() {
        let list = JobList::default().with::<Count>(());
        assert_eq!(list.queues(), ["numbers"]);
        assert_eq!((list.slots("numbers", 8), list.slots("numbers", 1)), (4, 1));
        assert_eq!(list.handler("numbers").policy("count").retry.attempts, 4);
        assert_eq!(list.handler("numbers").policy("other"), JobPolicy::default());
        assert_eq!(list.all_come_back("numbers"), Some("counted again"));
        assert_eq!(list.all_come_back("letters"), None);
    }
}
