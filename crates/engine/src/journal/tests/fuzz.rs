//! Random bytes and random changes to valid files: no panic, no wrong record, no huge buffer.

use super::*;

fn rounds() -> u64 {
    std::env::var("STAMPEDE_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1000)
}

/// Reads a journal in every way; the model asserts that every record shown was appended.
fn read_all_ways(disk: &FaultyDisk, what: &str) {
    let checked = recover::check_on(disk);
    let opened = open(&disk.copy(), &Config::default());
    if let Ok((journal, last, _)) = opened {
        assert!(last <= 60, "{what}: {last}");
        assert!(checked.is_ok_and(|contents| contents.damage.is_none()), "{what}");
        drop(journal);
    }
    repairs::is_a_prefix_or_refused(&disk.copy(), what);
    repairs::salvage_is_named(disk, what);
}

fn mutate(rng: &mut fastrand::Rng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.usize(1..5) {
        let at = rng.usize(..=bytes.len());
        let end = (at + rng.usize(..100)).min(bytes.len());
        match rng.u8(..6) {
            0 => bytes[at..end].iter_mut().for_each(|byte| *byte = rng.u8(..)),
            1 => drop(bytes.drain(at..end)),
            2 => drop(
                bytes.splice(at..at, (0..rng.usize(..50)).map(|_| rng.u8(..)).collect::<Vec<_>>()),
            ),
            3 => bytes.truncate(at),
            4 => {
                let piece = bytes[at..end].to_vec();
                let to = rng.usize(..=bytes.len());
                drop(bytes.splice(to..to, piece));
            }
            // An extreme number.
            _ => {
                let value =
                    [u32::MAX, 1 << 31, (1 << 31) - 1, 1 << 30, 0][rng.usize(..5)].to_le_bytes();
                (at..end.min(at + 4)).zip(value).for_each(|(at, byte)| bytes[at] = byte);
            }
        }
    }
}

#[test]
fn random_changes_to_good_files_never_panic_and_never_show_a_wrong_record() {
    let good = sample();
    let names = good.list().unwrap();
    for seed in 0..rounds() {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = good.copy();
        for _ in 0..rng.usize(1..3) {
            let name = &names[rng.usize(..names.len())];
            let mut bytes = disk.read(name);
            mutate(&mut rng, &mut bytes);
            disk.write(name, &bytes);
        }
        read_all_ways(&disk, &format!("seed {seed}"));
    }
}

#[test]
fn random_bytes_in_any_file_never_panic() {
    let good = sample();
    let names = good.list().unwrap();
    for seed in 0..rounds() / 3 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let disk = good.copy();
        let name = &names[rng.usize(..names.len())];
        // Half of the time after a valid header.
        let keep = if rng.bool() { 40.min(disk.read(name).len()) } else { 0 };
        let mut bytes = disk.read(name)[..keep].to_vec();
        bytes.extend((0..rng.usize(..5000)).map(|_| rng.u8(..)));
        disk.write(name, &bytes);
        read_all_ways(&disk, &format!("seed {seed}"));
    }
}

#[test]
fn a_file_made_of_overlapping_frames_is_searched_in_linear_time() {
    let disk = FaultyDisk::new(1);
    open(&disk, &Config::default()).unwrap();
    let mut bytes = disk.read("0000000001.log");
    // Every 24 bytes a plausible header whose length reaches to the end.
    let size = 4 << 20;
    let frames = size / frame::FRAME_HEADER;
    for n in 0..frames {
        let rest = (frames - n - 1) * frame::FRAME_HEADER;
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend((rest as u32).to_le_bytes());
        bytes.extend((n as u64 + 1).to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
    }
    disk.write("0000000001.log", &bytes);
    let since = std::time::Instant::now();
    assert!(matches!(open(&disk, &Config::default()), Err(Error::Damaged(_))));
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
}

#[test]
fn a_value_that_holds_another_journal_is_not_taken_for_its_records() {
    let other = sample();
    let value =
        other.read(other.list().unwrap().iter().rfind(|name| name.ends_with(".log")).unwrap());
    let disk = FaultyDisk::new(1);
    let (mut journal, _) =
        Journal::open_on(Arc::new(disk.clone()), &with(Fsync::Never), None, &mut |_| Ok(()))
            .unwrap();
    journal.append(&value).unwrap();
    eventually("written", || journal.watch().status().memory == 0);
    let disk = disk.after_kill();
    drop(journal);
    let mut bytes = disk.read("0000000001.log");
    bytes.pop();
    disk.write("0000000001.log", &bytes);
    let contents = recover::check_on(&disk).unwrap();
    assert_eq!(contents.damage, None);
    assert_eq!(contents.torn.unwrap().records, 0);
}
