//! The journal: what was written survives `kill -9` and, by policy, a power cut.
//!
//! It stores opaque records and, from time to time, a snapshot that makes older records useless. One
//! record is the effects of one command, script or transaction: it is replayed whole or not at all.
//! What is in a record is the keyspace's business; the journal knows no commands.
//!
//! ```text
//!  event loop, executor         writer's thread                 directory
//!  ────────────────────         ───────────────                 ─────────
//!  state()? ──Busy/Refusing──▶ (hold / refuse the command)      lock              owner's pid
//!  run the commands of a round                                  manifest          which files count
//!  append(record) ─▶ buffer ──▶ seal, write (`always`) ────────▶ 0000000006.log    open segment
//!  write_out() ───▶ seal, write(2) ─────────────────────────────▶ 0000000006.log
//!                               fdatasync by policy ──────────▶ 0000000004.log    sealed segment
//!  replies, held until ◀── written (`everysec`, `never`)         0000000005.snapshot
//!                          durable (`always`): Event::Durable(Position)
//! ```
//!
//! # Threads
//! - **Append** copies the record under a short lock and never waits for the disk, in any policy. One
//!   thread appends (`&mut self`). Everyone else uses a [`Watch`].
//! - **Write before reply**: a reply leaves when its record, and every record it may reveal, is in the kernel's
//!   page cache. A killed process cannot take it along from there. An event loop calls [`Watch::write_out`]
//!   once for all replies of its round, without the executor's lock. The write goes on while the disk syncs.
//! - **Back-pressure**: all bytes that still need a copy in memory count against `memory_limit` (64 MiB).
//!   At the limit [`State::Busy`] asks the executor to hold write commands and serve reads until it is
//!   `Ready` again; if the disk takes nothing for `stall_limit` it becomes [`State::Refusing`]. `append`
//!   itself never turns a record away for this, since its effects have already happened.
//! - **A disk that does not answer**: a `write(2)` (under `always` also a sync) of more than `stall_limit` makes the state
//!   [`State::Refusing`] until it returns.
//! - **A write that fails** (`ENOSPC`, `EIO`): the record stays queued, the writer's thread retries, and the state is
//!   [`State::Refusing`] meanwhile. The reply is held: `server/connection.rs` says for how long.
//! - **Group commit**: what is appended during one fdatasync is the next batch.
//!
//! # Policies
//! | policy | replies leave | synced | lost by `kill -9` | lost by a power cut |
//! |---|---|---|---|---|
//! | `always` | when synced | before [`Event::Durable`] | nothing acknowledged | nothing acknowledged |
//! | `everysec` | when written | begun at ½ s after the append, also when idle | nothing acknowledged | at most 1 s, if a sync takes less than ½ s |
//! | `never` | when written | at rotation and at the end | nothing acknowledged | what the system had not written |
//!
//! # Files
//! `frame.rs` has the one framing of log and snapshot, `manifest.rs` the list of files, `reader.rs` how a
//! torn tail (cut, with a report) is told from damage (stops the open, names the repair command), and
//! `repair.rs` what a repair promises.
//! `log.rs` does rotation and what follows a failed fsync, `compaction.rs` the snapshot. All writes go
//! through the seam in `disk.rs`, and the tests cut, reorder and fail every single one of them.
//!
//! # What it must not do
//! Report a record durable that a power cut can take; show a record at replay that was not appended, or
//! one without all before it; skip a gap; delete what it can not read; trust a length that it read.

mod compaction;
mod disk;
mod error;
mod frame;
mod handoff;
mod log;
mod manifest;
mod output;
mod reader;
mod recover;
mod repair;
mod salvage;
mod shared;
mod snapshot;
mod writer;

#[cfg(test)]
pub(crate) mod tests;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

pub(crate) use self::{
    compaction::{Compaction, Progress, should_compact},
    disk::Disk,
    error::BoxError,
    frame::MAX_RECORD,
    recover::{Replayed, Visit},
    repair::{plan_repair, repair},
};
pub use self::{
    disk::create_dir_durably,
    error::{Damage, Error, Unrepairable},
    recover::{Contents, Torn, check},
    repair::{Outcome, RepairRule, Repaired},
    salvage::{Gap, Missing},
};
use self::{
    disk::{Lock, RealDisk},
    error::io_error,
    shared::Shared,
    writer::Writer,
};

const DEFAULT_MEMORY: usize = 64 << 20;

/// When records are synced, so that they survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fsync {
    /// Before the reply is sent; many records share one sync.
    Always,
    /// Within a second of the append.
    #[default]
    EverySec,
    /// When the operating system writes its cache.
    Never,
}

/// A record's sequence number; the first record is 1, and 0 is before all records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Position(pub u64);

/// Whether the executor may run a write command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// Writes may run.
    Ready,
    /// The disk is behind: hold write commands back and ask again at [`Event::Room`].
    Busy,
    /// Writes are refused for this reason; the writer retries and becomes ready again by itself.
    Refusing(Arc<str>),
    /// Writes are refused permanently, for this reason.
    Failed(Arc<str>),
}

impl State {
    /// Why writes are refused; `None` if they are not.
    pub(crate) fn reason(&self) -> Option<Arc<str>> {
        match self {
            Self::Ready | Self::Busy => None,
            Self::Refusing(reason) | Self::Failed(reason) => Some(reason.clone()),
        }
    }
}

/// An event for the observer, sent from the journal's own threads; an observer must return quickly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// Records up to this one survive the death of this process.
    Written(Position),
    /// Records up to this one survive a power cut.
    Durable(Position),
    /// The state has changed; `Busy` is not reported, because it changes with every append.
    State(State),
    /// Memory is below the limit again: commands held back by [`State::Busy`] can run.
    Room,
    /// A compaction has ended.
    Compaction(Progress),
}

/// The callback for events.
pub(crate) type Observer = Arc<dyn Fn(Event) + Send + Sync>;

/// A journal's durability policy and limits.
#[derive(Debug, Clone)]
pub struct Config {
    /// When records are synced.
    pub fsync: Fsync,
    /// The number of bytes that may wait in memory for the disk.
    pub memory_limit: usize,
    /// How long the disk may make no progress, while memory is at its limit or replies wait for the disk, before
    /// writes are refused.
    pub stall_limit: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            fsync: Fsync::default(),
            memory_limit: DEFAULT_MEMORY,
            stall_limit: Duration::from_secs(5),
        }
    }
}

/// Figures for `INFO` and for the compaction trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    /// Whether writes may run.
    pub(crate) state: State,
    /// The durability policy.
    pub(crate) fsync: Fsync,
    /// The last record appended.
    pub(crate) appended: Position,
    /// The last record that survives the death of this process.
    pub(crate) written: Position,
    /// The last record that survives a power cut.
    pub(crate) durable: Position,
    /// Bytes in memory that wait for the disk.
    pub(crate) memory: usize,
    /// Bytes of log since the snapshot.
    pub(crate) log_bytes: u64,
    /// Bytes of the snapshot.
    pub(crate) snapshot_bytes: u64,
    /// Syncs since the journal was opened.
    pub(crate) syncs: u64,
}

/// The result of opening a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The replayed contents, and the torn tail that was cut.
    pub contents: Contents,
    /// Removed files: the manifest did not name them, and they held no records.
    pub removed: Vec<String>,
    /// Files with records that the manifest does not name; renamed with the suffix `.aside`.
    pub set_aside: Vec<String>,
}

/// An open journal, owned by the executor, which alone appends.
pub(crate) struct Journal {
    shared: Arc<Shared>,
    disk: Arc<dyn Disk>,
    numbers: Arc<AtomicU64>,
    writer: Option<JoinHandle<()>>,
    snapshot_thread: Option<JoinHandle<()>>,
    _lock: Lock,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("path", &self.disk.path())
            .field("shared", &self.shared)
            .finish()
    }
}

impl Journal {
    /// Opens or creates the journal in a directory and replays it.
    pub(crate) fn open(
        dir: &Path,
        config: &Config,
        observer: Option<Observer>,
        visit: Visit<'_>,
    ) -> Result<(Self, Opened), Error> {
        let disk = RealDisk::create(dir).map_err(io_error("create", PathBuf::from(dir)))?;
        Self::open_on(Arc::new(disk), config, observer, visit)
    }

    /// Opens a journal on any [`Disk`].
    pub(crate) fn open_on(
        disk: Arc<dyn Disk>,
        config: &Config,
        observer: Option<Observer>,
        visit: Visit<'_>,
    ) -> Result<(Self, Opened), Error> {
        let lock = recover::lock(&*disk)?;
        let (manifest, version) = recover::manifest_or_first(&*disk)?;
        let limit = config.memory_limit.max(DEFAULT_MEMORY) as u64;
        let scan = recover::scan(&*disk, &manifest, limit, visit)?;
        if let Some(damage) = scan.contents.damage {
            return Err(damage.into());
        }
        if version < frame::VERSION {
            // Before the first record that an older program would drop.
            recover::install(&*disk, &manifest)?;
        }
        let numbers = Arc::new(AtomicU64::new(0));
        let (log, contents) =
            scan.resume(disk.clone(), manifest.clone(), numbers.clone(), limit)?;
        let (removed, set_aside) = repair::remove_orphans(&*disk, &manifest);
        numbers.store(repair::free_number(&*disk)?, Ordering::Relaxed);
        if let Some(torn) = &contents.torn {
            tracing::warn!(
                file = torn.file,
                offset = torn.offset,
                bytes = torn.bytes,
                records = torn.records,
                "a crash left a torn tail; it was cut"
            );
        }
        let shared = Arc::new(Shared::new(config, log, observer));
        shared.log_bytes.store(contents.log_bytes, Ordering::Relaxed);
        shared.snapshot_bytes.store(contents.snapshot_bytes, Ordering::Relaxed);
        let writer =
            Writer::spawn(shared.clone()).map_err(io_error("start a thread for", disk.path()))?;
        let journal = Self {
            shared,
            disk,
            numbers,
            writer: Some(writer),
            snapshot_thread: None,
            _lock: lock,
        };
        Ok((journal, Opened { contents, removed, set_aside }))
    }

    /// Appends a record without waiting for the disk. Fails only for a record over [`MAX_RECORD`]
    /// or after the journal has stopped.
    pub(crate) fn append(&mut self, record: &[u8]) -> Result<Position, Error> {
        if record.len() > MAX_RECORD {
            return Err(Error::TooLarge(record.len()));
        }
        self.shared.append(record)
    }

    /// Whether a write command may run. Ask before each; the check costs three atomic loads.
    pub(crate) fn state(&self) -> State {
        self.shared.state()
    }

    /// The last record that survives a power cut.
    pub(crate) fn durable(&self) -> Position {
        self.shared.durable()
    }

    /// Changes the durability policy; records that wait under the old policy are synced at once.
    pub(crate) fn set_fsync(&self, fsync: Fsync) {
        self.shared.set_fsync(fsync);
    }

    /// A handle to read the status, for other threads.
    pub(crate) fn watch(&self) -> Watch {
        Watch { shared: self.shared.clone() }
    }

    /// Begins a compaction at the current position; see [`Compaction`].
    pub(crate) fn begin_compaction(&mut self) -> Result<Compaction, Error> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (compaction, thread) = Compaction::begin(&self.shared, &self.disk, number)?;
        // The thread of the previous compaction, if any, has finished its work and is about to end.
        self.snapshot_thread = Some(thread);
        Ok(compaction)
    }

    /// Writes and syncs all records, ends the threads and releases the directory.
    pub(crate) fn close(mut self) -> Result<(), Error> {
        self.shut()
    }

    fn shut(&mut self) -> Result<(), Error> {
        self.shared.stop();
        for thread in self.writer.take().into_iter().chain(self.snapshot_thread.take()) {
            // A panic is already reported as [`State::Failed`].
            let _ = thread.join();
        }
        if self.shared.durable() >= self.shared.appended() {
            return Ok(());
        }
        Err(Error::Stopped(
            self.shared.state().reason().unwrap_or_else(|| "records were not written".into()),
        ))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.writer.is_some()
            && let Err(error) = self.shut()
        {
            tracing::error!(%error, "the journal was closed with unwritten records");
        }
    }
}

/// Reads the status of a journal, from any thread.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
}

impl Watch {
    /// Hands all appended records to the kernel, on this thread; call it before replies leave. After an error, or
    /// behind a rotation, the writer's thread does it later: [`Event::Written`] reports it.
    pub(crate) fn write_out(&self) {
        self.shared.write_out();
    }

    /// Leaves appended records to the writer's thread: for a thread that must not wait for the disk.
    pub(crate) fn leave_to_writer(&self) {
        if self.has_unwritten() {
            self.shared.call_writer();
        }
    }

    /// How long the disk has worked on something that replies wait for; `None` while it does not.
    pub(crate) fn disk_busy_for(&self) -> Option<Duration> {
        self.shared.disk_busy_for()
    }

    /// Whether the kernel does not have all appended records yet.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.shared.written() < self.shared.appended()
    }

    /// The last record that survives the death of this process.
    pub(crate) fn written(&self) -> Position {
        self.shared.written()
    }

    /// The last record that survives a power cut.
    pub(crate) fn durable(&self) -> Position {
        self.shared.durable()
    }

    /// Whether a write command may run.
    pub(crate) fn state(&self) -> State {
        self.shared.state()
    }

    /// Makes the append after so many others fail.
    #[cfg(test)]
    pub(crate) fn fail_append_after(&self, others: u64) {
        self.shared.failing_append.store(self.shared.appended().0 + others + 1, Ordering::SeqCst);
    }

    /// The journal's figures.
    pub(crate) fn status(&self) -> Status {
        Status {
            state: self.shared.state(),
            fsync: self.shared.fsync(),
            appended: self.shared.appended(),
            written: self.shared.written(),
            durable: self.shared.durable(),
            memory: self.shared.memory(),
            log_bytes: self.shared.log_bytes.load(Ordering::Relaxed),
            snapshot_bytes: self.shared.snapshot_bytes.load(Ordering::Relaxed),
            syncs: self.shared.syncs.load(Ordering::Relaxed),
        }
    }
}
