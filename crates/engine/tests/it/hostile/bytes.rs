//! Requests that are too large, never end, or arrive byte by byte.

use std::io::Write;

use stampede_engine::Config;

use crate::process::{Options, Process};
use crate::wire::{Running, Value, Wire, assert_serves, eventually};

/// Sends until the server closes the connection, and returns its last reply.
fn flood(client: &mut Wire, start: &[u8], piece: &[u8], most_bytes: usize) -> String {
    // The server may close before all is sent; its reply can still be read.
    let _ = client.stream.write_all(start);
    for _ in 0..most_bytes.div_ceil(piece.len().max(1)) {
        if client.stream.write_all(piece).is_err() {
            break;
        }
    }
    match client.read() {
        Ok(reply) => reply.text(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_request_that_is_too_large_is_refused_with_a_reason() {
    let server = Running::start(Config::default());
    for (start, piece, reason) in [
        (&b"*2\r\n$3\r\nGET\r\n$1073741824\r\n"[..], &b""[..], "invalid bulk length"),
        (b"*2\r\n$3\r\nGET\r\n$-5\r\n", b"", "invalid bulk length"),
        (b"*2147483648\r\n", b"", "invalid multibulk length"),
        (b"*99999999999999999999999\r\n", b"", "invalid multibulk length"),
        (b"", &[b'a'; 1000], "too big inline request"),
        (b"*", &[b'1'; 1000], "too big mbulk count string"),
        (b"*1\r\n$", &[b'1'; 1000], "too big bulk count string"),
        (b"*1\r\n!", b"", "expected '$', got '!'"),
    ] {
        let mut client = server.connect();
        let told = flood(&mut client, start, piece, if piece.is_empty() { 0 } else { 66_000 });
        assert_eq!(told, format!("ERR Protocol error: {reason}"));
        assert!(client.is_closed_by_the_server());
    }
    server.assert_serves();
}

#[test]
fn a_line_that_never_ends_is_cut_off() {
    let server = Running::start(Config::default());
    for start in [&b"get "[..], b"*1", b"*1\r\n$1"] {
        let mut client = server.connect();
        let mut sent = 0;
        // A client that does not read finds the connection closed.
        while client.stream.write_all(&[b'1'; 1 << 16]).is_ok() {
            sent += 1;
            assert!(sent < 1000, "64 MB after {start:?} and still open");
        }
    }
    server.assert_serves();
}

#[test]
fn what_is_announced_costs_nothing_before_it_arrives() {
    let server = Process::start(&Options::default());
    let before = server.memory_mb();
    let clients: Vec<Wire> = (0..200)
        .map(|n| {
            let mut client = server.connect();
            let bytes: &[u8] = match n % 3 {
                0 => b"*2000000000\r\n$3\r\nDEL\r\n",
                1 => b"*2\r\n$3\r\nGET\r\n$536870912\r\nabc",
                _ => b"*1000000\r\n$536870912\r\n",
            };
            client.stream.write_all(bytes).unwrap();
            client
        })
        .collect();
    assert_serves(server.address);
    let grown = server.memory_mb().saturating_sub(before);
    println!("200 announcements: {grown} MB");
    assert!(grown < 20, "{grown} MB");
    drop(clients);
}

#[test]
fn arguments_without_end_cost_no_more_than_a_few_times_their_bytes() {
    let server = Process::start(&Options::default());
    let before = server.memory_mb();
    let mut client = server.connect();
    client.stream.write_all(b"*2000000000\r\n").unwrap();
    let piece = b"$1\r\na\r\n".repeat(10_000);
    let mut sent = 0;
    while sent < 16 << 20 {
        client.stream.write_all(&piece).unwrap();
        sent += piece.len();
    }
    assert_serves(server.address);
    let grown = server.peak_mb().saturating_sub(before);
    println!("16 MB of arguments: {grown} MB");
    assert!(grown < 160, "{grown} MB");
    drop(client);
    eventually("the memory is free again", || server.memory_mb() < before + 40);
}

#[test]
fn requests_that_come_byte_by_byte_are_served_and_stop_nobody() {
    let server = Running::start(Config { io_threads: 1, ..Config::default() });
    let bytes = crate::wire::request(&["set", "slow", "ly"]);
    let mut slow: Vec<Wire> = (0..50).map(|_| server.connect()).collect();
    for byte in &bytes {
        for client in &mut slow {
            client.stream.write_all(&[*byte]).unwrap();
        }
        server.assert_serves();
    }
    for client in &mut slow {
        assert_eq!(client.read().unwrap(), Value::Status("OK".into()));
    }
    // A long line, byte by byte, must not cost quadratic time.
    let mut client = server.connect();
    for _ in 0..20_000 {
        client.stream.write_all(b"a").unwrap();
    }
    server.assert_serves();
}

#[test]
fn a_stranger_may_send_little_before_the_password() {
    let config = Config { password: Some("secret".to_owned()), ..Config::default() };
    let server = Running::start(config);
    for (bytes, reason) in [
        (&b"*11\r\n"[..], "ERR Protocol error: unauthenticated multibulk length"),
        (b"*2\r\n$3\r\nGET\r\n$16385\r\n", "ERR Protocol error: unauthenticated bulk length"),
    ] {
        assert_eq!(flood(&mut server.connect(), bytes, b"", 0), reason);
    }
    // Endless wrong passwords, without reading the replies.
    let mut flooding: Vec<Wire> = (0..4).map(|_| server.connect()).collect();
    let batch = crate::wire::request(&["auth", "wrong"]).repeat(200);
    for client in &mut flooding {
        client.stream.set_write_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
        for _ in 0..100 {
            if client.stream.write_all(&batch).is_err() {
                break;
            }
        }
    }
    let mut known = server.connect();
    assert_eq!(known.say("get x").text(), "NOAUTH Authentication required.");
    assert_eq!(known.say("auth secret"), Value::Status("OK".into()));
    assert_eq!(known.say("get x"), Value::Nil);
    // Authenticated now: it may send more.
    assert_eq!(known.call(&["set", "x", &"v".repeat(20_000)]).text(), "OK");
}
