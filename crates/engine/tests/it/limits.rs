//! `maxmemory`, `INFO commandstats`, and a panic inside the server.

use std::sync::{Arc, Mutex};

use stampede_engine::{Config, Server};

use crate::process::{Options, Process};
use crate::redis;
use crate::sessions::words;
use crate::wire::{Running, Value, Wire, eventually};

/// Commands while memory is full, from a keyspace with a string, a list and a set. A script is one
/// line here.
const WHEN_FULL: &[&[&str]] = &[
    &["GET", "s"],
    &["SET", "s", "v"],
    &["DEL", "gone"],
    &["LPOP", "l"],
    &["RPUSH", "l", "x"],
    &["SREM", "t", "a"],
    &["HSET", "h", "f", "v"],
    &["SETBIT", "s", "1", "1"],
    &["SORT", "l", "STORE", "m"],
    &["SORT_RO", "l"],
    &["EXPIRE", "s", "100"],
    &["PING"],
    &["PUBLISH", "c", "m"],
    &["NOSUCH"],
    &["MULTI"],
    &["GET", "s"],
    &["EXEC"],
    &["MULTI"],
    &["DISCARD"],
    &["MULTI"],
    &["EXEC"],
    &["EXEC"],
    &["DISCARD"],
    &["EVAL", "return redis.call('GET', 's')", "0"],
    &["EVAL", "return redis.call('SET', 's', 'v')", "0"],
    &["EVAL", "return redis.pcall('SET', 's', 'v')", "0"],
    &["EVAL", "redis.call('DEL', 'none') return redis.call('SET', 'after', 'v')", "0"],
    &["EVAL", "redis.call('LPOP', 'l') return redis.call('RPUSH', 'l', 'y')", "0"],
    &["EVAL", "redis.pcall('SET', 'a', '1') return redis.pcall('SET', 'a', '2')", "0"],
    &["EVAL", "#!lua\nreturn 1", "0"],
    &["EVAL", "#!lua flags=allow-oom\nreturn redis.call('SET', 'allowed', 'v')", "0"],
    &["EVAL", "#!lua flags=no-writes\nreturn redis.call('GET', 's')", "0"],
    &["EVAL_RO", "return redis.call('GET', 's')", "0"],
    &["CONFIG", "GET", "maxmemory"],
    &["CONFIG", "SET", "maxmemory", "abc"],
    &["CONFIG", "SET", "maxmemory", "-1"],
    &["CONFIG", "SET", "maxmemory", ""],
    &["CONFIG", "SET", "maxmemory", "2gb"],
    &["CONFIG", "GET", "maxmemory"],
    &["SET", "s", "again"],
    &["CONFIG", "SET", "maxmemory", "0"],
    &["MGET", "s", "after", "allowed", "a"],
];

#[test]
fn a_full_memory_is_answered_as_redis_answers() {
    let server = redis::Server::start();
    let engine = Running::start(Config::default());
    let answers = |port: u16| {
        let mut client = redis::Client::connect(port);
        let before = ["SET s v", "RPUSH l 1 2 3", "SADD t a b", "MULTI", "SET queued v"].map(words);
        client.call_all(before.iter());
        let mut other = redis::Client::connect(port);
        other.call_all([words("CONFIG SET maxmemory 1")].iter());
        // A transaction that was queued before.
        let mut replies = client.call_all([words("EXEC")].iter());
        let args = |line: &&[&str]| line.iter().map(|arg| arg.as_bytes().to_vec()).collect();
        let commands: Vec<Vec<Vec<u8>>> = WHEN_FULL.iter().map(args).collect();
        replies.extend(client.call_all(commands.iter()));
        replies
    };
    let (theirs, ours) = (answers(server.port), answers(engine.address.port()));
    let lines = [&["EXEC"][..]].into_iter().chain(WHEN_FULL.iter().copied());
    for ((line, their), our) in lines.zip(&theirs).zip(&ours) {
        assert_eq!(our.escape_ascii().to_string(), their.escape_ascii().to_string(), "{line:?}");
    }
}

/// The counters of a command: calls, rejected, failed.
fn counted(port: u16, name: &str) -> Option<(u64, u64, u64)> {
    let reply =
        redis::Client::connect(port).call_all([words("INFO commandstats")].iter()).remove(0);
    let text = String::from_utf8_lossy(&reply).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:")))?;
    let field = |name: &str| {
        let value = line.split(',').find_map(|part| part.strip_prefix(name)).unwrap();
        value.parse::<f64>().unwrap() as u64
    };
    // The others must be there as well.
    let _ = (field("usec="), field("usec_per_call="));
    Some((field("calls="), field("rejected_calls="), field("failed_calls=")))
}

#[test]
fn calls_are_counted_as_redis_counts_them() {
    let server = redis::Server::start();
    let engine = Running::start(Config::default());
    let lines = [
        "SET k v",
        "GET k",
        "GET k",
        "GET",
        "INCR k",
        "LPUSH k x",
        "MULTI",
        "SET k w",
        "GET k",
        "EXEC",
        "EXEC",
        "CLIENT SETNAME n",
        "CLIENT GETNAME",
        "CLIENT NOPE",
        "OBJECT ENCODING k",
        "NOSUCH",
        "EVAL redis.call('SET','k','1')redis.call('INCR','k')return(redis.pcall('LPUSH','k','x')) 0",
        "EVALSHA 0123456789012345678901234567890123456789 0",
        "CONFIG SET maxmemory 1",
        "SET k v",
        "CONFIG SET maxmemory 0",
        "SELECT 99",
    ];
    let names = [
        "set",
        "get",
        "incr",
        "lpush",
        "multi",
        "exec",
        "client|setname",
        "client|getname",
        "eval",
        "evalsha",
        "select",
        "object|encoding",
        "config|set",
        "zadd",
    ];
    let counts = |port: u16| {
        let reset = words("CONFIG RESETSTAT");
        let mut client = redis::Client::connect(port);
        client.call_all([reset.clone()].iter());
        client.call_all(lines.map(words).iter());
        let all = names.map(|name| (name, counted(port, name)));
        client.call_all([reset].iter());
        assert_eq!(counted(port, "set"), None);
        all
    };
    assert_eq!(counts(engine.address.port()), counts(server.port));
}

#[test]
fn time_is_counted_and_only_shown_when_asked_for() {
    let server = Running::start(Config { allow_debug: true, ..Config::default() });
    let mut client = server.connect();
    client.say("debug sleep 0.05");
    let stats = client.say("info commandstats").text();
    let usec = stats.lines().find_map(|line| line.strip_prefix("cmdstat_debug:calls=1,usec="));
    let usec: u64 = usec.unwrap().split(',').next().unwrap().parse().unwrap();
    assert!(usec >= 50_000, "{stats}");
    for (section, shown) in
        [("", false), (" default", false), (" all", true), (" everything", true)]
    {
        let text = client.say(&format!("info{section}")).text();
        assert_eq!(text.contains("cmdstat_"), shown, "info{section}");
    }
}

#[test]
fn a_panic_of_the_server_is_told_and_loses_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let failure = Arc::new(Mutex::new(None));
    let told = failure.clone();
    let config = || Config {
        tcp: vec![([127, 0, 0, 1], 0).into()],
        dir: Some(dir.path().to_owned()),
        allow_debug: true,
        ..Config::default()
    };
    let server = Server::start(Config {
        on_failure: Some(Arc::new(move |reason| *told.lock().unwrap() = Some(reason.to_owned()))),
        ..config()
    })
    .unwrap();
    let mut client = Wire::connect(server.tcp_addr().unwrap());
    assert_eq!(client.say("set k v").text(), "OK");
    assert!(client.try_call(&["debug", "panic"]).is_err());
    eventually("told", || failure.lock().unwrap().is_some());
    server.stop().unwrap();
    let again = Server::start(config()).unwrap();
    let mut client = Wire::connect(again.tcp_addr().unwrap());
    assert_eq!(client.say("get k"), Value::Bulk(b"v".to_vec()));
    again.stop().unwrap();
}

/// A process of its own, because the memory is that of the whole process.
#[test]
fn a_compaction_does_not_use_up_the_memory_limit() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { dir: Some(dir.path()), ..Options::default() };
    let server = Process::start(&options);
    let mut client = server.connect();
    // About 30 MB in small values, which a second keyspace has, too.
    let fill = "for n = 1, 6000 do redis.call('set', KEYS[1] .. n, ARGV[1]) end";
    for part in 0..10 {
        client.call(&["eval", fill, "1", &format!("{part}:"), &"v".repeat(400)]);
    }
    let info = |client: &mut Wire, section: &str, name: &str| {
        let info = client.call(&["info", section]).text();
        let line = info.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
        line.unwrap_or_else(|| panic!("no {name} in {info}")).parse::<u64>().unwrap()
    };
    let used = info(&mut client, "memory", "used_memory");
    let limit = used + (6 << 20);
    client.call(&["config", "set", "maxmemory", &limit.to_string()]);
    assert!(client.say("bgrewriteaof").text().contains("started"));
    let mut most = 0;
    eventually("the compaction has ended", || {
        for n in 0..5 {
            assert_eq!(client.say(&format!("set small{n} v")).text(), "OK", "{most} of {limit}");
        }
        most = most.max(info(&mut client, "memory", "used_memory"));
        info(&mut client, "persistence", "aof_rewrite_in_progress") == 0
    });
    assert!(most > limit, "the compaction took no memory: {used}, {most}");
    // The limit holds for data.
    client.call(&["config", "set", "maxmemory", &(used / 2).to_string()]);
    assert!(client.say("set small0 w").text().starts_with("OOM "));
    server.stop();
}
