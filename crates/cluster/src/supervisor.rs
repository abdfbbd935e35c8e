//! Keeps worker processes alive: as many as wanted, one seat each (`seat.rs`).
//!
//! - *Up*: a new seat with the smallest free number. *Down*: a seat is told to leave, one that does
//!   not work first, else the one with the highest number; it drains and is gone.
//! - *Rolling restart*: for every seat, one after the other, a new one is started with the program
//!   that stands on the disk by now. When it says that it is ready, the old one drains. If it dies or
//!   is not ready in time, the restart is given up and all old ones stay.
//! - *Stop*: all seats leave at the same time.
//!
//! Nothing is adopted: workers notice when their supervisor dies, and drain (see `seat.rs`).

mod backoff;
mod program;
mod seat;
mod status;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use stampede_broker::{Broker, Channel};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::program::Program;
use self::seat::Seat;
use self::status::Board;
pub use self::status::{WorkerState, WorkerStatus};
use crate::ENTRY_LIVES;

/// How long a worker may take until it says that it is ready, while others are being replaced.
const READY_WITHIN: Duration = Duration::from_secs(60);

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
    /// How long its jobs may take to end once it is told to stop, in milliseconds.
    pub const DRAIN: &'static str = "WORKER_DRAIN_MS";
}

/// How to run workers.
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
    /// How many workers at the beginning.
    pub workers: usize,
    /// How long a worker's jobs may take to end; then it hands them back.
    pub drain: Duration,
    /// When a worker that was told to stop is killed; longer than `drain`.
    pub kill_after: Duration,
    /// Most memory of one worker in bytes.
    pub memory: Option<u64>,
    /// The queues its jobs come from; jobs of a dead worker go back there.
    pub queues: Vec<String>,
}

impl SupervisorConfig {
    /// How long to drain and when to kill, so that all has ended within `timeout`.
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
    /// Why the last rolling restart was given up, if it was.
    restart_problem: Mutex<Option<String>>,
}

/// Steers and watches a supervisor. Cheap to clone.
#[derive(Clone)]
pub struct SupervisorHandle {
    shared: Arc<Shared>,
}

impl SupervisorHandle {
    /// How many workers there should be.
    pub fn target(&self) -> usize {
        *self.shared.target.borrow()
    }

    /// Changes how many workers there should be.
    pub fn scale_to(&self, workers: usize) {
        self.shared.target.send_if_modified(|target| std::mem::replace(target, workers) != workers);
    }

    /// Replaces all workers, one by one. One that is wanted while another goes on follows it.
    pub fn restart(&self) {
        // A full channel means that one is waiting already.
        let _ = self.shared.restart.try_send(());
    }

    /// Why the last rolling restart was given up, if it was.
    pub fn restart_problem(&self) -> Option<String> {
        self.shared.restart_problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes when a worker changes its state.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.shared.board.changes()
    }

    /// What is known about the workers.
    pub fn workers(&self) -> Vec<WorkerStatus> {
        self.shared.board.all()
    }
}

/// A rolling restart under way.
struct Rolling {
    program: Program,
    /// Seats that are still to be replaced.
    left: VecDeque<usize>,
    now: Step,
}

enum Step {
    Next,
    /// A new one was started for an old one, and has to be ready by then.
    Trying {
        new: usize,
        old: usize,
        until: Instant,
    },
    /// The old one drains.
    Leaving {
        old: usize,
    },
}

impl Supervisor {
    /// Nothing is started before [`Supervisor::run`].
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

    /// Steers and watches it.
    pub fn handle(&self) -> SupervisorHandle {
        SupervisorHandle { shared: self.shared.clone() }
    }

    /// Keeps the workers alive until `stop`, then drains them; returns when all have ended.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut target = self.shared.target.subscribe();
        let mut changes = self.shared.board.changes();
        let mut seats = Seats::new(self.shared.clone(), stop.clone());
        let mut rolling: Option<Rolling> = None;
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let extra = seats.advance(&mut rolling);
            seats.fit(*target.borrow_and_update(), extra);
            let deadline = match &rolling {
                Some(Rolling { now: Step::Trying { until, .. }, .. }) => *until,
                _ => Instant::now() + READY_WITHIN,
            };
            tokio::select! {
                // We hold the other end.
                Ok(()) = target.changed() => {}
                Some(()) = self.restarts.recv(), if rolling.is_none() => rolling = seats.roll(),
                Some(gone) = seats.tasks.join_next() => seats.gone(gone.ok()),
                Ok(()) = changes.changed() => {}
                () = tokio::time::sleep_until(deadline) => {}
                () = stop.cancelled() => {}
            }
        }
        seats.tasks.join_all().await;
    }
}

/// All seats of a node.
struct Seats {
    shared: Arc<Shared>,
    program: Program,
    stop: CancellationToken,
    tasks: JoinSet<usize>,
    /// Every seat there is, until its process is gone; those that leave have a cancelled token.
    leave: BTreeMap<usize, CancellationToken>,
}

impl Seats {
    fn new(shared: Arc<Shared>, stop: CancellationToken) -> Self {
        let program = shared.config.program.clone();
        Self { shared, program, stop, tasks: JoinSet::new(), leave: BTreeMap::new() }
    }

    fn start(&mut self, program: Program) -> usize {
        let taken = |number: &usize| self.leave.contains_key(number);
        let number = (0..).find(|number| !taken(number)).unwrap_or_default();
        let id = format!("{}-worker-{number}", self.shared.config.node);
        let leave = self.stop.child_token();
        self.leave.insert(number, leave.clone());
        self.shared.board.put_up(number, &id);
        let seat = Seat { shared: self.shared.clone(), number, id, program, leave };
        self.tasks.spawn(seat.keep_alive());
        number
    }

    fn staying(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.leave.iter().filter(|(_, leave)| !leave.is_cancelled()).map(|(number, _)| *number)
    }

    fn dismiss(&self, number: usize) {
        if let Some(leave) = self.leave.get(&number) {
            leave.cancel();
        }
    }

    fn gone(&mut self, number: Option<usize>) {
        match number {
            Some(number) => drop(self.leave.remove(&number)),
            // A seat that panicked: its number is not known, but its place must not stay taken.
            None => {
                tracing::error!("a seat ended in an unexpected way");
                let known: Vec<usize> = self.leave.keys().copied().collect();
                for number in known.into_iter().filter(|n| self.shared.board.state(*n).is_none()) {
                    self.leave.remove(&number);
                }
            }
        }
    }

    /// Makes the seats as many as wanted, besides the one that is tried out.
    fn fit(&mut self, target: usize, tried: Option<usize>) {
        let count = |seats: &Self| seats.staying().filter(|n| Some(*n) != tried).count();
        while count(self) < target {
            self.start(self.program.clone());
        }
        while count(self) > target {
            let works = |number: &usize| {
                let state = self.shared.board.state(*number).map(|status| status.state);
                matches!(state, Some(WorkerState::Running | WorkerState::Starting))
            };
            let candidates = || self.staying().filter(|n| Some(*n) != tried).rev();
            let number = candidates().find(|n| !works(n)).or_else(|| candidates().next());
            let Some(number) = number else { return };
            self.dismiss(number);
        }
    }

    /// Begins a rolling restart.
    fn roll(&self) -> Option<Rolling> {
        match self.program.renewed() {
            Ok(program) => {
                let newer = !program.is(&self.program);
                tracing::info!(newer, program = %program.path().display(), "rolling restart begins");
                Some(Rolling { program, left: self.staying().collect(), now: Step::Next })
            }
            Err(error) => {
                let path = self.program.path().display();
                self.give_up(format!("{path}: {error}"));
                None
            }
        }
    }

    fn give_up(&self, problem: String) {
        tracing::error!(problem, "rolling restart given up; the old workers stay");
        self.note_problem(Some(problem));
    }

    fn note_problem(&self, problem: Option<String>) {
        let noted = &self.shared.restart_problem;
        *noted.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Takes a rolling restart as far as it can go now; returns the seat that is being tried out.
    fn advance(&mut self, rolling: &mut Option<Rolling>) -> Option<usize> {
        while let Some(Rolling { program, left, now }) = rolling {
            match *now {
                Step::Next => {
                    let present = |number: &usize| self.staying().any(|n| n == *number);
                    let Some(old) = std::iter::from_fn(|| left.pop_front()).find(present) else {
                        tracing::info!("rolling restart done");
                        self.note_problem(None);
                        *rolling = None;
                        return None;
                    };
                    let new = self.start(program.clone());
                    *now = Step::Trying { new, old, until: Instant::now() + READY_WITHIN };
                }
                Step::Trying { new, old, until } => {
                    let status = self.shared.board.state(new);
                    match status.as_ref().map(|status| (status.state, status.deaths)) {
                        Some((WorkerState::Running, 0)) => {
                            self.program = program.clone();
                            self.dismiss(old);
                            *now = Step::Leaving { old };
                        }
                        Some((WorkerState::Starting, 0)) if Instant::now() < until => {
                            return Some(new);
                        }
                        _ => {
                            let problem = status.and_then(|status| status.problem);
                            let problem = problem.unwrap_or_else(|| "not ready in time".to_owned());
                            self.give_up(format!("the new worker does not start: {problem}"));
                            self.dismiss(new);
                            *rolling = None;
                        }
                    }
                }
                Step::Leaving { old } if self.leave.contains_key(&old) => return None,
                Step::Leaving { .. } => *now = Step::Next,
            }
        }
        None
    }
}

impl Shared {
    /// What a dead worker still held goes back to its queues at once, not when its locks expire, and
    /// its entries go.
    async fn clear_away(self: Arc<Self>, id: String, token: String) {
        let registry = self.broker.registry(ENTRY_LIVES);
        if let Err(error) = registry.forget_worker(&id, &token).await {
            tracing::debug!(worker = id, %error, "cannot remove its entries; they will expire");
        }
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

    async fn announce_start(self: Arc<Self>, id: String) {
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
