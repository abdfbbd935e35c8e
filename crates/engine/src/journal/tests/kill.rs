//! A real process on a real disk, killed with `kill -9` repeatedly.
//!
//! The test binary starts itself as the child (the ignored test below) with the directory in the
//! environment. The child appends numbered records, compacts now and then, and prints a number when it
//! may be acknowledged: under always when it is durable, under everysec also at once. The parent kills it
//! at a random moment. Every acknowledged record it has read must be there.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    sync::mpsc,
    time::Instant,
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
    let fsync = if std::env::var(POLICY).as_deref() == Ok("always") {
        Fsync::Always
    } else {
        Fsync::EverySec
    };
    // Acknowledges as the engine does: from the observer, when durable.
    let observer: Observer = Arc::new(move |event| {
        if let Event::Durable(Position(n)) = event {
            let mut out = std::io::stdout().lock();
            let _ = writeln!(out, "ack {n}").and_then(|()| out.flush());
        }
    });
    let (mut journal, mut last, _) = open_real(Path::new(&dir), &with(fsync), Some(observer));
    let mut compaction: Option<(Compaction, u64)> = None;
    // Under everysec a client gets its reply at once.
    let answer = |n: u64| {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "ans {n}").and_then(|()| out.flush());
    };
    loop {
        let burst = fastrand::u64(1..20);
        append(&mut journal, last + 1, last + burst);
        last += burst;
        if fsync == Fsync::Always {
            journal.watch().wait_durable(Position(last), LONG).unwrap();
        } else {
            answer(last);
            std::thread::sleep(Duration::from_millis(1));
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
    let (mut last, mut lost_ms) = (0, 0);
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
            let (mut acknowledged, mut answered) = (0, Vec::new());
            for line in lines.map_while(Result::ok) {
                if let Some(n) = line.strip_prefix("ans ").and_then(|n| n.parse::<u64>().ok()) {
                    answered.push((Instant::now(), n));
                }
                // The test harness may print on the same line before the first acknowledgement.
                if let Some(n) = line.rsplit("ack ").next().and_then(|n| n.trim().parse().ok()) {
                    acknowledged = n;
                    let _ = sender.send(());
                }
            }
            (acknowledged, answered)
        });
        first_ack.recv_timeout(LONG).expect("the child acknowledges something");
        std::thread::sleep(Duration::from_micros(fastrand::u64(..60_000)));
        let killed = Instant::now();
        child.kill().unwrap();
        child.wait().unwrap();
        let (acknowledged, answered): (u64, Vec<_>) = reader.join().unwrap();
        assert!(
            acknowledged > last || policy != "always",
            "round {round}: {acknowledged} after {last}"
        );
        let (journal, found, opened) = open_real(dir.path(), &with(Fsync::Always), None);
        assert!(found >= acknowledged, "round {round}: {acknowledged} acknowledged, {found} found");
        let window = answered
            .iter()
            .filter(|(_, n)| *n > found)
            .map(|(at, _)| killed.saturating_duration_since(*at))
            .max();
        lost_ms = lost_ms.max(window.map_or(0, |window| window.as_millis()));
        assert!(lost_ms < 1000, "round {round}: {lost_ms} ms of answers lost");
        last = found;
        torn += u32::from(opened.contents.torn.is_some());
        compactions += u32::from(!opened.removed.is_empty());
        journal.close().unwrap();
    }
    println!(
        "{policy}: {rounds} kills, {last} records, {torn} torn tails, {compactions} interrupted compactions, {lost_ms} ms of answers lost at most"
    );
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9_under_always() {
    killed_again_and_again("always");
}

#[test]
fn nothing_reported_durable_is_lost_by_kill_9_under_everysec() {
    killed_again_and_again("everysec");
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
