//! A power cut at every single operation leaves a prefix that contains every durable record.

use super::*;
use faulty_disk::Fault;

/// The result of a run.
#[derive(Debug)]
struct Run {
    appended: u64,
    durable: u64,
}

/// Appends, syncs and compacts; ends early at a power cut.
fn run(disk: &FaultyDisk, config: &Config, seed: u64, steps: u64) -> Result<Run, Error> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut journal, mut last, _) = match open(disk, config) {
        Ok(opened) => opened,
        Err(_) if disk.is_dead() => return Ok(Run { appended: 0, durable: 0 }),
        Err(error) => return Err(error),
    };
    let watch = journal.watch();
    let mut compaction: Option<(Compaction, u64)> = None;
    for _ in 0..steps {
        if disk.is_dead() {
            break;
        }
        match rng.u8(..10) {
            0..5 => {
                for n in last + 1..=last + rng.u64(1..6) {
                    match journal.append(&payload(n)) {
                        Ok(position) => assert_eq!(position, Position(n)),
                        // Under policy never, a sync that the power cut interrupted is fatal.
                        Err(error) => assert!(disk.is_dead(), "{error}"),
                    }
                    last = n;
                }
            }
            5..7 => eventually("synced", || {
                disk.is_dead() || watch.sync(Duration::from_millis(20)).is_ok()
            }),
            _ => match compaction.take() {
                None => compaction = journal.begin_compaction().ok().map(|begun| (begun, 0)),
                // A few items at a time, so that appends come between them.
                Some((mut running, fed)) => {
                    let upto = (fed + 15).min(running.position().0);
                    let taken = (fed + 1..=upto).try_for_each(|n| running.feed(&item(n)).map(drop));
                    if taken.is_ok() && upto < running.position().0 {
                        compaction = Some((running, upto));
                    } else if taken.is_ok() {
                        let watch = running.finish();
                        eventually("compacted", || {
                            disk.is_dead()
                                || watch.wait(Duration::from_millis(20)) != Progress::Finishing
                        });
                    }
                }
            },
        }
    }
    let durable = journal.durable().0;
    // On a dead disk this cannot succeed; on a working one it must.
    let closed = journal.close();
    assert!(disk.is_dead() || closed.is_ok(), "{closed:?}");
    Ok(Run { appended: last, durable: if closed.is_ok() { last } else { durable } })
}

fn found(disk: &FaultyDisk, run: &Run, what: &str) -> u64 {
    let (journal, last, _) =
        open(disk, &with(Fsync::Always)).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(last >= run.durable, "{what}: {} durable, {last} found", run.durable);
    assert!(last <= run.appended, "{what}: {} appended, {last} found", run.appended);
    drop(journal);
    last
}

fn rounds() -> u64 {
    std::env::var("STAMPEDE_CRASH_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(2)
}

fn every_crash_point(fsync: Fsync) {
    for seed in 0..rounds() {
        let config = with(fsync);
        let whole = FaultyDisk::new(seed);
        let run_whole = run(&whole, &config, seed, 40).unwrap();
        assert_eq!(run_whole.durable, run_whole.appended);
        assert!(run_whole.appended > 20);
        for at in 1..=whole.ops() {
            let what = format!("{fsync:?}, seed {seed}, power cut at operation {at}");
            let disk = FaultyDisk::new(seed);
            disk.fault_in(at, Fault::PowerCut);
            let first = run(&disk, &config, seed, 40).unwrap_or_else(|e| panic!("{what}: {e}"));
            for outcome in 0..3 {
                let what = format!("{what}, outcome {outcome}");
                let next = disk.after_power_cut(seed * 1000 + outcome);
                let last = found(&next.copy(), &first, &what);
                // A process that is cut while it recovers leaves the same records.
                next.fault_in(1 + at % 40, Fault::PowerCut);
                let second = run(&next, &config, seed + 1, 15)
                    .unwrap_or_else(|e| panic!("{what}, second: {e}"));
                let (appended, durable) = (second.appended.max(last), second.durable.max(last));
                // If the second run was cut early, the first run's records were read but not synced
                // yet.
                let durable = if second.appended == 0 { first.durable } else { durable };
                found(
                    &next.after_power_cut(at),
                    &Run { appended, durable },
                    &format!("{what}, second"),
                );
            }
        }
    }
}

#[test]
fn a_power_cut_at_any_point_leaves_a_prefix_with_everything_durable_under_always() {
    every_crash_point(Fsync::Always);
}

#[test]
fn a_power_cut_at_any_point_leaves_a_prefix_with_everything_durable_under_everysec() {
    every_crash_point(Fsync::EverySec);
}

#[test]
fn a_power_cut_at_any_point_leaves_a_prefix_with_everything_durable_under_never() {
    every_crash_point(Fsync::Never);
}

#[test]
fn a_power_cut_at_the_end_of_a_compaction_leaves_the_old_or_the_new_state() {
    for at in 1..=14 {
        let disk = FaultyDisk::new(at);
        let (mut journal, _, _) = open(&disk, &with(Fsync::Always)).unwrap();
        append(&mut journal, 1, 10);
        // The second compaction finds an empty segment: no rotation syncs the directory for it.
        for fault in [None, Some(Fault::PowerCut)] {
            fault.into_iter().for_each(|fault| disk.fault_in(at, fault));
            let Ok(mut compaction) = journal.begin_compaction() else { break };
            let _ = feed(&mut compaction);
            let watch = compaction.finish();
            eventually("compacted", || {
                disk.is_dead() || watch.wait(Duration::ZERO) != Progress::Finishing
            });
        }
        drop(journal);
        for outcome in 0..60 {
            let what = format!("power cut at operation {at}, outcome {outcome}");
            found(&disk.after_power_cut(outcome), &Run { appended: 10, durable: 10 }, &what);
        }
    }
}

#[test]
fn a_failure_and_then_a_power_cut_leave_a_prefix_with_everything_durable() {
    for (at, later) in (1..45).flat_map(|at| (1..6).map(move |later| (at, later))) {
        let disk = FaultyDisk::new(at);
        let (mut journal, _, _) = open(&disk, &with(Fsync::Always)).unwrap();
        disk.fault_in(at, Fault::Fail(1));
        disk.fault_in(at + later, Fault::PowerCut);
        let mut last = 0;
        while !disk.is_dead() {
            append(&mut journal, last + 1, last + 3);
            last += 3;
            let Ok(mut compaction) = journal.begin_compaction() else { continue };
            let _ = feed(&mut compaction);
            let watch = compaction.finish();
            eventually("compacted", || {
                disk.is_dead() || watch.wait(Duration::ZERO) != Progress::Finishing
            });
        }
        let run = Run { appended: last, durable: journal.durable().0 };
        drop(journal);
        for outcome in 0..6 {
            let what = format!("failure at {at}, power cut {later} later, outcome {outcome}");
            found(&disk.after_power_cut(outcome), &run, &what);
        }
    }
}

#[test]
fn a_kill_followed_by_a_power_cut_loses_nothing_that_the_second_process_has_built_on() {
    for seed in 0..200 {
        let disk = FaultyDisk::new(seed);
        let (mut journal, _, _) = open(&disk, &with(Fsync::Never)).unwrap();
        append(&mut journal, 1, 30);
        eventually("written", || journal.watch().status().memory == 0);
        let next = disk.after_kill();
        drop(journal);
        let (second, last, _) = open(&next, &with(Fsync::Always)).unwrap();
        assert_eq!((last, second.durable()), (30, Position(30)));
        let after = next.after_power_cut(seed);
        drop(second);
        found(&after, &Run { appended: 30, durable: 30 }, &format!("seed {seed}"));
    }
}
