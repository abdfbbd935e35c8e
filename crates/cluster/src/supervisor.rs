//! Keeps a number of worker processes alive.
//!
//! ```text
//!            spawn                    exits by itself
//!   start ──────────▶ running ───────────────────────────▶ back off ──▶ start
//!                        │ stop: SIGTERM                      │ gives its jobs back
//!                        ▼                                    │
//!                    draining ── exits, or SIGKILL at the deadline ──▶ gone
//! ```
//!
//! A worker's standard input is a pipe held by the supervisor: when the supervisor dies in whatever
//! way, the pipe closes, and the worker drains and ends. Nothing is adopted.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use stampede_broker::{Broker, Channel};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The shortest and longest pause before a restart; W2 promises three seconds at most.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(2_500));
/// A worker that lived this long did not die of its start.
const HEALTHY_AFTER: Duration = Duration::from_secs(10);
/// How much longer than its drain time a worker may take to end before it is killed.
const KILL_MARGIN: Duration = Duration::from_secs(2);

/// Names of the variables through which a worker learns who it is.
pub struct WorkerEnv;

impl WorkerEnv {
    /// The worker's name: `{node}-worker-{number}`.
    pub const ID: &'static str = "WORKER_ID";
    /// The name of its node.
    pub const NODE: &'static str = "INSTANCE_ID";
    /// The token it locks jobs with; new for every start.
    pub const TOKEN: &'static str = "WORKER_TOKEN";
    /// Set when standard input closes with the supervisor.
    pub const SUPERVISED: &'static str = "WORKER_SUPERVISED";
}

/// How to run workers.
#[derive(Debug, Clone)]
pub struct SupervisorConfig {
    /// The binary.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables set on top of our own environment.
    pub env: Vec<(String, String)>,
    /// Name of this node.
    pub node: String,
    /// How many workers.
    pub workers: usize,
    /// How long a worker may take to end its jobs.
    pub drain: Duration,
    /// The queues its jobs come from; jobs of a dead worker go back there.
    pub queues: Vec<String>,
}

/// Starts and restarts worker processes.
pub struct Supervisor {
    config: SupervisorConfig,
    broker: Broker,
}

impl Supervisor {
    /// Nothing is started before [`Supervisor::run`].
    pub fn new(config: SupervisorConfig, broker: Broker) -> Self {
        Self { config, broker }
    }

    /// Keeps the workers alive until `stop`, then drains them; returns when all have ended.
    pub async fn run(self, stop: CancellationToken) {
        let supervisor = Arc::new(self);
        let mut workers = JoinSet::new();
        for number in 0..supervisor.config.workers {
            workers.spawn(supervisor.clone().keep_alive(number, stop.clone()));
        }
        workers.join_all().await;
    }

    async fn keep_alive(self: Arc<Self>, number: usize, stop: CancellationToken) {
        let id = format!("{}-worker-{number}", self.config.node);
        let mut pause = BACK_OFF.0;
        while !stop.is_cancelled() {
            let token = format!("{id}:{}", Uuid::now_v7());
            let started = Instant::now();
            match self.spawn(&id, &token) {
                Ok(mut child) => {
                    // Held apart: waiting for a child closes a pipe that is left in it.
                    let _pipe = child.stdin.take();
                    // Redis may hang; that must not keep us from watching the child.
                    tokio::spawn(self.clone().announce(id.clone()));
                    tokio::select! {
                        status = child.wait() => match status {
                            Ok(status) => tracing::warn!(worker = id, %status, "a worker ended by itself"),
                            Err(error) => tracing::error!(worker = id, %error, "cannot wait for a worker"),
                        },
                        () = stop.cancelled() => self.drain(&id, &mut child).await,
                    }
                    let reclaim = tokio::spawn(self.clone().reclaim(id.clone(), token));
                    if stop.is_cancelled() {
                        // Nobody will restart it, so this is the last chance to tell the queue.
                        let _ = tokio::time::timeout(KILL_MARGIN, reclaim).await;
                    }
                }
                Err(error) => tracing::error!(
                    worker = id, %error, program = %self.config.program.display(), "cannot start a worker"
                ),
            }
            pause = if started.elapsed() > HEALTHY_AFTER {
                BACK_OFF.0
            } else {
                (pause * 2).min(BACK_OFF.1)
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    fn spawn(&self, id: &str, token: &str) -> std::io::Result<Child> {
        Command::new(&self.config.program)
            .arg0("stampede")
            .args(&self.config.args)
            .envs(self.config.env.iter().map(|(name, value)| (name, value)))
            .env(WorkerEnv::ID, id)
            .env(WorkerEnv::NODE, &self.config.node)
            .env(WorkerEnv::TOKEN, token)
            .env(WorkerEnv::SUPERVISED, "1")
            .stdin(Stdio::piped())
            // Ctrl-C in the terminal is for the server, which then tells its workers.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }

    async fn drain(&self, id: &str, child: &mut Child) {
        let pid = child.id().and_then(|pid| Pid::from_raw(pid as i32));
        if let Some(pid) = pid {
            // Fails only when it has just ended, which is what we want.
            let _ = kill_process(pid, Signal::TERM);
        }
        if tokio::time::timeout(self.config.drain + KILL_MARGIN, child.wait()).await.is_err() {
            tracing::warn!(worker = id, "did not end in time and is killed");
            let _ = child.kill().await;
        }
    }

    /// What the worker still held goes back to its queues at once, not when its locks expire.
    async fn reclaim(self: Arc<Self>, id: String, token: String) {
        for name in &self.config.queues {
            let reclaimed = match self.broker.queue(name).await {
                Ok(queue) => queue.reclaim_crashed(&token).await,
                Err(error) => Err(error),
            };
            match reclaimed {
                Ok(0) => {}
                Ok(jobs) => tracing::info!(
                    worker = id,
                    jobs,
                    queue = name,
                    "put back what it was working on"
                ),
                Err(error) => tracing::warn!(
                    worker = id, %error, "cannot put back what it was working on; the locks will expire"
                ),
            }
        }
    }

    async fn announce(self: Arc<Self>, id: String) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let message = json!({
            "workerId": id,
            "instanceId": self.config.node,
            "timestamp": now.as_millis() as u64,
        });
        if let Err(error) = self.broker.publish(Channel::WorkerStarted, &[message]).await {
            tracing::debug!(%error, "could not announce a worker");
        }
    }
}
