//! `MONITOR`: what a monitor sees is compared with a real redis-server, line by line.

use std::net::SocketAddr;

use stampede_engine::Config;

use crate::redis::Server;
use crate::wire::{Running, Value, Wire};

/// Commands of one client, and the last one that ends the comparison.
const LINES: &[&str] = &[
    "SET k v",
    "GET",
    "NOSUCH x",
    "MULTI",
    "INCR n",
    "GET k",
    "EXEC",
    "MULTI",
    "INCR n",
    "DISCARD",
    "CONFIG GET maxmemory",
    "CLIENT ID",
    "CLIENT LIST",
    "CLIENT SETNAME n",
    "SLOWLOG LEN",
    "AUTH secret",
    "HELLO 2 AUTH default secret SETNAME n",
    "SELECT 3",
    "GET k",
    "SELECT 0",
    "WATCH k",
    "UNWATCH",
    "PUBLISH c m",
    "BLPOP q 0.01",
    "LPUSH k x",
    "SCRIPT LOAD return",
    "EVAL redis.call('SELECT',5)redis.call('SET','x','y')redis.call('PUBLISH','c','d')redis.pcall('GET') 0",
    "EVAL return{redis.pcall('INCR','k'),redis.pcall('BLPOP','q',0)} 0",
    "RESET",
    "ECHO end",
];

fn connect(port: u16) -> Wire {
    Wire::connect(SocketAddr::from(([127, 0, 0, 1], port)))
}

/// The lines that a monitor sees, without time and address.
fn seen(port: u16) -> Vec<String> {
    let (mut monitor, mut client) = (connect(port), connect(port));
    assert_eq!(monitor.say("MONITOR").text(), "OK");
    for line in LINES {
        client.say(line);
    }
    client.call(&[&b"SET"[..], b"odd", b"a\"\\\r\n\t\x07\x08\0\x7f\xff\x1b "]);
    client.say("ECHO end");
    let mut lines = Vec::new();
    while lines.iter().filter(|line: &&String| line.ends_with("\"ECHO\" \"end\"")).count() < 2 {
        let Value::Status(line) = monitor.read().unwrap() else { panic!("no line") };
        let (time, rest) = line.split_once(" [").unwrap();
        let (seconds, micros) = time.split_once('.').unwrap();
        assert!(seconds.parse::<u64>().unwrap() > 1_700_000_000 && micros.len() == 6, "{time}");
        let (place, command) = rest.split_once("] ").unwrap();
        let (db, from) = place.split_once(' ').unwrap();
        let from = if from.starts_with("127.0.0.1:") { "client" } else { from };
        lines.push(format!("{db} {from} {command}"));
    }
    lines
}

#[test]
fn a_monitor_sees_what_it_sees_in_redis() {
    let redis = Server::start();
    let engine = Running::start(Config::default());
    let (theirs, ours) = (seen(redis.port), seen(engine.address.port()));
    assert_eq!(ours, theirs);
    assert!(theirs.len() >= 30, "{theirs:?}");
}

#[test]
fn a_monitor_may_not_use_keys_and_ends_with_reset() {
    let redis = Server::start();
    let engine = Running::start(Config::default());
    let answers = |port: u16| {
        let mut monitor = connect(port);
        monitor.say("CLIENT SETNAME monitor");
        monitor.say("MONITOR");
        let mut all = vec![monitor.say("GET k"), monitor.say("SET k v")];
        all.extend([monitor.say("PUBLISH c m"), monitor.call(&["EVAL", "return 1", "0"])]);
        let list = connect(port).say("CLIENT LIST").text();
        let line = list.lines().find(|line| line.contains("name=monitor")).unwrap().to_owned();
        let flags = line.split(' ').find(|field| field.starts_with("flags=")).unwrap().to_owned();
        all.push(Value::Status(flags));
        all.push(monitor.say("RESET"));
        connect(port).say("PING");
        all.extend([monitor.say("GET k"), monitor.say("MONITOR")]);
        all
    };
    assert_eq!(answers(engine.address.port()), answers(redis.port));
}

#[test]
fn a_monitor_that_does_not_read_is_disconnected_and_costs_no_memory() {
    let server = Running::start(Config::default());
    let mut monitor = server.connect();
    assert_eq!(monitor.say("monitor").text(), "OK");
    let mut client = server.connect();
    let large = vec![b'x'; 4 << 20];
    crate::wire::eventually("disconnected", || {
        client.call(&[&b"echo"[..], &large]);
        client.say("client list").text().lines().count() == 1
    });
    server.assert_serves();
}
