//! Too many clients at once, and clients that connect and disconnect quickly.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use stampede_engine::Config;

use crate::process::{Options, Process};
use crate::wire::{Running, Value, Wire, assert_serves, eventually};

const CROWD: usize = 10_000;

/// Raises the limit of open sockets of this process.
fn raise_limit(files: u64) {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < files) {
        limit.current = Some(files);
        setrlimit(Resource::Nofile, limit).unwrap_or_else(|error| {
            panic!(
                "this test needs {files} open files and the hard limit is {:?} ({error}); \
                 raise it: ulimit -Hn {files}",
                limit.maximum
            )
        });
    }
}

fn clients_of(client: &mut Wire) -> usize {
    let info = client.say("info clients").text();
    let line = info.lines().find_map(|line| line.strip_prefix("connected_clients:"));
    line.unwrap().trim().parse().unwrap()
}

fn a_crowd(threads: usize) {
    raise_limit(CROWD as u64 + 200);
    let server = Process::start(&Options { threads, ..Options::default() });
    // Two clients work throughout.
    let mut worker = server.connect();
    let before = server.memory_mb();
    let mut crowd: Vec<TcpStream> = Vec::with_capacity(CROWD);
    let mut slowest = Duration::ZERO;
    while crowd.len() < CROWD - 1 {
        crowd.push(TcpStream::connect(server.address).unwrap());
        if crowd.len().is_multiple_of(100) {
            let began = Instant::now();
            assert_eq!(worker.say("ping"), Value::Status("PONG".into()));
            slowest = slowest.max(began.elapsed());
        }
    }
    eventually("all are in", || clients_of(&mut worker) == CROWD);
    let grown = server.memory_mb() - before;
    println!("{CROWD} idle clients: {grown} MB, slowest ping {slowest:?}");
    assert!(grown < 100, "{grown} MB for {CROWD} idle clients");
    // A client above the limit gets an error.
    let mut late = server.connect();
    assert_eq!(late.read().unwrap(), Value::Error("ERR max number of clients reached".into()));
    assert!(late.is_closed_by_the_server());
    assert_eq!(worker.say("incr n"), Value::Int(1));
    // When a client disconnects, another can connect.
    crowd.truncate(CROWD / 2);
    eventually("half are gone", || clients_of(&mut worker) == CROWD / 2 + 1);
    assert_serves(server.address);
    // All clients send at once.
    for stream in &mut crowd {
        stream.write_all(b"PING\r\n").unwrap();
    }
    for stream in crowd {
        let mut client = Wire::from_stream(stream);
        assert_eq!(client.read().unwrap(), Value::Status("PONG".into()));
    }
    eventually("all are gone", || clients_of(&mut worker) == 1);
    server.stop();
}

#[test]
fn ten_thousand_idle_clients_cost_little_and_stop_nobody() {
    a_crowd(1);
}

#[test]
fn ten_thousand_idle_clients_of_four_loops_cost_little_and_stop_nobody() {
    a_crowd(4);
}

#[test]
fn half_a_request_and_gone_ten_thousand_times_leaves_nothing_behind() {
    let server = Process::start(&Options::default());
    let address = server.address;
    let mut watcher = server.connect();
    let whole = crate::wire::request(&["blpop", "never", "0"]);
    let before = server.memory_mb();
    let storms: Vec<_> = (0..4)
        .map(|thread| {
            let whole = whole.clone();
            std::thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..2500 {
                    let mut stream = TcpStream::connect(address).unwrap();
                    // Also zero bytes, and a whole request: a blocked client that disconnects.
                    stream.write_all(&whole[..random.usize(..=whole.len())]).unwrap();
                }
            })
        })
        .collect();
    for storm in storms {
        storm.join().unwrap();
    }
    eventually("all are gone", || clients_of(&mut watcher) == 1);
    let info = watcher.say("info clients").text();
    assert!(info.contains("blocked_clients:0"), "{info}");
    let grown = server.memory_mb().saturating_sub(before);
    println!("10,000 broken requests: {grown} MB");
    assert!(grown < 40, "{grown} MB");
    server.stop();
}

#[test]
fn a_storm_of_connections_keeps_nobody_waiting() {
    for io_threads in [1, 4] {
        let server = Running::start(Config { io_threads, ..Config::default() });
        let address = server.address;
        let storms: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(move || {
                    for _ in 0..600 {
                        drop(Wire::connect(address));
                    }
                })
            })
            .collect();
        let (mut client, mut slowest, mut pings) = (server.connect(), Duration::ZERO, 0);
        while storms.iter().any(|storm| !storm.is_finished()) {
            let began = Instant::now();
            assert_eq!(client.say("ping"), Value::Status("PONG".into()));
            slowest = slowest.max(began.elapsed());
            pings += 1;
        }
        println!("{io_threads} loops: {pings} pings in a storm, slowest {slowest:?}");
        assert!(slowest < Duration::from_secs(2), "{slowest:?}");
        storms.into_iter().for_each(|storm| storm.join().unwrap());
        eventually("all are gone", || clients_of(&mut client) == 1);
    }
}
