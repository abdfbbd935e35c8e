//! Clients that request much data and do not read it.

use std::io::Write;
use std::time::Duration;

use crate::process::{Options, Process};
use crate::wire::{Value, assert_serves, request};

fn a_deaf_subscriber(threads: usize) {
    let server = Process::start(&Options { threads, ..Options::default() });
    let mut deaf: Vec<_> = (0..2).map(|_| server.connect()).collect();
    let mut good = server.connect();
    for client in deaf.iter_mut().chain([&mut good]) {
        client.say("subscribe news");
    }
    let before = server.memory_mb();
    let text = "x".repeat(1 << 20);
    let mut publisher = server.connect();
    let mut heard = Vec::new();
    for _ in 0..200 {
        heard.push(publisher.call(&["publish", "news", &text]).int());
        // A client that reads gets everything.
        let Value::Array(message) = good.read().unwrap() else { panic!("no message") };
        assert_eq!(message[2].text().len(), text.len());
    }
    assert_eq!((heard[0], heard[199]), (3, 1), "{heard:?}");
    let grown = server.peak_mb() - before;
    println!("{threads} loops, 200 MB to two deaf subscribers: {grown} MB at most");
    assert!(grown < 160, "{grown} MB");
    for client in &mut deaf {
        assert!(client.is_closed_by_the_server());
    }
    assert_serves(server.address);
    server.stop();
}

#[test]
fn a_subscriber_that_never_reads_is_disconnected_and_others_hear_on() {
    a_deaf_subscriber(1);
    a_deaf_subscriber(4);
}

#[test]
fn a_script_that_publishes_without_end_to_a_deaf_subscriber_needs_bounded_memory() {
    let server = Process::start(&Options::default());
    let mut deaf = server.connect();
    deaf.say("subscribe news");
    let before = server.memory_mb();
    let mut publisher = server.connect();
    let script = "for i = 1, 200 do redis.call('publish', 'news', ARGV[1]) end return 'done'";
    let text = "x".repeat(5 << 20);
    assert_eq!(publisher.call(&["eval", script, "0", &text]).text(), "done");
    let grown = server.peak_mb() - before;
    println!("1 GB published by a script: {grown} MB at most");
    assert!(grown < 250, "{grown} MB");
    assert!(deaf.is_closed_by_the_server());
    assert_serves(server.address);
    server.stop();
}

#[test]
fn a_client_that_asks_for_gigabytes_and_reads_nothing_needs_bounded_memory() {
    let server = Process::start(&Options { threads: 1, ..Options::default() });
    let mut client = server.connect();
    client.call(&["set", "big", &"x".repeat(2 << 20)]);
    let before = server.memory_mb();
    let mut greedy: Vec<_> = (0..10).map(|_| server.connect()).collect();
    let batch = request(&["get", "big"]).repeat(1000);
    for client in &mut greedy {
        client.stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        // 20 GB of replies each.
        for _ in 0..10 {
            if client.stream.write_all(&batch).is_err() {
                break;
            }
        }
        assert_serves(server.address);
    }
    let grown = server.peak_mb() - before;
    println!("ten clients ask for 20 GB each: {grown} MB at most");
    assert!(grown < 150, "{grown} MB");
    // A client that begins to read is served.
    for _ in 0..3 {
        assert_eq!(greedy[0].read().unwrap().text().len(), 2 << 20);
    }
    drop(greedy);
    assert_serves(server.address);
    server.stop();
}

#[test]
fn a_transaction_without_end_needs_bounded_memory() {
    let server = Process::start(&Options { threads: 1, ..Options::default() });
    let mut client = server.connect();
    client.say("multi");
    let set = request(&["set", "k", &"x".repeat(1 << 20)]);
    let mut told = None;
    for _ in 0..600 {
        client.stream.write_all(&set).unwrap();
        match client.read().unwrap() {
            Value::Error(text) => told = told.or(Some(text)),
            other => assert_eq!(other.text(), "QUEUED"),
        }
    }
    let peak = server.peak_mb();
    println!("a transaction of 600 MB: {peak} MB at most");
    assert!(told.is_some_and(|text| text.starts_with("ERR the transaction is too large")));
    assert!(peak < 600, "{peak} MB");
    assert!(client.say("exec").text().starts_with("EXECABORT "));
    assert_eq!(client.say("set k 1").text(), "OK");
    assert_serves(server.address);
    server.stop();
}
