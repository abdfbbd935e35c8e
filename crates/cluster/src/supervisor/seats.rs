//! All seats of a node: their number, and the rolling restart.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use stampede_telemetry::Restart;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::seat::Seat;
use super::{Program, Shared, WorkerState};

/// Time for a new worker to become ready during a rolling restart.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A rolling restart under way.
pub(super) struct Rolling {
    program: Program,
    /// Seats that are still to be replaced.
    left: VecDeque<usize>,
    now: Step,
}

enum Step {
    Next,
    /// A new worker was started for an old one, and has to be ready by `until`.
    Trying {
        new: usize,
        old: usize,
        until: Instant,
    },
    /// The old worker drains.
    Leaving {
        old: usize,
    },
}

impl Rolling {
    /// The time by which the new worker has to be ready.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.now {
            Step::Trying { until, .. } => Some(until),
            Step::Next | Step::Leaving { .. } => None,
        }
    }
}

/// All seats of a node.
pub(super) struct Seats {
    shared: Arc<Shared>,
    program: Program,
    stop: CancellationToken,
    pub(super) tasks: JoinSet<usize>,
    /// Every seat until its process is gone; seats that leave have a cancelled token.
    leave: BTreeMap<usize, CancellationToken>,
    /// The seat of each task; a task that panicked does not return its number.
    numbers: HashMap<Id, usize>,
}

/// The end of a seat.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    Orderly,
    Panicked,
}

impl Seats {
    pub(super) fn new(shared: Arc<Shared>, stop: CancellationToken) -> Self {
        let program = shared.config.program.clone();
        Self {
            shared,
            program,
            stop,
            tasks: JoinSet::new(),
            leave: BTreeMap::new(),
            numbers: HashMap::new(),
        }
    }

    fn start(&mut self, program: Program) -> usize {
        let taken = |number: &usize| self.leave.contains_key(number);
        let number = (0..).find(|number| !taken(number)).unwrap_or_default();
        let id = format!("{}-worker-{number}", self.shared.config.node);
        let leave = self.stop.child_token();
        self.leave.insert(number, leave.clone());
        self.shared.board.put_up(number, &id);
        let seat = Seat { shared: self.shared.clone(), number, id, program, leave };
        let task = self.tasks.spawn(seat.keep_alive());
        self.numbers.insert(task.id(), number);
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

    /// Removes a seat that has ended.
    pub(super) fn gone(&mut self, ended: Result<(Id, usize), JoinError>) -> Gone {
        let task = ended.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
        let number = self.numbers.remove(&task);
        if let Some(number) = number {
            self.leave.remove(&number);
        }
        let Err(error) = ended else { return Gone::Orderly };
        tracing::error!(number, %error, "the task of a seat panicked");
        if let Some(number) = number {
            self.shared.board.take_down(number);
        }
        Gone::Panicked
    }

    /// Adds or removes seats until there are as many as wanted, besides the one on trial.
    pub(super) fn fit(&mut self, target: usize, tried: Option<usize>) {
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
    pub(super) fn roll(&self) -> Option<Rolling> {
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

    /// Takes a rolling restart as far as it can go now; returns the seat on trial.
    pub(super) fn advance(&mut self, rolling: &mut Option<Rolling>) -> Option<usize> {
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
                            self.shared.config.metrics.worker_restarted(Restart::Rolling);
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use stampede_broker::{Broker, Config};
    use stampede_telemetry::Metrics;
    use stampede_testkit::{Redis, eventually};

    use super::*;
    use crate::supervisor::{Supervisor, SupervisorConfig};

    const SOON: Duration = Duration::from_secs(10);

    async fn seats(redis: &Redis, program: &str, workers: usize) -> Seats {
        let config = SupervisorConfig {
            program: Program::at(program).unwrap(),
            args: Vec::new(),
            env: Vec::new(),
            node: "node".to_owned(),
            workers,
            drain: Duration::from_secs(2),
            kill_after: Duration::from_secs(3),
            memory: None,
            queues: vec!["tickets".to_owned()],
            metrics: Metrics::default(),
        };
        let broker = Broker::connect(&Config::new(redis.url())).await.unwrap();
        Seats::new(Supervisor::new(config, broker).shared, CancellationToken::new())
    }

    #[tokio::test]
    async fn jobs_of_a_seat_that_panicked_come_back_at_once() {
        let redis = Redis::start().await;
        let folder = stampede_testkit::temp_dir();
        let program = folder.path().join("worker");
        let said = folder.path().join("token");
        let script = format!("#!/bin/sh\necho $WORKER_TOKEN > {}\nexec cat\n", said.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let mut seats = seats(&redis, program.to_str().unwrap(), 1).await;
        seats.fit(1, None);
        let token = eventually(SOON, || async {
            let token = std::fs::read_to_string(&said).unwrap_or_default();
            token.strip_suffix('\n').map(str::to_owned)
        })
        .await;
        redis.cli(&["HSET", "bull:tickets:a", "name", "a", "data", "{}"]);
        redis.cli(&["LPUSH", "bull:tickets:active", "a"]);
        redis.cli(&["SET", "bull:tickets:a:lock", &format!("{token}:0"), "PX", "60000"]);
        // An aborted task is dropped like one that panics.
        seats.tasks.abort_all();
        let ended = seats.tasks.join_next_with_id().await.unwrap();
        assert!(seats.gone(ended) == Gone::Panicked);
        eventually(SOON, || async {
            let waiting = redis.cli(&["LRANGE", "bull:tickets:wait", "0", "-1"]);
            if waiting == "a" { Ok(()) } else { Err(waiting) }
        })
        .await;
    }

    #[tokio::test]
    async fn the_place_of_a_seat_that_panicked_is_taken_anew() {
        let redis = Redis::start().await;
        let mut seats = seats(&redis, "/bin/cat", 2).await;
        let (shared, stop) = (seats.shared.clone(), seats.stop.clone());
        let task = seats.tasks.spawn(async { panic!("on purpose") });
        seats.numbers.insert(task.id(), 0);
        seats.leave.insert(0, stop.child_token());
        shared.board.put_up(0, "node-worker-0");
        seats.fit(2, None);
        assert_eq!(seats.staying().collect::<Vec<_>>(), [0, 1]);

        let ended = seats.tasks.join_next_with_id().await.unwrap();
        assert!(seats.gone(ended) == Gone::Panicked);
        assert!(shared.board.state(0).is_none(), "nobody sits there");
        assert_eq!(seats.staying().collect::<Vec<_>>(), [1], "the others stay");
        seats.fit(2, None);
        assert_eq!(seats.staying().collect::<Vec<_>>(), [0, 1]);
        assert!(shared.board.state(0).is_some());
        stop.cancel();
        while let Some(ended) = seats.tasks.join_next_with_id().await {
            assert!(seats.gone(ended) == Gone::Orderly);
        }
    }
}
