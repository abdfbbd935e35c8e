//! What the tests share: two kinds of jobs on two queues, a Redis, and a worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use stampede_broker::{
    Broker, Config, ConsumerConfig, JobContext, JobList, JobPolicy, JobSpec, JobView, Outcome,
    Queue, Work, WorkerPresence,
};
use stampede_telemetry::Metrics;
use stampede_testkit::{Redis, eventually};
use stampede_worker::{Heartbeat, Report};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Patience on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What the jobs of these tests may touch.
#[derive(Clone)]
pub(crate) struct Counters(Arc<Shared>);

struct Shared {
    /// Slow jobs wait here.
    gate: Semaphore,
    quick: AtomicUsize,
    given_up: AtomicUsize,
    refusals: AtomicUsize,
}

impl Counters {
    fn new() -> Self {
        Self(Arc::new(Shared {
            gate: Semaphore::new(0),
            quick: AtomicUsize::default(),
            given_up: AtomicUsize::default(),
            refusals: AtomicUsize::default(),
        }))
    }

    /// Lets slow jobs end.
    pub(crate) fn let_pass(&self, jobs: usize) {
        self.0.gate.add_permits(jobs);
    }

    /// Quick jobs that ran.
    pub(crate) fn quick(&self) -> usize {
        self.0.quick.load(Ordering::SeqCst)
    }

    /// Calls of `given_up`.
    pub(crate) fn given_up(&self) -> usize {
        self.0.given_up.load(Ordering::SeqCst)
    }
}

/// Waits at the gate.
#[derive(Serialize, Deserialize)]
pub(crate) struct Slow {
    pub(crate) number: u32,
}

impl Work for Slow {
    const QUEUE: &'static str = "slow-things";
    const NAME: &'static str = "slow";
    const VERSION: u32 = 1;
    type Env = Counters;

    fn policy() -> JobPolicy {
        JobPolicy::default()
    }

    async fn run(&self, env: &Counters, _: &JobContext) -> Outcome {
        env.0.gate.acquire().await.unwrap().forget();
        Outcome::Done(json!(self.number))
    }

    fn slots(_: usize) -> usize {
        2
    }
}

/// Ends at once; number 13 always fails.
#[derive(Serialize, Deserialize)]
pub(crate) struct Quick {
    pub(crate) number: u32,
}

impl Work for Quick {
    const QUEUE: &'static str = "quick-things";
    const NAME: &'static str = "quick";
    const VERSION: u32 = 1;
    type Env = Counters;

    fn policy() -> JobPolicy {
        let retry = stampede_broker::RetryPolicy { attempts: 2, ..Default::default() };
        JobPolicy { retry, ..JobPolicy::default() }
    }

    async fn run(&self, env: &Counters, _: &JobContext) -> Outcome {
        if self.number == 13 {
            return Outcome::Retry("thirteen".to_owned());
        }
        env.0.quick.fetch_add(1, Ordering::SeqCst);
        Outcome::Done(json!(self.number))
    }

    /// Succeeds at the second call.
    async fn given_up(&self, env: &Counters, reason: &str) -> Result<(), String> {
        assert_eq!(reason, "thirteen");
        env.0.given_up.fetch_add(1, Ordering::SeqCst);
        match env.0.refusals.fetch_add(1, Ordering::SeqCst) {
            0 => Err("not now".to_owned()),
            _ => Ok(()),
        }
    }
}

/// A Redis with a worker.
pub(crate) struct Stage {
    pub(crate) redis: Redis,
    pub(crate) counters: Counters,
    pub(crate) reports: watch::Receiver<Option<Report>>,
    pub(crate) stop: CancellationToken,
    pub(crate) working: JoinHandle<()>,
    pub(crate) slow: Queue,
    pub(crate) quick: Queue,
    /// What the worker counts.
    pub(crate) metrics: Metrics,
}

impl Stage {
    /// A worker with two slots for slow jobs and three for quick ones.
    pub(crate) async fn start() -> Self {
        let redis = Redis::start().await;
        let broker = Broker::connect(&Config::new(redis.url())).await.unwrap();
        let counters = Counters::new();
        let jobs =
            JobList::default().with::<Slow>(counters.clone()).with::<Quick>(counters.clone());
        assert_eq!(jobs.queues(), ["slow-things", "quick-things"]);
        let (sender, reports) = watch::channel(None);
        let heartbeat = Heartbeat {
            worker: WorkerPresence {
                id: "worker-1".to_owned(),
                node: "node-1".to_owned(),
                incarnation: "token-1".to_owned(),
                start_time: 0,
                pid: std::process::id(),
            },
            registry: broker.registry(Duration::from_secs(60)),
            every: Duration::from_secs(1),
            reports: sender,
        };
        let config = ConsumerConfig { drain: PATIENCE, ..ConsumerConfig::new("worker-1", 3) };
        let (slow, quick) =
            (broker.queue(Slow::QUEUE).await.unwrap(), broker.queue(Quick::QUEUE).await.unwrap());
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let metrics = Metrics::default();
        let counted = metrics.clone();
        let working = tokio::spawn(async move {
            stampede_worker::run(config, &broker, &jobs, &counted, heartbeat, stopped)
                .await
                .unwrap();
        });
        Self { redis, counters, reports, stop, working, slow, quick, metrics }
    }

    /// Waits until the supervisor is told this.
    pub(crate) async fn reported(&mut self, wanted: Report) {
        let waiting = self.reports.wait_for(|report| *report == Some(wanted));
        tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap();
    }

    /// Adds jobs and waits until Redis has them.
    pub(crate) async fn add(&self, queue: &Queue, jobs: &[JobSpec]) {
        queue.enqueue(jobs).await.unwrap();
    }

    /// Waits until a job has failed; returns it.
    pub(crate) async fn failed(&self, queue: &Queue) -> JobView {
        eventually(PATIENCE, || async {
            let jobs = queue.jobs(stampede_broker::State::Failed, 0, 1).await;
            jobs.map_err(|e| e.to_string())?.pop().ok_or_else(|| "none failed yet".to_owned())
        })
        .await
    }
}
