//! One scenario, two workers: ours and the official crate's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bullmq::options::RedisConnectionOptions;
use bullmq::worker::WorkerEvent;
use bullmq::{WorkerOptions, worker::CancellationToken};
use futures::future::BoxFuture;
use serde_json::Value;
use stampede_broker::{
    ConsumerConfig, ConsumerEvent, EventKind, Handler, Job, JobContext, JobPolicy, Outcome,
};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;

use crate::stage::{Running, Stage, config};

/// Whose worker it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arm {
    Ours,
    TheCrates,
}

/// What a handler is given, whoever calls it.
pub(crate) struct Visit {
    context: Context,
}

enum Context {
    Ours(Box<JobContext>),
    TheCrates(Box<bullmq::Job>, CancellationToken),
}

impl Visit {
    pub(crate) async fn log(&self, line: &str) {
        match &self.context {
            Context::Ours(context) => context.log(line).await.unwrap(),
            Context::TheCrates(job, _) => {
                job.log(line).await.unwrap();
            }
        }
    }

    /// Never returns, unless somebody asks the handler to.
    pub(crate) async fn for_ever(&self) {
        match &self.context {
            Context::Ours(_) => std::future::pending().await,
            Context::TheCrates(_, cancelled) => cancelled.cancelled().await,
        }
    }
}

/// A handler for both.
pub(crate) type Work =
    Arc<dyn Fn(Visit) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

pub(crate) fn work<F>(handler: impl Fn(Visit) -> F + Send + Sync + 'static) -> Work
where
    F: Future<Output = Result<Value, String>> + Send + 'static,
{
    Arc::new(move |visit| Box::pin(handler(visit)))
}

struct Works(Work);

impl Handler for Works {
    async fn run(&self, _: &Job, context: &JobContext) -> Outcome {
        match (self.0)(Visit { context: Context::Ours(Box::new(context.clone())) }).await {
            Ok(value) => Outcome::Done(value),
            Err(reason) => Outcome::Retry(reason),
        }
    }

    fn policy(&self, _: &str) -> JobPolicy {
        JobPolicy::default()
    }
}

/// How a worker is set up.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) slots: usize,
    pub(crate) lock: Duration,
    pub(crate) stalled_interval: Duration,
}

/// Short locks; stalled jobs are not looked for after the start.
pub(crate) const SHORT: Times =
    Times { slots: 1, lock: Duration::from_millis(600), stalled_interval: Duration::from_secs(30) };

/// A worker of either kind.
pub(crate) enum Worker {
    Ours(Running, broadcast::Receiver<ConsumerEvent>),
    TheCrates(Box<bullmq::Worker>),
}

impl Worker {
    pub(crate) async fn start(arm: Arm, stage: &Stage, times: Times, work: Work) -> Self {
        let Times { slots, lock, stalled_interval } = times;
        if arm == Arm::Ours {
            let config = ConsumerConfig { slots, lock, stalled_interval, ..config("ours") };
            let running = Running::start(&stage.queue, config, Works(work));
            let events = running.handle.events();
            return Self::Ours(running, events);
        }
        let options = WorkerOptions::new()
            .connection(RedisConnectionOptions::new().url(stage.redis.url()))
            .concurrency(slots)
            .lock_duration(lock)
            .stalled_interval(stalled_interval)
            .max_stalled_count(9)
            // Its default of 15 seconds would only make the test longer.
            .run_retry_delay(Duration::from_millis(100));
        let processor = move |job: bullmq::Job, cancelled: CancellationToken| {
            let context = Context::TheCrates(Box::new(job), cancelled);
            let result = work(Visit { context });
            async move { result.await.map_err(bullmq::Error::ProcessingError) }
        };
        let worker = bullmq::Worker::with_options("tickets", processor, options).await.unwrap();
        Self::TheCrates(Box::new(worker))
    }

    /// How long it takes to close.
    pub(crate) async fn close(self) -> Duration {
        let began = Instant::now();
        match self {
            Self::Ours(running, _) => running.stop().await,
            Self::TheCrates(worker) => worker.close(30_000).await.unwrap(),
        }
        began.elapsed()
    }

    /// Events that wait for somebody to read them; whether one of them tells of a stalled job.
    pub(crate) async fn unread(&mut self) -> (usize, bool) {
        let (mut count, mut stalled) = (0, false);
        match self {
            Self::Ours(_, events) => loop {
                match events.try_recv() {
                    Ok(event) => {
                        count += 1;
                        stalled |= event.kind == EventKind::Stalled;
                    }
                    Err(TryRecvError::Lagged(_)) => {}
                    Err(_) => break,
                }
            },
            Self::TheCrates(worker) => {
                let soon = Duration::from_millis(100);
                while let Ok(Some(event)) = tokio::time::timeout(soon, worker.next_event()).await {
                    count += 1;
                    stalled |= matches!(event, WorkerEvent::Stalled { .. });
                }
            }
        }
        (count, stalled)
    }
}
