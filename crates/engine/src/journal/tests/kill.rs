//! A real process on a real disk, killed with `kill -9` repeatedly.
//!
//! The test binary starts itself as the child (the ignored test below) with the directory in the
//! environment. The child appends numbered records, compacts now and then, and prints a number when it
//! may be acknowledged: under always when it is durable, else when it is written. The parent kills it
//! at a random moment. Every acknowledged record it has read must be there.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    sync::mpsc,
};

use super::*;

const DIR: &str = "STAMPEDE_KILL_DIR";
const POLICY: &str = "STAMPEDE_KILL_POLICY";

fn open_real(dir: &Path, config: &Config, observer: Option<Observer>) -> (Journal, u64, Opened) {
    let mut model = Model::default();
    let (journal, opened) = Journal::open(dir, config, observer, &mut |r| model.visit(r)).unwrap();
    (journal, model.last, opened)
}

#[test]
#[ignore = "the child of the kill tests"]
fn child_that_appends_until_it_is_killed() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let fsync = match std::env::var(POLICY).as_deref() {
        Ok("always") => Fsync::Always,
        Ok("everysec") => Fsync::EverySec,
        _ => Fsync::Never,
    };
    // Acknowledges as the engine does: from the observer, when durable or written.
    let observer: Observer = Arc::new(move |event| {
        let safe = match event {
            Event::Durable(position) if fsync == Fsync::Always => position,
            Event::Written(position) if fsync != Fsync::Always => position,
            _ => return,
        };
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "ack {}", safe.0).and_then(|()| out.flush());
    });
    let (mut journal, mut last, _) = open_real(Path::new(&dir), &with(fsync), Some(observer));
    let mut compaction: Option<(Compaction, u64)> = None;
    loop {
        let burst = fastrand::u64(1..20);
        append(&mut journal, last + 1, last + burst);
        last += burst;
        if fsync == Fsync::Always {
            journal.watch().wait_durable(Position(last), LONG).unwrap();
        } else {
            // As an event loop does at the end of its round. Behind a rotation it is written a little later.
            journal.watch().write_out();
            eventually("written", || journal.watch().written() == Position(last));
        }
        compaction = match compaction {
            None if fastrand::u8(..20) == 0 => {
                journal.begin_compaction().ok().map(|begun| (begun, 0))
            }
            Some((mut running, fed)) => {
                let upto = (fed + 500).min(running.position().0);
                for n in fed + 1..=upto {
                    running.feed(&item(n)).unwrap();
                }
                if upto < running.position().0 {
                    Some((running, upto))
                } else {
                    running.finish();
                    None
                }
            }
            none => none,
        };
    }
}

fn killed_again_and_again(policy: &str) {
    let rounds: u32 =
        std::env::var("STAMPEDE_KILL_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(30);
    let dir = tempfile::tempdir().unwrap();
    let (mut torn, mut compactions) = (0, 0);
    let mut last = 0;
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .arg("journal::tests::kill::child_that_appends_until_it_is_killed")
            .env(DIR, dir.path())
            .env(POLICY, policy)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, first_ack) = mpsc::channel();
        // Reads until the pipe ends: all output of the child before its death counts.
        let reader = std::thread::spawn(move || {
            let mut acknowledged = 0;
            for line in lines.map_while(Result::ok) {
                // The test harness may print on the same line before the first acknowledgement.
                if let Some(n) = line.rsplit("ack ").next().and_then(|n| n.trim().parse().ok()) {
                    acknowledged = n;
                    let _ = sender.send(());
                }
            }
            acknowledged
        });
        first_ack.recv_timeout(LONG).expect("the child acknowledges something");
        std::thread::sleep(Duration::from_micros(fastrand::u64(..60_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let acknowledged: u64 = reader.join().unwrap();
        assert!(acknowledged > last, "round {round}: {acknowledged} after {last}");
        let (journal, found, opened) = open_real(dir.path(), &with(Fsync::Always), None);
        assert!(found >= acknowledged, "round {round}: {acknowledged} acknowledged, {found} found");
        last = found;
        torn += u32::from(opened.contents.torn.is_some());
        compactions += u32::from(!opened.removed.is_empty());
        journal.close().unwrap();
    }
    println!(
        "{policy}: {rounds} kills, {last} records, {torn} torn tails, {compactions} interrupted compactions"
    );
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9_under_always() {
    killed_again_and_again("always");
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9_under_everysec() {
    killed_again_and_again("everysec");
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9_under_never() {
    killed_again_and_again("never");
}

#[test]
fn a_second_process_is_refused_with_the_pid_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let (_journal, _, _) = open_real(dir.path(), &Config::default(), None);
    let error = Journal::open(dir.path(), &Config::default(), None, &mut |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    assert!(matches!(check(dir.path()), Err(Error::Locked { .. })));
    assert!(matches!(
        super::super::repair(dir.path(), RepairRule::Moment, &|_| None),
        Err(Error::Locked { .. })
    ));
}
