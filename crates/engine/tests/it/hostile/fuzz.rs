//! Random bytes and random commands: a few seconds in the normal run, `STAMPEDE_FUZZ_SECONDS` for
//! more.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use stampede_engine::Config;
use stampede_engine::testing::commands;

use crate::wire::{Running, Wire, from_env, request};

fn until() -> Instant {
    Instant::now() + Duration::from_secs(from_env("STAMPEDE_FUZZ_SECONDS", 3))
}

/// Reads available replies for a short time.
fn drain(client: &mut Wire) {
    client.stream.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
    let mut buffer = [0; 1 << 16];
    for _ in 0..20 {
        if client.stream.read(&mut buffer).unwrap_or(0) == 0 {
            return;
        }
    }
}

#[test]
fn random_bytes_harm_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config { io_threads: 4, dir: Some(dir.path().into()), ..Config::default() };
    let server = Running::start(config);
    let mut random = fastrand::Rng::with_seed(1);
    let alphabet = b"**$$$0123456789-+\r\r\n\n\"'\\x \0getsPING\xff";
    let (until, mut connections) = (until(), 0);
    while Instant::now() < until {
        let mut client = server.connect();
        for _ in 0..random.usize(1..5) {
            let len = random.usize(..3000);
            let bytes: Vec<u8> = match random.u8(..3) {
                0 => (0..len).map(|_| random.u8(..)).collect(),
                1 => (0..len).map(|_| alphabet[random.usize(..alphabet.len())]).collect(),
                // A valid request with one changed byte.
                _ => {
                    let mut bytes = request(&["set", "key", "value"]).repeat(1 + len / 100);
                    let at = random.usize(..bytes.len());
                    bytes[at] = random.u8(..);
                    bytes
                }
            };
            if client.stream.write_all(&bytes).is_err() {
                break;
            }
        }
        if random.bool() {
            drain(&mut client);
        }
        connections += 1;
        if connections % 100 == 0 {
            server.assert_serves();
        }
    }
    println!("{connections} connections of garbage");
    server.assert_serves();
}

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "", "0", "1", "-1", "2", "10", "-10", "100", "0.5", "-0.5", "1e3", "inf", "-inf", "nan", "+inf",
    "9223372036854775807", "-9223372036854775808", "9223372036854775808", "4294967296", "(1", "[a",
    "-", "+", "$", "*", ">", "0-0", "1-1", "5-*", "1-", "~", "=", "k*", "[", "\\", "?[^a", "a", "b",
    "m", "ms", "nx", "xx", "gt", "lt", "ch", "incr", "ex", "px", "exat", "pxat", "keepttl", "get",
    "persist", "withscores", "withvalues", "limit", "count", "match", "type", "novalues", "byscore",
    "bylex", "rev", "left", "right", "before", "after", "rank", "maxlen", "minid", "nomkstream",
    "streams", "block", "weights", "aggregate", "sum", "min", "max", "store", "db", "replace",
    "len", "string", "list", "hash", "set", "zset", "stream", "full", "groups", "encoding",
    "refcount", "freq", "idletime", "usage", "doctor", "samples", "async", "sync", "list", "info",
    "id", "setname", "getname", "setinfo", "lib-name", "no-evict", "no-touch", "tracking", "on",
    "off", "unblock", "timeout", "error", "load", "exists", "flush", "kill", "yes", "no",
    "channels", "numsub", "numpat", "help", "docs", "count", "getkeys", "getkeysandflags", "reset",
    "get", "default", "2", "3", "auth", "return 1", "return redis.call(KEYS[1], ARGV[1], ARGV[2])",
    "return {1, {2, 'x'}, false}", "return redis.pcall(ARGV[1], KEYS[1])", "error('x')", "\u{0}",
    "\r\n", "ü",
];

#[test]
fn random_commands_harm_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config {
        io_threads: 2,
        dir: Some(dir.path().into()),
        script_time: Duration::from_millis(200),
        ..Config::default()
    };
    let server = Running::start(config);
    let seed = from_env("STAMPEDE_FUZZ_SEED", 2);
    let mut random = fastrand::Rng::with_seed(seed);
    let keys: Vec<String> = (0..12).map(|n| format!("k{n}")).collect();
    let long = "long ".repeat(3000);
    let rows = commands();
    let (until, mut commands) = (until(), 0_u64);
    while Instant::now() < until {
        let mut client = server.connect();
        for _ in 0..random.usize(1..30) {
            let mut batch = Vec::new();
            for _ in 0..random.usize(1..60) {
                let command = &rows[random.usize(..rows.len())];
                // Mostly the right number of arguments.
                let arity = command.arity.unsigned_abs() as usize;
                let extra = if command.arity < 0 { random.usize(..5) } else { 0 };
                let count = if random.u8(..20) == 0 { random.usize(1..7) } else { arity + extra };
                let mut args: Vec<&str> = vec![command.name];
                while args.len() < count {
                    args.push(match random.u8(..10) {
                        0..5 if args.len() == 1 => &keys[random.usize(..keys.len())],
                        0..2 => &keys[random.usize(..keys.len())],
                        2 if random.u8(..20) == 0 => &long,
                        2 => rows[random.usize(..rows.len())].name,
                        _ => WORDS[random.usize(..WORDS.len())],
                    });
                }
                batch.extend(request(&args));
                commands += 1;
            }
            if client.stream.write_all(&batch).is_err() {
                break;
            }
            drain(&mut client);
        }
        if random.u8(..20) == 0 {
            server.assert_serves();
        }
    }
    println!("{commands} random commands with seed {seed}");
    server.assert_serves();
    // All these writes can be replayed.
    drop(server);
    Running::start(Config { dir: Some(dir.path().into()), ..Config::default() }).assert_serves();
}
