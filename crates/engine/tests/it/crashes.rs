//! The server is killed with `kill -9` at random moments while clients write in parallel.
//!
//! Every client counts 1, 2, 3 … with its own kind of write: a counter, a list, a hash, a transaction, a
//! script, several keys in turn, a pipeline, a consumer group. It notes the last number sent and the last one acknowledged.
//! After the restart a client's keys must hold exactly 1 … m, where m includes all acknowledged numbers:
//!
//! ```text
//!   acknowledged ≤ m ≤ sent     under every policy
//! ```
//!
//! `STAMPEDE_KILL_RUNS` sets the number of kills for each policy.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::process::{Options, Process};
use crate::wire::{Value, Wire, from_env, request};

/// A script that keeps two keys equal.
const SCRIPT: &str = "local n = redis.call('incr', KEYS[1]) redis.call('set', KEYS[2], n) \
                      redis.call('hset', KEYS[3], 'n', n) return n";
const BATCH: u64 = 20;

/// The kind of write a client counts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Counter,
    List,
    Hash,
    Transaction,
    Script,
    /// Four keys in turn: the keys found must be a prefix of those sent.
    Turns,
    /// Many requests before the first reply is read.
    Pipeline,
    /// Moves between lists: an item is always in exactly one list.
    Moves,
    /// Entries of a stream, read by a consumer group; odd ones are acknowledged.
    Group,
}

const WAYS: [Way; 9] = [
    Way::Counter,
    Way::List,
    Way::Hash,
    Way::Transaction,
    Way::Script,
    Way::Turns,
    Way::Pipeline,
    Way::Moves,
    Way::Group,
];

/// Adds an entry to a stream that has the consumer group `g`.
const ADD_FOR_GROUP: &str = "redis.pcall('xgroup', 'create', KEYS[1], 'g', '0', 'mkstream') \
                             return redis.call('xadd', KEYS[1], ARGV[1] .. '-1', 'n', ARGV[1])";

/// A client's knowledge when the server has died.
#[derive(Debug, Default)]
struct Notes {
    sent: u64,
    /// The last number that was acknowledged.
    acknowledged: u64,
}

impl Way {
    fn key(self, part: &str) -> String {
        format!("{self:?}:{part}")
    }

    /// The requests that count to `n`; one acknowledgement is read for all of them.
    fn requests(self, n: u64) -> Vec<Vec<u8>> {
        let number = n.to_string();
        match self {
            Self::Counter => vec![request(&["incr", &self.key("n")])],
            Self::List => vec![request(&["rpush", &self.key("list"), &number])],
            Self::Hash => vec![request(&["hset", &self.key("hash"), &number, &number])],
            Self::Transaction => vec![
                request(&["multi"]),
                request(&["incr", &self.key("a")]),
                request(&["rpush", &self.key("b"), &number]),
                request(&["exec"]),
            ],
            Self::Script => {
                let keys = ["a", "b", "c"].map(|part| self.key(part));
                vec![request(&["eval", SCRIPT, "3", &keys[0], &keys[1], &keys[2]])]
            }
            Self::Turns => vec![request(&["set", &self.key(&(n % 4).to_string()), &number])],
            Self::Pipeline => (0..BATCH)
                .map(|more| request(&["rpush", &self.key("list"), &(n + more).to_string()]))
                .collect(),
            Self::Moves => vec![
                request(&["rpush", &self.key("from"), &number]),
                request(&["lmove", &self.key("from"), &self.key("to"), "left", "right"]),
            ],
            Self::Group => {
                let key = self.key("stream");
                vec![
                    request(&["eval", ADD_FOR_GROUP, "1", &key, &number]),
                    request(&read_new(&key)),
                    acknowledged_if_odd(&key, n),
                ]
            }
        }
    }

    /// Counts from `start` until the server dies.
    fn write(self, address: SocketAddr, start: u64) -> Notes {
        let mut notes = Notes { sent: start, acknowledged: start };
        let Ok(mut client) = Wire::try_connect(address) else { return notes };
        loop {
            let (first, step) = (notes.sent + 1, if self == Self::Pipeline { BATCH } else { 1 });
            let requests = self.requests(first);
            notes.sent += step;
            if client.stream.write_all(&requests.concat()).is_err() {
                return notes;
            }
            for index in 0..requests.len() as u64 {
                match client.read() {
                    Ok(Value::Error(text)) => panic!("{self:?} {first}: {text}"),
                    Ok(_) if self == Self::Pipeline => notes.acknowledged = first + index,
                    Ok(_) if index + 1 == requests.len() as u64 => notes.acknowledged = first,
                    Ok(_) => {}
                    Err(_) => return notes,
                }
            }
        }
    }

    fn number(self, client: &mut Wire, part: &str) -> i64 {
        client.call(&["get", &self.key(part)]).int()
    }

    /// The length of a list, which must be 1, 2, 3 …
    fn list(self, client: &mut Wire, part: &str) -> u64 {
        let items = items(client.call(&["lrange", &self.key(part), "0", "-1"]));
        let whole: Vec<i64> = (1..=items.len() as i64).collect();
        assert_eq!(items, whole, "{self:?}: a hole in {part}");
        items.len() as u64
    }

    /// The last number found, after checking that none before it is missing.
    fn found(self, client: &mut Wire) -> u64 {
        match self {
            Self::Counter => self.number(client, "n") as u64,
            Self::List | Self::Pipeline => self.list(client, "list"),
            Self::Hash => {
                let mut fields = items(client.call(&["hkeys", &self.key("hash")]));
                fields.sort_unstable();
                assert_eq!(fields, (1..=fields.len() as i64).collect::<Vec<_>>());
                fields.len() as u64
            }
            Self::Transaction => {
                let (a, b) = (self.number(client, "a") as u64, self.list(client, "b"));
                assert_eq!(a, b, "half a transaction");
                a
            }
            Self::Script => {
                let (a, b) = (self.number(client, "a"), self.number(client, "b"));
                let c = client.call(&["hget", &self.key("c"), "n"]).int();
                assert_eq!((a, a), (b, c), "a part of a script");
                a as u64
            }
            Self::Turns => {
                let values: Vec<i64> =
                    (0..4).map(|n| self.number(client, &n.to_string())).collect();
                let last = values.iter().copied().max().unwrap_or(0);
                for n in (last - 3).max(1)..=last {
                    assert_eq!(values[n as usize % 4], n, "not a prefix: {values:?}");
                }
                last as u64
            }
            Self::Moves => {
                let moved = self.list(client, "to");
                let left = client.call(&["llen", &self.key("from")]).int() as u64;
                assert!(left <= 1, "{left} items were left behind");
                // An item that was pushed and not moved is moved now, so that counting can
                // continue.
                if left == 1 {
                    client.call(&["lmove", &self.key("from"), &self.key("to"), "left", "right"]);
                }
                moved + left
            }
            Self::Group => self.found_in_group(client),
        }
    }

    /// The number of entries; what the group has delivered and not acknowledged must follow from it.
    fn found_in_group(self, client: &mut Wire) -> u64 {
        let key = self.key("stream");
        let added = client.call(&["xlen", &key]).int() as u64;
        if added == 0 {
            return 0;
        }
        let before = pending(client, &key);
        let last = before.iter().copied().max().unwrap_or(0);
        let old: Vec<u64> = before.into_iter().filter(|n| *n < added).collect();
        // The entry before the last one was answered completely.
        let evens: Vec<u64> = (2..added).step_by(2).collect();
        assert_eq!(old, evens, "{added} added, {last} delivered last");
        // The last entry may not be delivered or acknowledged yet: both are done now.
        client.call(&read_new(&key));
        client.stream.write_all(&acknowledged_if_odd(&key, added)).unwrap();
        client.read().unwrap();
        assert_eq!(pending(client, &key), (2..=added).step_by(2).collect::<Vec<u64>>());
        added
    }
}

fn read_new(key: &str) -> [&str; 7] {
    ["xreadgroup", "group", "g", "c", "streams", key, ">"]
}

fn acknowledged_if_odd(key: &str, n: u64) -> Vec<u8> {
    if n.is_multiple_of(2) {
        return request(&["ping"]);
    }
    request(&["xack", key, "g", &format!("{n}-1")])
}

/// The numbers of all pending entries, each of which was delivered once.
fn pending(client: &mut Wire, key: &str) -> Vec<u64> {
    let reply = client.call(&["xpending", key, "g", "-", "+", "1000000"]);
    let Value::Array(entries) = reply else { panic!("not an array: {reply:?}") };
    let number = |entry: &Value| {
        let Value::Array(parts) = entry else { panic!("not an entry: {entry:?}") };
        assert_eq!((parts[1].text(), parts[3].int()), ("c".to_owned(), 1), "{entry:?}");
        parts[0].text().split('-').next().unwrap_or_default().parse().unwrap()
    };
    entries.iter().map(number).collect()
}

fn items(reply: Value) -> Vec<i64> {
    let Value::Array(items) = reply else { panic!("not an array: {reply:?}") };
    items.iter().map(Value::int).collect()
}

/// Requests compactions continuously.
fn compact(address: SocketAddr, stop: Arc<AtomicBool>) -> JoinHandle<u64> {
    thread::spawn(move || {
        let Ok(mut client) = Wire::try_connect(address) else { return 0 };
        let mut started = 0;
        while !stop.load(Ordering::Relaxed) {
            match client.try_call(&["bgrewriteaof"]) {
                Ok(Value::Status(_)) => started += 1,
                Ok(_) => thread::sleep(Duration::from_micros(200)),
                Err(_) => break,
            }
        }
        started
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compactions {
    None,
    Constant,
}

fn killed_again_and_again(policy: &str, compactions: Compactions) {
    let runs = from_env("STAMPEDE_KILL_RUNS", 6);
    let seed = from_env("STAMPEDE_KILL_SEED", u64::from(std::process::id()));
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = tempfile::tempdir().unwrap();
    let (mut acknowledged, mut torn, mut compacted) = (0, 0, 0);
    let mut last: Vec<(Way, Notes)> = Vec::new();
    for run in 0..=runs {
        let threads = if run % 2 == 0 { 1 } else { 3 };
        let options = Options { dir: Some(dir.path()), policy, threads, ..Options::default() };
        let server = Process::start(&options);
        torn += u64::from(server.torn_bytes > 0);
        let mut client = server.connect();
        let found: Vec<u64> = WAYS.iter().map(|way| way.found(&mut client)).collect();
        for ((way, notes), found) in last.iter().zip(&found) {
            let what = format!("run {run} of {policy}, seed {seed}, {way:?}");
            assert!(*found <= notes.sent, "{what}: {found} found, {} sent", notes.sent);
            let told = notes.acknowledged;
            assert!(told <= *found, "{what}: {told} acknowledged, {found} found");
        }
        if run == runs {
            server.stop();
            break;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let compactor =
            (compactions == Compactions::Constant).then(|| compact(server.address, stop.clone()));
        let writers: Vec<_> = WAYS
            .iter()
            .zip(&found)
            .map(|(way, from)| {
                let (address, from) = (server.address, *from);
                (*way, thread::spawn(move || way.write(address, from)))
            })
            .collect();
        thread::sleep(Duration::from_millis(random.u64(5..300)));
        stop.store(true, Ordering::Relaxed);
        server.kill();
        last = writers.into_iter().map(|(way, thread)| (way, thread.join().unwrap())).collect();
        let told = last.iter().zip(&found).map(|((_, notes), from)| notes.acknowledged - from);
        acknowledged += told.sum::<u64>();
        compacted += compactor.map_or(0, |thread| thread.join().unwrap());
    }
    println!(
        "{policy}, compactions {compactions:?}: {runs} kills, {acknowledged} acknowledged, none missing; \
         {torn} torn tails, {compacted} compactions begun"
    );
    assert!(acknowledged > 0);
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9_under_always() {
    killed_again_and_again("always", Compactions::None);
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9_under_everysec() {
    killed_again_and_again("everysec", Compactions::None);
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9_under_never() {
    killed_again_and_again("never", Compactions::None);
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9_in_a_compaction_under_always() {
    killed_again_and_again("always", Compactions::Constant);
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9_in_a_compaction_under_everysec() {
    killed_again_and_again("everysec", Compactions::Constant);
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9_in_a_compaction_under_never() {
    killed_again_and_again("never", Compactions::Constant);
}
