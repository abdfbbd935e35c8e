//! What the tests have in common: a Redis with one queue, and handlers played by the test.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, cmd};
use serde_json::json;
use stampede_broker::{Backoff, JobSpec};
use stampede_broker::{
    Broker, Config, Consumer, ConsumerConfig, ConsumerHandle, Counts, Handler, Job, JobContext,
    JobPolicy, Outcome, Queue,
};
use stampede_testkit::{Redis, eventually};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// For what should happen soon; long enough for a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(10);

const QUEUE: &str = "tickets";

/// A Redis with one queue on it.
pub(crate) struct Stage {
    pub(crate) redis: Redis,
    pub(crate) broker: Broker,
    pub(crate) queue: Queue,
}

impl Stage {
    pub(crate) async fn start() -> Self {
        let redis = Redis::start().await;
        let (broker, queue) = connect(&redis.url()).await;
        Self { redis, broker, queue }
    }

    /// With a Redis that has on disk what it has answered. With its usual `everysec` it may put off
    /// writing for up to two seconds while the disk is busy, and forget that much when it is killed.
    pub(crate) async fn durable() -> Self {
        let stage = Self::start().await;
        stage.ask::<()>("CONFIG SET appendfsync always").await;
        stage
    }

    /// Starts a consumer whose jobs are answered by the test.
    pub(crate) fn play(&self, config: ConsumerConfig) -> Played {
        play(&self.queue, config)
    }

    /// A connection to look behind the scenes.
    pub(crate) async fn raw(&self) -> MultiplexedConnection {
        raw(&self.redis.url()).await
    }

    /// Runs a command whose words are separated by spaces; `bull:tickets:` is written as `@`.
    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &str) -> T {
        let mut words = command.split(' ').map(|word| word.replace('@', "bull:tickets:"));
        let mut command = cmd(&words.next().unwrap());
        for word in words {
            command.arg(word);
        }
        command.query_async(&mut self.raw().await).await.unwrap()
    }

    pub(crate) async fn field(&self, job_id: &str, field: &str) -> Option<String> {
        self.ask(&format!("HGET @{job_id} {field}")).await
    }

    pub(crate) async fn enqueue(&self, jobs: &[JobSpec]) {
        self.queue.enqueue(jobs).await.unwrap();
    }

    /// Waits until the counts are as wanted.
    pub(crate) async fn until(&self, what: &str, wanted: impl Fn(&Counts) -> bool) {
        let wanted = &wanted;
        eventually(SOON, || async move {
            let counts = self.queue.counts().await.map_err(|e| e.to_string())?;
            if wanted(&counts) { Ok(()) } else { Err(format!("{what}? {counts:?}")) }
        })
        .await;
    }

    pub(crate) async fn until_completed(&self, jobs: u64) {
        self.until("all completed", |counts| counts.completed == jobs).await;
    }

    /// Waits until so many consumers sleep until they see a marker.
    pub(crate) async fn until_idle(&self, consumers: usize) {
        eventually(SOON, || async move {
            let clients: String = self.ask("CLIENT LIST").await;
            // `cmd` is the last command; only `flags=b` says that it still waits.
            let waits = |line: &&str| line.contains("flags=b") && line.contains("cmd=bzpopmin");
            let idle = clients.lines().filter(waits).count();
            if idle == consumers { Ok(()) } else { Err(format!("{idle} idle: {clients}")) }
        })
        .await;
    }
}

/// A connection that bears with a busy machine.
pub(crate) async fn raw(url: &str) -> MultiplexedConnection {
    let client = redis::Client::open(url).unwrap();
    let patient = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(Some(SOON))
        .set_response_timeout(Some(SOON));
    client.get_multiplexed_async_connection_with_config(&patient).await.unwrap()
}

pub(crate) async fn connect(url: &str) -> (Broker, Queue) {
    let broker = Broker::connect(&Config::new(url)).await.unwrap();
    let queue = broker.queue(QUEUE).await.unwrap();
    (broker, queue)
}

/// One slot, and a lock that no test outlives by accident.
pub(crate) fn config(token: &str) -> ConsumerConfig {
    ConsumerConfig {
        token: token.to_owned(),
        lock: Duration::from_secs(30),
        stalled_interval: Duration::from_secs(30),
        drain: Duration::from_secs(10),
        ..ConsumerConfig::new(format!("worker {token}"), 1)
    }
}

/// Locks that expire, and are looked after, within a second.
pub(crate) fn short_lock(token: &str) -> ConsumerConfig {
    ConsumerConfig {
        lock: Duration::from_millis(600),
        stalled_interval: Duration::from_millis(300),
        ..config(token)
    }
}

pub(crate) fn job(id: &str) -> JobSpec {
    JobSpec {
        id: id.to_owned(),
        priority: 10,
        attempts: Some(3),
        backoff: Some(Backoff::Exponential(Duration::from_millis(200))),
        ..JobSpec::new("generate-pdf", json!({"ticketId": id}))
    }
}

pub(crate) fn jobs(count: usize) -> Vec<JobSpec> {
    (0..count).map(|number| job(&format!("job-{number}"))).collect()
}

/// Waits for `period` and checks all the while.
pub(crate) async fn throughout<F, Fut>(period: Duration, check: F)
where
    F: Fn() -> Fut,
    Fut: Future<Output = ()>,
{
    let start = Instant::now();
    let check = &check;
    eventually(period + SOON, || async move {
        check().await;
        (start.elapsed() >= period).then_some(())
    })
    .await;
}

/// A consumer at work.
pub(crate) struct Running {
    pub(crate) handle: ConsumerHandle,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) fn start(queue: &Queue, config: ConsumerConfig, handler: impl Handler) -> Self {
        let stop = CancellationToken::new();
        let consumer = Consumer::new(config, queue.clone(), handler);
        let handle = consumer.handle();
        Self { handle, task: tokio::spawn(consumer.run(stop.clone())), stop }
    }

    /// Asks it to stop, and does not wait.
    pub(crate) fn ask_to_stop(&self) {
        self.stop.cancel();
    }

    /// Asks it to stop and waits until it has.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(SOON, self.task).await.expect("stops").expect("does not panic");
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(self) {
        tokio::time::timeout(SOON, self.task).await.expect("ends").expect("does not panic");
    }

    /// Ends it without a farewell, as the death of its process would.
    pub(crate) async fn crash(&mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

/// A handler's call, to be answered by the test.
pub(crate) struct Call<A> {
    pub(crate) job: Job,
    /// Of a failure for good, why.
    pub(crate) reason: String,
    pub(crate) context: Option<JobContext>,
    pub(crate) at: Instant,
    answer: oneshot::Sender<A>,
}

/// What the test makes of a run.
pub(crate) enum Answer {
    Outcome(Outcome),
    Panic(&'static str),
}

impl<A> Call<A> {
    /// Whether the handler was dropped in the middle.
    pub(crate) fn is_dropped(&self) -> bool {
        self.answer.is_closed()
    }

    /// Waits until the handler was dropped in the middle.
    pub(crate) async fn dropped(mut self) {
        let dropped = tokio::time::timeout(SOON, self.answer.closed());
        dropped.await.unwrap_or_else(|_| panic!("the handler of {} still runs", self.job.id));
    }
}

impl Call<Answer> {
    pub(crate) fn ends(self, outcome: Outcome) {
        let sent = self.answer.send(Answer::Outcome(outcome));
        assert!(sent.is_ok(), "the handler of {} is gone", self.job.id);
    }

    pub(crate) fn panics(self, message: &'static str) {
        let _ = self.answer.send(Answer::Panic(message));
    }

    pub(crate) fn completes(self) {
        self.ends(Outcome::Done(json!("fine")));
    }
}

impl Call<Result<(), String>> {
    pub(crate) fn settles(self, result: Result<(), String>) {
        let _ = self.answer.send(result);
    }
}

/// A consumer whose handler is played by the test.
pub(crate) struct Played {
    pub(crate) running: Running,
    runs: mpsc::UnboundedReceiver<Call<Answer>>,
    failures: mpsc::UnboundedReceiver<Call<Result<(), String>>>,
}

impl Played {
    /// The next run.
    pub(crate) async fn run(&mut self) -> Call<Answer> {
        let run = tokio::time::timeout(SOON, self.runs.recv()).await;
        run.expect("a job should run").expect("the consumer should live")
    }

    /// The next failure for good.
    pub(crate) async fn failure(&mut self) -> Call<Result<(), String>> {
        let failure = tokio::time::timeout(SOON, self.failures.recv()).await;
        failure.expect("a job should fail").expect("the consumer should live")
    }

    /// Waits until the handler itself is dropped, because nothing is left that could use it.
    pub(crate) async fn is_gone(&mut self) {
        let gone = tokio::time::timeout(SOON, self.runs.recv()).await;
        assert!(gone.expect("something still uses the handler").is_none());
    }

    /// That no job is running that the test has not seen.
    pub(crate) fn runs_nothing_else(&mut self) {
        if let Ok(run) = self.runs.try_recv() {
            panic!("{} runs", run.job.id);
        }
    }
}

struct Player {
    runs: mpsc::UnboundedSender<Call<Answer>>,
    failures: mpsc::UnboundedSender<Call<Result<(), String>>>,
    policy: Box<dyn Fn(&str) -> JobPolicy + Send + Sync>,
}

fn call<A>(
    job: &Job,
    reason: &str,
    context: Option<JobContext>,
) -> (Call<A>, oneshot::Receiver<A>) {
    let (answer, answered) = oneshot::channel();
    let (job, reason, at) = (job.clone(), reason.to_owned(), Instant::now());
    (Call { job, reason, context, at, answer }, answered)
}

impl Handler for Player {
    async fn run(&self, job: &Job, context: &JobContext) -> Outcome {
        let (call, answered) = call(job, "", Some(context.clone()));
        let _ = self.runs.send(call);
        match answered.await {
            Ok(Answer::Outcome(outcome)) => outcome,
            Ok(Answer::Panic(message)) => panic!("{message}"),
            // The test forgot it: it takes for ever.
            Err(_) => std::future::pending().await,
        }
    }

    async fn given_up(&self, job: &Job, reason: &str) -> Result<(), String> {
        let (call, answered) = call(job, reason, None);
        let _ = self.failures.send(call);
        answered.await.unwrap_or(Ok(()))
    }

    fn policy(&self, job_name: &str) -> JobPolicy {
        (self.policy)(job_name)
    }

    fn custom_backoff(&self, strategy: &str, job: &Job) -> Duration {
        assert_eq!(strategy, "growing");
        Duration::from_millis(50 * u64::from(job.attempts_made + 1))
    }
}

pub(crate) fn play(queue: &Queue, config: ConsumerConfig) -> Played {
    play_with(queue, config, |_| JobPolicy::default())
}

/// The same with a policy for each name of jobs.
pub(crate) fn play_with(
    queue: &Queue,
    config: ConsumerConfig,
    policy: impl Fn(&str) -> JobPolicy + Send + Sync + 'static,
) -> Played {
    let policy = Box::new(policy);
    let (run, runs) = mpsc::unbounded_channel();
    let (failure, failures) = mpsc::unbounded_channel();
    let running = Running::start(queue, config, Player { runs: run, failures: failure, policy });
    Played { running, runs, failures }
}

/// A handler that finishes everything at once and counts.
#[derive(Clone, Default)]
pub(crate) struct Counting {
    runs: Arc<Mutex<HashMap<String, usize>>>,
}

impl Counting {
    pub(crate) fn runs(&self) -> HashMap<String, usize> {
        self.runs.lock().unwrap().clone()
    }
}

impl Handler for Counting {
    async fn run(&self, job: &Job, _: &JobContext) -> Outcome {
        *self.runs.lock().unwrap().entry(job.id.clone()).or_default() += 1;
        // Others get a turn in the middle of a run.
        tokio::task::yield_now().await;
        Outcome::Done(json!(null))
    }

    async fn given_up(&self, _: &Job, _: &str) -> Result<(), String> {
        Ok(())
    }
}
