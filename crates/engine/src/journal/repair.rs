//! Repair of a damaged journal, and removal of files that no manifest names.
//!
//! ```text
//! damage in        kept                                   moved aside (*.damaged)
//! ───────────────  ─────────────────────────────────────  ──────────────────────────────────────
//! segment k at X   snapshot, segments < k, k up to X      a copy of k, all segments behind k
//! the snapshot     its items before the damage            the snapshot, all segments
//! the manifest     the newest whole snapshot and the      the manifest
//!                  segments that join on to it
//! ```
//!
//! Every step leaves a directory that can be repaired again: first copies, then the new manifest,
//! then renames. Files with data are changed last.

use std::{collections::BTreeMap, io, path::Path};

use super::{
    disk::{Disk, RealDisk},
    error::{Damage, Error, io_error},
    frame::{FILE_HEADER, FileHeader, Kind},
    manifest::{MANIFEST, MANIFEST_TEMP, Manifest, SegmentEntry, SnapshotEntry},
    reader::{FrameReader, Next},
    recover::{Contents, install, lock, refuse_lost_manifest, scan},
    snapshot::{self, BlockBuilder, SnapshotFile},
};

/// The result of a repair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repaired {
    /// The damage, in the order found; empty if there was none.
    pub damage: Vec<Damage>,
    /// The remaining contents.
    pub kept: Contents,
    /// Readable records that were set aside because something before them is damaged.
    pub lost_records: u64,
    /// The number of bytes set aside.
    pub lost_bytes: u64,
    /// The files that were set aside, by their new names.
    pub set_aside: Vec<String>,
}

/// Repairs a journal: keeps everything before the first damage and sets the rest aside.
pub fn repair(dir: &Path) -> Result<Repaired, Error> {
    let disk = RealDisk::existing(dir).map_err(io_error("open", dir.to_path_buf()))?;
    repair_on(&disk)
}

pub(super) fn repair_on(disk: &dyn Disk) -> Result<Repaired, Error> {
    let _lock = lock(disk)?;
    let mut report = Repaired::default();
    let manifest = match Manifest::load(disk).and_then(|found| match found {
        Some(manifest) => Ok(Some(manifest)),
        None => refuse_lost_manifest(disk).map(|()| None),
    }) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => return Ok(report),
        Err(Error::Damaged(damage)) => {
            report.damage.push(damage);
            let manifest = rebuild(disk)?;
            report.set_aside(disk, MANIFEST, Keep::Copy)?;
            install(disk, &manifest)?;
            manifest
        }
        Err(error) => return Err(error),
    };
    let limit = super::DEFAULT_MEMORY as u64;
    let found = scan(disk, &manifest, limit, &mut |_| Ok(()))?;
    if let Some(damage) = found.contents.damage.clone() {
        report.damage.push(damage);
        let fixed = match found.stopped() {
            None => report.cut_snapshot(disk, &manifest)?,
            Some((index, end)) => {
                report.cut_segment(disk, &manifest, index, end, found.contents.last)?
            }
        };
        report.kept = scan(disk, &fixed, limit, &mut |_| Ok(()))?.contents;
    } else {
        // A torn tail needs no repair: the next open cuts it.
        report.kept = found.contents;
    }
    Ok(report)
}

/// How a file is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// The original stays, and a copy gets the new name.
    Copy,
    /// The original is renamed.
    Move,
}

impl Repaired {
    fn cut_segment(
        &mut self,
        disk: &dyn Disk,
        manifest: &Manifest,
        index: usize,
        end: u64,
        last: u64,
    ) -> Result<Manifest, Error> {
        let damaged = Kind::Log.file_name(manifest.segments[index].number);
        let behind: Vec<_> = manifest.segments[index + 1..].to_vec();
        let mut fixed = manifest.clone();
        fixed.segments.truncate(index);
        // Without its header, the segment cannot be read at all.
        let readable = end >= FILE_HEADER as u64;
        if readable {
            fixed.segments.push(SegmentEntry { sealed: Some(end), ..manifest.segments[index] });
            self.lost_bytes += length(disk, &damaged)?.saturating_sub(end);
            self.set_aside(disk, &damaged, Keep::Copy)?;
        }
        for entry in &behind {
            self.count(disk, entry)?;
        }
        fixed.segments.push(empty_segment(disk, last)?);
        install(disk, &fixed)?;
        if !readable && exists(disk, &damaged)? {
            self.lost_bytes += length(disk, &damaged)?;
            self.set_aside(disk, &damaged, Keep::Move)?;
        }
        for entry in &behind {
            self.set_aside(disk, &Kind::Log.file_name(entry.number), Keep::Move)?;
        }
        Ok(fixed)
    }

    fn cut_snapshot(&mut self, disk: &dyn Disk, manifest: &Manifest) -> Result<Manifest, Error> {
        let Some(old) = manifest.snapshot else { return Ok(manifest.clone()) };
        let name = Kind::Snapshot.file_name(old.number);
        let entry = SnapshotEntry { number: free_number(disk)?, upto: old.upto };
        let path = disk.path().join(Kind::Snapshot.file_name(entry.number));
        let mut file =
            SnapshotFile::create(disk, entry).map_err(io_error("create", path.clone()))?;
        let mut builder = BlockBuilder::default();
        let copied = snapshot::read(disk, old, &mut |item| {
            if let Some(block) = builder.push(item)? {
                file.write_block(&block)?;
            }
            Ok(())
        });
        match copied {
            Ok(_) | Err(Error::Damaged(_)) => {}
            Err(error) => return Err(error),
        }
        let rest = builder.take().map_or(Ok(()), |block| file.write_block(&block));
        rest.and_then(|()| file.finish(builder.items)).map_err(io_error("write", path))?;
        let fixed =
            Manifest { snapshot: Some(entry), segments: vec![empty_segment(disk, old.upto)?] };
        for entry in &manifest.segments {
            self.count(disk, entry)?;
        }
        install(disk, &fixed)?;
        if exists(disk, &name)? {
            self.lost_bytes += length(disk, &name)?;
            self.set_aside(disk, &name, Keep::Move)?;
        }
        for entry in &manifest.segments {
            self.set_aside(disk, &Kind::Log.file_name(entry.number), Keep::Move)?;
        }
        Ok(fixed)
    }

    /// Counts the records and bytes of a segment that is set aside as a whole.
    fn count(&mut self, disk: &dyn Disk, entry: &SegmentEntry) -> Result<(), Error> {
        let Ok(mut reader) = FrameReader::open(disk, Kind::Log, entry.number, None) else {
            return Ok(());
        };
        self.lost_bytes += reader.end();
        while let Next::Frame { header, .. } = reader.next()? {
            self.lost_records += u64::from(!header.mark);
        }
        Ok(())
    }

    fn set_aside(&mut self, disk: &dyn Disk, name: &str, keep: Keep) -> Result<(), Error> {
        if !exists(disk, name)? {
            return Ok(());
        }
        let names = disk.list().map_err(io_error("list", disk.path()))?;
        let free =
            |n: u32| if n == 0 { format!("{name}.damaged") } else { format!("{name}.{n}.damaged") };
        let aside = (0..).map(free).find(|aside| !names.contains(aside)).unwrap_or_default();
        let moved = match keep {
            Keep::Move => disk.rename(name, &aside),
            Keep::Copy => copy(disk, name, &aside),
        };
        moved
            .and_then(|()| disk.sync_dir())
            .map_err(io_error("move aside", disk.path().join(name)))?;
        self.set_aside.push(aside);
        Ok(())
    }
}

/// Reconstructs the manifest from the files.
fn rebuild(disk: &dyn Disk) -> Result<Manifest, Error> {
    let mut snapshots = BTreeMap::new();
    let mut logs = BTreeMap::new();
    for name in disk.list().map_err(io_error("list", disk.path()))? {
        match Kind::of_file_name(&name) {
            Some((Kind::Log, number)) => {
                if let Ok(reader) = FrameReader::open(disk, Kind::Log, number, None) {
                    logs.insert(number, reader.header().base);
                }
            }
            Some((Kind::Snapshot, number)) => {
                if let Ok(reader) = FrameReader::open(disk, Kind::Snapshot, number, None) {
                    let entry = SnapshotEntry { number, upto: reader.header().base };
                    if snapshot::read(disk, entry, &mut |_| Ok(())).is_ok() {
                        snapshots.insert(entry.upto, entry);
                    }
                }
            }
            None => {}
        }
    }
    // The newest complete snapshot that a segment continues; a snapshot that was never installed is
    // valid too.
    let joins = |upto: u64| logs.values().any(|base| *base == upto);
    let snapshot = snapshots.values().rev().find(|entry| joins(entry.upto)).copied();
    let mut last = snapshot.map_or(0, |entry| entry.upto);
    let mut segments: Vec<SegmentEntry> = Vec::new();
    // By base: of two segments with the same base, the later one replaced the other after a failed
    // fsync.
    let by_base: BTreeMap<u64, u64> =
        logs.into_iter().map(|(number, base)| (base, number)).collect();
    let mut candidates = by_base.range(last..).peekable();
    while let Some((base, number)) = candidates.next_if(|(base, _)| **base == last) {
        let next = candidates.peek().map(|(base, _)| **base);
        let end;
        (last, end) = follow(disk, *number, last, next)?;
        segments.push(SegmentEntry { number: *number, base: *base, sealed: Some(end) });
    }
    match segments.last_mut() {
        Some(segment) => segment.sealed = None,
        None => segments.push(empty_segment(disk, last)?),
    }
    Ok(Manifest { snapshot, segments })
}

/// Reads a segment up to record `upto`; returns the last record read and where it ends.
fn follow(
    disk: &dyn Disk,
    number: u64,
    mut last: u64,
    upto: Option<u64>,
) -> Result<(u64, u64), Error> {
    let mut reader = FrameReader::open(disk, Kind::Log, number, None)?;
    let mut end = FILE_HEADER as u64;
    while upto != Some(last) {
        match reader.next()? {
            Next::Frame { header, offset } => {
                last = header.sequence;
                end = offset + (super::frame::FRAME_HEADER + header.length) as u64;
            }
            Next::End | Next::Bad { .. } => break,
        }
    }
    Ok((last, end))
}

/// Creates a segment without records.
fn empty_segment(disk: &dyn Disk, base: u64) -> Result<SegmentEntry, Error> {
    let number = free_number(disk)?;
    let make = || {
        let file = disk.create(&Kind::Log.file_name(number))?;
        file.write_all_at(0, &FileHeader::new(Kind::Log, number, base).encode())?;
        file.sync()?;
        disk.sync_dir()
    };
    make().map_err(io_error("create a segment in", disk.path()))?;
    Ok(SegmentEntry { number, base, sealed: None })
}

/// A number that no file has, including files set aside.
pub(super) fn free_number(disk: &dyn Disk) -> Result<u64, Error> {
    let names = disk.list().map_err(io_error("list", disk.path()))?;
    let numbers = names.iter().filter_map(|name| name.split('.').next()?.parse::<u64>().ok());
    Ok(numbers.max().unwrap_or(0).saturating_add(1))
}

/// Removes files left by a crash; files with records that the manifest does not name are renamed.
pub(super) fn remove_orphans(disk: &dyn Disk, manifest: &Manifest) -> (Vec<String>, Vec<String>) {
    let (mut removed, mut set_aside) = (Vec::new(), Vec::new());
    let newest = manifest.segments.last().map_or(0, |segment| segment.number);
    for name in disk.list().unwrap_or_default() {
        let orphan = match Kind::of_file_name(&name) {
            Some((Kind::Log, number)) if manifest.segments.iter().any(|s| s.number == number) => {
                continue;
            }
            Some((Kind::Snapshot, number))
                if manifest.snapshot.is_some_and(|s| s.number == number) =>
            {
                continue;
            }
            Some((Kind::Log, number)) if number > newest => {
                length(disk, &name).is_ok_and(|length| length <= FILE_HEADER as u64)
            }
            Some(_) => true,
            None if name == MANIFEST_TEMP => true,
            None => continue,
        };
        if orphan && disk.remove(&name).is_ok() {
            removed.push(name);
        } else if !orphan && disk.rename(&name, &format!("{name}.aside")).is_ok() {
            set_aside.push(format!("{name}.aside"));
        }
    }
    (removed, set_aside)
}

fn exists(disk: &dyn Disk, name: &str) -> Result<bool, Error> {
    Ok(disk.list().map_err(io_error("list", disk.path()))?.iter().any(|n| n == name))
}

fn length(disk: &dyn Disk, name: &str) -> Result<u64, Error> {
    disk.open(name).and_then(|file| file.length()).map_err(io_error("read", disk.path().join(name)))
}

fn copy(disk: &dyn Disk, from: &str, to: &str) -> io::Result<()> {
    let from = disk.open(from)?;
    let to = disk.create(to)?;
    let mut piece = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        let n = from.read_full_at(at, &mut piece)?;
        if n == 0 {
            return to.sync();
        }
        to.write_all_at(at, &piece[..n])?;
        at += n as u64;
    }
}
