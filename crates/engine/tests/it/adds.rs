//! Awaited adds, as the producers of a queue make them, while the server is killed with `kill -9` again and again.
//!
//! One script gives out an id and stores the job under it, as BullMQ's script does. A producer waits for each id before
//! its next add. Nothing acknowledged may be lost: every id that a producer was given must have its job, with the data
//! of that producer. So no id is given out twice either. Others learn of ids, too, and what they saw must be there
//! after the kill:
//!
//! ```text
//!   reader      GET of the counter            subscriber   the script's message
//!   waiting     BLPOP, XREAD BLOCK            (each is one connection)
//! ```
//!
//! `STAMPEDE_ADDS` and `STAMPEDE_ADD_KILLS` make it larger: 20,000 and 20 are the figures of `interop/run kills`.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::process::{Options, Process};
use crate::wire::{Value, Wire, eventually, from_env};

const PRODUCERS: u64 = 4;
const ADD: &str = "local id = redis.call('incr', 'id') \
                   redis.call('hset', 'job:' .. id, 'data', ARGV[1]) \
                   redis.call('lpush', 'wait', id) redis.call('lpush', 'marker', id) \
                   redis.call('xadd', 'events', '*', 'added', id) \
                   redis.call('publish', 'added', id) return id";

/// All ids that were given out, with the data of their jobs.
type Ledger = Arc<Mutex<HashMap<i64, String>>>;

/// Adds jobs until the server dies or the test is over.
fn produce(address: SocketAddr, who: String, ledger: Ledger, over: Arc<AtomicBool>) {
    let Ok(mut client) = Wire::try_connect(address) else { return };
    for n in 0.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let data = format!("{who}:{n}");
        match client.try_call(&["eval", ADD, "0", &data]) {
            Ok(Value::Int(id)) => {
                let before = ledger.lock().unwrap().insert(id, data.clone());
                assert_eq!(before, None, "id {id} was given out again, to {data}");
            }
            Ok(other) => panic!("{data}: {other:?}"),
            Err(_) => return,
        }
    }
}

/// How a connection learns of ids without adding.
#[derive(Debug, Clone, Copy)]
enum Witness {
    Reader,
    Subscriber,
    Popper,
    StreamReader,
}

const WITNESSES: [Witness; 4] =
    [Witness::Reader, Witness::Subscriber, Witness::Popper, Witness::StreamReader];

impl Witness {
    /// The highest id that it has seen when the server dies or the test is over.
    fn watch(self, address: SocketAddr, over: &AtomicBool) -> i64 {
        let mut highest = 0;
        let Ok(mut client) = Wire::try_connect(address) else { return 0 };
        if matches!(self, Self::Subscriber) && client.try_call(&["subscribe", "added"]).is_err() {
            return 0;
        }
        while !over.load(Ordering::Relaxed) {
            let seen = match self {
                Self::Reader => client.try_call(&["get", "id"]),
                Self::Subscriber => client.read(),
                Self::Popper => client.try_call(&["brpop", "marker", "1"]),
                Self::StreamReader => {
                    client.try_call(&["xread", "block", "1000", "streams", "events", "$"])
                }
            };
            let Ok(seen) = seen else { break };
            // The last number in the reply is the id.
            let id = seen.text().rsplit(' ').next().and_then(|id| id.parse().ok());
            highest = highest.max(id.unwrap_or(0));
        }
        highest
    }
}

fn start(threads: usize, policy: &str, dir: &std::path::Path) -> Process {
    Process::start(&Options { dir: Some(dir), policy, threads, ..Options::default() })
}

/// The highest id in the ledger must be at most the counter's, and every job must be there.
fn check(client: &mut Wire, ledger: &HashMap<i64, String>, what: &str) {
    let counter = client.say("get id").int();
    let highest = ledger.keys().max().copied().unwrap_or(0);
    assert!(highest <= counter, "{what}: id {highest} was given out, the counter is at {counter}");
    let lost: Vec<_> = ledger
        .iter()
        .filter(|(id, data)| client.call(&["hget", &format!("job:{id}"), "data"]).text() != **data)
        .collect();
    assert!(lost.is_empty(), "{what}: {} of {} adds are lost: {lost:?}", lost.len(), ledger.len());
}

fn adds_survive(policy: &str) {
    let adds = from_env("STAMPEDE_ADDS", 2_000) as usize;
    let kills = from_env("STAMPEDE_ADD_KILLS", 6) as usize;
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::default();
    let mut seen = 0;
    for round in 0..=kills {
        let what = format!("{policy}, after {round} kills");
        let server = start(1 + round % 3, policy, dir.path());
        let mut client = server.connect();
        check(&mut client, &ledger.lock().unwrap(), &what);
        let counter = client.say("get id").int();
        assert!(seen <= counter, "{what}: id {seen} was seen, the counter is at {counter}");
        let over = Arc::new(AtomicBool::new(false));
        let producers: Vec<JoinHandle<()>> = (0..PRODUCERS)
            .map(|n| {
                let (address, who) = (server.address, format!("{round}:{n}"));
                let (ledger, over) = (ledger.clone(), over.clone());
                thread::spawn(move || produce(address, who, ledger, over))
            })
            .collect();
        let witnesses = WITNESSES.map(|witness| {
            let (address, over) = (server.address, over.clone());
            thread::spawn(move || witness.watch(address, &over))
        });
        let goal = adds * (round + 1) / (kills + 1);
        eventually("enough adds", || ledger.lock().unwrap().len() >= goal);
        if round < kills {
            server.kill();
            producers.into_iter().for_each(|one| one.join().unwrap());
            seen = witnesses.map(|one| one.join().unwrap()).into_iter().max().unwrap_or(0);
            continue;
        }
        over.store(true, Ordering::Relaxed);
        producers.into_iter().for_each(|one| one.join().unwrap());
        check(&mut client, &ledger.lock().unwrap(), &what);
        server.stop();
        for witness in witnesses {
            witness.join().unwrap();
        }
    }
    let count = ledger.lock().unwrap().len();
    println!("{policy}: {count} awaited adds, {kills} kills, 0 lost, no id twice");
}

#[test]
fn awaited_adds_survive_kills_and_no_id_is_given_out_twice_under_always() {
    adds_survive("always");
}

#[test]
fn awaited_adds_survive_kills_and_no_id_is_given_out_twice_under_everysec() {
    adds_survive("everysec");
}

#[test]
fn awaited_adds_survive_kills_and_no_id_is_given_out_twice_under_never() {
    adds_survive("never");
}
