//! Keeps the wanted number of worker processes alive. Each process has a seat (`seat.rs`); `seats.rs` holds them all.
//!
//! - *Up*: a new seat gets the smallest free number.
//! - *Down*: a seat whose worker does not run leaves first, else the one with the highest number. Its worker drains.
//! - *Rolling restart*: for every seat, one after the other, a new worker is started with the program that is on disk
//!   now. When it reports that it is ready, the old worker drains. If it dies or is not ready in time, the restart is
//!   given up and all old workers stay.
//! - *Stop*: all seats leave at the same time.
//!
//! No process is adopted: workers notice the death of their supervisor, and drain (`seat.rs`).

mod backoff;
mod program;
mod seat;
mod seats;
mod status;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::BoxFuture;
use stampede_broker::{Broker, Error};
use stampede_telemetry::Metrics;
use stampede_wire::announcement::{Announcement, WorkerStarted};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::program::Program;
use self::seats::{Gone, Rolling, Seats};
use self::status::Board;
pub use self::status::{WorkerState, WorkerStatus};
use crate::ENTRY_LIVES;

/// The seats are checked this often even without an event.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// Pause before a seat whose task panicked is started again.
const AFTER_PANIC: Duration = Duration::from_secs(1);
/// Locks of jobs expire by then; until then, putting back the jobs of a dead worker is repeated.
const LOCKS_LAST: Duration = Duration::from_secs(15);
const RECLAIM_AGAIN: Duration = Duration::from_millis(500);

/// Names of the variables that tell a worker its identity.
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
    /// Milliseconds for its jobs to end once it is told to stop.
    pub const DRAIN: &'static str = "WORKER_DRAIN_MS";
}

/// Settings of a supervisor.
#[derive(Debug, Clone)]
pub struct SupervisorConfig {
    /// The program.
    pub program: Program,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables set on top of our own environment.
    pub env: Vec<(String, String)>,
    /// Name of this node.
    pub node: String,
    /// Workers at the beginning.
    pub workers: usize,
    /// Time for a worker's jobs to end; then it puts them back on the queue.
    pub drain: Duration,
    /// Time after which a worker that was told to stop is killed; longer than `drain`.
    pub kill_after: Duration,
    /// Most memory of one worker in bytes.
    pub memory: Option<u64>,
    /// The queues of its jobs; jobs of a dead worker are put back there.
    pub queues: Vec<String>,
    /// Where counts of workers are added up.
    pub metrics: Metrics,
}

impl SupervisorConfig {
    /// Times for `drain` and `kill`, so that all workers have ended within `timeout`.
    pub fn deadlines(timeout: Duration) -> (Duration, Duration) {
        let margin = (timeout / 4).min(Duration::from_secs(4));
        (timeout - margin, timeout - margin / 4)
    }
}

/// Starts and restarts worker processes.
pub struct Supervisor {
    shared: Arc<Shared>,
    restarts: mpsc::Receiver<()>,
}

struct Shared {
    config: SupervisorConfig,
    broker: Broker,
    board: Board,
    target: watch::Sender<usize>,
    restart: mpsc::Sender<()>,
    /// The reason why the last rolling restart was given up, if it was.
    restart_problem: Mutex<Option<String>>,
}

/// Steers and watches a supervisor. Cheap to clone.
#[derive(Clone)]
pub struct SupervisorHandle {
    shared: Arc<Shared>,
}

impl SupervisorHandle {
    /// Workers there should be.
    pub fn target(&self) -> usize {
        *self.shared.target.borrow()
    }

    /// Changes the number of workers there should be.
    pub fn scale_to(&self, workers: usize) {
        self.shared.target.send_if_modified(|target| std::mem::replace(target, workers) != workers);
    }

    /// Replaces all workers, one by one. A restart that is asked for during another one follows it.
    pub fn restart(&self) {
        // A full channel means that a restart is waiting already.
        let _ = self.shared.restart.try_send(());
    }

    /// The reason why the last rolling restart was given up, if it was.
    pub fn restart_problem(&self) -> Option<String> {
        self.shared.restart_problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes when a worker changes its state.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.shared.board.changes()
    }

    /// All workers, by number.
    pub fn workers(&self) -> Vec<WorkerStatus> {
        self.shared.board.all()
    }
}

impl Supervisor {
    /// A supervisor; no process is started before [`Supervisor::run`].
    pub fn new(config: SupervisorConfig, broker: Broker) -> Self {
        let (restart, restarts) = mpsc::channel(1);
        let shared = Shared {
            target: watch::Sender::new(config.workers),
            config,
            broker,
            board: Board::default(),
            restart,
            restart_problem: Mutex::default(),
        };
        Self { shared: Arc::new(shared), restarts }
    }

    /// A handle to steer and watch it.
    pub fn handle(&self) -> SupervisorHandle {
        SupervisorHandle { shared: self.shared.clone() }
    }

    /// Keeps the workers alive until `stop`, then drains them; returns when all have ended.
    pub fn run(self, stop: CancellationToken) -> BoxFuture<'static, ()> {
        // Boxed: compiled here, and not in the crate of the command line.
        Box::pin(self.run_until(stop))
    }

    async fn run_until(mut self, stop: CancellationToken) {
        let mut target = self.shared.target.subscribe();
        let mut changes = self.shared.board.changes();
        let mut seats = Seats::new(self.shared.clone(), stop.clone());
        let mut rolling: Option<Rolling> = None;
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let extra = seats.advance(&mut rolling);
            seats.fit(*target.borrow_and_update(), extra);
            let deadline = rolling.as_ref().and_then(Rolling::deadline);
            let deadline = deadline.unwrap_or_else(|| Instant::now() + LOOK_AGAIN);
            tokio::select! {
                // We hold the other end.
                Ok(()) = target.changed() => {}
                Some(()) = self.restarts.recv(), if rolling.is_none() => rolling = seats.roll(),
                Some(gone) = seats.tasks.join_next_with_id() => {
                    if seats.gone(gone) == Gone::Panicked {
                        // A seat that panics at every start must not use a whole core.
                        tokio::select! {
                            () = tokio::time::sleep(AFTER_PANIC) => {}
                            () = stop.cancelled() => {}
                        }
                    }
                }
                Ok(()) = changes.changed() => {}
                () = tokio::time::sleep_until(deadline) => {}
                () = stop.cancelled() => {}
            }
        }
        while let Some(gone) = seats.tasks.join_next_with_id().await {
            seats.gone(gone);
        }
    }
}

impl Shared {
    /// Puts the jobs of a dead worker back on their queues at once, instead of when its locks expire, and removes its
    /// entries.
    async fn clear_away(self: Arc<Self>, id: String, token: String) {
        let registry = self.broker.registry(ENTRY_LIVES);
        if let Err(error) = registry.forget_worker(&id, &token).await {
            tracing::debug!(worker = id, %error, "cannot remove its entries; they will expire");
        }
        let give_up = Instant::now() + LOCKS_LAST;
        for name in &self.config.queues {
            let reclaimed = loop {
                match self.reclaim(name, &token).await {
                    Err(error) if error.is_outage() && Instant::now() < give_up => {
                        tokio::time::sleep(RECLAIM_AGAIN).await;
                    }
                    reclaimed => break reclaimed,
                }
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

    async fn reclaim(&self, queue: &str, token: &str) -> Result<usize, Error> {
        self.broker.queue(queue).await?.reclaim_crashed(token).await
    }

    async fn announce_start(self: Arc<Self>, id: String) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started = Announcement::WorkerStarted(WorkerStarted {
            worker_id: id,
            instance_id: self.config.node.clone(),
            timestamp: now.as_millis() as u64,
        });
        if let Err(error) = self.broker.publish(started.channel(), &[started.payload()]).await {
            tracing::debug!(%error, "could not announce a worker");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_ended_before_the_time_is_up() {
        for seconds in [1, 2, 10, 30, 600] {
            let timeout = Duration::from_secs(seconds);
            let (drain, kill) = SupervisorConfig::deadlines(timeout);
            assert!(drain < kill && kill < timeout, "{drain:?} {kill:?} {timeout:?}");
            assert!(drain >= timeout / 2, "most of the time is for the jobs");
        }
    }
}
