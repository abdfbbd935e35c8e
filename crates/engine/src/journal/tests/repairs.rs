//! A repaired journal is a prefix of what was, or the repair refuses and changes nothing, or (when asked
//! for) it salvages and names what is missing.
//!
//! A replay that is not a prefix fails in [`Model::visit`]: an item or a record comes out of turn.

use super::{damage::files, *};

/// Repairs a journal of 60 records at most and checks the promise of [`RepairRule::Moment`].
pub(super) fn is_a_prefix_or_refused(disk: &FaultyDisk, what: &str) {
    let before = contents_of(disk);
    match repair(disk) {
        Ok(report) => {
            let (journal, last, opened) =
                open(&disk.copy(), &Config::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(last <= 60 && last == report.kept.last, "{what}: {last}, {report:?}");
            assert_eq!(opened.contents.items, report.kept.items, "{what}");
            assert!(report.missing.is_none() && report.outcome != Outcome::Salvaged, "{what}");
            if report.outcome != Outcome::Moment {
                assert_eq!(report.last_seen.max(last), last, "{what}: {report:?}");
            }
            drop(journal);
            nothing_is_deleted(disk, &before, what);
            assert_eq!(repair(disk).unwrap().outcome, Outcome::Whole, "{what}");
        }
        Err(Error::Unrepairable(refusal)) => {
            assert!(!refusal.damage.is_empty(), "{what}");
            assert_eq!(contents_of(disk), before, "{what}: refused, and changed");
        }
        Err(error) => panic!("{what}: {error}"),
    }
}

/// Salvages and checks that the report names everything that is missing.
pub(super) fn salvage_is_named(disk: &FaultyDisk, what: &str) {
    let before = contents_of(disk);
    let name_of = |item: &[u8]| Some(item.len().to_string());
    let report = match repair::repair_on(disk, RepairRule::Salvage, &name_of) {
        Ok(report) => report,
        // Nothing is left that could be salvaged.
        Err(Error::Unrepairable(refusal)) => return assert_eq!(refusal.readable, 0, "{what}"),
        Err(error) => panic!("{what}: {error}"),
    };
    nothing_is_deleted(disk, &before, what);
    let (mut items, mut last, mut in_turn) = (0, report.kept.last - report.kept.records, true);
    let visit = &mut |replayed: Replayed<'_>| -> Result<(), BoxError> {
        match replayed {
            Replayed::Item(bytes) => {
                items += 1;
                let number = u64::from_le_bytes(bytes[..8].try_into()?);
                in_turn &= number == items;
                assert_eq!(bytes, item(number), "{what}");
            }
            Replayed::Record(Position(position), bytes) => {
                last += 1;
                assert_eq!((position, bytes), (last, &payload(last)[..]), "{what}");
            }
        }
        Ok(())
    };
    Journal::open_on(Arc::new(disk.clone()), &Config::default(), None, visit)
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    let is_moment = in_turn && items == last - report.kept.records;
    match report.missing {
        None => assert!(is_moment, "{what}: not named: {report:?}"),
        Some(missing) => {
            assert_eq!(report.outcome, Outcome::Salvaged, "{what}");
            assert!(missing.keys.is_none_or(|keys| keys <= 60), "{what}: {missing:?}");
        }
    }
}

type Files = Vec<(String, Vec<u8>)>;

fn contents_of(disk: &FaultyDisk) -> Files {
    files(disk).into_iter().map(|name| (name.clone(), disk.read(&name))).collect()
}

/// Every file from before is there, under its name or set aside, or it is the beginning of it.
fn nothing_is_deleted(disk: &FaultyDisk, before: &Files, what: &str) {
    let after = contents_of(disk);
    for (name, bytes) in before {
        let is_it = |(other, content): &(String, Vec<u8>)| {
            other.starts_with(name.as_str()) && content == bytes
        };
        assert!(after.iter().any(is_it), "{what}: {name} is gone");
    }
}

fn snapshot_of(disk: &FaultyDisk) -> String {
    files(disk).into_iter().find(|name| name.ends_with(".snapshot")).unwrap()
}

fn flip(disk: &FaultyDisk, name: &str, at: usize) {
    let mut bytes = disk.read(name);
    bytes[at] ^= 0x10;
    disk.write(name, &bytes);
}

/// A journal with a snapshot of six blocks and ten records after it.
fn many_blocks() -> FaultyDisk {
    let disk = FaultyDisk::new(1);
    let (mut journal, _, _) = open(&disk, &with(Fsync::Always)).unwrap();
    append(&mut journal, 1, 150);
    let mut compaction = journal.begin_compaction().unwrap();
    for n in 1..=150 {
        compaction.begin_key();
        compaction.feed(&item(n)).unwrap();
        // A large item has a block of its own, so another block begins after it.
        if n % 50 == 0 {
            compaction.begin_key();
            compaction.feed(&vec![n as u8; snapshot::BLOCK]).unwrap();
        }
    }
    assert!(matches!(compaction.finish().wait(LONG), Progress::Done(_)));
    append(&mut journal, 151, 160);
    journal.close().unwrap();
    disk
}

#[test]
fn flips_and_cuts_in_every_file_leave_a_prefix_or_a_refusal() {
    let disk = sample();
    for name in files(&disk) {
        let whole = disk.read(&name);
        // Many bytes of the headers, and a sample of the rest.
        for at in (0..whole.len()).filter(|at| if *at < 100 { at % 4 == 0 } else { at % 41 == 0 }) {
            let flipped = disk.copy();
            flip(&flipped, &name, at);
            is_a_prefix_or_refused(&flipped.copy(), &format!("{name}: flip at {at}"));
            salvage_is_named(&flipped, &format!("{name}: flip at {at}, salvaged"));
            let cut = disk.copy();
            cut.write(&name, &whole[..at]);
            is_a_prefix_or_refused(&cut.copy(), &format!("{name}: cut at {at}"));
            salvage_is_named(&cut, &format!("{name}: cut at {at}, salvaged"));
        }
        let gone = disk.copy();
        gone.remove(&name).unwrap();
        is_a_prefix_or_refused(&gone.copy(), &format!("{name} is gone"));
        salvage_is_named(&gone, &format!("{name} is gone, salvaged"));
    }
}

#[test]
fn damage_in_a_segment_keeps_the_records_before_it_and_counts_those_behind_it() {
    let disk = sample();
    let logs: Vec<String> =
        files(&disk).into_iter().filter(|name| name.ends_with(".log")).collect();
    // Record 23 is the third of the first segment.
    let third = frame::FILE_HEADER
        + (21..=22).map(|n| frame::FRAME_HEADER + payload(n).len()).sum::<usize>();
    flip(&disk, &logs[0], third + 10);
    let report = repair(&disk).unwrap();
    assert_eq!((report.outcome, report.kept.last), (Outcome::Moment, 22));
    // 24 to 60 can still be read.
    assert_eq!((report.last_seen, report.readable_records), (60, 37));
    let asides = ["manifest", &logs[0], &logs[1]].map(|name| format!("{name}.damaged"));
    assert_eq!(report.set_aside, asides);
    let (mut journal, last, _) = open(&disk, &Config::default()).unwrap();
    assert_eq!(last, 22);
    append(&mut journal, 23, 25);
    journal.close().unwrap();
    assert_eq!(open(&disk, &Config::default()).unwrap().1, 25);
}

#[test]
fn a_damaged_snapshot_is_refused_and_a_salvage_names_what_is_missing() {
    let disk = many_blocks();
    let name = snapshot_of(&disk);
    // The third block holds items 51 to 100; its neighbours stay.
    let third = frame::FILE_HEADER
        + frame::FRAME_HEADER
        + (1..=50).map(|n| 4 + item(n).len()).sum::<usize>()
        + 2 * frame::FRAME_HEADER
        + 4
        + snapshot::BLOCK;
    flip(&disk, &name, third + 100);
    let Err(Error::Unrepairable(refusal)) = repair(&disk) else { panic!("not refused") };
    let text = refusal.to_string();
    for part in [name.as_str(), "Nothing was changed", "backup", "repair --salvage --dir /faulty"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let name_of = |item: &[u8]| {
        let number = u64::from_le_bytes(item.get(..8)?.try_into().ok()?);
        (number < 1000).then(|| format!("key {number}"))
    };
    let report = repair::repair_on(&disk, RepairRule::Salvage, &name_of).unwrap();
    assert_eq!((report.outcome, report.kept.records), (Outcome::Salvaged, 10));
    let missing = report.missing.unwrap();
    assert_eq!(missing.gaps.len(), 1);
    assert_eq!((missing.names.len(), missing.keys), (50, Some(50)));
    assert!(missing.names.contains(&"key 60".to_owned()), "{missing:?}");
    assert_eq!(report.set_aside, ["manifest.damaged".to_owned(), format!("{name}.damaged")]);
}

#[test]
fn a_salvage_counts_keys_and_not_the_items_that_large_keys_have() {
    let disk = FaultyDisk::new(1);
    let (mut journal, _, _) = open(&disk, &with(Fsync::Always)).unwrap();
    append(&mut journal, 1, 10);
    let mut compaction = journal.begin_compaction().unwrap();
    // Ten keys with three items each; every item has a block of its own.
    let part = |key: u8| vec![key; snapshot::BLOCK];
    for key in 1..=10 {
        compaction.begin_key();
        (0..3).for_each(|_| compaction.feed(&part(key)).unwrap());
    }
    let Progress::Done(done) = compaction.finish().wait(LONG) else { panic!("not compacted") };
    assert_eq!(done.keys, 10);
    journal.close().unwrap();
    // The middle item of the second key, and all items of the fifth.
    let name = snapshot_of(&disk);
    let block = frame::FRAME_HEADER + 4 + snapshot::BLOCK;
    for number in [4, 12, 13, 14] {
        flip(&disk, &name, frame::FILE_HEADER + number * block + 1000);
    }
    let name_of = |item: &[u8]| item.first().map(|key| format!("key {key}"));
    let refused = repair::repair_on(&disk, RepairRule::Moment, &name_of);
    let Err(Error::Unrepairable(refusal)) = refused else { panic!("not refused") };
    assert_eq!(refusal.readable, 9);
    let missing = refusal.missing.clone().unwrap();
    assert_eq!(missing.keys, Some(1));
    assert_eq!(missing.names, ["key 2", "key 5"]);
    assert!(refusal.to_string().contains("keep the 9 readable keys"), "{refusal}");
    let report = repair::repair_on(&disk, RepairRule::Salvage, &name_of).unwrap();
    assert_eq!((report.missing, report.kept.items), (Some(missing), 26));
    // The new snapshot counts the keys that it has.
    flip(&disk, &snapshot_of(&disk), frame::FILE_HEADER + 1000);
    let refused = repair::repair_on(&disk, RepairRule::Moment, &name_of);
    let Err(Error::Unrepairable(refusal)) = refused else { panic!("not refused") };
    assert_eq!((refusal.readable, refusal.missing.unwrap().keys), (9, Some(0)));
}

#[test]
fn a_snapshot_with_a_damaged_header_loses_nothing() {
    let disk = sample();
    flip(&disk, &snapshot_of(&disk), 13);
    let report = repair(&disk).unwrap();
    assert_eq!((report.outcome, report.kept.last, report.kept.items), (Outcome::Restored, 60, 20));
    assert_eq!(open(&disk, &Config::default()).unwrap().1, 60);
}

#[test]
fn a_snapshot_copied_over_another_is_not_taken_for_it() {
    let disk = sample();
    let name = snapshot_of(&disk);
    let (mut journal, _, _) = open(&disk, &with(Fsync::Always)).unwrap();
    let old = disk.read(&name);
    let mut compaction = journal.begin_compaction().unwrap();
    feed(&mut compaction).unwrap();
    assert!(matches!(compaction.finish().wait(LONG), Progress::Done(_)));
    journal.close().unwrap();
    disk.write(&snapshot_of(&disk), &old);
    assert!(matches!(repair(&disk), Err(Error::Unrepairable(_))));
}

/// A journal whose process was killed after a compaction, before it removed the old files.
fn with_old_files() -> (FaultyDisk, String) {
    let disk = sample();
    let old = contents_of(&disk);
    let (mut journal, _, _) = open(&disk, &with(Fsync::Always)).unwrap();
    let mut compaction = journal.begin_compaction().unwrap();
    append(&mut journal, 61, 70);
    feed(&mut compaction).unwrap();
    assert!(matches!(compaction.finish().wait(LONG), Progress::Done(_)));
    journal.close().unwrap();
    let new = snapshot_of(&disk);
    disk.sync_dir().unwrap();
    for (name, bytes) in old.iter().filter(|(name, _)| name != "manifest") {
        disk.write(name, bytes);
    }
    (disk, new)
}

#[test]
fn old_files_that_a_crash_has_left_replace_a_damaged_snapshot() {
    let (disk, new) = with_old_files();
    flip(&disk, &new, 300);
    let report = repair(&disk).unwrap();
    assert_eq!((report.outcome, report.kept.last), (Outcome::Restored, 70));
    assert_eq!(open(&disk, &Config::default()).unwrap().1, 70);
}

#[test]
fn an_older_moment_is_told_if_the_old_files_do_not_reach_the_new_log() {
    let (disk, new) = with_old_files();
    flip(&disk, &new, 300);
    let oldest = files(&disk).into_iter().find(|name| name.ends_with(".log")).unwrap();
    let bytes = disk.read(&oldest);
    disk.write(&oldest, &bytes[..200]);
    let report = repair(&disk).unwrap();
    assert_eq!(report.outcome, Outcome::Moment);
    assert!((20..30).contains(&report.kept.last) && report.last_seen == 70, "{report:?}");
    assert_eq!(open(&disk, &Config::default()).unwrap().1, report.kept.last);
}

#[test]
fn a_lost_manifest_is_made_again_and_never_of_nothing() {
    let disk = sample();
    disk.remove("manifest").unwrap();
    let report = repair(&disk.copy()).unwrap();
    assert_eq!((report.outcome, report.kept.last), (Outcome::Restored, 60));
    // With a damaged snapshot too, an empty journal would be a moment, but of no use.
    flip(&disk, &snapshot_of(&disk), 300);
    assert!(matches!(repair(&disk), Err(Error::Unrepairable(_))));
    let report = repair::repair_on(&disk, RepairRule::Salvage, &|_| None).unwrap();
    assert_eq!((report.outcome, report.kept.records), (Outcome::Salvaged, 40));
}

#[test]
fn a_plan_changes_nothing_and_tells_what_the_repair_does() {
    let folder = tempfile::tempdir().unwrap();
    let disk = sample();
    let log = files(&disk).into_iter().rfind(|name| name.ends_with(".log")).unwrap();
    flip(&disk, &log, 200);
    for (name, bytes) in contents_of(&disk) {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let planned = plan_repair(folder.path(), RepairRule::Moment, &|_| None).unwrap();
    assert_eq!(planned.set_aside, std::slice::from_ref(&log));
    assert_eq!(std::fs::read(folder.path().join(&log)).unwrap(), disk.read(&log));
    let repaired = super::super::repair(folder.path(), RepairRule::Moment, &|_| None).unwrap();
    assert_eq!(repaired, Repaired { set_aside: repaired.set_aside.clone(), ..planned });
}

#[test]
fn a_repair_that_is_interrupted_anywhere_can_be_repeated() {
    let damaged: Vec<(FaultyDisk, &str)> = {
        let (old, new) = with_old_files();
        flip(&old, &new, 300);
        let (log, lost, header) = (sample(), sample(), sample());
        let first = files(&log).into_iter().find(|name| name.ends_with(".log")).unwrap();
        flip(&log, &first, 300);
        flip(&lost, "manifest", 3);
        flip(&header, &snapshot_of(&header), 13);
        vec![(old, "older files"), (log, "log"), (lost, "manifest"), (header, "header")]
    };
    for (disk, what) in damaged {
        let expected = repair(&disk.copy()).unwrap().kept.last;
        for at in 1..40 {
            let copy = disk.copy();
            copy.fault_in(at, faulty_disk::Fault::PowerCut);
            let _ = repair(&copy);
            let copy = copy.after_power_cut(at);
            let what = format!("{what}, power cut at {at}");
            repair(&copy).unwrap_or_else(|e| panic!("{what}: {e}"));
            let last = open(&copy, &Config::default()).unwrap_or_else(|e| panic!("{what}: {e}")).1;
            assert_eq!(last, expected, "{what}");
        }
    }
}
