//! One event loop and several: commands stay serial, no blocked client is forgotten, messages keep
//! their order.

use std::collections::HashSet;
use std::io::Write;
use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};

use stampede_engine::{Config, Fsync, JournalConfig};

use crate::wire::{Running, Value, from_env, request};

fn server(io_threads: usize) -> Running {
    Running::start(Config { io_threads, ..Config::default() })
}

#[test]
fn counters_are_exact_however_many_clients_count() {
    for io_threads in [1, 4] {
        let server = server(io_threads);
        let clients: Vec<_> = (0..16)
            .map(|n| {
                let mut client = server.connect();
                thread::spawn(move || {
                    let own = format!("own:{n}");
                    for round in 1..=300 {
                        client.say("incr all");
                        assert_eq!(client.call(&["incr", &own]).int(), round);
                        client.say("rpush list x");
                    }
                    // And many at once.
                    client.stream.write_all(&request(&["incr", "all"]).repeat(1000)).unwrap();
                    let seen: HashSet<i64> =
                        (0..1000).map(|_| client.read().unwrap().int()).collect();
                    assert_eq!(seen.len(), 1000);
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        let mut client = server.connect();
        assert_eq!(client.say("get all").int(), 16 * 1300);
        assert_eq!(client.say("llen list").int(), 16 * 300);
    }
}

#[test]
fn no_wake_up_is_lost_between_loops() {
    let rounds = from_env("STAMPEDE_ROUNDS", 12_000);
    for io_threads in [4, 1] {
        play(&server(io_threads), io_threads, rounds);
    }
}

#[test]
fn no_wake_up_is_lost_while_replies_wait_for_the_journal() {
    for (fsync, rounds) in [(Fsync::EverySec, 6_000), (Fsync::Never, 6_000), (Fsync::Always, 120)] {
        for io_threads in [4, 1] {
            let (server, _dir) = with_journal(fsync, io_threads);
            play(&server, io_threads, rounds);
        }
    }
}

#[test]
fn a_client_that_closes_its_writing_half_gets_its_replies() {
    for fsync in [Fsync::EverySec, Fsync::Never, Fsync::Always] {
        let (server, _dir) = with_journal(fsync, 2);
        for n in 1..=50 {
            let mut client = server.connect();
            client.stream.write_all(&request(&["incr", "n"])).unwrap();
            client.stream.shutdown(Shutdown::Write).unwrap();
            assert_eq!(client.read().unwrap().int(), n, "{fsync:?}");
            assert!(client.is_closed_by_the_server());
        }
    }
}

fn with_journal(fsync: Fsync, io_threads: usize) -> (Running, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let journal = JournalConfig { fsync, ..JournalConfig::default() };
    let config = Config { dir: Some(dir.path().into()), journal, io_threads, ..Config::default() };
    (Running::start(config), dir)
}

/// Pairs of clients that pass numbers to each other with blocking commands.
fn play(server: &Running, io_threads: usize, rounds: u64) {
    let (pairs, began) = (6, Instant::now());
    let players: Vec<_> = (0..pairs * 2)
        .map(|n| {
            let (pair, first) = (n / 2, n % 2 == 0);
            let mut client = server.connect();
            thread::spawn(move || {
                let (ping, pong) = (format!("ping:{pair}"), format!("pong:{pair}"));
                let (to, from) = if first { (ping, pong) } else { (pong, ping) };
                for round in 0..rounds / pairs {
                    let round = round.to_string();
                    if first {
                        client.call(&["lpush", &to, &round]);
                    }
                    let got = client.call(&["blpop", &from, "30"]);
                    assert_eq!(got.text(), format!("{from} {round}"), "a wake-up was lost");
                    if !first {
                        client.call(&["lpush", &to, &round]);
                    }
                }
            })
        })
        .collect();
    players.into_iter().for_each(|player| player.join().unwrap());
    println!("{io_threads} loops: {rounds} rounds in {:?}", began.elapsed());
}

#[test]
fn every_waiting_client_gets_its_item_and_none_two() {
    let server = server(4);
    let waiting: Vec<_> = (0..40)
        .map(|_| {
            let mut client = server.connect();
            thread::spawn(move || client.say("bzpopmin queue 30").text())
        })
        .collect();
    let mut client = server.connect();
    crate::wire::eventually("all wait", || {
        client.say("info clients").text().contains("blocked_clients:40")
    });
    for n in 0..40 {
        client.call(&["zadd", "queue", &n.to_string(), &format!("item-{n}")]);
    }
    let got: HashSet<String> = waiting.into_iter().map(|one| one.join().unwrap()).collect();
    assert_eq!(got.len(), 40);
    assert_eq!(client.say("zcard queue").int(), 0);
}

#[test]
fn messages_arrive_in_order_on_every_loop() {
    for io_threads in [1, 4] {
        let server = server(io_threads);
        let subscribers: Vec<_> = (0..8)
            .map(|_| {
                let mut client = server.connect();
                client.say("subscribe news");
                thread::spawn(move || {
                    for n in 0..5000 {
                        let Value::Array(message) = client.read().unwrap() else { panic!() };
                        assert_eq!(message[2].text(), n.to_string());
                    }
                })
            })
            .collect();
        let mut client = server.connect();
        for n in 0..5000 {
            assert_eq!(client.call(&["publish", "news", &n.to_string()]).int(), 8);
        }
        subscribers.into_iter().for_each(|one| one.join().unwrap());
    }
}

#[test]
fn a_client_that_sends_without_pause_keeps_nobody_waiting() {
    for io_threads in [1, 4] {
        let server = server(io_threads);
        let until = Instant::now() + Duration::from_secs(2);
        let floods: Vec<_> = (0..3)
            .map(|_| {
                let mut client = server.connect();
                thread::spawn(move || {
                    let batch = request(&["rpush", "flood", "x"]).repeat(500);
                    while Instant::now() < until {
                        client.stream.write_all(&batch).unwrap();
                        (0..500).for_each(|_| drop(client.read().unwrap()));
                    }
                })
            })
            .collect();
        let (mut client, mut slowest, mut pings) = (server.connect(), Duration::ZERO, 0);
        while Instant::now() < until {
            let began = Instant::now();
            client.say("ping");
            slowest = slowest.max(began.elapsed());
            pings += 1;
        }
        floods.into_iter().for_each(|flood| flood.join().unwrap());
        println!("{io_threads} loops: {pings} pings in a flood, slowest {slowest:?}");
        assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    }
}
