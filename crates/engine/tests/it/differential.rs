//! Runs the same commands on the engine and on a real redis-server; every reply must be the same bytes.
//!
//! Sequences are generated from a seed (see `generate.rs`); `rules.rs` lists the exceptions with their
//! reasons. Redis runs a batch first. A command whose reply depends on the clock (`XADD *`) then runs in
//! the engine at Redis's time. After each case the recorded effects are replayed into an empty engine,
//! which must then hold the same keys.
//!
//! The normal run is short. A long run: `STAMPEDE_DIFF_COMMANDS=1000000 cargo nextest run --release
//! differential --no-capture`, with `STAMPEDE_DIFF_SEED` for another first seed.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stampede_engine::testing::{self, Keyspace, Protocol};

use crate::generate::{Generator, Step, templates};
use crate::redis::{Client, Server};
use crate::rules::{self, Tree};
use crate::shrink::shrink;

const CASE: usize = 4000;
const BATCH: usize = 100;
const MAX_REPORTS: usize = 12;

/// One report for each command that differs.
type Reports = BTreeMap<Vec<u8>, String>;

struct Difference {
    /// The number of steps run, including the one that differs.
    steps: usize,
    what: String,
}

fn now_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64
}

/// Runs steps on both servers, from empty; commands that are known to differ are not compared.
fn run(
    client: &mut Client,
    protocol: Protocol,
    steps: &[Step],
    known: &Reports,
) -> Result<Keyspace, Difference> {
    let version = if protocol == Protocol::Resp3 { "3" } else { "2" };
    let reset = [vec!["SELECT", "0"], vec!["FLUSHALL"], vec!["HELLO", version]];
    let reset = reset.map(|args| args.iter().map(|arg| arg.as_bytes().to_vec()).collect());
    client.call_all(reset.iter());
    let mut engine = Keyspace::new(protocol);
    let mut done = 0;
    while done < steps.len() {
        let rest = &steps[done..];
        let pause = rest.iter().take(BATCH).position(|step| step.pause);
        let batch = &rest[..pause.map_or(BATCH.min(rest.len()), |at| at + 1)];
        let replies = client.call_all(batch.iter().flat_map(|step| &step.commands));
        let mut replies = replies.into_iter();
        for step in batch {
            done += 1;
            for args in &step.commands {
                let theirs = replies.next().unwrap();
                engine.set_time_us(clock_of(args, &theirs).unwrap_or_else(now_us));
                let ours = engine.call(args);
                let mut ordered = |key: &[u8]| engine.is_ordered(key);
                let new = !known.contains_key(&args[0].to_ascii_uppercase());
                if new && !rules::same(args, &ours, &theirs, &mut ordered) {
                    let what = difference(&theirs, &ours);
                    return Err(Difference { steps: done, what });
                }
            }
            if step.pause {
                std::thread::sleep(Duration::from_millis(8));
                engine.set_time_us(now_us());
                // Redis may not have expired the keys yet, and `DBSIZE` would count them.
                let look = all_keys();
                client.call_all([&look].into_iter());
                engine.call(&look);
            }
        }
    }
    Ok(engine)
}

/// Both replies, from shortly before the first byte that differs.
pub(crate) fn difference(theirs: &[u8], ours: &[u8]) -> String {
    let same = theirs.iter().zip(ours).take_while(|(theirs, ours)| theirs == ours).count();
    let part = |reply: &[u8]| {
        let shown = reply[same.saturating_sub(100)..].iter().take(300).copied();
        shown.collect::<Vec<u8>>().escape_ascii().to_string()
    };
    format!("redis:  {}\nengine: {}", part(theirs), part(ours))
}

/// A command that accesses every key.
fn all_keys() -> Vec<Vec<u8>> {
    let kinds = ["s", "h", "l", "t", "z", "x"].into_iter();
    let keys = kinds.flat_map(|kind| ["1", "2", "big"].map(|suffix| format!("{kind}{suffix}")));
    ["EXISTS".to_owned()].into_iter().chain(keys).map(String::into_bytes).collect()
}

/// The time at which Redis chose the id of an entry.
fn clock_of(args: &[Vec<u8>], reply: &[u8]) -> Option<i64> {
    let auto = args[0].eq_ignore_ascii_case(b"XADD") && args.iter().any(|arg| arg == b"*");
    match auto.then(|| rules::parse(reply))? {
        Tree::Bulk(id) => {
            let ms: i64 = std::str::from_utf8(&id).ok()?.split('-').next()?.parse().ok()?;
            ms.checked_mul(1000)
        }
        _ => None,
    }
}

fn check_replay(mut engine: Keyspace, seed: u64) {
    let mut again = engine.replayed().unwrap();
    let (live, replayed) = (engine.contents(), again.contents());
    let difference = live.iter().zip(&replayed).find(|(live, replayed)| live != replayed);
    if live != replayed {
        panic!(
            "seed {seed}: replayed effects differ: {} and {} keys, {difference:?}",
            live.len(),
            replayed.len()
        );
    }
}

fn compare(first_seed: u64, commands: usize) {
    let server = Server::start();
    let mut client = Client::connect(server.port);
    let (mut seed, mut covered) = (first_seed, 0);
    // One report per command, and a limited number: the first differences are fixed first.
    let mut reports = Reports::new();
    while covered < commands && reports.len() < MAX_REPORTS {
        let mut generator = Generator::new(seed);
        let steps: Vec<Step> = (0..CASE).map(|_| generator.step()).collect();
        // Both protocols in turn.
        let protocol = if seed % 2 == 0 { Protocol::Resp3 } else { Protocol::Resp2 };
        match run(&mut client, protocol, &steps, &reports) {
            Ok(engine) => check_replay(engine, seed),
            Err(difference) => {
                let name = steps[difference.steps - 1].commands[0][0].to_ascii_uppercase();
                let text = report(&mut client, protocol, &steps, &difference, seed, &reports);
                reports.insert(name, text);
            }
        }
        covered += steps.iter().map(|step| step.commands.len()).sum::<usize>();
        seed += 1;
    }
    let texts: Vec<String> = reports.into_values().collect();
    assert!(texts.is_empty(), "{}", texts.join("\n\n"));
    println!("{covered} commands, seeds {first_seed} to {}, no difference", seed - 1);
}

/// The shortest sequence that ends in the same difference.
fn report(
    client: &mut Client,
    protocol: Protocol,
    steps: &[Step],
    difference: &Difference,
    seed: u64,
    known: &Reports,
) -> String {
    let failing = steps[..difference.steps].to_vec();
    let last = failing.last().cloned();
    let short = shrink(failing, |steps| {
        let found = run(client, protocol, steps, known);
        steps.last() == last.as_ref() && found.is_err_and(|found| found.steps == steps.len())
    });
    let found = run(client, protocol, &short, known).err();
    let what = found.map_or_else(|| difference.what.clone(), |found| found.what);
    let line = |step: &Step| step.to_string().chars().take(500).collect::<String>();
    let lines: Vec<String> = short.iter().map(line).collect();
    format!("seed {seed} differs after\n{}\n{what}", lines.join("\n"))
}

pub(crate) fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: {text}?")))
}

#[test]
fn the_engine_answers_as_redis_does() {
    let seed = setting("STAMPEDE_DIFF_SEED").unwrap_or(1);
    let commands = setting("STAMPEDE_DIFF_COMMANDS").unwrap_or(20_000);
    compare(seed, commands as usize);
}

#[test]
fn every_command_is_generated() {
    let known: Vec<&str> = templates().map(|text| text.split(' ').next().unwrap_or(text)).collect();
    // `COMMAND` describes our own table, which is shorter than Redis's.
    let missing: Vec<&str> = testing::commands()
        .iter()
        // Commands that need a connection are compared over one, in `sessions.rs`.
        .filter(|row| !row.needs_connection)
        .map(|row| row.name)
        .filter(|name| *name != "command" && !known.contains(&name.to_uppercase().as_str()))
        .collect();
    assert!(missing.is_empty(), "no template for {missing:?}");
}
