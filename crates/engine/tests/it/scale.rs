//! A million waiting jobs: how long a start takes, and whether a compaction delays clients.
//!
//! Too large for the normal run; run it by hand (`STAMPEDE_SCALE` sets the number of jobs):
//! `cargo nextest run --release -p stampede-engine --run-ignored only --no-capture scale::`

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{Options, Process};
use crate::wire::{Value, Wire, from_env, request};

/// The fields of a job, about as large as in a real queue.
fn job(n: u64) -> Vec<u8> {
    let id = n.to_string();
    let key = format!("bull:tickets:{id}");
    let data =
        format!("{{\"order\":\"ord_{n:012}\",\"event\":\"evt_42\",\"seat\":\"{}\"}}", n % 997);
    let mut bytes = request(&[
        "hset",
        &key,
        "name",
        "generate-ticket",
        "data",
        &data,
        "opts",
        "{\"attempts\":3}",
        "timestamp",
        "1700000000000",
        "delay",
        "0",
        "priority",
        "0",
    ]);
    bytes.extend(request(&["lpush", "bull:tickets:wait", &id]));
    if n.is_multiple_of(3) {
        bytes.extend(request(&["zadd", "bull:tickets:delayed", &id, &id]));
    }
    if n.is_multiple_of(10) {
        let event =
            ["xadd", "bull:tickets:events", "maxlen", "~", "10000", "*", "event", "waiting"];
        bytes.extend(request(&event));
    }
    bytes
}

/// Adds jobs in batches.
fn add_jobs(client: &mut Wire, jobs: u64) {
    for from in (0..jobs).step_by(500) {
        let mut bytes = Vec::new();
        let mut replies = 0;
        for n in from..(from + 500).min(jobs) {
            bytes.extend(job(n));
            replies += 2 + u64::from(n.is_multiple_of(3)) + u64::from(n.is_multiple_of(10));
        }
        client.stream.write_all(&bytes).unwrap();
        (0..replies).for_each(|_| assert!(!matches!(client.read().unwrap(), Value::Error(_))));
    }
}

/// Writes about ten thousand times a second until stopped. Without a pause the log would outgrow
/// the snapshot again before the compaction ends, and the measurement would not end.
fn load(address: SocketAddr, number: u64, stop: Arc<AtomicBool>) -> thread::JoinHandle<u64> {
    thread::spawn(move || {
        let mut client = Wire::connect(address);
        let mut writes = 0;
        let key = format!("load:{number}");
        while !stop.load(Ordering::Relaxed) {
            let mut bytes = Vec::new();
            for n in 0..20_u64 {
                let field = ((writes + n) % 5000).to_string();
                bytes.extend(request(&["hset", &key, &field, "some value or other"]));
            }
            client.stream.write_all(&bytes).unwrap();
            (0..20).for_each(|_| drop(client.read().unwrap()));
            writes += 20;
            thread::sleep(Duration::from_millis(3));
        }
        writes
    })
}

/// Pings every millisecond while `go_on` returns `true`; returns all latencies, the longest last.
fn pings(address: SocketAddr, mut go_on: impl FnMut() -> bool) -> Vec<Duration> {
    let mut client = Wire::connect(address);
    let mut latencies = Vec::new();
    while go_on() {
        let began = Instant::now();
        client.say("ping");
        latencies.push(began.elapsed());
        thread::sleep(Duration::from_millis(1));
    }
    latencies.sort();
    latencies
}

fn show(what: &str, latencies: &[Duration]) -> Duration {
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    println!(
        "{what}: {} pings, median {:?}, 99 % {:?}, 99.9 % {:?}, longest {:?}",
        latencies.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    at(1.0)
}

fn is_compacting(client: &mut Wire) -> bool {
    client.say("info persistence").text().contains("aof_rewrite_in_progress:1")
}

#[test]
#[ignore = "takes minutes and gigabytes"]
fn a_million_jobs_start_in_seconds_and_are_compacted_without_a_pause() {
    let jobs = from_env("STAMPEDE_SCALE", 1_000_000);
    let dir = tempfile::tempdir().unwrap();
    let options = Options { dir: Some(dir.path()), ..Options::default() };
    let server = Process::start(&options);
    let began = Instant::now();
    let mut client = server.connect();
    add_jobs(&mut client, jobs);
    println!("{jobs} jobs added in {:?}, {} MB", began.elapsed(), server.memory_mb());
    // A compaction may have begun by itself.
    while is_compacting(&mut client) {
        thread::sleep(Duration::from_millis(100));
    }
    server.stop();

    let server = Process::start(&options);
    println!("started from the log in {:?}, {} MB", server.replay, server.memory_mb());
    let from_log = server.replay;
    let mut client = server.connect();
    let stop = Arc::new(AtomicBool::new(false));
    let loads: Vec<_> = (0..2).map(|n| load(server.address, n, stop.clone())).collect();
    let until = Instant::now() + Duration::from_secs(5);
    let quiet = show("without compaction", &pings(server.address, || Instant::now() < until));
    let mut worst = Duration::ZERO;
    for round in 1..=3 {
        let before = server.memory_mb();
        assert!(client.say("bgrewriteaof").text().contains("started"));
        let began = Instant::now();
        let mut turn = 0;
        let latencies = pings(server.address, || {
            turn += 1;
            let late = began.elapsed() > Duration::from_secs(90);
            assert!(!late, "the compaction does not end");
            turn % 50 != 0 || is_compacting(&mut client)
        });
        let took = began.elapsed();
        worst = worst.max(show(&format!("compaction {round}, {took:?}"), &latencies));
        println!("memory: {before} MB before, {} MB at most", server.peak_mb());
    }
    stop.store(true, Ordering::Relaxed);
    let writes: u64 = loads.into_iter().map(|load| load.join().unwrap()).sum();
    println!("{writes} writes meanwhile");
    server.stop();

    let server = Process::start(&options);
    println!("started from the snapshot in {:?}, {} MB", server.replay, server.memory_mb());
    assert_eq!(server.connect().say("llen bull:tickets:wait").int() as u64, jobs);
    assert!(from_log.max(server.replay) < Duration::from_secs(10));
    assert!(worst < Duration::from_millis(50).max(2 * quiet), "{worst:?}, {quiet:?} without");
    server.stop();
}
