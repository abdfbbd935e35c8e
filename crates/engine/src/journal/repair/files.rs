//! The files of a journal, read without its manifest: which of them form a history.
//!
//! ```text
//!  bases                     chain of segments                      history
//!  ─────                     ─────────────────                      ───────
//!  a whole snapshot at P ──▶ base P … Q ──▶ base Q … R ──▶ …        the longest chain wins;
//!  no snapshot           ──▶ base 0 … P ──▶ base P … Q ──▶ …        then the newest snapshot
//! ```
//!
//! A segment is followed only where it continues the one before it: no record is skipped, none comes twice.
//! After a failed fsync two segments hold the same records; the later file number wins.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::{
        disk::Disk,
        error::{Error, io_error},
        frame::{FILE_HEADER, FRAME_HEADER, Kind},
        manifest::{Manifest, SegmentEntry, SnapshotEntry},
        reader::{FrameReader, Next},
        snapshot,
    },
    aside::ASIDE,
};

/// The journal's files, by number, as far as their headers can be read.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// Segments and the sequence before their first record; `None` if the header is unreadable.
    pub(super) logs: BTreeMap<u64, Option<u64>>,
    /// Snapshots and the last sequence they contain; `None` if the header is unreadable.
    pub(super) snapshots: BTreeMap<u64, Option<u64>>,
    /// Snapshots that an interrupted repair has set aside.
    aside: BTreeSet<u64>,
}

/// A history and where it ends.
#[derive(Debug)]
pub(super) struct History {
    pub(super) manifest: Manifest,
    pub(super) last: u64,
}

impl Files {
    pub(super) fn list(disk: &dyn Disk) -> Result<Self, Error> {
        let mut files = Self::default();
        for name in disk.list().map_err(io_error("list", disk.path()))? {
            match Kind::of_file_name(&name) {
                Some((Kind::Log, number)) => {
                    files.logs.insert(number, base(disk, Kind::Log, number)?);
                }
                Some((Kind::Snapshot, number)) => {
                    files.snapshots.insert(number, base(disk, Kind::Snapshot, number)?);
                }
                None => {
                    let original = name.strip_suffix(ASIDE).and_then(Kind::of_file_name);
                    if let Some((Kind::Snapshot, number)) = original {
                        files.aside.insert(number);
                    }
                }
            }
        }
        Ok(files)
    }

    /// The file of a snapshot, also if an interrupted repair has set it aside.
    pub(super) fn snapshot_name(&self, number: u64) -> String {
        let name = Kind::Snapshot.file_name(number);
        if !self.snapshots.contains_key(&number) && self.aside.contains(&number) {
            return name + ASIDE;
        }
        name
    }

    /// The longest history, when there is no manifest; `None` if the files form none.
    pub(super) fn history(&self, disk: &dyn Disk) -> Result<Option<History>, Error> {
        let mut found = self.longest(disk, &self.segments(|_, _| true), None)?;
        if let Some(History { manifest, last }) = &mut found {
            let is_kept = |number| manifest.segments.iter().any(|kept| kept.number == number);
            let is_older = |base: &Option<u64>| base.is_some_and(|base| base < *last);
            let reaches_all =
                self.logs.iter().all(|(number, base)| is_kept(*number) || is_older(base));
            // Otherwise the last segment of the history was not the last one of the journal.
            if let Some(segment) = manifest.segments.last_mut().filter(|_| reaches_all) {
                segment.sealed = None;
            }
        }
        Ok(found)
    }

    /// A history for a journal whose snapshot is damaged, from files that its manifest no longer
    /// names. It goes on with the manifest's segments if it reaches them.
    pub(super) fn older(
        &self,
        disk: &dyn Disk,
        manifest: &Manifest,
        damaged: SnapshotEntry,
    ) -> Result<Option<History>, Error> {
        let first = manifest.segments.first().map_or(0, |segment| segment.number);
        let segments = self.segments(|number, base| number < first && base < damaged.upto);
        let mut found = self.longest(disk, &segments, Some(damaged.upto))?;
        if let Some(history) = &mut found
            && history.last == damaged.upto
        {
            history.manifest.segments.extend(manifest.segments.iter().copied());
        }
        Ok(found)
    }

    /// The snapshot and the segments to salvage when there is no manifest and no history.
    pub(super) fn remains(&self, disk: &dyn Disk) -> Result<Option<Manifest>, Error> {
        let segments = self.segments(|_, base| base > 0);
        let newest = self.snapshots.keys().chain(&self.aside).max().copied();
        let known = newest.and_then(|number| self.snapshots.get(&number).copied().flatten());
        let Some(upto) = known.or(segments.first_key_value().map(|(base, _)| *base)) else {
            return Ok(None);
        };
        let (segments, _) = chain(disk, &segments, upto, None)?;
        // Without any snapshot the number is one that no file has.
        let snapshot = Some(SnapshotEntry { number: newest.unwrap_or(0), upto });
        Ok(Some(Manifest { snapshot, segments }))
    }

    /// Readable segments by base; of two with the same base, the later number.
    fn segments(&self, wanted: impl Fn(u64, u64) -> bool) -> BTreeMap<u64, u64> {
        let readable = self.logs.iter().filter_map(|(number, base)| Some((*number, (*base)?)));
        readable
            .filter(|(number, base)| wanted(*number, *base))
            .map(|(n, base)| (base, n))
            .collect()
    }

    /// The history that ends last, among all whole snapshots up to record `upto` and no snapshot.
    fn longest(
        &self,
        disk: &dyn Disk,
        segments: &BTreeMap<u64, u64>,
        upto: Option<u64>,
    ) -> Result<Option<History>, Error> {
        let mut bases: Vec<Option<SnapshotEntry>> = Vec::new();
        if segments.contains_key(&0) {
            bases.push(None);
        }
        for (number, end) in &self.snapshots {
            let Some(entry) = end.map(|upto| SnapshotEntry { number: *number, upto }) else {
                continue;
            };
            if upto.is_none_or(|upto| entry.upto < upto) && is_whole(disk, entry)? {
                bases.push(Some(entry));
            }
        }
        bases.sort_by_key(|base| base.map_or(0, |entry| entry.upto));
        let mut longest: Option<History> = None;
        for snapshot in bases {
            let from = snapshot.map_or(0, |entry| entry.upto);
            let (segments, last) = chain(disk, segments, from, upto)?;
            if longest.as_ref().is_none_or(|other| last >= other.last) {
                longest = Some(History { manifest: Manifest { snapshot, segments }, last });
            }
        }
        // An empty journal is no history of one that has a snapshot or later segments.
        let is_new = self.snapshots.is_empty() && self.logs.values().all(|base| *base == Some(0));
        Ok(longest.filter(|history| history.last > 0 || is_new))
    }
}

fn base(disk: &dyn Disk, kind: Kind, number: u64) -> Result<Option<u64>, Error> {
    match FrameReader::open(disk, kind, number, None) {
        Ok(reader) => Ok(Some(reader.header().base)),
        Err(Error::Damaged(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_whole(disk: &dyn Disk, entry: SnapshotEntry) -> Result<bool, Error> {
    match snapshot::read(disk, entry, &mut |_| Ok(())) {
        Ok(_) => Ok(true),
        Err(Error::Damaged(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The segments that follow each other from record `last` on, each sealed at the end of its readable
/// part, and the last record in them. Stops at record `upto`.
fn chain(
    disk: &dyn Disk,
    by_base: &BTreeMap<u64, u64>,
    mut last: u64,
    upto: Option<u64>,
) -> Result<(Vec<SegmentEntry>, u64), Error> {
    let mut segments: Vec<SegmentEntry> = Vec::new();
    while upto != Some(last)
        && let Some(number) = by_base.get(&last).copied()
        && segments.last().is_none_or(|before| before.number < number)
    {
        let base = last;
        let later = by_base.range(base + 1..).find(|(_, later)| **later > number);
        let next = later.map(|(base, _)| *base).or(upto);
        let end;
        (last, end) = follow(disk, number, base, next)?;
        segments.push(SegmentEntry { number, base, sealed: Some(end) });
        if last == base {
            break;
        }
    }
    Ok((segments, last))
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
            Next::Frame { header, offset }
                if header.sequence == last.saturating_add(u64::from(!header.mark)) =>
            {
                last = header.sequence;
                end = offset + (FRAME_HEADER + header.length) as u64;
            }
            Next::Frame { .. } | Next::End | Next::Bad { .. } => break,
        }
    }
    Ok((last, end))
}
