//! One seat: keeps one worker process alive until it is told to leave.
//!
//! ```text
//!            spawn            says "ready"              exits by itself
//!   start ──────────▶ starting ─────────▶ running ─────────────────────▶ back off ──▶ start
//!     ▲ memory limit                         │ leave: SIGTERM               │ gives its jobs back
//!     └──────────────── draining ◀───────────┤                              │
//!                          └── exits, or SIGKILL at the deadline ──▶ gone ◀─┘ leave
//! ```
//!
//! A worker's standard input is a pipe held here: when the supervisor dies in whatever way, the pipe closes, and the
//! worker drains and ends. The worker reports on its standard output that it is ready, how busy it is, and what it has counted.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use stampede_telemetry::{Restart, Snapshot, TOLD, Told};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::backoff::{self, HEALTHY_AFTER, LOOPING};
use super::program::Program;
use super::status::WorkerState;
use super::{Shared, WorkerEnv};
use crate::machine;

/// Time between two looks at a worker's memory.
const MEMORY_INTERVAL: Duration = Duration::from_secs(2);
/// A worker beyond its memory limit by this factor is killed at once, before the machine runs out of memory.
const RUNAWAY: u64 = 2;
/// Time for putting back the jobs of a worker that is not started again.
const RECLAIM_PATIENCE: Duration = Duration::from_secs(2);

/// Time for reading what a process that has ended told last.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// The end of a process.
enum Ended {
    /// It died by itself.
    Died(String),
    /// It was told to leave.
    Told,
    /// It used too much memory, and was drained.
    TooLarge(String),
}

pub(super) struct Seat {
    pub(super) shared: Arc<Shared>,
    pub(super) number: usize,
    pub(super) id: String,
    pub(super) program: Program,
    pub(super) leave: CancellationToken,
}

impl Seat {
    /// Keeps the worker alive until `leave`; returns the number when the process is gone.
    pub(super) async fn keep_alive(self) -> usize {
        let mut deaths: u32 = 0;
        while !self.leave.is_cancelled() {
            let token = format!("{}:{}", self.id, Uuid::now_v7());
            self.note(WorkerState::Starting);
            let started = Instant::now();
            let problem = match self.spawn(&token) {
                Ok(child) => match self.counted(self.watch(child, &token).await) {
                    Ended::Told => break,
                    // A worker that grew over time starts small again; one that needs more from the
                    // start will need it every time.
                    Ended::TooLarge(_) if started.elapsed() > HEALTHY_AFTER => {
                        deaths = 0;
                        continue;
                    }
                    Ended::Died(how) | Ended::TooLarge(how) => (WorkerState::Restarting, how),
                },
                Err(error) => {
                    let program = self.program.path().display();
                    tracing::error!(worker = self.id, %error, %program, "cannot start a worker");
                    self.shared.config.metrics.worker_restarted(Restart::CannotStart);
                    (WorkerState::CannotStart, error.to_string())
                }
            };
            deaths = if started.elapsed() > HEALTHY_AFTER { 1 } else { deaths + 1 };
            let (mut state, problem) = problem;
            let pause = backoff::pause(deaths);
            if deaths >= LOOPING && state == WorkerState::Restarting {
                state = WorkerState::CrashLooping;
                tracing::error!(worker = self.id, deaths, problem, next_try_in = ?pause, "is crash-looping");
            }
            self.shared.board.note(self.number, |status| {
                status.state = state;
                status.deaths = deaths;
                status.problem = Some(problem);
                (status.pid, status.busy, status.memory) = (None, 0, 0);
            });
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.leave.cancelled() => {}
            }
        }
        self.shared.board.take_down(self.number);
        self.number
    }

    /// Counts a process that has to be replaced.
    fn counted(&self, ended: Ended) -> Ended {
        let metrics = &self.shared.config.metrics;
        match ended {
            Ended::Died(_) => metrics.worker_restarted(Restart::Died),
            Ended::TooLarge(_) => metrics.worker_restarted(Restart::Memory),
            Ended::Told => {}
        }
        ended
    }

    fn note(&self, state: WorkerState) {
        self.shared.board.note(self.number, |status| status.state = state);
    }

    fn spawn(&self, token: &str) -> std::io::Result<Child> {
        let config = &self.shared.config;
        Command::new(self.program.executable())
            .arg0("stampede")
            .args(&config.args)
            .envs(config.env.iter().map(|(name, value)| (name, value)))
            .env(WorkerEnv::ID, &self.id)
            .env(WorkerEnv::NODE, &config.node)
            .env(WorkerEnv::TOKEN, token)
            .env(WorkerEnv::SUPERVISED, "1")
            .env(WorkerEnv::DRAIN, config.drain.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C in the terminal is for the server, which then tells its workers.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }

    /// Watches a process until it has ended, and puts its jobs back on their queues.
    async fn watch(&self, child: Child, token: &str) -> Ended {
        let left = Left { shared: Some(self.shared.clone()), id: &self.id, token };
        // Bound after the process: on a panic, the process is killed before its jobs are put back.
        let mut child = child;
        // Held apart, because waiting for a child closes a pipe that is left in it.
        let _pipe = child.stdin.take();
        self.shared.board.note(self.number, |status| status.pid = child.id());
        // A Redis that hangs must not delay watching the child.
        tokio::spawn(self.shared.clone().announce_start(self.id.clone()));
        let mut output = Output {
            lines: child.stdout.take().map(|out| BufReader::new(out).lines()),
            told: self.shared.config.metrics.listen(),
        };
        let ended = self.live(&mut child, &mut output).await;
        let clearing = left.clear_away();
        self.hear_the_rest(&mut output).await;
        if let Some(clearing) = clearing
            && self.leave.is_cancelled()
        {
            // The worker is not started again, so this is the last chance to put its jobs back.
            let _ = tokio::time::timeout(RECLAIM_PATIENCE, clearing).await;
        }
        ended
    }

    async fn live(&self, child: &mut Child, output: &mut Output) -> Ended {
        let mut memory = tokio::time::interval(MEMORY_INTERVAL);
        memory.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // First: the death of a worker outweighs its earlier reports.
                biased;
                status = child.wait() => return Ended::Died(match status {
                    Ok(status) => {
                        tracing::warn!(worker = self.id, %status, "a worker ended by itself");
                        status.to_string()
                    }
                    Err(error) => {
                        tracing::error!(worker = self.id, %error, "cannot wait for a worker");
                        error.to_string()
                    }
                }),
                () = self.leave.cancelled() => {
                    self.drain(child, output).await;
                    return Ended::Told;
                }
                line = output.next_line() => self.report(&line, &mut output.told),
                _ = memory.tick() => if let Some(used) = self.too_large(child) {
                    let limit = self.shared.config.memory.unwrap_or_default();
                    let mb = |bytes: u64| bytes >> 20;
                    tracing::warn!(
                        worker = self.id, used_mb = mb(used), limit_mb = mb(limit),
                        "uses too much memory and is started anew"
                    );
                    if used > limit.saturating_mul(RUNAWAY) {
                        let _ = child.kill().await;
                    } else {
                        self.drain(child, output).await;
                    }
                    if self.leave.is_cancelled() {
                        return Ended::Told;
                    }
                    let (used, limit) = (mb(used), mb(limit));
                    return Ended::TooLarge(format!("needs {used} MB, and {limit} MB is its limit"));
                },
            }
        }
    }

    /// Reads a worker's report: `ready`, `busy 3 of 16`, or what it has counted.
    fn report(&self, line: &str, told: &mut Told) {
        if line.starts_with(TOLD) {
            return self.hear(line, told);
        }
        let mut words = line.split(' ');
        let number = |word: Option<&str>| word.and_then(|n| n.parse::<usize>().ok());
        match (words.next(), number(words.next()), words.next(), number(words.next())) {
            (Some("ready"), ..) => {
                let healthy = |status: &mut super::WorkerStatus| {
                    status.state = WorkerState::Running;
                    status.problem = None;
                };
                self.shared.board.note(self.number, healthy);
            }
            (Some("busy"), Some(busy), Some("of"), Some(slots)) => {
                self.shared.board.note(self.number, |status| {
                    (status.busy, status.slots) = (busy, slots);
                });
            }
            _ => tracing::info!(worker = self.id, "{line}"),
        }
    }

    /// Reads what a worker has counted, and nothing else: a worker that ends is not running any more, whatever it told before.
    fn hear(&self, line: &str, told: &mut Told) {
        match Snapshot::read(line) {
            Some(snapshot) => told.hear(snapshot),
            // The last line of a process that was killed may be cut off.
            None => tracing::debug!(worker = self.id, line, "tells no counts"),
        }
    }

    /// Notes the memory it uses; `Some` if that is too much.
    fn too_large(&self, child: &Child) -> Option<u64> {
        let used = machine::memory_of(child.id()?)?;
        self.shared.board.note(self.number, |status| status.memory = used);
        self.shared.config.memory.filter(|limit| used > *limit).map(|_| used)
    }

    /// Reads what a process that has ended told last.
    async fn hear_the_rest(&self, output: &mut Output) {
        let rest = async {
            while let Some(line) = output.try_next_line().await {
                self.hear(&line, &mut output.told);
            }
        };
        // A child of its own may have the pipe open.
        let _ = tokio::time::timeout(LAST_WORDS, rest).await;
    }

    async fn drain(&self, child: &mut Child, output: &mut Output) {
        self.note(WorkerState::Draining);
        let pid = child.id().and_then(|pid| Pid::from_raw(pid as i32));
        if let Some(pid) = pid {
            // Fails only when the process has just ended, which is the goal.
            let _ = kill_process(pid, Signal::TERM);
        }
        let ended = async {
            loop {
                tokio::select! {
                    _ = child.wait() => break,
                    // A worker whose pipe is full could not end.
                    line = output.next_line() => self.hear(&line, &mut output.told),
                }
            }
        };
        if tokio::time::timeout(self.shared.config.kill_after, ended).await.is_err() {
            tracing::warn!(worker = self.id, "did not end in time and is killed");
            let _ = child.kill().await;
        }
    }
}

/// The jobs and entries that a process leaves behind. Dropping this puts the jobs back and removes the entries, so that
/// no job waits for its lock to expire, even if the watching task panicked.
struct Left<'a> {
    shared: Option<Arc<Shared>>,
    id: &'a str,
    token: &'a str,
}

impl Left<'_> {
    fn clear_away(mut self) -> Option<JoinHandle<()>> {
        self.begin()
    }

    fn begin(&mut self) -> Option<JoinHandle<()>> {
        let shared = self.shared.take()?;
        // Without a runtime this process ends; the locks and entries expire.
        let runtime = Handle::try_current().ok()?;
        Some(runtime.spawn(shared.clear_away(self.id.to_owned(), self.token.to_owned())))
    }
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.begin();
    }
}

/// What a process tells, and what it has told so far.
struct Output {
    lines: Option<Lines<BufReader<ChildStdout>>>,
    told: Told,
}

impl Output {
    /// The next line; `None` at the end.
    async fn try_next_line(&mut self) -> Option<String> {
        let line = self.lines.as_mut()?.next_line().await.ok().flatten();
        if line.is_none() {
            self.lines = None;
        }
        line
    }

    /// The next line; waits for ever at the end.
    async fn next_line(&mut self) -> String {
        match self.try_next_line().await {
            Some(line) => line,
            None => std::future::pending().await,
        }
    }
}
