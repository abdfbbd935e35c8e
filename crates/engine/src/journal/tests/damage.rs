//! Flipped bits, truncated and missing files are found and reported, never skipped.

use super::*;

pub(super) fn files(disk: &FaultyDisk) -> Vec<String> {
    let mut names = disk.list().unwrap();
    names.sort();
    names
}

#[test]
fn a_journal_reads_back_whole_after_a_clean_close() {
    let disk = sample();
    let contents = recover::check_on(&disk).unwrap();
    assert_eq!((contents.items, contents.records, contents.last), (20, 40, 60));
    assert_eq!((contents.torn, contents.damage), (None, None));
    let (_journal, last, opened) = open(&disk, &Config::default()).unwrap();
    assert_eq!(last, 60);
    assert_eq!((opened.removed.len(), opened.set_aside.len()), (0, 0));
}

#[test]
fn a_flipped_bit_anywhere_in_a_closed_journal_stops_the_open_or_costs_nothing() {
    let disk = sample();
    let mut found = 0;
    for name in files(&disk) {
        let whole = disk.read(&name);
        // Every byte of the frame and file headers, and a sample of the payloads.
        for bit in (0..whole.len() * 8).filter(|bit| bit / 8 < 200 || bit % 37 == 0) {
            let copy = disk.copy();
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            copy.write(&name, &bytes);
            match open(&copy, &Config::default()) {
                Ok((_, last, _)) => assert_eq!(last, 60, "{name} bit {bit}"),
                Err(Error::Damaged(damage)) => {
                    found += 1;
                    assert_eq!(damage.file, name);
                    assert!(damage.offset <= (bit / 8) as u64, "{damage}");
                    let text = damage.to_string();
                    assert!(
                        text.contains("stampede engine repair --dir /faulty")
                            && text.contains("at byte"),
                        "{text}"
                    );
                }
                Err(error) => panic!("{name} bit {bit}: {error}"),
            }
        }
    }
    assert!(found > 5_000, "{found}");
}

#[test]
fn a_flipped_bit_in_the_middle_of_a_running_journal_is_found_after_a_kill() {
    let disk = FaultyDisk::new(5);
    let (mut journal, _, _) = open(&disk, &with(Fsync::Always)).unwrap();
    for n in 1..=20 {
        append(&mut journal, n, n);
        journal.watch().wait_durable(Position(n), LONG).unwrap();
    }
    let killed = disk.after_kill();
    drop(journal);
    let name = "0000000001.log";
    let mut bytes = killed.read(name);
    bytes[200] ^= 4;
    killed.write(name, &bytes);
    let error = open(&killed, &Config::default()).unwrap_err();
    assert!(error.to_string().contains("safely on disk"), "{error}");
}

#[test]
fn a_tail_cut_anywhere_leaves_a_prefix_or_is_reported() {
    let disk = FaultyDisk::new(1);
    let (mut journal, _, _) = open(&disk, &with(Fsync::Never)).unwrap();
    append(&mut journal, 1, 25);
    eventually("written", || journal.watch().status().memory == 0);
    let disk = disk.after_kill();
    drop(journal);
    let whole = disk.read("0000000001.log");
    let mut torn = 0;
    for length in (frame::FILE_HEADER..whole.len()).step_by(5).chain([whole.len()]) {
        let copy = disk.copy();
        copy.write("0000000001.log", &whole[..length]);
        let (_journal, last, opened) = open(&copy, &Config::default()).unwrap();
        assert!(last <= 25 && (last == 25) == (length == whole.len()));
        if let Some(cut) = opened.contents.torn {
            torn += 1;
            assert_eq!(cut.offset + cut.bytes, length as u64);
            assert_eq!(copy.read("0000000001.log").len() as u64, cut.offset);
        }
    }
    assert!(torn > 100);
}

#[test]
fn a_hole_before_unsynced_records_is_a_torn_tail_and_is_counted() {
    let disk = FaultyDisk::new(1);
    let (mut journal, _, _) = open(&disk, &with(Fsync::Never)).unwrap();
    append(&mut journal, 1, 20);
    eventually("written", || journal.watch().status().memory == 0);
    let disk = disk.after_kill();
    drop(journal);
    let mut bytes = disk.read("0000000001.log");
    let hole: usize = frame::FILE_HEADER
        + (1..=10).map(|n| frame::FRAME_HEADER + payload(n).len()).sum::<usize>();
    bytes[hole..hole + 8].fill(0);
    disk.write("0000000001.log", &bytes);
    let (_journal, last, opened) = open(&disk, &Config::default()).unwrap();
    assert_eq!(last, 10);
    assert_eq!(opened.contents.torn.unwrap().records, 9);
}

#[test]
fn a_missing_or_exchanged_file_is_damage() {
    let disk = sample();
    for name in files(&disk) {
        let copy = disk.copy();
        copy.remove(&name).unwrap();
        let error = open(&copy, &Config::default()).unwrap_err();
        assert!(
            matches!(&error, Error::Damaged(d) if d.what.contains("missing")),
            "{name}: {error}"
        );
        assert!(recover::check_on(&copy).unwrap().damage.is_some());
    }
    let logs: Vec<String> =
        files(&disk).into_iter().filter(|name| name.ends_with(".log")).collect();
    let (a, b) = (disk.read(&logs[0]), disk.read(&logs[1]));
    disk.write(&logs[0], &b);
    disk.write(&logs[1], &a);
    assert!(matches!(open(&disk, &Config::default()), Err(Error::Damaged(_))));
}

#[test]
fn a_record_missing_between_good_ones_is_a_gap_and_not_skipped() {
    let disk = FaultyDisk::new(1);
    open(&disk, &Config::default()).unwrap();
    let mut bytes = disk.read("0000000001.log");
    let header =
        frame::FileHeader::decode(frame::Kind::Log, bytes[..40].try_into().unwrap()).unwrap();
    let mut frames = Vec::new();
    for n in [1, 2, 4, 5] {
        frame::push_record(&mut frames, n, &payload(n));
    }
    frame::seal(&mut frames, header.salt, 0);
    bytes.extend(frames);
    disk.write("0000000001.log", &bytes);
    let error = open(&disk, &Config::default()).unwrap_err();
    assert!(error.to_string().contains("record 3 should be here, not 4"), "{error}");
}

#[test]
fn a_newer_format_is_refused_and_not_called_damage() {
    let disk = sample();
    let text = String::from_utf8(disk.read("manifest"))
        .unwrap()
        .replace("stampede-journal 2", "stampede-journal 3");
    let body = &text[..text.rfind("crc32c ").unwrap()];
    disk.write(
        "manifest",
        format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes())).as_bytes(),
    );
    assert!(matches!(
        open(&disk, &Config::default()),
        Err(Error::TooNew { found: 3, known: 2, .. })
    ));
}

#[test]
fn leftovers_of_a_crash_are_removed_and_unknown_records_set_aside() {
    let disk = sample();
    let log = files(&disk).into_iter().find(|name| name.ends_with(".log")).unwrap();
    disk.write("0000000090.log", &disk.read(&log));
    disk.write("0000000091.log", &disk.read(&log)[..40]);
    disk.write("0000000092.snapshot", b"half");
    disk.write("manifest.tmp", b"half");
    disk.write("notes.txt", b"a person's");
    let (_journal, last, opened) = open(&disk, &Config::default()).unwrap();
    assert_eq!(last, 60);
    assert_eq!(opened.removed, ["0000000091.log", "0000000092.snapshot", "manifest.tmp"]);
    assert_eq!(opened.set_aside, ["0000000090.log.aside"]);
    assert!(files(&disk).contains(&"notes.txt".to_owned()));
}
