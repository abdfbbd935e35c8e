//! Measurements. Ignored: `cargo nextest run --release --run-ignored only --no-capture
//! journal::tests::speed`.

use std::time::Instant;

use super::*;
use crate::journal::compaction::CompactionWatch;

const RECORDS: u64 = 1_000_000;

fn figure(what: &str, count: u64, since: Instant) {
    let seconds = since.elapsed().as_secs_f64();
    println!("{what}: {count} in {seconds:.3} s, {:.0} per second", count as f64 / seconds);
}

#[test]
#[ignore = "measures"]
fn a_million_records_are_read_back_in_a_second_or_two() {
    let dir = tempfile::tempdir().unwrap();
    let record = [7; 200];
    let (mut journal, _) =
        Journal::open(dir.path(), &Config::default(), None, &mut |_| Ok(())).unwrap();
    let since = Instant::now();
    let mut slowest = Duration::ZERO;
    for _ in 0..RECORDS {
        while journal.state() != State::Ready {
            std::thread::yield_now();
        }
        let one = Instant::now();
        journal.append(&record).unwrap();
        slowest = slowest.max(one.elapsed());
    }
    figure("append, everysec", RECORDS, since);
    println!("slowest append {slowest:?}");
    journal.close().unwrap();
    figure("append and close", RECORDS, since);
    let since = Instant::now();
    let mut bytes = 0;
    let (journal, opened) = Journal::open(dir.path(), &Config::default(), None, &mut |r| {
        if let Replayed::Record(_, record) = r {
            bytes += record.len();
        }
        Ok(())
    })
    .unwrap();
    figure("open", opened.contents.records, since);
    assert_eq!(bytes as u64, RECORDS * 200);
    assert!(since.elapsed() < Duration::from_secs(2));
    journal.close().unwrap();
    let since = Instant::now();
    check(dir.path()).unwrap();
    figure("check", RECORDS, since);
}

#[test]
#[ignore = "measures"]
fn group_commit_makes_always_bearable() {
    let record = [7; 200];
    for in_flight in [1, 16, 256] {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, _) =
            Journal::open(dir.path(), &with(Fsync::Always), None, &mut |_| Ok(())).unwrap();
        let watch = journal.watch();
        let since = Instant::now();
        let mut count = 0;
        while since.elapsed() < Duration::from_secs(2) {
            let mut position = Position::default();
            for _ in 0..in_flight {
                position = journal.append(&record).unwrap();
            }
            count += in_flight;
            watch.wait_durable(position, LONG).unwrap();
        }
        figure(&format!("always, {in_flight} in flight"), count, since);
        println!("{} syncs", watch.status().syncs);
    }
}

#[test]
#[ignore = "measures"]
fn compaction_goes_on_beside_appends_without_a_pause() {
    let dir = tempfile::tempdir().unwrap();
    let record = [7; 200];
    let (mut journal, _) =
        Journal::open(dir.path(), &Config::default(), None, &mut |_| Ok(())).unwrap();
    for _ in 0..100_000 {
        journal.append(&record).unwrap();
    }
    let since = Instant::now();
    let mut slowest = Duration::ZERO;
    let mut compaction = Some(journal.begin_compaction().unwrap());
    let mut watch = None;
    let (mut fed, mut appended, mut full) = (0, 0, 0);
    while watch
        .as_ref()
        .is_none_or(|w: &CompactionWatch| w.wait(Duration::ZERO) == Progress::Finishing)
    {
        let slice = Instant::now();
        for _ in 0..20 {
            journal.append(&record).unwrap();
        }
        appended += 20;
        if let Some(running) = &mut compaction {
            if running.has_room() {
                for _ in 0..200 {
                    running.feed(&record).unwrap();
                }
                fed += 200;
            } else {
                full += 1;
                std::thread::yield_now();
            }
        }
        if fed >= RECORDS {
            watch = watch.or_else(|| compaction.take().map(Compaction::finish));
        }
        slowest = slowest.max(slice.elapsed());
        if journal.state() == State::Busy {
            journal.watch().sync(LONG).unwrap();
        }
    }
    figure("snapshot items", fed, since);
    println!(
        "{appended} appended meanwhile, slowest slice {slowest:?}, {full} slices without room"
    );
    println!("{:?}", watch.map(|w| w.wait(Duration::ZERO)));
    journal.close().unwrap();
}
