//! The log on disk: segments, their sync and rotation, and recovery from a failed fsync. No threads here.
//!
//! [`Log`] is behind the lock of [`Output`](super::output::Output). Any thread may write chunks. Only the
//! writer's thread (`writer.rs`) syncs, rotates and replaces the manifest. A sync is in two halves, so that the
//! lock is free while the disk works: chunks written between the halves belong to the next sync.
//! Every operation can fail and be called again: it then continues where it stopped. `log/sync.rs` has the sync.
//!
//! ```text
//!    segment, open
//!    ├── durable ──┼── unsynced: written, copies kept in memory ──┼── partial chunk ──┤
//!    0        durable_end                                        end          (overwritten by the retry)
//!
//!  sync ok      durable_end = end, the copies are dropped
//!  sync failed  suspect: the file may have lost anything after durable_end, and a second fsync would
//!               report success without writing (the kernel marks failed pages clean). So:
//!  rewrite      new segment ◀─ the copies, sealed again ─▶ sync ─▶ manifest { …, old: sealed at durable_end,
//!               new: open }. Until that succeeds nothing is reported durable and no copy is dropped.
//! ```
//!
//! Why rewrite and not stop: the state and the copies are in memory, so a temporary disk error (thin
//! provisioning, a network volume, quota at fsync time) need not end the service. Without copies (policy
//! never) a failed sync stops the journal: [`LogError::Fatal`].
//!
//! File numbers are never reused in a process. So a manifest whose installation had an unknown result
//! cannot name a file that was created for another purpose.

mod sync;

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use super::{
    disk::{Disk, DiskFile},
    frame::{FILE_HEADER, FileHeader, Kind, push_mark, seal},
    manifest::{InstallError, Manifest, SegmentEntry, SnapshotEntry},
};

/// Whole frames that were appended together.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) bytes: Vec<u8>,
    /// The sequence of the last record.
    pub(super) last: u64,
    /// When the first record was appended.
    pub(super) since: Instant,
    /// The file it is sealed for, and the number of bytes written to that file.
    progress: Option<(u64, usize)>,
}

impl Chunk {
    pub(super) fn new(bytes: Vec<u8>, last: u64, since: Instant) -> Self {
        Self { bytes, last, since, progress: None }
    }
}

/// Why an operation did not succeed.
#[derive(Debug)]
pub(super) enum LogError {
    /// A temporary error: the operation must be retried before any other.
    Retry(String),
    /// The operation did not happen and need not be retried.
    Declined(String),
    /// Data may be lost that has no other copy.
    Fatal(String),
}

/// Whether bytes stay in memory once they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copies {
    /// Kept until they are synced.
    Keep,
    /// Dropped at once; a failed sync is then fatal.
    Drop,
}

/// The segments of a journal, open for writing.
#[derive(Debug)]
pub(super) struct Log {
    disk: Arc<dyn Disk>,
    manifest: Manifest,
    numbers: Arc<AtomicU64>,
    file: Arc<dyn DiskFile>,
    header: FileHeader,
    end: u64,
    durable_end: u64,
    written: u64,
    durable: u64,
    /// The highest watermark that a frame on disk carries.
    watermark: u64,
    unsynced: Vec<Chunk>,
    unsynced_bytes: usize,
    /// The number of chunks in `unsynced` that a running sync covers.
    syncing: usize,
    /// The last record that was written without keeping a copy.
    uncopied: u64,
    suspect: Option<String>,
    /// Whether the last attempt to replace the manifest had an unknown result. The next process may then find a
    /// manifest that seals the open segment, so nothing may be written to it before another attempt has succeeded.
    manifest_unknown: bool,
    /// Files of failed attempts; removed after the next install.
    leftover_files: Vec<String>,
}

impl Log {
    /// Continues the open segment of a manifest; all bytes up to `end` and records up to `last` are
    /// durable.
    pub(super) fn resume(
        disk: Arc<dyn Disk>,
        manifest: Manifest,
        numbers: Arc<AtomicU64>,
        (file, header): (Box<dyn DiskFile>, FileHeader),
        (end, last): (u64, u64),
    ) -> Self {
        let (durable_end, written, durable) = (end, last, last);
        let (unsynced, leftover_files, watermark) = (Vec::new(), Vec::new(), 0);
        let (unsynced_bytes, syncing, uncopied, suspect) = (0, 0, 0, None);
        Self {
            disk,
            manifest,
            numbers,
            file: file.into(),
            header,
            end,
            durable_end,
            written,
            durable,
            watermark,
            unsynced,
            unsynced_bytes,
            syncing,
            uncopied,
            suspect,
            manifest_unknown: false,
            leftover_files,
        }
    }

    /// The last record that the kernel has: it survives the death of this process.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// The last record known to survive a power cut.
    pub(super) fn durable(&self) -> u64 {
        self.durable
    }

    /// When the oldest record that is written but not synced was appended.
    pub(super) fn oldest_unsynced(&self) -> Option<Instant> {
        self.unsynced.first().map(|chunk| chunk.since)
    }

    /// The number of bytes held in memory until the next sync.
    pub(super) fn unsynced_bytes(&self) -> usize {
        self.unsynced_bytes
    }

    /// Whether a written record is not synced yet.
    pub(super) fn is_dirty(&self) -> bool {
        self.durable < self.written
    }

    /// Whether a synced record is not covered by a watermark on disk yet.
    pub(super) fn wants_mark(&self) -> bool {
        self.watermark < self.durable && !self.is_dirty() && self.suspect.is_none()
    }

    /// Writes a chunk after the last one. After an error the chunk keeps its progress.
    pub(super) fn write(&mut self, chunk: &mut Chunk) -> Result<(), LogError> {
        let mut done = match chunk.progress {
            Some((number, done)) if number == self.header.number => done,
            _ => {
                seal(&mut chunk.bytes, self.header.salt, self.durable);
                0
            }
        };
        while done < chunk.bytes.len() {
            match self.file.write_at(self.end + done as u64, &chunk.bytes[done..]) {
                Ok(n) if n > 0 => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                failed => {
                    chunk.progress = Some((self.header.number, done));
                    let error = failed.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into());
                    return Err(LogError::Retry(self.sentence("write to", &error)));
                }
            }
        }
        self.end += done as u64;
        self.written = chunk.last;
        self.watermark = self.watermark.max(self.durable);
        Ok(())
    }

    /// Begins a new segment; all records before it become durable.
    pub(super) fn rotate(&mut self) -> Result<Vec<Chunk>, LogError> {
        let synced = self.sync()?;
        if self.end == FILE_HEADER as u64 {
            return Ok(synced);
        }
        let started = self.new_segment(self.written).map_err(|reason| self.declined(reason));
        let outcome =
            started.and_then(|(file, header)| match self.switch(file, header, self.end) {
                Ok(()) => {
                    self.end = FILE_HEADER as u64;
                    self.durable_end = self.end;
                    Ok(())
                }
                Err(InstallError::Unchanged(e)) => {
                    Err(self.declined(format!("cannot write the manifest: {e}")))
                }
                Err(InstallError::Unknown(e)) => {
                    Err(LogError::Retry(format!("cannot replace the manifest: {e}")))
                }
            });
        // The sync has succeeded even if the rotation has not; its buffers are then not reused.
        outcome.map(|()| synced)
    }

    /// Makes a finished snapshot the base of the journal; returns the names of obsolete files.
    pub(super) fn install(&mut self, snapshot: SnapshotEntry) -> Result<Vec<String>, LogError> {
        let mut next =
            Manifest { snapshot: Some(snapshot), segments: self.manifest.segments.clone() };
        next.segments.retain(|segment| segment.base >= snapshot.upto);
        // An empty segment has the base of the next one; it is removed with the old ones.
        while next.segments.len() > 1 && next.segments[1].base == snapshot.upto {
            next.segments.remove(0);
        }
        if next.segments.first().is_none_or(|first| first.base != snapshot.upto) {
            return Err(LogError::Declined("no segment begins where the snapshot ends".to_owned()));
        }
        match next.install(&*self.disk) {
            Ok(()) => self.manifest_unknown = false,
            Err(InstallError::Unchanged(e)) => {
                return Err(self.declined(format!("cannot write the manifest: {e}")));
            }
            Err(InstallError::Unknown(e)) => {
                self.manifest_unknown = true;
                return Err(LogError::Retry(format!("cannot replace the manifest: {e}")));
            }
        }
        let old = std::mem::replace(&mut self.manifest, next);
        let snapshots = old.snapshot.iter().map(|s| Kind::Snapshot.file_name(s.number));
        let kept = |number| self.manifest.segments.iter().any(|s| s.number == number);
        let segments =
            old.segments.iter().filter(|s| !kept(s.number)).map(|s| Kind::Log.file_name(s.number));
        Ok(snapshots.chain(segments).chain(self.leftover_files.drain(..)).collect())
    }

    /// Writes a mark that tells readers that the last records were synced. Optional.
    pub(super) fn mark(&mut self) {
        let mut frame = Vec::new();
        push_mark(&mut frame, self.durable, &[]);
        seal(&mut frame, self.header.salt, self.durable);
        // A failure is harmless: the next chunk overwrites the mark.
        if self.file.write_all_at(self.end, &frame).is_ok() {
            self.end += frame.len() as u64;
            self.watermark = self.durable;
        }
    }

    /// Writes and syncs a mark when the journal is closed.
    pub(super) fn mark_end(&mut self) {
        if self.wants_mark() {
            self.mark();
        }
        if !self.is_dirty() && self.end > self.durable_end && self.suspect.is_none() {
            let _ = self.file.sync();
        }
    }

    fn new_segment(&mut self, base: u64) -> Result<(Box<dyn DiskFile>, FileHeader), String> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let name = Kind::Log.file_name(number);
        let header = FileHeader::new(Kind::Log, number, base);
        let make = || {
            let file = self.disk.create(&name)?;
            file.write_all_at(0, &header.encode())?;
            file.sync()?;
            self.disk.sync_dir()?;
            Ok(file)
        };
        let made: io::Result<_> = make();
        made.map(|file| (file, header)).map_err(|error| {
            let _ = self.disk.remove(&name);
            format!("cannot create {}: {error}", self.disk.path().join(&name).display())
        })
    }

    /// Seals the open segment at a length and continues in another one.
    fn switch(
        &mut self,
        file: Box<dyn DiskFile>,
        header: FileHeader,
        sealed: u64,
    ) -> Result<(), InstallError> {
        let mut next = self.manifest.clone();
        if let Some(last) = next.segments.last_mut() {
            last.sealed = Some(sealed);
        }
        next.segments.push(SegmentEntry { number: header.number, base: header.base, sealed: None });
        if let Err(error) = next.install(&*self.disk) {
            let name = Kind::Log.file_name(header.number);
            match error {
                InstallError::Unchanged(_) => drop(self.disk.remove(&name)),
                // The manifest on disk may name the new segment.
                InstallError::Unknown(_) => {
                    self.manifest_unknown = true;
                    self.leftover_files.push(name);
                }
            }
            return Err(error);
        }
        self.manifest_unknown = false;
        self.manifest = next;
        self.file = file.into();
        self.header = header;
        for name in self.leftover_files.drain(..) {
            let _ = self.disk.remove(&name);
        }
        Ok(())
    }

    /// The error of a rotation or installation that did not happen: it need not be repeated, unless an earlier attempt
    /// may have happened.
    fn declined(&self, reason: String) -> LogError {
        if self.manifest_unknown { LogError::Retry(reason) } else { LogError::Declined(reason) }
    }

    fn sentence(&self, verb: &str, error: &io::Error) -> String {
        let path = self.disk.path().join(Kind::Log.file_name(self.header.number));
        format!("cannot {verb} {}: {error}", path.display())
    }
}
