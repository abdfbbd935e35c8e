//! The server is killed with `kill -9` at random moments while clients write in parallel.
//!
//! Every client counts 1, 2, 3 … with its own kind of write: a counter, a list, a hash, a transaction, a
//! script, several keys in turn, a pipeline. It notes the last number sent and the last one acknowledged.
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
}

const WAYS: [Way; 8] = [
    Way::Counter,
    Way::List,
    Way::Hash,
    Way::Transaction,
    Way::Script,
    Way::Turns,
    Way::Pipeline,
    Way::Moves,
];

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
        }
    }
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
