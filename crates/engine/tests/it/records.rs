//! The size limit of a record: a command, script or transaction that would exceed it is refused before it
//! changes anything, and the journal goes on.

use std::path::Path;

use stampede_engine::Config;

use crate::wire::{Running, Wire};

/// In place of the gigabyte of a real server.
const LIMIT: usize = 100_000;
const TOO_LARGE: &str = "ERR too large: the changes of one command, script or transaction";

fn start(dir: &Path) -> Running {
    Running::start(Config { dir: Some(dir.into()), max_record: LIMIT, ..Config::default() })
}

/// Makes a set whose members have 120 kB.
fn make_large_set(client: &mut Wire, key: &str) {
    for tens in 0..12 {
        let members: Vec<String> = (0..10).map(|n| format!("{:01000}", tens * 10 + n)).collect();
        let members = members.iter().map(String::as_str);
        client.call(&["sadd", key].into_iter().chain(members).collect::<Vec<_>>());
    }
    assert_eq!(client.call(&["scard", key]).int(), 120);
}

#[test]
fn what_does_not_fit_into_a_record_is_refused_and_the_rest_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let mut client = server.connect();
    let refused = |text: String| assert!(text.starts_with(TOO_LARGE), "{text}");
    let large = "x".repeat(60_000);
    for n in 0..5 {
        make_large_set(&mut client, &format!("set{n}"));
    }
    refused(client.call(&["mset", "a", &large, "b", &large]).text());
    refused(client.say("spop set0 115").text());
    assert_eq!(client.say("scard set0").int(), 120);
    // A set that is taken as a whole is a small record.
    assert!(client.call(&["eval", "return #redis.call('spop', 'set1', 500)", "0"]).int() == 120);
    assert_eq!(client.say("exists set1").int(), 0);
    // In a transaction, only the command that does not fit fails.
    for line in ["multi", "spop set2 60", "spop set2 50", "set c 1", "exec"] {
        let reply = client.say(line);
        if line == "exec" {
            let text = format!("{reply:?}");
            assert_eq!(text.matches(TOO_LARGE).count(), 1, "{}", &text[text.len() - 300..]);
        }
    }
    assert_eq!((client.say("scard set2").int(), client.say("get c").int()), (60, 1));
    let script = "for n = 1, 9 do redis.call('set', n, ARGV[1]) end";
    let told = client.call(&["eval", script, "0", &"y".repeat(20_000)]).text();
    assert!(told.contains("the script has written too much"), "{told}");
    // The journal takes writes, and has all of it.
    assert_eq!(client.say("set after 1").text(), "OK");
    drop(client);
    drop(server);
    let server = start(dir.path());
    let mut client = server.connect();
    for (line, expected) in [
        ("scard set0", 120),
        ("exists set1", 0),
        ("scard set2", 60),
        ("get c", 1),
        ("exists a b", 0),
        ("get after", 1),
    ] {
        assert_eq!(client.say(line).int(), expected, "{line}");
    }
}

#[test]
fn a_key_larger_than_an_item_is_compacted_and_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let server = Running::start(Config { dir: Some(dir.path().into()), ..Config::default() });
    let mut client = server.connect();
    for n in 0..40 {
        client.call(&["rpush", "list", &format!("{n:060000}")]);
    }
    assert!(client.say("bgrewriteaof").text().contains("started"));
    crate::wire::eventually("compacted", || {
        let info = client.say("info persistence").text();
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_last_bgrewrite_status:ok")
    });
    drop(client);
    drop(server);
    let server = Running::start(Config { dir: Some(dir.path().into()), ..Config::default() });
    let mut client = server.connect();
    assert_eq!(client.say("llen list").int(), 40);
    assert!(client.say("lindex list 39").text().ends_with("39"));
}
