//! The server: clients on TCP and unix sockets, served as Redis serves them, and a journal behind.
//!
//! ```text
//!                       ┌ event loop ┐                    ┌────────── Executor ──────────┐
//!   clients ── TCP ────▶│ read, parse│── lock, run ──────▶│ Db · Scripts · sessions ·    │
//!           ── unix ───▶│ write      │◀─ reply, mail ─────│ waiting · pub/sub            │
//!                       └────────────┘                    └──────────────┬───────────────┘
//!                        (one or more)     watchdog: BUSY                │ append
//!                                          compactor: snapshot ◀── journal (own threads) ──▶ disk
//! ```
//!
//! **Whoever has read a request runs it**, under the executor's one lock. Commands are as serial as with
//! a thread of their own, but none is handed from thread to thread: on a small machine the two wake-ups
//! of such a hand-over cost more than most commands. With several loops their sockets are served in
//! parallel, and the lock is the queue. (The first design had an executor's thread.)
//!
//! Nothing here knows what clients use it for. What a command does is in `crate::command`; what needs to
//! know who calls is in the files below:
//! - `request.rs` bytes → arguments · `connection.rs` a socket · `event_loop.rs` a thread · `mail.rs`
//!   between threads · `watchdog.rs` when a script does not end
//! - `executor.rs` one command from check to effect · `transaction.rs` · `waiting.rs` · `pubsub.rs` ·
//!   `scripting.rs` · `client_command.rs` · `settings.rs` · `info.rs` · `slowlog.rs`
//! - `compaction.rs` a new snapshot, beside the living keyspace

mod client_command;
mod compaction;
mod connection;
mod event_loop;
mod executor;
mod info;
mod listen;
mod mail;
mod pubsub;
mod request;
mod scripting;
mod session;
mod settings;
mod shared;
mod slowlog;
mod stats;
mod transaction;
mod waiting;
mod watchdog;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, io};

use mio::{Poll, Registry, Waker};

use self::event_loop::{EventLoop, LoopState, Turn, WAKE};
use self::executor::Executor;
use self::listen::{Bound, raise_file_limit};
use self::mail::Mailbox;
use self::settings::Settings;
use self::shared::{Counters, Loop, Shared};
use crate::db::Db;
use crate::journal::{self, Event, Fsync, Journal, Opened};

pub use self::listen::ListenError;

/// The version of Redis that clients are told, because they choose what to send by it.
pub const VERSION: &str = "7.2.4";

/// Scripts nest in C, and deeply.
const STACK_BYTES: usize = 8 << 20;

/// How long a script that has written may go on once the server is to stop.
const SCRIPT_PATIENCE: Duration = Duration::from_secs(3);

/// What a program that contains the engine does on `SHUTDOWN`; the engine itself only passes it on.
pub type OnShutdown = Arc<dyn Fn() + Send + Sync>;
/// Who is told that a server has ended by itself, and why.
pub type OnFailure = Arc<dyn Fn(&str) + Send + Sync>;

/// How a server is run.
pub struct Config {
    /// Listen here; port 0 takes any free one.
    pub tcp: Vec<SocketAddr>,
    /// Listen on a socket file, which only this user may use.
    pub unix: Option<PathBuf>,
    /// What clients must know; needed to listen where other machines can reach it.
    pub password: Option<String>,
    /// Where the journal is; nothing is kept without one.
    pub dir: Option<PathBuf>,
    /// How the journal works.
    pub journal: journal::Config,
    /// How many clients may be connected at a time.
    pub max_clients: usize,
    /// How many event loops there are.
    pub io_threads: usize,
    /// After this long others are told that a script keeps them waiting (`busy-reply-threshold`).
    pub busy_threshold: Duration,
    /// After this long a script that has not written is stopped.
    pub script_time: Duration,
    /// The memory that scripts may use.
    pub script_memory: usize,
    /// Whether `DEBUG SLEEP` works: for tests.
    pub allow_debug: bool,
    /// What `SHUTDOWN` does; it is refused without.
    pub on_shutdown: Option<OnShutdown>,
    /// Who is told that the server has ended by itself, and why.
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
            // A second loop pays off when there are cores that clients do not need.
            io_threads: (cores / 2).clamp(1, 4),
            busy_threshold: Duration::from_secs(5),
            script_time: Duration::from_secs(30),
            script_memory: 256 << 20,
            allow_debug: false,
            on_shutdown: None,
            on_failure: None,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the password.
        f.debug_struct("Config")
            .field("tcp", &self.tcp)
            .field("unix", &self.unix)
            .field("dir", &self.dir)
            .field("journal", &self.journal)
            .finish_non_exhaustive()
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The journal could not be opened.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// There is nowhere to listen, or not safely.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The system gave no thread or no poll.
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
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("bound", &self.bound).finish_non_exhaustive()
    }
}

impl Server {
    /// Replays the journal and then listens.
    pub fn start(config: Config) -> Result<Self, StartError> {
        let plan = listen::Plan::new(&config)?;
        let counters = Arc::new(Counters::default());
        counters.max_clients.store(raise_file_limit(config.max_clients), Ordering::Relaxed);
        let busy_ms = config.busy_threshold.as_millis() as u64;
        counters.busy_threshold_ms.store(busy_ms, Ordering::Relaxed);
        let always = config.dir.is_some() && config.journal.fsync == Fsync::Always;
        counters.holds_answers.store(always, Ordering::Relaxed);
        let polls: Vec<Poll> =
            (0..config.io_threads.max(1)).map(|_| Poll::new()).collect::<io::Result<_>>()?;
        let mailboxes = mailboxes(&polls)?;

        let began = Instant::now();
        let (db, journal, opened) = open(&config, mailboxes.clone(), counters.clone())?;
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
        for (poll, mailbox) in polls.into_iter().zip(mailboxes) {
            // The first loop accepts for all.
            let state = LoopState::new(poll, listeners.take().unwrap_or_default())?;
            loops.push(Loop { state: Mutex::new(state), mailbox });
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
            turn: AtomicUsize::new(0),
        });
        let mut server = Self { shared, threads: Vec::new(), bound, opened, replay_time };
        server.spawn(own, watchdogs)?;
        Ok(server)
    }

    fn spawn(&mut self, own: Vec<Registry>, watchdogs: Vec<Registry>) -> io::Result<()> {
        for (index, registry) in own.into_iter().enumerate() {
            let shared = self.shared.clone();
            self.thread(format!("engine-{index}"), move || {
                let event_loop = EventLoop::new(shared.clone(), index, Turn::Own, registry);
                if let Err(error) = event_loop.run(&shared) {
                    shared.fail(&format!("an event loop failed: {error}"));
                }
            })?;
        }
        let shared = self.shared.clone();
        self.thread("engine-watchdog".to_owned(), move || watchdog::run(&shared, watchdogs))
    }

    fn thread(&mut self, name: String, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        /// Says so when a thread panics: with a lock poisoned there is no going on.
        struct Alarm(Arc<Shared>);
        impl Drop for Alarm {
            fn drop(&mut self) {
                if thread::panicking() {
                    self.0.fail("a thread of the engine panicked");
                }
            }
        }
        let alarm = Alarm(self.shared.clone());
        let spawned =
            thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
                let _alarm = alarm;
                run();
            })?;
        self.threads.push(spawned);
        Ok(())
    }

    /// Where it listens first, if on TCP.
    pub fn tcp_addr(&self) -> Option<SocketAddr> {
        self.bound.tcp_addr()
    }

    /// Where it listens, if on a socket file.
    pub fn unix_path(&self) -> Option<&Path> {
        self.bound.unix_path()
    }

    /// What the journal held.
    pub fn opened(&self) -> Option<&Opened> {
        self.opened.as_ref()
    }

    /// How long the replay of the journal took.
    pub fn replay_time(&self) -> Duration {
        self.replay_time
    }

    /// Disconnects all clients, writes everything down and releases the directory.
    pub fn stop(mut self) -> Result<(), journal::Error> {
        self.shut()
    }

    fn shut(&mut self) -> Result<(), journal::Error> {
        self.shared.stop();
        let asked = Instant::now();
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            while !thread.is_finished() {
                // One may have begun since, and nobody else is left to stop it.
                let _ = self.shared.interrupt.kill();
                if asked.elapsed() > SCRIPT_PATIENCE {
                    self.shared.interrupt.close();
                }
                thread::sleep(Duration::from_millis(1));
            }
            // A panic was told when it happened.
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

fn mailboxes(polls: &[Poll]) -> io::Result<Vec<Arc<Mailbox>>> {
    let make = |(index, poll): (usize, &Poll)| {
        Ok(Arc::new(Mailbox::new(index, Waker::new(poll.registry(), WAKE)?)))
    };
    polls.iter().enumerate().map(make).collect()
}

/// Opens the journal, if there is to be one, and fills the keyspace from it.
fn open(
    config: &Config,
    mailboxes: Vec<Arc<Mailbox>>,
    counters: Arc<Counters>,
) -> Result<(Db, Option<Journal>, Option<Opened>), journal::Error> {
    let mut db = Db::new();
    db.effects().pause();
    let Some(dir) = &config.dir else { return Ok((db, None, None)) };
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
            mailboxes.iter().for_each(|mailbox| mailbox.wake_if_awaiting());
        }
    });
    let visit = &mut |replayed: journal::Replayed<'_>| compaction::apply(&mut db, replayed);
    let (journal, opened) = Journal::open(dir, &config.journal, Some(observer), visit)?;
    db.effects().resume();
    Ok((db, Some(journal), Some(opened)))
}
