//! Records that are reported written are in the kernel: the next process finds them after `kill -9`, whatever
//! failed before.

use std::sync::Mutex;

use super::*;
use faulty_disk::Fault;

/// What the next process finds if this one is killed now.
fn found_after_kill(disk: &FaultyDisk) -> u64 {
    let next = disk.copy().after_kill();
    next.set_capacity(None);
    let (_journal, last, _) = open(&next, &with(Fsync::Always)).unwrap();
    last
}

/// A journal that keeps the events it reports.
fn observed(disk: &FaultyDisk, fsync: Fsync) -> (Journal, Arc<Mutex<Vec<Event>>>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let ours = events.clone();
    let observer: Observer = Arc::new(move |event| ours.lock().unwrap().push(event));
    let opened =
        Journal::open_on(Arc::new(disk.clone()), &with(fsync), Some(observer), &mut |_| Ok(()));
    (opened.unwrap().0, events)
}

#[test]
fn records_are_written_before_write_out_returns() {
    for fsync in [Fsync::EverySec, Fsync::Never] {
        let disk = FaultyDisk::new(1);
        let (mut journal, events) = observed(&disk, fsync);
        let watch = journal.watch();
        for n in 1..=50 {
            append(&mut journal, n, n);
            watch.write_out();
            assert_eq!(watch.written(), Position(n), "{fsync:?}");
            assert_eq!(found_after_kill(&disk), n, "{fsync:?}");
        }
        assert!(events.lock().unwrap().contains(&Event::Written(Position(50))));
        journal.close().unwrap();
    }
}

#[test]
fn records_that_no_reply_depends_on_are_written_without_being_asked() {
    for fsync in [Fsync::EverySec, Fsync::Never] {
        let disk = FaultyDisk::new(1);
        let (mut journal, _, _) = open(&disk, &with(fsync)).unwrap();
        append(&mut journal, 1, 3);
        eventually("written", || journal.watch().written() == Position(3));
        assert_eq!(found_after_kill(&disk), 3);
    }
}

#[test]
fn whatever_fails_nothing_reported_written_is_lost_by_a_kill() {
    for fsync in [Fsync::EverySec, Fsync::Never] {
        for at in 1..70 {
            let disk = FaultyDisk::new(at);
            let (mut journal, _, _) = open(&disk, &with(fsync)).unwrap();
            let watch = journal.watch();
            disk.fault_in(at, Fault::Fail(1 + at % 4));
            let mut last = 0;
            for round in 0..8 {
                append(&mut journal, last + 1, last + 3);
                last += 3;
                watch.write_out();
                let written = watch.written().0;
                let found = found_after_kill(&disk);
                assert!(found >= written, "{fsync:?}, {at}: {written} written, {found} found");
                if round % 3 == 1
                    && let Ok(mut compaction) = journal.begin_compaction()
                    && feed(&mut compaction).is_ok()
                {
                    compaction.finish().wait(LONG);
                }
                eventually("written", || {
                    watch.written() == Position(last) || matches!(watch.state(), State::Failed(_))
                });
                if let State::Failed(reason) = watch.state() {
                    // A sync failed, and there are no copies.
                    assert!(reason.contains("policy never"), "{at}: {reason}");
                    break;
                }
            }
            assert!(found_after_kill(&disk) >= watch.written().0, "{fsync:?}, {at}");
        }
    }
}

#[test]
fn a_write_that_fails_is_not_reported_refuses_further_writes_and_is_retried() {
    for fsync in [Fsync::EverySec, Fsync::Never] {
        let disk = FaultyDisk::new(1);
        let (mut journal, events) = observed(&disk, fsync);
        let watch = journal.watch();
        append(&mut journal, 1, 5);
        watch.write_out();
        // Some of the bytes fit: half a record is not a record.
        disk.set_capacity(Some(disk.used() + 100));
        append(&mut journal, 6, 8);
        watch.write_out();
        assert_eq!(watch.written(), Position(5), "{fsync:?}");
        let State::Refusing(reason) = watch.state() else { panic!("{:?}", watch.state()) };
        assert!(reason.contains("cannot write to /faulty/0000000001.log"), "{reason}");
        // Later records stay behind it.
        append(&mut journal, 9, 9);
        watch.write_out();
        assert_eq!(watch.written(), Position(5));
        assert_eq!(found_after_kill(&disk), 5);
        disk.set_capacity(None);
        eventually("written", || watch.written() == Position(9));
        eventually("ready", || watch.state() == State::Ready);
        assert!(events.lock().unwrap().contains(&Event::Written(Position(9))));
        assert_eq!(found_after_kill(&disk), 9);
        append(&mut journal, 10, 10);
        watch.write_out();
        assert_eq!(watch.written(), Position(10));
    }
}

/// A journal that writes records 6 to 9 while the sync of records 1 to 5 hangs.
fn written_during_a_sync(disk: &FaultyDisk) -> Journal {
    let (mut journal, _, _) = open(disk, &with(Fsync::EverySec)).unwrap();
    let watch = journal.watch();
    disk.hold_syncs(true);
    append(&mut journal, 1, 5);
    watch.write_out();
    eventually("the sync has begun", || disk.is_syncing());
    append(&mut journal, 6, 9);
    watch.write_out();
    assert_eq!((watch.written(), watch.durable()), (Position(9), Position(0)));
    journal
}

fn found_after_power_cut(disk: &FaultyDisk, seed: u64) -> u64 {
    let (_journal, last, _) =
        open(&disk.copy().after_power_cut(seed), &with(Fsync::Always)).unwrap();
    last
}

#[test]
fn records_are_written_while_the_disk_syncs_and_belong_to_the_next_sync() {
    let disk = FaultyDisk::new(1);
    let journal = written_during_a_sync(&disk);
    disk.hold_syncs(false);
    let watch = journal.watch();
    eventually("synced", || watch.durable() >= Position(5));
    eventually("synced again", || watch.durable() == Position(9));
    for seed in 0..5 {
        assert_eq!(found_after_power_cut(&disk, seed), 9, "{seed}");
    }
    assert_eq!(watch.status().memory, 0, "copies that are no longer needed");
}

#[test]
fn records_written_while_a_sync_fails_are_rewritten_with_those_before() {
    for seed in 0..20 {
        let disk = FaultyDisk::new(seed);
        let mut journal = written_during_a_sync(&disk);
        let watch = journal.watch();
        disk.fail_syncs(true);
        disk.hold_syncs(false);
        eventually("refusing", || matches!(watch.state(), State::Refusing(_)));
        // The file is not trusted any more: nothing is added to it.
        append(&mut journal, 10, 10);
        watch.write_out();
        assert_eq!((watch.written(), watch.durable()), (Position(9), Position(0)), "{seed}");
        disk.fail_syncs(false);
        eventually("written", || watch.written() == Position(10));
        watch.sync(LONG).unwrap();
        assert_eq!(found_after_power_cut(&disk, seed), 10, "{seed}");
    }
}

#[test]
fn the_order_of_records_holds_while_several_threads_write_out() {
    let disk = FaultyDisk::new(1);
    let (mut journal, _, _) = open(&disk, &with(Fsync::EverySec)).unwrap();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let (watch, over) = (journal.watch(), &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    watch.write_out();
                }
            });
        }
        let mut last = 0;
        for _ in 0..20 {
            append(&mut journal, last + 1, last + 20);
            last += 20;
            if let Ok(mut compaction) = journal.begin_compaction() {
                append(&mut journal, last + 1, last + 5);
                last += 5;
                feed(&mut compaction).unwrap();
                compaction.finish().wait(LONG);
            }
        }
        eventually("written", || journal.watch().written() == Position(last));
        over.store(true, Ordering::Relaxed);
    });
    let written = journal.watch().written().0;
    assert_eq!(found_after_kill(&disk), written);
    journal.close().unwrap();
}

#[test]
fn the_policy_can_be_changed_while_records_wait() {
    let disk = FaultyDisk::new(1);
    let (mut journal, _, _) = open(&disk, &with(Fsync::Never)).unwrap();
    let watch = journal.watch();
    for (fsync, from) in [(Fsync::Always, 1), (Fsync::EverySec, 11), (Fsync::Never, 21)] {
        append(&mut journal, from, from + 4);
        journal.set_fsync(fsync);
        append(&mut journal, from + 5, from + 9);
        watch.write_out();
        eventually("written", || watch.written() == Position(from + 9));
        assert_eq!(found_after_kill(&disk), from + 9);
    }
    journal.close().unwrap();
}
