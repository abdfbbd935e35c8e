//! What Redis 7.2 does and Debian's redis-server 7.0 does not. The expectations come from the documentation of
//! 7.2 (`SSCAN` and `set-max-listpack-entries`, `ZRANK`, `WAITAOF`), because the engine reports 7.2.

use stampede_engine::{Config, Fsync, JournalConfig};

use crate::wire::{Running, Value, Wire};

fn ints(values: &[i64]) -> Value {
    Value::Array(values.iter().map(|value| Value::Int(*value)).collect())
}

/// The cursor and the number of members of the first page of a set of `count` members.
fn first_page(client: &mut Wire, count: usize, member: impl Fn(usize) -> String) -> (i64, usize) {
    client.say("del t");
    for number in 0..count {
        client.call(&["sadd", "t", &member(number)]);
    }
    let Value::Array(page) = client.say("sscan t 0 count 50") else { panic!("no page") };
    let Value::Array(members) = &page[1] else { panic!("no members") };
    (page[0].int(), members.len())
}

#[test]
fn a_small_set_comes_back_whole_and_a_large_one_in_pages() {
    let server = Running::start(Config::default());
    let mut client = server.connect();
    // As many as in BullMQ's test "should get paginated unprocessed dependencies keys".
    let job = |number: usize| format!("bull:test-3c1b:{number}-0f5e6f1a-8b2a-4ae2-9ac3-0d3c5c1a2b");
    assert_eq!(first_page(&mut client, 65, job), (0, 65));
    assert_eq!(first_page(&mut client, 128, job), (0, 128));
    let (cursor, members) = first_page(&mut client, 129, job);
    assert!(cursor != 0 && (50..129).contains(&members), "{cursor} {members}");
    let long = |number: usize| format!("{number:065}-");
    let (cursor, members) = first_page(&mut client, 65, long);
    assert!(cursor != 0 && (50..65).contains(&members), "{cursor} {members}");
    assert_eq!(first_page(&mut client, 512, |number| number.to_string()), (0, 512));
    let (cursor, _) = first_page(&mut client, 513, |number| number.to_string());
    assert_ne!(cursor, 0);
    // In the order of insertion, also after a member was removed.
    client.say("del t");
    client.say("sadd t c a b 1");
    client.say("srem t a");
    client.say("sadd t a");
    assert_eq!(client.say("smembers t").text(), "c b 1 a");
    assert_eq!(client.say("object encoding t").text(), "listpack");
}

#[test]
fn a_small_set_keeps_form_and_order_over_a_compaction_and_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let config = || Config { dir: Some(dir.path().to_owned()), ..Config::default() };
    let server = Running::start(config());
    let mut client = server.connect();
    for line in ["sadd t 9 x 1 b", "srem t x b", "sadd t c", "sadd u 1 2 z", "srem u z"] {
        client.say(line);
    }
    let look = |client: &mut Wire| {
        ["smembers t", "object encoding t", "smembers u", "object encoding u"]
            .map(|line| client.say(line).text())
    };
    let before = look(&mut client);
    assert_eq!(before, ["9 1 c", "listpack", "1 2", "listpack"]);
    client.say("bgrewriteaof");
    crate::wire::eventually("compacted", || {
        client.say("info persistence").text().contains("aof_rewrite_in_progress:0")
    });
    drop(server);
    let server = Running::start(config());
    assert_eq!(look(&mut server.connect()), before);
}

#[test]
fn the_rank_of_a_member_comes_with_its_score() {
    let server = Running::start(Config::default());
    let mut client = server.connect();
    client.say("zadd z 1 a 2.5 b 3 c");
    assert_eq!(client.say("zrank z b").int(), 1);
    let pair = |rank: i64, score: &str| {
        Value::Array(vec![Value::Int(rank), Value::Bulk(score.as_bytes().to_vec())])
    };
    assert_eq!(client.say("zrank z b withscore"), pair(1, "2.5"));
    assert_eq!(client.say("ZREVRANK z a WITHSCORE"), pair(2, "1"));
    let raw = |client: &mut Wire, line: &str| {
        use std::io::{Read, Write};
        client.stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
        let mut bytes = [0; 1024];
        let count = client.stream.read(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    assert_eq!(raw(&mut client, "ZRANK z none WITHSCORE"), "*-1\r\n");
    assert_eq!(raw(&mut client, "ZRANK none a WITHSCORE"), "*-1\r\n");
    assert_eq!(raw(&mut client, "ZRANK z none"), "$-1\r\n");
    assert_eq!(raw(&mut client, "ZRANK z b NOPE"), "-ERR syntax error\r\n");
    let arity = "-ERR wrong number of arguments for 'zrevrank' command\r\n";
    assert_eq!(raw(&mut client, "ZREVRANK z b WITHSCORE x"), arity);
    raw(&mut client, "HELLO 3");
    assert_eq!(raw(&mut client, "ZRANK z b WITHSCORE"), "*2\r\n:1\r\n,2.5\r\n");
    assert_eq!(raw(&mut client, "ZRANK z none WITHSCORE"), "_\r\n");
}

/// Appended and durable records, as `INFO` shows them.
fn records(client: &mut Wire) -> (i64, i64) {
    let info = client.say("info persistence").text();
    let field = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse::<i64>().unwrap()
    };
    (field("journal_appended:"), field("journal_durable:"))
}

#[test]
fn waitaof_answers_when_the_clients_own_writes_are_synced() {
    for fsync in [Fsync::EverySec, Fsync::Always] {
        let dir = tempfile::tempdir().unwrap();
        let journal = JournalConfig { fsync, ..JournalConfig::default() };
        let server = Running::start(Config {
            dir: Some(dir.path().to_owned()),
            journal,
            ..Config::default()
        });
        let mut client = server.connect();
        // Nothing written: nothing to wait for.
        assert_eq!(client.say("waitaof 1 0 0"), ints(&[1, 0]));
        for round in 0..3 {
            client.say(&format!("set k {round}"));
            let (written, _) = records(&mut client);
            assert_eq!(client.say("waitaof 1 0 0"), ints(&[1, 0]));
            assert!(records(&mut client).1 >= written, "{fsync:?}");
        }
        assert_eq!(client.say("waitaof 0 0 0"), ints(&[1, 0]));
        for (line, error) in [
            ("waitaof 2 0 0", "ERR value is out of range, value must between 0 and 1"),
            ("waitaof -1 0 0", "ERR value is out of range, value must between 0 and 1"),
            ("waitaof x 0 0", "ERR value is not an integer or out of range"),
            ("waitaof 1 -1 0", "ERR value is out of range, must be positive"),
            ("waitaof 1 0 x", "ERR timeout is not an integer or out of range"),
            ("waitaof 1 0 -1", "ERR timeout is negative"),
            ("waitaof 1 0 9223372036854775807", "ERR timeout is out of range"),
        ] {
            assert_eq!(client.say(line), Value::Error(error.into()), "{line}");
        }
    }
}

#[test]
fn waitaof_gives_up_after_its_time_and_does_not_wait_in_a_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let journal = JournalConfig { fsync: Fsync::Never, ..JournalConfig::default() };
    let server =
        Running::start(Config { dir: Some(dir.path().to_owned()), journal, ..Config::default() });
    let (mut client, mut other) = (server.connect(), server.connect());
    client.say("set k v");
    assert_eq!(client.say("waitaof 1 0 30"), ints(&[0, 0]));
    client.say("multi");
    client.say("waitaof 1 0 0");
    assert_eq!(client.say("exec"), Value::Array(vec![ints(&[0, 0])]));
    // Without a write of its own, a client waits for nothing.
    assert_eq!(other.say("waitaof 1 0 0"), ints(&[1, 0]));
    let id = client.say("client id").int();
    use std::io::Write;
    client.stream.write_all(b"waitaof 1 0 0\r\n").unwrap();
    crate::wire::eventually("blocked", || other.say(&format!("client unblock {id}")).int() == 1);
    assert_eq!(client.read().unwrap(), ints(&[0, 0]));
    assert_eq!(client.say("ping").text(), "PONG");
    let none = Running::start(Config::default());
    let error = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
    assert_eq!(none.connect().say("waitaof 1 0 0"), Value::Error(error.into()));
}
