//! Consumer groups after `kill -9`, after a clean stop and after a compaction: exactly what they were before.
//!
//! Random commands on streams and groups run on a server process. Before it ends, everything that `XINFO STREAM
//! … FULL` tells is read: positions, counters, consumers, pending entries, times. The next process must tell
//! the same.

use std::path::Path;

use crate::generate::{Generator, templates};
use crate::process::{Options, Process};
use crate::wire::{Value, Wire, eventually, from_env};

/// Commands before each end of a server.
const COMMANDS: usize = 400;

fn start(dir: &Path) -> Process {
    Process::start(&Options { dir: Some(dir), policy: "always", ..Options::default() })
}

/// All that the server tells about its streams.
fn streams(client: &mut Wire) -> Vec<(String, Value)> {
    let Value::Array(keys) = client.say("keys *") else { panic!("no keys") };
    let mut names: Vec<String> = keys.iter().map(Value::text).collect();
    names.sort();
    names.retain(|name| client.call(&["type", name]).text() == "stream");
    let tell = |name: String| {
        let mut told = client.call(&["xinfo", "stream", &name, "full", "count", "0"]);
        if let Value::Array(fields) = &mut told {
            // The memory layout of a stream may differ after a compaction.
            fields.drain(2..6);
        }
        (name, told)
    };
    names.into_iter().map(tell).collect()
}

/// Commands on streams that neither wait nor depend on a connection.
fn stream_templates() -> Vec<&'static str> {
    let all = templates().filter(|text| text.starts_with('X') && !text.contains("BLOCK"));
    all.collect()
}

fn work(client: &mut Wire, generator: &mut Generator) {
    let known = stream_templates();
    for _ in 0..COMMANDS {
        let template = generator.pick(&known);
        let args = generator.made_from(template);
        client.call(&args);
    }
}

fn pending_entries(told: &[(String, Value)]) -> usize {
    let text = |value: &Value| value.text();
    told.iter().map(|(_, value)| text(value).matches("pel-count").count()).sum()
}

/// Fails with the first stream that differs.
fn compare(before: &[(String, Value)], after: &[(String, Value)], place: &str) {
    for ((name, was), (_, is)) in before.iter().zip(after) {
        assert_eq!(was.text(), is.text(), "{place}: {name}");
    }
    assert_eq!(before, after, "{place}");
}

#[test]
fn groups_are_after_a_kill_what_they_were_before() {
    let seed = from_env("STAMPEDE_GROUPS_SEED", 1);
    let mut generator = Generator::new(seed);
    let dir = tempfile::tempdir().unwrap();
    let mut before = Vec::new();
    for round in 0..6 {
        let server = start(dir.path());
        let mut client = server.connect();
        compare(&before, &streams(&mut client), &format!("round {round}, seed {seed}"));
        work(&mut client, &mut generator);
        if round % 2 == 1 {
            assert!(client.say("bgrewriteaof").text().contains("started"));
            eventually("the compaction has ended", || {
                let info = client.say("info persistence").text();
                info.contains("aof_rewrite_in_progress:0")
            });
            assert!(client.say("info persistence").text().contains("aof_last_bgrewrite_status:ok"));
            // Later changes are in the log only.
            work(&mut client, &mut generator);
        }
        before = streams(&mut client);
        assert!(pending_entries(&before) > 0, "no group in round {round}, seed {seed}");
        if round == 4 {
            server.stop();
        } else {
            server.kill();
        }
    }
    compare(&before, &streams(&mut start(dir.path()).connect()), "after the last kill");
}

/// A directory that version 0.1.0 wrote before it had consumer groups, and left when it was killed.
#[test]
fn a_directory_written_before_there_were_groups_opens() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/before-groups");
    for entry in std::fs::read_dir(fixture).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    let version = || {
        let manifest = std::fs::read_to_string(dir.path().join("manifest")).unwrap();
        manifest.lines().next().unwrap().to_owned()
    };
    // A check changes nothing.
    assert_eq!(stampede_engine::check_journal(dir.path()).unwrap().damage, None);
    assert_eq!(version(), "stampede-journal 1");
    let server = start(dir.path());
    // Before the first record of a group: a program that knows version 1 only would drop it, and refuses version 2.
    assert_eq!(version(), "stampede-journal 2");
    let mut client = server.connect();
    assert_eq!(client.say("xrange s - +").text(), "1-1 f v 3-1 f v 4-1 f v");
    let info = client.say("xinfo stream s").text();
    assert!(info.contains("last-generated-id 9-9 max-deleted-entry-id 2-1"), "{info}");
    assert_eq!(client.say("xlen empty").int(), 0);
    assert_eq!(client.say("pexpiretime k").int(), 4_102_444_800_123);
    assert_eq!(client.say("dbsize").int(), 8);
    assert_eq!(client.say("xgroup create s g 0").text(), "OK");
    assert!(client.say("xreadgroup group g c count 2 streams s >").text().contains("3-1"));
    server.kill();
    let again = start(dir.path());
    assert_eq!(again.connect().say("xpending s g").text(), "Int(2) 1-1 3-1 c 2");
}
