//! Reading a whole journal: the common part of `open`, `check` and `repair`; and `check` itself.
//!
//! ```text
//! manifest ─▶ snapshot (items) ─▶ segment, sealed ─▶ … ─▶ segment, open ─▶ end
//!                │                    │                       │
//!             damage               damage              damage or torn tail (reader.rs)
//! ```
//!
//! Sequence numbers must increase by one over all files: a missing segment, a missing file, a gap or a
//! duplicate record is damage and never skipped. `repair.rs` says what a repair makes of it.

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};

use super::{
    disk::{Disk, DiskFile, LockError, RealDisk},
    error::{BoxError, Damage, Error, io_error},
    frame::{FILE_HEADER, FileHeader, Kind, VERSION},
    log::Log,
    manifest::{InstallError, MANIFEST, Manifest, SegmentEntry},
    reader::{BadFrame, FrameReader, Next},
    snapshot,
};

/// An element of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replayed<'a> {
    /// An item of the snapshot; all items come before the first record.
    Item(&'a [u8]),
    /// A record with its position.
    Record(super::Position, &'a [u8]),
}

/// The caller's callback for a replay.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(Replayed<'_>) -> Result<(), BoxError>;

/// A tail that a crash left incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The file.
    pub file: String,
    /// The offset where the tail begins.
    pub offset: u64,
    /// The length of the tail.
    pub bytes: u64,
    /// The number of whole records in the tail, lost because an earlier record is incomplete.
    pub records: u64,
}

/// The contents of a journal, in figures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// The number of items in the snapshot.
    pub items: u64,
    /// The size of the snapshot file.
    pub snapshot_bytes: u64,
    /// The number of records in the log.
    pub records: u64,
    /// The number of valid bytes of log.
    pub log_bytes: u64,
    /// The position of the last record.
    pub last: u64,
    /// The torn tail, cut by the next open.
    pub torn: Option<Torn>,
    /// The first damage; the figures above count up to it.
    pub damage: Option<Damage>,
}

/// The result of reading a journal, from which writing can continue.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) contents: Contents,
    /// The segment where reading stopped and the end of its valid part; `None` in the snapshot.
    stopped: Option<(usize, u64)>,
    /// The end of the part of the last segment that its own watermarks show as synced.
    synced_end: u64,
    open: Option<(Box<dyn DiskFile>, FileHeader)>,
}

/// Reads all files that a manifest names.
pub(super) fn scan(
    disk: &dyn Disk,
    manifest: &Manifest,
    cut_limit: u64,
    visit: Visit<'_>,
) -> Result<Scan, Error> {
    let mut scan = Scan { contents: Contents::default(), stopped: None, synced_end: 0, open: None };
    if let Some(entry) = manifest.snapshot {
        let mut items = 0;
        let read = snapshot::read(disk, entry, &mut |item| {
            items += 1;
            visit(Replayed::Item(item))
        });
        scan.contents.items = items;
        scan.contents.last = entry.upto;
        match read {
            Ok(stats) => scan.contents.snapshot_bytes = stats.bytes,
            Err(Error::Damaged(damage)) => {
                scan.contents.damage = Some(damage);
                return Ok(scan);
            }
            Err(error) => return Err(error),
        }
    }
    scan.log(disk, manifest, cut_limit, visit)
}

/// Reads the segments that a manifest names, and not its snapshot, which contains record `last`.
pub(super) fn scan_log(
    disk: &dyn Disk,
    manifest: &Manifest,
    last: u64,
    cut_limit: u64,
    visit: Visit<'_>,
) -> Result<Scan, Error> {
    let contents = Contents { last, ..Contents::default() };
    let scan = Scan { contents, stopped: None, synced_end: 0, open: None };
    scan.log(disk, manifest, cut_limit, visit)
}

impl Scan {
    fn log(
        mut self,
        disk: &dyn Disk,
        manifest: &Manifest,
        cut_limit: u64,
        visit: Visit<'_>,
    ) -> Result<Self, Error> {
        for (index, entry) in manifest.segments.iter().enumerate() {
            self.stopped = Some((index, 0));
            match self.segment(disk, entry, cut_limit, visit) {
                Ok(()) => {}
                Err(Error::Damaged(damage)) => {
                    self.contents.damage = Some(damage);
                    return Ok(self);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(self)
    }

    fn segment(
        &mut self,
        disk: &dyn Disk,
        entry: &SegmentEntry,
        cut_limit: u64,
        visit: Visit<'_>,
    ) -> Result<(), Error> {
        let mut reader = FrameReader::open(disk, Kind::Log, entry.number, entry.sealed)?;
        let contents = &mut self.contents;
        if reader.header().base != entry.base || entry.base != contents.last {
            let (from, to) = (contents.last, reader.header().base);
            return Err(reader
                .damage(24, format!("it begins after record {to}, but record {from} came last"))
                .into());
        }
        let mut end = FILE_HEADER as u64;
        self.synced_end = end;
        // The latest record that no later frame has shown as synced yet, and where it ends.
        let mut witness = (entry.base, end);
        loop {
            if let Some((_, stopped)) = &mut self.stopped {
                *stopped = end;
            }
            match reader.next()? {
                Next::Frame { header, offset } => {
                    let expected = contents.last.saturating_add(u64::from(!header.mark));
                    if header.sequence != expected {
                        let found = header.sequence;
                        return Err(reader
                            .damage(
                                offset,
                                format!("record {expected} should be here, not {found}"),
                            )
                            .into());
                    }
                    if !header.mark {
                        let record =
                            Replayed::Record(super::Position(expected), reader.payload(&header));
                        let failed =
                            |source| Error::Replay { what: format!("record {expected}"), source };
                        visit(record).map_err(failed)?;
                        contents.records += 1;
                        contents.last = expected;
                    }
                    let size = (super::frame::FRAME_HEADER + header.length) as u64;
                    contents.log_bytes += size;
                    end = offset + size;
                    if header.mark && header.synced == contents.last {
                        self.synced_end = end;
                    } else if header.synced >= witness.0 {
                        self.synced_end = self.synced_end.max(witness.1);
                        witness = (contents.last, end);
                    }
                }
                Next::End => break,
                Next::Bad { offset, what } if entry.sealed.is_some() => {
                    return Err(reader.damage(offset, what).into());
                }
                Next::Bad { offset, what } => {
                    match reader.classify_bad_frame(
                        offset,
                        contents.last.saturating_add(1),
                        cut_limit,
                    )? {
                        BadFrame::Damage(why) => {
                            return Err(reader.damage(offset, format!("{what}, and {why}")).into());
                        }
                        BadFrame::Torn { records } => {
                            let (file, bytes) =
                                (Kind::Log.file_name(entry.number), reader.end() - offset);
                            contents.torn = Some(Torn { file, offset, bytes, records });
                            break;
                        }
                    }
                }
            }
        }
        let header = reader.header();
        self.open = Some((reader.into_file(), header));
        Ok(())
    }

    /// Cuts the torn tail, makes all records durable, and opens the log for writing.
    pub(super) fn resume(
        self,
        disk: Arc<dyn Disk>,
        manifest: Manifest,
        numbers: Arc<AtomicU64>,
        rewrite_limit: u64,
    ) -> Result<(Log, Contents), Error> {
        let contents = self.contents;
        let (Some((file, header)), Some((_, end))) = (self.open, self.stopped) else {
            let what = "it names no open segment".to_owned();
            return Err(
                Damage { dir: disk.path(), file: MANIFEST.to_owned(), offset: 0, what }.into()
            );
        };
        let path = disk.path().join(Kind::Log.file_name(header.number));
        if contents.torn.is_some() {
            file.truncate(end).map_err(io_error("cut the torn tail of", path.clone()))?;
        }
        // The last process may have died after a failed fsync and before its rewrite: such pages
        // look clean but never reached the disk. Writing them again makes them dirty, so that the
        // sync below covers them.
        let mut at = end.saturating_sub(rewrite_limit).max(self.synced_end);
        let mut piece = vec![0; 1 << 20];
        while at < end {
            let size = (end - at).min(piece.len() as u64) as usize;
            let rewritten = file
                .read_full_at(at, &mut piece[..size])
                .and_then(|n| file.write_all_at(at, &piece[..n]));
            rewritten.map_err(io_error("rewrite the tail of", path.clone()))?;
            at += size as u64;
        }
        file.sync().map_err(io_error("sync", path))?;
        let last = contents.last;
        Ok((Log::resume(disk, manifest, numbers, (file, header), (end, last)), contents))
    }
}

/// Locks the directory; an error names the other process.
pub(super) fn lock(disk: &dyn Disk) -> Result<super::disk::Lock, Error> {
    disk.lock().map_err(|error| match error {
        LockError::Held(pid) => Error::Locked { dir: disk.path(), pid },
        LockError::Io(source) => Error::Io { action: "lock", path: disk.path(), source },
    })
}

/// Reads the manifest and its format version, or creates the first one in an empty directory.
pub(super) fn manifest_or_first(disk: &dyn Disk) -> Result<(Manifest, u32), Error> {
    if let Some(found) = Manifest::load_with_version(disk)? {
        return Ok(found);
    }
    refuse_lost_manifest(disk)?;
    let header = FileHeader::new(Kind::Log, 1, 0);
    let make = || {
        let file = disk.create(&Kind::Log.file_name(1))?;
        file.write_all_at(0, &header.encode())?;
        file.sync()?;
        disk.sync_dir()
    };
    make().map_err(io_error("create the first segment in", disk.path()))?;
    let manifest = Manifest {
        snapshot: None,
        segments: vec![SegmentEntry { number: 1, base: 0, sealed: None }],
    };
    install(disk, &manifest)?;
    Ok((manifest, VERSION))
}

/// Refuses a directory with data but without a manifest: it is not a new journal.
fn refuse_lost_manifest(disk: &dyn Disk) -> Result<(), Error> {
    for name in disk.list().map_err(io_error("list", disk.path()))? {
        let data = match Kind::of_file_name(&name) {
            Some((Kind::Snapshot, _)) => true,
            // The first segment is created before the first manifest, but holds no record until
            // then.
            Some((Kind::Log, _)) => {
                let length = disk.open(&name).and_then(|file| file.length());
                length.map_err(io_error("read", disk.path().join(&name)))? > FILE_HEADER as u64
            }
            None => false,
        };
        if data {
            let what = format!("it is missing, but there is {name}");
            return Err(
                Damage { dir: disk.path(), file: MANIFEST.to_owned(), offset: 0, what }.into()
            );
        }
    }
    Ok(())
}

pub(super) fn install(disk: &dyn Disk, manifest: &Manifest) -> Result<(), Error> {
    manifest.install(disk).map_err(|error| match error {
        InstallError::Unchanged(source) | InstallError::Unknown(source) => {
            Error::Io { action: "write", path: disk.path().join(MANIFEST), source }
        }
    })
}

impl Scan {
    /// The index of the segment where reading stopped, and the end of its valid part.
    pub(super) fn stopped(&self) -> Option<(usize, u64)> {
        self.stopped
    }
}

/// Reads a journal without changing it; reports damage and a torn tail.
pub fn check(dir: &Path) -> Result<Contents, Error> {
    let disk = RealDisk::existing(dir).map_err(io_error("open", dir.to_path_buf()))?;
    check_on(&disk)
}

/// Reads the manifest; `None` if the journal is new.
pub(super) fn find_manifest(disk: &dyn Disk) -> Result<Option<Manifest>, Error> {
    match Manifest::load(disk)? {
        Some(manifest) => Ok(Some(manifest)),
        None => refuse_lost_manifest(disk).map(|()| None),
    }
}

pub(super) fn check_on(disk: &dyn Disk) -> Result<Contents, Error> {
    let _lock = lock(disk)?;
    let manifest = match find_manifest(disk) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => return Ok(Contents::default()),
        Err(Error::Damaged(damage)) => {
            return Ok(Contents { damage: Some(damage), ..Contents::default() });
        }
        Err(error) => return Err(error),
    };
    Ok(scan(disk, &manifest, super::DEFAULT_MEMORY as u64, &mut |_| Ok(()))?.contents)
}
