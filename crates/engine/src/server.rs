//! The server: TCP and unix sockets, served as Redis serves them, with a journal for durability.
//!
//! ```text
//!                       ┌ event loop ┐                    ┌────────── Executor ──────────┐
//!   clients ── TCP ────▶│ read, parse│── lock, run ──────▶│ Db · Scripts · sessions ·    │
//!           ── unix ───▶│ write      │◀─ reply, message ──│ blocked clients · pub/sub    │
//!                       └────────────┘                    └──────────────┬───────────────┘
//!                        (one or more)     watchdog: BUSY                │ append
//!                                          compactor: snapshot ◀── journal (own threads) ──▶ disk
//! ```
//!
//! **The thread that read a request also runs it**, under the executor's one lock. Commands are serial,
//! as they would be on a dedicated executor thread, but no request is handed to another thread: on a
//! small machine the two wake-ups of a hand-over cost more than most commands. Several event loops
//! serve their sockets in parallel and queue on the lock.
//!
//! The server knows nothing of jobs or tickets. Commands that need only the keyspace are in
//! `crate::command`; commands that need the connection are in the files below:
//! - `request.rs` parses bytes into arguments · `connection.rs` one socket · `event_loop.rs` one thread ·
//!   `loop_queue.rs` messages between threads · `watchdog.rs` answers while a script runs too long
//! - `executor.rs` one command from check to effect · `transaction.rs` · `blocked.rs` · `pubsub.rs` ·
//!   `scripting.rs` · `client_command.rs` · `settings.rs` · `info.rs` · `slowlog.rs` · `monitor.rs` ·
//!   `memory.rs` the limit `maxmemory` · `busy.rs` answers while a script runs too long
//! - `compaction.rs` writes a new snapshot while the live keyspace serves clients

mod blocked;
mod busy;
mod client_command;
mod compaction;
mod connection;
mod event_loop;
mod executor;
mod info;
mod listen;
mod loop_queue;
mod memory;
mod monitor;
mod pubsub;
mod request;
mod scripting;
mod session;
mod settings;
mod shared;
mod slowlog;
mod stats;
mod transaction;
mod watchdog;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, io};

use mio::{Poll, Registry, Waker};

use self::event_loop::{Driver, EventLoop, LoopState, WAKE};
use self::executor::Executor;
use self::listen::{Bound, raise_file_limit};
use self::loop_queue::LoopQueue;
use self::settings::Settings;
use self::shared::{Counters, Loop, Shared};
use crate::db::Db;
use crate::journal::{self, Event, Fsync, Journal, Opened};

pub use self::listen::ListenError;

/// The Redis version reported to clients: client libraries choose their commands by it.
pub(crate) const VERSION: &str = "7.2.4";

/// Stack size of the engine's threads: Lua scripts nest deeply in C.
const STACK_BYTES: usize = 8 << 20;

/// How long a script that has written may run on after its patience is over: ending it keeps half of its effects.
const SCRIPT_GRACE: Duration = Duration::from_secs(2);

/// Called on `SHUTDOWN`: the program that embeds the engine decides what to do.
pub(crate) type OnShutdown = Arc<dyn Fn() + Send + Sync>;
/// Called with the reason when the server stops because of an internal failure.
pub(crate) type OnFailure = Arc<dyn Fn(&str) + Send + Sync>;

/// How to run a server: addresses, password, journal and limits.
pub struct Config {
    /// TCP addresses to listen on; port 0 picks a free port.
    pub tcp: Vec<SocketAddr>,
    /// A unix socket file to listen on; only the user of this process may connect.
    pub unix: Option<PathBuf>,
    /// The password of `AUTH`; required for addresses that are not loopback.
    pub password: Option<String>,
    /// The journal's directory; without one, all data is lost when the server stops.
    pub dir: Option<PathBuf>,
    /// The journal's durability policy and limits.
    pub journal: journal::Config,
    /// The maximum number of connected clients.
    pub max_clients: usize,
    /// The number of event loops (I/O threads).
    pub io_threads: usize,
    /// After this time of one script, other clients are answered `BUSY` (`busy-reply-threshold`).
    pub busy_threshold: Duration,
    /// After this time a script that has not written is stopped.
    pub script_time: Duration,
    /// How long a script that has not written may still run after the server was asked to stop. Ordinary scripts end by
    /// themselves: one that is killed fails, and its caller takes a job that is done for one that is not.
    pub script_patience: Duration,
    /// The memory limit of the Lua VM, in bytes.
    pub script_memory: usize,
    /// Allows `DEBUG SLEEP`; for tests.
    pub allow_debug: bool,
    /// The size limit of what one command, script or transaction writes to the journal; smaller for
    /// tests.
    pub max_record: usize,
    /// The disk of the journal, instead of a directory.
    #[cfg(test)]
    pub(crate) disk: Option<Arc<dyn journal::Disk>>,
    /// Called on `SHUTDOWN`; without it, `SHUTDOWN` is refused.
    pub on_shutdown: Option<OnShutdown>,
    /// Called with the reason when the server stops because of an internal failure.
    pub on_failure: Option<OnFailure>,
}

impl Default for Config {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self {
            tcp: Vec::new(),
            unix: None,
            password: None,
            dir: None,
            journal: journal::Config::default(),
            max_clients: 10_000,
            // Half of the cores: clients on the same machine need the others.
            io_threads: (cores / 2).clamp(1, 4),
            busy_threshold: Duration::from_secs(5),
            script_time: Duration::from_secs(30),
            script_patience: Duration::from_secs(1),
            script_memory: 256 << 20,
            allow_debug: false,
            max_record: journal::MAX_RECORD,
            #[cfg(test)]
            disk: None,
            on_shutdown: None,
            on_failure: None,
        }
    }
}

impl Config {
    #[cfg(not(test))]
    fn has_journal(&self) -> bool {
        self.dir.is_some()
    }

    #[cfg(test)]
    fn has_journal(&self) -> bool {
        self.dir.is_some() || self.disk.is_some()
    }

    fn open_journal(
        &self,
        observer: journal::Observer,
        visit: journal::Visit<'_>,
    ) -> Result<(Journal, Opened), journal::Error> {
        #[cfg(test)]
        if let Some(disk) = &self.disk {
            return Journal::open_on(disk.clone(), &self.journal, Some(observer), visit);
        }
        let dir = self.dir.as_deref().unwrap_or(Path::new("."));
        Journal::open(dir, &self.journal, Some(observer), visit)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The password stays out of logs.
        f.debug_struct("Config")
            .field("tcp", &self.tcp)
            .field("unix", &self.unix)
            .field("dir", &self.dir)
            .field("journal", &self.journal)
            .finish_non_exhaustive()
    }
}

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The journal could not be opened.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// An address is missing, unsafe or in use.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The operating system refused a thread or a poll instance.
    #[error("the engine cannot start a thread: {0}")]
    System(#[from] io::Error),
}

/// A running server; dropping it stops it.
pub struct Server {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    bound: Bound,
    opened: Option<Opened>,
    replay_time: Duration,
    script_patience: Duration,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("bound", &self.bound).finish_non_exhaustive()
    }
}

impl Server {
    /// Opens and replays the journal, then listens.
    pub fn start(config: Config) -> Result<Self, StartError> {
        let plan = listen::Plan::new(&config)?;
        let counters = Arc::new(Counters::default());
        counters.max_clients.store(raise_file_limit(config.max_clients), Ordering::Relaxed);
        let busy_ms = config.busy_threshold.as_millis() as u64;
        counters.busy_threshold_ms.store(busy_ms, Ordering::Relaxed);
        let always = config.has_journal() && config.journal.fsync == Fsync::Always;
        counters.waits_for_sync.store(always, Ordering::Relaxed);
        let polls: Vec<Poll> =
            (0..config.io_threads.max(1)).map(|_| Poll::new()).collect::<io::Result<_>>()?;
        let loop_queues = loop_queues(&polls)?;

        let began = Instant::now();
        let (db, journal, opened) = open(&config, loop_queues.clone(), counters.clone())?;
        let replay_time = began.elapsed();
        let bound = plan.bind()?;

        let settings = Settings {
            password: config.password.clone(),
            port: bound.tcp_addr().map_or(0, |address| address.port()),
            dir: config.dir.as_deref().unwrap_or(Path::new("")).display().to_string(),
            fsync: journal.as_ref().map(|_| config.journal.fsync),
            script_time: config.script_time,
            script_memory: config.script_memory,
            allow_debug: config.allow_debug,
        };
        let watch = journal.as_ref().map(Journal::watch);
        let mut executor = Executor::new(db, journal, settings, counters.clone());
        executor.on_shutdown.clone_from(&config.on_shutdown);
        let interrupt = executor.scripts.interrupt();
        let registries =
            || polls.iter().map(|poll| poll.registry().try_clone()).collect::<io::Result<Vec<_>>>();
        let (own, watchdogs) = (registries()?, registries()?);
        let (mut loops, mut listeners) = (Vec::new(), Some(bound.listeners()?));
        for (poll, loop_queue) in polls.into_iter().zip(loop_queues) {
            // The first loop accepts for all loops.
            let state = LoopState::new(poll, listeners.take().unwrap_or_default())?;
            let writes_out = AtomicBool::new(false);
            loops.push(Loop { state: Mutex::new(state), loop_queue, writes_out });
        }
        let shared = Arc::new(Shared {
            executor: parking_lot::Mutex::new(executor),
            loops,
            counters,
            password: config.password,
            interrupt,
            journal: watch,
            on_shutdown: config.on_shutdown,
            on_failure: config.on_failure,
            stopping: AtomicBool::new(false),
            last_client: AtomicU64::new(0),
            next_loop_index: AtomicUsize::new(0),
        });
        let script_patience = config.script_patience;
        let threads = Vec::new();
        let mut server = Self { shared, threads, bound, opened, replay_time, script_patience };
        server.spawn(own, watchdogs)?;
        Ok(server)
    }

    fn spawn(&mut self, own: Vec<Registry>, watchdogs: Vec<Registry>) -> io::Result<()> {
        for (index, registry) in own.into_iter().enumerate() {
            let shared = self.shared.clone();
            self.thread(format!("engine-{index}"), move || {
                let event_loop = EventLoop::new(shared.clone(), index, Driver::Own, registry);
                if let Err(error) = event_loop.run(&shared) {
                    shared.fail(&format!("an event loop failed: {error}"));
                }
            })?;
        }
        let shared = self.shared.clone();
        self.thread("engine-watchdog".to_owned(), move || watchdog::run(&shared, watchdogs))
    }

    fn thread(&mut self, name: String, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let report = PanicReport(self.shared.clone());
        let spawned =
            thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
                let _report = report;
                run();
            })?;
        self.threads.push(spawned);
        Ok(())
    }

    /// The first TCP address that the server listens on.
    pub fn tcp_addr(&self) -> Option<SocketAddr> {
        self.bound.tcp_addr()
    }

    /// The unix socket file that the server listens on.
    pub fn unix_path(&self) -> Option<&Path> {
        self.bound.unix_path()
    }

    /// The result of opening the journal; `None` without a journal.
    pub fn opened(&self) -> Option<&Opened> {
        self.opened.as_ref()
    }

    /// How long replaying the journal took.
    pub fn replay_time(&self) -> Duration {
        self.replay_time
    }

    /// Disconnects all clients, writes and syncs the journal, and releases the directory.
    pub fn stop(mut self) -> Result<(), journal::Error> {
        self.shut()
    }

    fn shut(&mut self) -> Result<(), journal::Error> {
        self.shared.stop();
        let asked = Instant::now();
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            while !thread.is_finished() {
                if asked.elapsed() > self.script_patience {
                    let _ = self.shared.interrupt.kill();
                }
                if asked.elapsed() > self.script_patience + SCRIPT_GRACE {
                    self.shared.interrupt.close();
                }
                thread::sleep(Duration::from_millis(1));
            }
            // The panic was already reported by `PanicReport`.
            let _ = thread.join();
        }
        let mut executor = self.shared.executor.lock();
        executor.compactor.stop();
        let journal = executor.journal.take();
        self.shared.counters.closing.store(true, Ordering::Relaxed);
        drop(executor);
        journal.map_or(Ok(()), Journal::close)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.threads.is_empty()
            && let Err(error) = self.shut()
        {
            tracing::error!(%error, "the engine was stopped with unwritten records");
        }
    }
}

/// Reports a panic of its thread: the state behind a poisoned lock cannot be trusted.
struct PanicReport(Arc<Shared>);

impl Drop for PanicReport {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail("a thread of the engine panicked");
        }
    }
}

fn loop_queues(polls: &[Poll]) -> io::Result<Vec<Arc<LoopQueue>>> {
    let make = |(index, poll): (usize, &Poll)| {
        Ok(Arc::new(LoopQueue::new(index, Waker::new(poll.registry(), WAKE)?)))
    };
    polls.iter().enumerate().map(make).collect()
}

/// Opens the journal, if one is configured, and replays it into a new keyspace.
fn open(
    config: &Config,
    loop_queues: Vec<Arc<LoopQueue>>,
    counters: Arc<Counters>,
) -> Result<(Db, Option<Journal>, Option<Opened>), journal::Error> {
    let mut db = Db::new();
    db.effects().pause();
    if !config.has_journal() {
        return Ok((db, None, None));
    }
    let observer = Arc::new(move |event: Event| {
        if let Event::State(state) = &event
            && !counters.closing.load(Ordering::Relaxed)
        {
            match state.reason() {
                Some(reason) => tracing::error!(%reason, "the journal refuses writes"),
                None => tracing::info!("the journal takes writes again"),
            }
        }
        if !matches!(event, Event::Compaction(_)) {
            loop_queues.iter().for_each(|loop_queue| loop_queue.wake_if_awaiting());
        }
    });
    let visit = &mut |replayed: journal::Replayed<'_>| compaction::apply(&mut db, replayed);
    let (journal, opened) = config.open_journal(observer, visit)?;
    db.effects().resume();
    db.effects().set_limit(config.max_record.min(journal::MAX_RECORD));
    Ok((db, Some(journal), Some(opened)))
}
