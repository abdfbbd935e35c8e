//! Integers at the edges of their range, in every argument of every command: the engine must answer.
//!
//! Redis is not asked: some of these (`SRANDMEMBER s -9223372036854775807`) keep it busy until its memory is
//! full. `differential.rs` compares those that it answers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use stampede_engine::Config;
use stampede_engine::testing::{Keyspace, Protocol};

use crate::generate::{Generator, templates};
use crate::rules::parse;
use crate::wire::{Running, Value};

const EDGES: [&str; 20] = [
    "9223372036854775807",
    "9223372036854775806",
    "-9223372036854775808",
    "-9223372036854775807",
    "4611686018427387904",
    "4611686018427387903",
    "-4611686018427387904",
    "-4611686018427387905",
    "9223372036854775",
    "-9223372036854776",
    "18446744073709551615",
    "18446744073709551616",
    "4294967296",
    "-4294967297",
    "-2147483649",
    "1e308",
    "-1e308",
    "0",
    "-1",
    "#9223372036854775807",
];

fn filled() -> Keyspace {
    let mut keyspace = Keyspace::new(Protocol::Resp2);
    keyspace.set_time_us(1_700_000_000_000_000);
    for line in [
        "SET s1 12",
        "SET s2 text",
        "HSET h1 f1 1 f2 2",
        "HSET h2 f1 9223372036854775807",
        "RPUSH l1 a b c",
        "RPUSH l2 1 2 3",
        "SADD t1 1 2 3",
        "SADD t2 a b",
        "ZADD z1 1 a 2 b 3 c",
        "ZADD y1 0 a 0 b",
        "XADD x1 1-1 f v",
        "XADD x1 2-1 f v",
    ] {
        keyspace.call(&crate::sessions::words(line));
    }
    keyspace
}

#[test]
fn no_integer_makes_a_command_panic() {
    let mut failures = Vec::new();
    let mut tried = 0;
    for (seed, template) in templates().enumerate() {
        for variant in 0..3 {
            let mut generator = Generator::new(1000 * seed as u64 + variant);
            let plain = generator.made_from(template);
            for at in 1..plain.len().min(12) {
                for edge in EDGES {
                    let mut args = plain.clone();
                    args[at] = edge.as_bytes().to_vec();
                    tried += 1;
                    let answered = catch_unwind(AssertUnwindSafe(|| {
                        let mut keyspace = filled();
                        let reply = keyspace.call(&args);
                        // A blocking command has no reply here.
                        if !reply.is_empty() {
                            parse(&reply);
                        }
                    }));
                    if answered.is_err() {
                        let words = args.iter().map(|arg| arg.escape_ascii().to_string());
                        failures.push(words.collect::<Vec<_>>().join(" "));
                    }
                }
            }
        }
    }
    println!("{tried} calls");
    failures.dedup();
    assert!(failures.is_empty(), "{} calls panic:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn counts_of_draws_are_limited_and_the_server_goes_on() {
    let server = Running::start(Config::default());
    let mut client = server.connect();
    client.say("sadd s a b");
    client.say("hset h f v");
    client.say("zadd z 1 m");
    for command in ["srandmember s", "hrandfield h", "zrandmember z"] {
        for count in ["-9223372036854775807", "-1048577", "-4611686018427387903"] {
            let refused = Value::Error("ERR value is out of range".into());
            assert_eq!(client.say(&format!("{command} {count}")), refused, "{command} {count}");
        }
        let Value::Array(drawn) = client.say(&format!("{command} -1000")) else { panic!() };
        assert_eq!(drawn.len(), 1000);
        let Value::Array(all) = client.say(&format!("{command} 9223372036854775807")) else {
            panic!()
        };
        assert!((1..3).contains(&all.len()));
    }
    server.assert_serves();
}
