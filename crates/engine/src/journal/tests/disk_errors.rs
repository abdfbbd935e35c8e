//! Full disks, failing writes, failing syncs, slow disks: writes are refused, nothing is lost, and
//! writing resumes.

use super::*;
use faulty_disk::Fault;

fn all_there(disk: &FaultyDisk, expected: u64) {
    for seed in 0..5 {
        let (_journal, last, _) =
            open(&disk.copy().after_power_cut(seed), &with(Fsync::Always)).unwrap();
        assert_eq!(last, expected, "seed {seed}");
    }
}

#[test]
fn any_operation_may_fail_once_or_for_a_while_and_nothing_is_lost() {
    for (times, step) in [(1, 1), (3, 2), (9, 8)] {
        for at in (1..90).step_by(step) {
            let disk = FaultyDisk::new(at);
            let (mut journal, _, _) = open(&disk, &with(Fsync::Always)).unwrap();
            let watch = journal.watch();
            disk.fault_in(at, Fault::Fail(times));
            let mut last = 0;
            for round in 0..6 {
                append(&mut journal, last + 1, last + 7);
                last += 7;
                if let Ok(mut compaction) = journal.begin_compaction() {
                    append(&mut journal, last + 1, last + 2);
                    last += 2;
                    if feed(&mut compaction).is_ok() && round % 2 == 0 {
                        let progress = compaction.finish().wait(LONG);
                        assert!(
                            matches!(progress, Progress::Done(_) | Progress::Failed(_)),
                            "{progress:?}"
                        );
                    }
                }
                watch
                    .wait_durable(Position(last), LONG)
                    .unwrap_or_else(|e| panic!("{times} from {at}: {e}"));
                eventually("ready", || journal.state() == State::Ready);
            }
            all_there(&disk, last);
            journal.close().unwrap();
            all_there(&disk, last);
        }
    }
}

#[test]
fn a_full_disk_refuses_writes_keeps_what_was_taken_and_resumes_by_itself() {
    for fsync in [Fsync::Always, Fsync::EverySec, Fsync::Never] {
        let disk = FaultyDisk::new(1);
        let (mut journal, _, _) = open(&disk, &with(fsync)).unwrap();
        append(&mut journal, 1, 10);
        journal.watch().sync(LONG).unwrap();
        disk.set_capacity(Some(disk.used() + 100));
        append(&mut journal, 11, 40);
        eventually("refusing", || matches!(journal.state(), State::Refusing(_)));
        let State::Refusing(reason) = journal.state() else { panic!() };
        assert!(reason.contains("0000000001.log"), "{reason}");
        assert!(matches!(journal.begin_compaction(), Err(Error::Aborted(_))));
        disk.set_capacity(None);
        eventually("ready", || journal.state() == State::Ready);
        append(&mut journal, 41, 50);
        journal.watch().sync(LONG).unwrap();
        all_there(&disk, 50);
    }
}

#[test]
fn what_was_written_before_the_disk_was_full_is_synced_in_its_time() {
    let disk = FaultyDisk::new(3);
    let (mut journal, _, _) = open(&disk, &with(Fsync::EverySec)).unwrap();
    append(&mut journal, 1, 10);
    eventually("written", || disk.used() > 1000);
    disk.set_capacity(Some(disk.used()));
    append(&mut journal, 11, 11);
    journal.watch().wait_durable(Position(10), LONG).unwrap();
    assert!(matches!(journal.state(), State::Refusing(_)));
    all_there(&disk, 10);
}

#[test]
fn after_a_failed_fsync_the_records_are_written_again_elsewhere() {
    for seed in 0..30 {
        let disk = FaultyDisk::new(seed);
        let (mut journal, _, _) = open(&disk, &with(Fsync::Always)).unwrap();
        let watch = journal.watch();
        append(&mut journal, 1, 5);
        watch.wait_durable(Position(5), LONG).unwrap();
        disk.fail_syncs(true);
        append(&mut journal, 6, 12);
        eventually("refusing", || matches!(journal.state(), State::Refusing(_)));
        assert_eq!(watch.durable(), Position(5));
        // A second sync of the same file would now succeed without writing the records.
        disk.fail_syncs(false);
        watch.wait_durable(Position(12), LONG).unwrap();
        append(&mut journal, 13, 20);
        watch.wait_durable(Position(20), LONG).unwrap();
        all_there(&disk, 20);
    }
}

#[test]
fn a_failed_fsync_without_copies_stops_the_journal_and_says_so() {
    let disk = FaultyDisk::new(1);
    let (mut journal, _, _) = open(&disk, &with(Fsync::Never)).unwrap();
    append(&mut journal, 1, 5);
    eventually("written", || journal.watch().status().memory == 0);
    disk.fail_syncs(true);
    let error = journal.watch().sync(LONG).unwrap_err();
    assert!(matches!(&error, Error::Stopped(reason) if reason.contains("policy never")), "{error}");
    assert!(matches!(journal.append(b"x"), Err(Error::Stopped(_))));
    assert!(journal.close().is_err());
}

#[test]
fn a_compaction_that_finds_no_room_is_given_up_without_harm() {
    let disk = FaultyDisk::new(1);
    let (mut journal, _, _) = open(&disk, &with(Fsync::EverySec)).unwrap();
    append(&mut journal, 1, 300);
    journal.watch().sync(LONG).unwrap();
    let used = disk.used();
    let mut compaction = journal.begin_compaction().unwrap();
    disk.set_capacity(Some(used + 2000));
    let _ = feed(&mut compaction);
    let progress = compaction.finish().wait(LONG);
    assert!(
        matches!(&progress, Progress::Failed(reason) if reason.contains("snapshot")),
        "{progress:?}"
    );
    disk.set_capacity(None);
    eventually("ready", || journal.state() == State::Ready);
    append(&mut journal, 301, 310);
    journal.watch().sync(LONG).unwrap();
    assert!(
        disk.list().unwrap().iter().all(|name| !name.ends_with("snapshot")),
        "{:?}",
        disk.list()
    );
    all_there(&disk, 310);
    let mut again = journal.begin_compaction().unwrap();
    feed(&mut again).unwrap();
    assert!(matches!(again.finish().wait(LONG), Progress::Done(_)));
    all_there(&disk, 310);
}

#[test]
fn everysec_syncs_within_a_second_also_when_nothing_follows() {
    let disk = FaultyDisk::new(1);
    let (mut journal, _, _) = open(&disk, &Config::default()).unwrap();
    for n in 1..=2 {
        append(&mut journal, n, n);
        let since = std::time::Instant::now();
        journal.watch().wait_durable(Position(n), LONG).unwrap();
        assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
    }
}

#[test]
fn many_records_share_one_sync_under_always() {
    let disk = FaultyDisk::new(1);
    let (mut journal, _, _) = open(&disk, &with(Fsync::Always)).unwrap();
    disk.close_gate(true);
    append(&mut journal, 1, 1000);
    assert_eq!(journal.durable(), Position(0));
    disk.close_gate(false);
    journal.watch().wait_durable(Position(1000), LONG).unwrap();
    let syncs = journal.watch().status().syncs;
    assert!(syncs <= 4, "{syncs} syncs");
}

#[test]
fn a_slow_disk_makes_it_busy_then_refusing_and_ready_again() {
    let disk = FaultyDisk::new(1);
    let stall_limit = Duration::from_millis(300);
    let config = Config { fsync: Fsync::EverySec, memory_limit: 100_000, stall_limit };
    let (mut journal, _, _) = open(&disk, &config).unwrap();
    append(&mut journal, 1, 1);
    journal.watch().sync(LONG).unwrap();
    // A long time without work is not a stall.
    let since = std::time::Instant::now();
    eventually("time passes", || since.elapsed() > 2 * stall_limit);
    disk.close_gate(true);
    let mut n = 1;
    while journal.state() == State::Ready {
        n += 1;
        append(&mut journal, n, n);
    }
    assert_eq!(journal.state(), State::Busy);
    let memory = journal.watch().status().memory;
    assert!((100_000..104_000).contains(&memory), "{memory}");
    eventually("refusing", || matches!(journal.state(), State::Refusing(_)));
    disk.close_gate(false);
    eventually("ready", || journal.state() == State::Ready);
    journal.watch().sync(LONG).unwrap();
    all_there(&disk, n);
}

#[test]
fn a_write_that_hangs_refuses_others_after_a_while_and_is_waited_for_by_one_thread_only() {
    for fsync in [Fsync::EverySec, Fsync::Never] {
        let disk = FaultyDisk::new(1);
        let stall_limit = Duration::from_secs(1);
        let config = Config { fsync, stall_limit, ..Config::default() };
        let (mut journal, _, _) = open(&disk, &config).unwrap();
        let watch = journal.watch();
        disk.close_gate(true);
        append(&mut journal, 1, 1);
        std::thread::scope(|scope| {
            let hangs = scope.spawn(|| watch.write_out());
            eventually("it waits", || watch.disk_busy_for().is_some());
            assert_eq!(journal.state(), State::Ready, "{fsync:?}");
            append(&mut journal, 2, 3);
            watch.write_out();
            watch.leave_to_writer();
            assert_eq!((watch.written(), hangs.is_finished()), (Position(0), false));
            eventually("refusing", || matches!(journal.state(), State::Refusing(_)));
            let State::Refusing(reason) = journal.state() else { panic!("ready again") };
            assert!(reason.contains("the disk has not answered for "), "{reason}");
            disk.close_gate(false);
        });
        eventually("ready", || journal.state() == State::Ready);
        eventually("written", || watch.written() == Position(3));
        journal.close().unwrap();
        assert_eq!(open(&disk, &config).unwrap().1, 3, "{fsync:?}");
    }
}

#[test]
fn under_always_a_sync_that_hangs_refuses_writes_after_a_while() {
    let disk = FaultyDisk::new(1);
    let stall_limit = Duration::from_millis(300);
    let config = Config { fsync: Fsync::Always, stall_limit, ..Config::default() };
    let (mut journal, _, _) = open(&disk, &config).unwrap();
    disk.hold_syncs(true);
    append(&mut journal, 1, 1);
    eventually("refusing", || matches!(journal.state(), State::Refusing(_)));
    disk.hold_syncs(false);
    eventually("ready", || journal.state() == State::Ready);
    journal.watch().wait_durable(Position(1), LONG).unwrap();
}

#[test]
fn the_observer_hears_of_durability_states_and_compactions() {
    let disk = FaultyDisk::new(1);
    let events = Arc::new(std::sync::Mutex::new(Vec::new()));
    let ours = events.clone();
    let observer: Observer = Arc::new(move |event| ours.lock().unwrap().push(event));
    let open =
        Journal::open_on(Arc::new(disk.clone()), &with(Fsync::Always), Some(observer), &mut |_| {
            Ok(())
        });
    let (mut journal, _) = open.unwrap();
    append(&mut journal, 1, 3);
    journal.watch().wait_durable(Position(3), LONG).unwrap();
    let mut compaction = journal.begin_compaction().unwrap();
    feed(&mut compaction).unwrap();
    compaction.finish().wait(LONG);
    journal.close().unwrap();
    let events = events.lock().unwrap();
    assert!(events.contains(&Event::Durable(Position(3))), "{events:?}");
    assert!(events.iter().any(|e| matches!(e, Event::Compaction(Progress::Done(_)))), "{events:?}");
    assert!(
        events.iter().any(|e| matches!(e, Event::State(State::Failed(r)) if r.contains("closed"))),
        "{events:?}"
    );
}

#[test]
fn compaction_is_worth_it_when_the_log_has_outgrown_the_snapshot() {
    const M: u64 = 1 << 20;
    for (log, snapshot, expected) in [
        (0, 0, false),
        (255 * M, 0, false),
        (256 * M, 0, true),
        (300 * M, 301 * M, false),
        (301 * M, 301 * M, true),
    ] {
        assert_eq!(should_compact(log, snapshot), expected, "{log} {snapshot}");
    }
}

#[test]
fn the_policy_can_be_changed_while_running() {
    let disk = FaultyDisk::new(1);
    let (mut journal, _, _) = open(&disk, &with(Fsync::Never)).unwrap();
    append(&mut journal, 1, 5);
    journal.set_fsync(Fsync::Always);
    journal.watch().wait_durable(Position(5), LONG).unwrap();
    append(&mut journal, 6, 6);
    journal.watch().wait_durable(Position(6), LONG).unwrap();
    all_there(&disk, 6);
}
