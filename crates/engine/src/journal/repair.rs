//! Repair of a damaged journal, and removal of files that no manifest names.
//!
//! # The promise
//! The result is the state of one moment: every record up to some number, and none after it. If the files
//! hold no such state, the repair refuses and changes nothing. Only [`RepairRule::Salvage`] may leave a state
//! that never was; the report then names what is missing. Nothing is deleted.
//!
//! ```text
//! damage in        result                                            set aside (*.damaged)
//! ───────────────  ────────────────────────────────────────────────  ────────────────────────────
//! segment k at X   snapshot, segments < k, k up to X                 a copy of k, segments after k
//! the snapshot     all of it, if its blocks are whole (header);      the snapshot
//!                  else an older snapshot and segments that a crash
//!                  has left; else a refusal. With salvage: its
//!                  readable items, and the log replayed on them
//! the manifest     the longest history of the files; else a          files that are not part of
//!                  refusal, or a salvage                             that history
//! ```
//! A copy of the old manifest is always set aside.
//!
//! `repair/plan.rs` decides by reading alone, so that `check` can tell first what a repair would do;
//! `repair/files.rs` finds histories without a manifest; `salvage.rs` reads a damaged snapshot.
//!
//! Every step leaves a directory that can be repaired again: copies and renames first, then new files,
//! then the new manifest. Until the new manifest is in force, the journal does not open.

mod aside;
mod files;
mod plan;

use std::path::Path;

use self::{
    aside::{Keep, set_aside},
    plan::{Plan, plan},
};
use super::{
    disk::{Disk, RealDisk},
    error::{Damage, Error, io_error},
    frame::{FILE_HEADER, FileHeader, Kind},
    manifest::{MANIFEST, MANIFEST_TEMP, Manifest, SegmentEntry, SnapshotEntry},
    recover::{Contents, install, lock, scan},
    salvage::{self, Missing, NameOf},
    snapshot::{BlockBuilder, SnapshotFile},
};

/// A torn tail of at most this size is cut by the next open; more is damage.
const CUT_LIMIT: u64 = super::DEFAULT_MEMORY as u64;

/// Which states a repair may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairRule {
    /// Only the state of one moment.
    Moment,
    /// Also a state that never was: all readable items of a damaged snapshot, with the log replayed on
    /// them.
    Salvage,
}

/// The relation of a repaired journal to the journal before the damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outcome {
    /// Nothing was damaged, and nothing was changed.
    #[default]
    Whole,
    /// No record that the files hold is lost.
    Restored,
    /// The state of one moment; later records are lost.
    Moment,
    /// The state of no moment: a part of the snapshot is missing.
    Salvaged,
}

/// The result of a repair, planned or carried out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repaired {
    /// How the repaired journal relates to the one before the damage.
    pub outcome: Outcome,
    /// The damage, in the order found; empty if there was none.
    pub damage: Vec<Damage>,
    /// The remaining contents.
    pub kept: Contents,
    /// The last record found in any file; records after [`Contents::last`] up to it are lost.
    pub last_seen: u64,
    /// Lost records that can still be read in the files set aside.
    pub readable_records: u64,
    /// The number of bytes set aside.
    pub set_aside_bytes: u64,
    /// The files set aside: by their new names, or in a plan by their names before.
    pub set_aside: Vec<String>,
    /// The missing part of a salvaged snapshot.
    pub missing: Option<Missing>,
}

/// Tells what [`repair`] would do, without changing anything.
pub(crate) fn plan_repair(
    dir: &Path,
    rule: RepairRule,
    name_of: NameOf<'_>,
) -> Result<Repaired, Error> {
    let disk = RealDisk::existing(dir).map_err(io_error("open", dir.to_path_buf()))?;
    let _lock = lock(&disk)?;
    Ok(plan(&disk, rule, name_of)?.map(|plan| plan.report).unwrap_or_default())
}

/// Repairs a journal as the rule allows, or returns [`Error::Unrepairable`] and changes nothing.
pub(crate) fn repair(dir: &Path, rule: RepairRule, name_of: NameOf<'_>) -> Result<Repaired, Error> {
    let disk = RealDisk::existing(dir).map_err(io_error("open", dir.to_path_buf()))?;
    repair_on(&disk, rule, name_of)
}

pub(super) fn repair_on(
    disk: &dyn Disk,
    rule: RepairRule,
    name_of: NameOf<'_>,
) -> Result<Repaired, Error> {
    let _lock = lock(disk)?;
    match plan(disk, rule, name_of)? {
        Some(plan) if !plan.report.damage.is_empty() => carry_out(disk, plan, name_of),
        // A torn tail needs no repair: the next open cuts it.
        whole => Ok(whole.map(|plan| plan.report).unwrap_or_default()),
    }
}

fn carry_out(disk: &dyn Disk, plan: Plan, name_of: NameOf<'_>) -> Result<Repaired, Error> {
    let Plan { mut report, mut manifest, salvage, moves, cuts } = plan;
    report.set_aside.clear();
    for name in [MANIFEST].into_iter().chain(cuts.iter().map(|(name, _)| name.as_str())) {
        report.set_aside.extend(set_aside(disk, name, Keep::Copy)?);
    }
    let mut source = salvage;
    for name in &moves {
        let aside = set_aside(disk, name, Keep::Move)?;
        if let Some((file, _)) = source.as_mut().filter(|(file, _)| file == name) {
            file.clone_from(aside.as_ref().unwrap_or(name));
        }
        report.set_aside.extend(aside);
    }
    if let Some((file, entry)) = source {
        manifest.snapshot = Some(rewrite(disk, (&file, entry), name_of)?);
    }
    if manifest.segments.last().is_none_or(|last| last.sealed.is_some()) {
        manifest.segments.push(empty_segment(disk, report.kept.last)?);
    }
    install(disk, &manifest)?;
    for (name, end) in cuts {
        let cut = disk.open(&name).and_then(|file| {
            file.truncate(end)?;
            file.sync()
        });
        cut.map_err(io_error("cut", disk.path().join(name)))?;
    }
    let found = scan(disk, &manifest, CUT_LIMIT, &mut |_| Ok(()))?.contents;
    match found.damage {
        Some(damage) => Err(damage.into()),
        None => {
            report.kept = found;
            Ok(report)
        }
    }
}

/// Writes the readable items of a damaged snapshot as a new one.
fn rewrite(
    disk: &dyn Disk,
    (file, old): (&str, SnapshotEntry),
    name_of: NameOf<'_>,
) -> Result<SnapshotEntry, Error> {
    let entry = SnapshotEntry { number: free_number(disk)?, upto: old.upto };
    let path = disk.path().join(Kind::Snapshot.file_name(entry.number));
    let failed = || io_error("write", path.clone());
    let mut new = SnapshotFile::create(disk, entry).map_err(failed())?;
    let mut builder = BlockBuilder::default();
    let found = salvage::read(disk, (file, old), name_of, &mut |item| match builder.push(item)? {
        Some(block) => new.write_block(&block).map_err(failed()),
        None => Ok(()),
    })?;
    builder.counts.keys = found.counts.keys;
    let rest = builder.take().map_or(Ok(()), |block| new.write_block(&block));
    rest.and_then(|()| new.finish(builder.counts))
        .and_then(|_| disk.sync_dir())
        .map_err(failed())?;
    Ok(entry)
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
                aside::length(disk, &name).is_ok_and(|length| length <= FILE_HEADER as u64)
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
