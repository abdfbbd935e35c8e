//! Compaction: a new snapshot replaces the old snapshot and its log while the journal stays open.
//!
//! ```text
//!  executor            snapshot's thread           writer's thread          on disk (manifest)
//!  begin ───────────────────────────────────────▶ rotate                   S₁ L₁ L₂(open)
//!    position P        create S₂                   appends go to L₂
//!  feed, feed … ─────▶ write, sync every 8 MiB
//!  finish ───────────▶ end, sync, dir sync ──────▶ install                  S₂ L₂(open)
//!                      remove S₁ L₁ ◀────────────
//!  progress = Done
//! ```
//!
//! The caller feeds the state at position P (`begin` returns it), in slices between commands; later
//! changes are in L₂. `feed` never waits for the disk: it queues blocks, and `has_room` asks the
//! caller to continue later. `install` replaces the manifest atomically; until then the old files are
//! the journal and no manifest names S₂. Any earlier failure (disk full, writes refused, handle dropped)
//! removes S₂ and leaves one more segment, which the next compaction replaces too.
//! `handoff.rs` draws the states.
//!
//! Peak disk use: old snapshot + old log + new snapshot + records appended meanwhile. Afterwards:
//! new snapshot + records appended meanwhile. Peak memory here: 8 MiB of blocks plus one item.

use std::{
    sync::{Arc, PoisonError, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use super::{
    Error, Event, Position,
    disk::Disk,
    frame::Kind,
    handoff::{Handoff, Outcome},
    manifest::{Manifest, SnapshotEntry},
    recover::{self, Visit},
    shared::{Shared, Work},
    snapshot::{BlockBuilder, SnapshotFile},
};

/// The number of bytes of blocks that may wait for the disk.
const QUEUE_BYTES: usize = 8 << 20;
/// The polling interval of a replay that waits for the log to be cut.
const CUT_PERIOD: Duration = Duration::from_millis(2);
/// A smaller log is not compacted: it replays in about two seconds, and a compaction costs memory
/// for a second keyspace.
const MIN_LOG: u64 = 256 << 20;

/// Whether to compact: the log is as large as the snapshot, and at least 256 MiB.
///
/// So the journal stays below about twice its snapshot plus 256 MiB, and each byte is written about
/// twice.
pub(crate) fn should_compact(log_bytes: u64, snapshot_bytes: u64) -> bool {
    log_bytes >= MIN_LOG && log_bytes >= snapshot_bytes
}

/// The progress of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Items are being fed and written.
    Feeding,
    /// All items are fed; writing and installing go on without the caller.
    Finishing,
    /// The new snapshot is installed.
    Done(Compacted),
    /// The compaction was aborted; the journal is unchanged.
    Failed(Arc<str>),
}

/// The result of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The last record that the snapshot contains.
    pub(crate) position: Position,
    /// The number of keys in the snapshot.
    pub(crate) keys: u64,
    /// The size of the snapshot.
    pub(crate) snapshot_bytes: u64,
    /// The number of log bytes that it replaced.
    pub(crate) log_bytes: u64,
}

/// A running compaction; dropping it unfinished aborts it.
#[derive(Debug)]
pub(crate) struct Compaction {
    handoff: Arc<Handoff>,
    disk: Arc<dyn Disk>,
    position: Position,
    builder: BlockBuilder,
}

impl Compaction {
    pub(super) fn begin(
        shared: &Arc<Shared>,
        disk: &Arc<dyn Disk>,
        number: u64,
    ) -> Result<(Self, thread::JoinHandle<()>), Error> {
        let handoff = Arc::new(Handoff::default());
        shared.begin(&handoff)?;
        let log_bytes = shared.log_bytes.load(Ordering::Relaxed);
        let Some(position) = shared.push(Work::Rotate(handoff.clone())) else {
            handoff.settle(Progress::Failed("the journal is closed".into()));
            return Err(Error::Stopped("it is closed".into()));
        };
        let entry = SnapshotEntry { number, upto: position.0 };
        let writer = SnapshotWriter {
            handoff: handoff.clone(),
            shared: shared.clone(),
            disk: disk.clone(),
            entry,
            log_bytes,
        };
        let spawned =
            thread::Builder::new().name("journal-snapshot".to_owned()).spawn(move || writer.run());
        let thread = spawned.map_err(|source| {
            handoff.settle(Progress::Failed("no thread".into()));
            Error::Io { action: "start a thread for", path: disk.path(), source }
        })?;
        let disk = disk.clone();
        Ok((Self { handoff, disk, position, builder: BlockBuilder::default() }, thread))
    }

    /// The position that the snapshot must represent.
    #[cfg(test)]
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// Replays all items and records up to the position, from the files that this compaction will
    /// replace.
    ///
    /// Waits until the writer has cut the log there, and reads the disk: call it on a thread of its
    /// own.
    pub(crate) fn replay(&self, visit: Visit<'_>) -> Result<(), Error> {
        let manifest = loop {
            if let Some(reason) = self.handoff.lock().abort.clone() {
                return Err(Error::Aborted(reason));
            }
            if let Some(mut manifest) = Manifest::load(&*self.disk)?
                && let Some(cut) =
                    manifest.segments.iter().position(|one| one.base >= self.position.0)
            {
                manifest.segments.truncate(cut);
                break manifest;
            }
            thread::sleep(CUT_PERIOD);
        };
        // All these segments are sealed, so there is no torn tail.
        match recover::scan(&*self.disk, &manifest, 0, visit)?.contents.damage {
            Some(damage) => Err(damage.into()),
            None => Ok(()),
        }
    }

    /// Notes that the items fed from now on belong to the next key.
    pub(crate) fn begin_key(&mut self) {
        self.builder.counts.keys += 1;
    }

    /// Adds an item without waiting for the disk.
    pub(crate) fn feed(&mut self, item: &[u8]) -> Result<(), Error> {
        if let Some(block) = self.builder.push(item)? {
            self.handoff.put(block)?;
        }
        Ok(())
    }

    /// Whether the queue has room for more items.
    pub(crate) fn has_room(&self) -> bool {
        let inner = self.handoff.lock();
        // After an abort, `feed` returns the reason.
        inner.queued < QUEUE_BYTES || inner.abort.is_some()
    }

    /// Ends the feed; the rest goes on without the caller. Follow [`CompactionWatch::wait`] or
    /// the observer.
    pub(crate) fn finish(mut self) -> CompactionWatch {
        // A failed compaction reports it in its progress.
        let _ = self.builder.take().map(|block| self.handoff.put(block));
        let mut inner = self.handoff.lock();
        inner.finish = Some(self.builder.counts);
        if inner.progress == Progress::Feeding {
            inner.progress = Progress::Finishing;
        }
        drop(inner);
        self.handoff.changed.notify_all();
        self.watch()
    }

    /// A handle to follow the compaction.
    pub(crate) fn watch(&self) -> CompactionWatch {
        CompactionWatch { handoff: self.handoff.clone() }
    }
}

impl Drop for Compaction {
    fn drop(&mut self) {
        if self.handoff.lock().finish.is_none() {
            self.handoff.abort("its handle was dropped".into());
        }
    }
}

/// Follows a compaction.
#[derive(Debug, Clone)]
pub(crate) struct CompactionWatch {
    handoff: Arc<Handoff>,
}

impl CompactionWatch {
    /// Waits until the compaction has ended, or the timeout has passed.
    pub(crate) fn wait(&self, timeout: Duration) -> Progress {
        let deadline = Instant::now() + timeout;
        let mut inner = self.handoff.lock();
        while matches!(inner.progress, Progress::Feeding | Progress::Finishing) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            inner = self
                .handoff
                .changed
                .wait_timeout(inner, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        inner.progress.clone()
    }
}

/// The thread that writes the snapshot file.
struct SnapshotWriter {
    handoff: Arc<Handoff>,
    shared: Arc<Shared>,
    disk: Arc<dyn Disk>,
    entry: SnapshotEntry,
    log_bytes: u64,
}

impl SnapshotWriter {
    fn run(self) {
        let name = Kind::Snapshot.file_name(self.entry.number);
        let progress = match self.write().and_then(|done| Ok((done, self.install()?))) {
            Ok((done, names)) => {
                self.shared.log_bytes.fetch_sub(self.log_bytes, Ordering::Relaxed);
                self.shared.snapshot_bytes.store(done.snapshot_bytes, Ordering::Relaxed);
                // Files that cannot be removed now are removed at the next open.
                for name in names {
                    let _ = self.disk.remove(&name);
                }
                Progress::Done(done)
            }
            Err(Halt { reason, orphan }) => {
                tracing::warn!(%reason, "a compaction was aborted");
                if orphan {
                    let _ = self.disk.remove(&name);
                }
                Progress::Failed(reason)
            }
        };
        self.handoff.settle(progress.clone());
        self.shared.notify(Event::Compaction(progress));
    }

    fn write(&self) -> Result<Compacted, Halt> {
        let place = self.disk.path().join(Kind::Snapshot.file_name(self.entry.number));
        let full = |error: std::io::Error| {
            self.halt(format!("cannot write {}: {error}", place.display()).into())
        };
        let mut file = SnapshotFile::create(&*self.disk, self.entry).map_err(full)?;
        let counts = loop {
            match self.handoff.next().map_err(|reason| self.halt(reason))? {
                Ok(block) => file.write_block(&block).map_err(full)?,
                Err(counts) => break counts,
            }
        };
        let snapshot_bytes = file.finish(counts).map_err(full)?;
        self.disk.sync_dir().map_err(full)?;
        Ok(Compacted {
            position: Position(self.entry.upto),
            keys: counts.keys,
            snapshot_bytes,
            log_bytes: self.log_bytes,
        })
    }

    fn install(&self) -> Result<Vec<String>, Halt> {
        if self.shared.push(Work::Install(self.entry, self.handoff.clone())).is_none() {
            return Err(self.halt("the journal is closed".into()));
        }
        match self.handoff.wait_outcome() {
            Outcome::Installed(names) => Ok(names),
            Outcome::Declined(reason) => Err(self.halt(reason)),
            Outcome::Unknown(reason) => Err(Halt { reason, orphan: false }),
        }
    }

    /// Aborts the compaction, so that a caller that still feeds learns of it.
    fn halt(&self, reason: Arc<str>) -> Halt {
        self.handoff.abort(reason.clone());
        Halt { reason, orphan: true }
    }
}

/// Why the snapshot's thread ended early, and whether its file can be removed.
struct Halt {
    reason: Arc<str>,
    orphan: bool,
}
