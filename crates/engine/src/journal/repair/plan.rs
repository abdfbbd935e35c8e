//! The decision what a repair does, made by reading alone; `check` shows it, `repair` carries it out.

use std::ops::ControlFlow;

use super::{
    super::{
        disk::Disk,
        error::{Damage, Error, Unrepairable},
        frame::{FILE_HEADER, FRAME_HEADER, Kind},
        manifest::{Manifest, SegmentEntry, SnapshotEntry},
        reader::FrameReader,
        recover::{Contents, Scan, find_manifest, scan, scan_log},
        salvage::{self, NameOf, Salvaged},
    },
    CUT_LIMIT, Outcome, RepairRule, Repaired,
    aside::length,
    files::{Files, History},
};

/// A decided repair.
#[derive(Debug)]
pub(super) struct Plan {
    /// The report; the names of files set aside are those before the repair.
    pub(super) report: Repaired,
    /// The files that the journal keeps; a new segment follows if the last one is sealed.
    pub(super) manifest: Manifest,
    /// The damaged snapshot whose readable items become the new snapshot.
    pub(super) salvage: Option<(String, SnapshotEntry)>,
    /// Files that are set aside, by renaming.
    pub(super) moves: Vec<String>,
    /// Segments that are set aside as a copy and then cut at an offset.
    pub(super) cuts: Vec<(String, u64)>,
}

/// Decides how to repair a journal; the error is [`Error::Unrepairable`] if the rule allows nothing.
pub(super) fn plan(
    disk: &dyn Disk,
    rule: RepairRule,
    name_of: NameOf<'_>,
) -> Result<Option<Plan>, Error> {
    let mut planner =
        Planner { disk, rule, name_of, files: Files::list(disk)?, damage: Vec::new() };
    match find_manifest(disk) {
        Ok(Some(manifest)) => planner.with_manifest(manifest).map(Some),
        Ok(None) => Ok(None),
        Err(Error::Damaged(damage)) => {
            planner.damage.push(damage);
            planner.without_manifest().map(Some)
        }
        Err(error) => Err(error),
    }
}

struct Planner<'a> {
    disk: &'a dyn Disk,
    rule: RepairRule,
    name_of: NameOf<'a>,
    files: Files,
    damage: Vec<Damage>,
}

/// The base of a planned journal.
enum Base {
    /// The manifest's snapshot, or none.
    AsItIs,
    /// The readable items of a damaged snapshot.
    Salvaged(SnapshotEntry, Salvaged),
}

impl Planner<'_> {
    fn with_manifest(&mut self, manifest: Manifest) -> Result<Plan, Error> {
        let found = scan(self.disk, &manifest, CUT_LIMIT, &mut |_| Ok(()))?;
        match (&found.contents.damage, found.stopped(), manifest.snapshot) {
            (Some(damage), None, Some(snapshot)) => {
                self.damage.push(damage.clone());
                self.without_snapshot(manifest, snapshot)
            }
            _ => self.finish(Some(&manifest), manifest.clone(), found, Base::AsItIs),
        }
    }

    /// Plans without the snapshot's file as it is: its items may all be readable nevertheless, older
    /// files may replace it, or a salvage may be allowed.
    fn without_snapshot(
        &mut self,
        manifest: Manifest,
        snapshot: SnapshotEntry,
    ) -> Result<Plan, Error> {
        let salvaged = self.salvage(snapshot)?;
        let older = match salvaged.is_whole {
            true => None,
            false => self.files.older(self.disk, &manifest, snapshot)?,
        };
        let is_complete = |history: &History| history.last == snapshot.upto;
        match older.filter(|older| self.rule == RepairRule::Moment || is_complete(older)) {
            Some(History { manifest: older, .. }) => {
                let found = scan(self.disk, &older, CUT_LIMIT, &mut |_| Ok(()))?;
                self.finish(Some(&manifest), older, found, Base::AsItIs)
            }
            None if salvaged.is_whole || self.rule == RepairRule::Salvage => {
                self.salvaged(Some(&manifest), manifest.clone(), snapshot, salvaged)
            }
            None => Err(self.refusal(Some(salvaged))),
        }
    }

    fn without_manifest(&mut self) -> Result<Plan, Error> {
        if let Some(History { manifest, .. }) = self.files.history(self.disk)? {
            let found = scan(self.disk, &manifest, CUT_LIMIT, &mut |_| Ok(()))?;
            return self.finish(None, manifest, found, Base::AsItIs);
        }
        let remains = self.files.remains(self.disk)?;
        match remains.and_then(|remains| Some((remains.snapshot?, remains))) {
            Some((snapshot, remains)) => {
                let salvaged = self.salvage(snapshot)?;
                if self.rule == RepairRule::Moment {
                    return Err(self.refusal(Some(salvaged)));
                }
                // Without the manifest nothing proves that this was the journal's snapshot.
                let salvaged = Salvaged { is_whole: false, ..salvaged };
                self.salvaged(None, remains, snapshot, salvaged)
            }
            None => Err(self.refusal(None)),
        }
    }

    fn salvage(&self, snapshot: SnapshotEntry) -> Result<Salvaged, Error> {
        let file = self.files.snapshot_name(snapshot.number);
        salvage::read(self.disk, (&file, snapshot), self.name_of, &mut |_| Ok(()))
    }

    fn salvaged(
        &mut self,
        old: Option<&Manifest>,
        manifest: Manifest,
        snapshot: SnapshotEntry,
        salvaged: Salvaged,
    ) -> Result<Plan, Error> {
        let mut found = scan_log(self.disk, &manifest, snapshot.upto, CUT_LIMIT, &mut |_| Ok(()))?;
        found.contents.items = salvaged.counts.items;
        self.finish(old, manifest, found, Base::Salvaged(snapshot, salvaged))
    }

    /// Cuts the history at the damage in the log, if there is any, and counts what is lost.
    fn finish(
        &mut self,
        old: Option<&Manifest>,
        mut manifest: Manifest,
        found: Scan,
        base: Base,
    ) -> Result<Plan, Error> {
        let cut = found.contents.damage.clone().and(found.stopped());
        self.damage.extend(found.contents.damage.clone());
        if let Some((index, end)) = cut {
            let damaged = manifest.segments[index];
            manifest.segments.truncate(index);
            // Without its header, the segment cannot be read at all.
            if end >= FILE_HEADER as u64 {
                manifest.segments.push(SegmentEntry { sealed: Some(end), ..damaged });
            }
        }
        let kept = Contents { damage: None, ..found.contents };
        let (missing, salvage) = match base {
            Base::AsItIs => (None, None),
            Base::Salvaged(entry, salvaged) => {
                manifest.snapshot = None;
                let source = (self.files.snapshot_name(entry.number), entry);
                ((!salvaged.is_whole).then_some(salvaged.missing), Some(source))
            }
        };
        let mut plan = Plan {
            report: Repaired {
                damage: std::mem::take(&mut self.damage),
                kept,
                ..Repaired::default()
            },
            manifest,
            salvage,
            moves: Vec::new(),
            cuts: Vec::new(),
        };
        if !plan.report.damage.is_empty() {
            self.count(old, &mut plan)?;
        }
        plan.report.outcome = if missing.is_some() {
            Outcome::Salvaged
        } else if cut.is_some() || plan.report.last_seen > plan.report.kept.last {
            Outcome::Moment
        } else if plan.report.damage.is_empty() {
            Outcome::Whole
        } else {
            Outcome::Restored
        };
        plan.report.missing = missing;
        Ok(plan)
    }

    /// Decides which files are set aside, and counts the records in them that the journal will lack.
    fn count(&self, old: Option<&Manifest>, plan: &mut Plan) -> Result<(), Error> {
        let last = plan.report.kept.last;
        plan.report.last_seen = last;
        let mut sizes = Vec::new();
        for number in self.files.logs.keys() {
            let name = Kind::Log.file_name(*number);
            sizes.push((number, length(self.disk, &name)?, name));
        }
        let all: u64 = sizes.iter().map(|(_, size, _)| size).sum();
        let highest = last.saturating_add(all / FRAME_HEADER as u64);
        for (number, size, name) in sizes {
            let is_it = |entry: &&SegmentEntry| entry.number == *number;
            let from = match plan.manifest.segments.iter().find(is_it) {
                None => {
                    plan.moves.push(name.clone());
                    FILE_HEADER as u64
                }
                Some(SegmentEntry { sealed: None, .. }) => continue,
                Some(SegmentEntry { sealed: Some(end), .. }) if *end >= size => continue,
                // Sealed there by the engine itself, after a failed fsync.
                Some(entry) if old.is_some_and(|old| old.segments.contains(entry)) => continue,
                Some(SegmentEntry { sealed: Some(end), .. }) => {
                    plan.cuts.push((name.clone(), *end));
                    *end
                }
            };
            plan.report.set_aside_bytes += size.saturating_sub(from);
            if let Some(reader) = FrameReader::open_damaged(self.disk, Kind::Log, &name)? {
                reader.search(from, last.saturating_add(1)..=highest, &mut |header, _| {
                    plan.report.readable_records += u64::from(!header.mark);
                    plan.report.last_seen = plan.report.last_seen.max(header.sequence);
                    ControlFlow::Continue(())
                })?;
            }
        }
        let kept = plan.manifest.snapshot.map(|entry| entry.number);
        for number in self.files.snapshots.keys().filter(|number| Some(**number) != kept) {
            let name = Kind::Snapshot.file_name(*number);
            plan.report.set_aside_bytes += length(self.disk, &name)?;
            plan.moves.push(name);
        }
        let names = plan.cuts.iter().map(|(name, _)| name).chain(&plan.moves);
        plan.report.set_aside = names.cloned().collect();
        Ok(())
    }

    fn refusal(&self, salvaged: Option<Salvaged>) -> Error {
        let readable = salvaged.as_ref().map_or(0, |salvaged| salvaged.counts.keys);
        let missing = salvaged.map(|salvaged| salvaged.missing);
        let dir = self.disk.path();
        let damage = self.damage.clone();
        Error::Unrepairable(Box::new(Unrepairable { dir, damage, readable, missing }))
    }
}
