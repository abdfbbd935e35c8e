//! Runs the same sessions of several clients on the engine and on a real redis-server, over sockets; every
//! reply must be the same bytes.
//!
//! A session is a list of steps, one client after the other: plain commands, transactions in one batch or
//! in pieces, scripts, blocking commands and the commands that serve them, channels, and commands about
//! the connection itself. `generate.rs` generates sessions from a seed; `scenarios.rs` has handwritten
//! ones. Each step runs on Redis first. When all its replies have come, it runs on the engine, and the
//! replies are compared by the rules in `same.rs`. At the end the keyspaces must be equal. Then the
//! engine is restarted and must hold the same keys.
//!
//! The normal run is short. A long run: `STAMPEDE_DIFF_COMMANDS=1000000 cargo nextest run --release
//! sessions --no-capture`, with `STAMPEDE_DIFF_SEED` for another first seed.

mod client;
mod contents;
mod frame;
mod generate;
mod same;
mod scenarios;
mod scripts;
mod side;
mod step;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use self::client::{Client, Context};
use self::contents::contents;
use self::generate::{CLIENTS, session};
pub(crate) use self::side::words;
use self::side::{POLL, SETTLE_TIMEOUT, Side, port_of, start_engine};
use self::step::{Action, Command, Step};
use crate::differential::setting;
use crate::redis::Server;
use crate::shrink::shrink;

const STEPS: usize = 600;
const MAX_REPORTS: usize = 12;
/// The maximum number of commands queued after a blocked one.
const MAX_BEHIND: usize = 8;

/// The name of a difference between keyspaces.
const CONTENTS: &str = "(contents)";

/// One report per kind of difference.
type Reports = BTreeMap<String, String>;

#[derive(Debug)]
struct Difference {
    /// The command that differs.
    name: String,
    /// The number of steps run, including the one that differs.
    steps: usize,
    what: String,
}

/// Both servers, with one client on each for every client of the session.
struct Pair<'a> {
    theirs: Side,
    ours: Side,
    /// Known differences, which are not compared.
    known: &'a Reports,
    sent: usize,
}

/// How a connection has ended, if it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    None,
    /// By the client itself.
    Own,
    /// By another client.
    Killed,
}

type Found<T = ()> = Result<T, (String, String)>;

impl Pair<'_> {
    fn step(&mut self, step: &Step) -> Found {
        if !self.can_be_compared(step) {
            return Ok(());
        }
        self.sent += step.commands().len();
        let name = step.commands().first().map_or("(closing)".to_owned(), |one| one.name());
        for side in [&mut self.theirs, &mut self.ours] {
            side.begin(step);
            side.settle().map_err(|what| (name.clone(), what))?;
        }
        let quits = |command: &Rc<Command>| command.raw.is_some() || command.name() == "QUIT";
        for index in 0..self.theirs.clients.len() {
            let any = [&self.theirs, &self.ours].iter().any(|side| side.clients[index].closed);
            if any || (step.closes() && index == step.client) {
                let own =
                    index == step.client && (step.closes() || step.commands().iter().any(quits));
                let sides = [&mut self.theirs, &mut self.ours];
                sides
                    .into_iter()
                    .try_for_each(|side| side.await_close(index))
                    .map_err(|what| (name.clone(), what))?;
                self.compare(index, if own { Ending::Own } else { Ending::Killed })?;
                self.theirs.reconnect(index);
                self.ours.reconnect(index);
            }
        }
        if matches!(step.action, Action::SendAndPause(_)) {
            std::thread::sleep(Duration::from_millis(8));
            for side in [&mut self.theirs, &mut self.ours] {
                side.look_at_all_keys();
            }
        }
        self.compare_all()
    }

    /// Whether both servers must behave the same now.
    fn can_be_compared(&self, step: &Step) -> bool {
        let client = &self.theirs.clients[step.client];
        let behind = client.queue.len();
        let may_wait = step.while_waiting && behind <= MAX_BEHIND;
        // Whether a client that leaves and is killed leaves first is random.
        let kills = self.theirs.clients.iter().any(Client::is_about_to_kill);
        (behind == 0 || may_wait)
            && !(step.closes() && kills)
            && !client.would_lose_count(step.commands())
    }

    fn compare_all(&mut self) -> Found {
        // A message may come a little later than its cause.
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        while self.theirs.counts() != self.ours.counts() && Instant::now() < deadline {
            std::thread::sleep(POLL);
            self.theirs.pump();
            self.ours.pump();
        }
        (0..self.theirs.clients.len()).try_for_each(|index| self.compare(index, Ending::None))
    }

    /// Compares the replies that a client got from both servers.
    fn compare(&mut self, index: usize, ending: Ending) -> Found {
        let ids: Vec<(i64, i64)> =
            self.ours.clients.iter().zip(&self.theirs.clients).map(|(a, b)| (a.id, b.id)).collect();
        let take = |client: &mut Client| client.inbox.drain(..).collect::<Vec<_>>();
        let mut theirs = take(&mut self.theirs.clients[index]);
        let mut ours = take(&mut self.ours.clients[index]);
        for replies in [&mut theirs, &mut ours] {
            if ending == Ending::Killed {
                replies.retain(|reply| !is_message(reply));
            }
            sort_messages(replies);
        }
        for ((their, context), (our, _)) in theirs.iter().zip(&ours) {
            let name = context.name();
            if !self.known.contains_key(&name) && !same::same(context, our, their, &ids) {
                let about = match context {
                    Context::Message => String::new(),
                    Context::Reply { command, .. } => format!(" to {command}"),
                };
                let what = crate::differential::difference(their, our);
                return Err((name, format!("client {index}, the reply{about}\n{what}")));
            }
        }
        if ending == Ending::Killed {
            // Unsent replies are lost, and when a server sends them is not specified.
            return Ok(());
        }
        let waiting = |side: &Side| side.clients[index].queue.len();
        let (our_waits, their_waits) = (waiting(&self.ours), waiting(&self.theirs));
        let common = theirs.len().min(ours.len());
        let only = |who: &str, (reply, context): &(Vec<u8>, Context)| {
            let what = format!("client {index}: only {who} says {:.600}", reply.escape_ascii());
            Err((context.name(), what))
        };
        match (theirs.get(common), ours.get(common)) {
            (Some(more), _) => only("redis", more),
            (_, Some(more)) => only("the engine", more),
            _ if their_waits != our_waits => {
                let what = format!("client {index}: {their_waits} and {our_waits} commands wait");
                Err(("(waiting)".to_owned(), what))
            }
            _ => Ok(()),
        }
    }
}

fn is_message(reply: &(Vec<u8>, Context)) -> bool {
    matches!(reply.1, Context::Message)
}

/// Sorts messages that came together: they have no order. RESP 3 messages come before all replies.
fn sort_messages(replies: &mut [(Vec<u8>, Context)]) {
    replies.sort_by_key(|reply| !(is_message(reply) && reply.0[0] == b'>'));
    let runs = replies.chunk_by_mut(|a, b| is_message(a) == is_message(b));
    for run in runs.filter(|run| is_message(&run[0])) {
        run.sort_by(|a, b| a.0.cmp(&b.0));
    }
}

/// The configuration of a comparison.
struct Case<'a> {
    redis: &'a Server,
    clients: usize,
    password: Option<&'a str>,
    /// Known differences, which are not compared.
    known: &'a Reports,
}

impl Case<'_> {
    /// Runs a session on both servers, from empty; returns the number of commands sent.
    fn run(&self, steps: &[Step]) -> Result<usize, Difference> {
        let folder = tempfile::tempdir().unwrap();
        let engine = start_engine(folder.path(), self.password);
        let side = |name, port| Side::new(name, port, self.clients, self.password);
        let mut pair = Pair {
            theirs: side("redis", self.redis.port),
            ours: side("the engine", port_of(&engine)),
            known: self.known,
            sent: 0,
        };
        let stepped = steps.iter().enumerate().try_for_each(|(index, step)| {
            let at = |(name, what)| Difference { name, steps: index + 1, what };
            pair.step(step).map_err(at)
        });
        let at_end = |what| Difference { name: CONTENTS.to_owned(), steps: steps.len(), what };
        let compared = stepped.and_then(|()| {
            let ours = contents(port_of(&engine), self.password);
            let theirs = contents(self.redis.port, self.password);
            match contents::difference(&ours, &theirs, 2000) {
                Some(what) if !self.known.contains_key(CONTENTS) => {
                    Err(at_end(format!("the engine and redis hold\n{what}")))
                }
                _ => Ok(ours),
            }
        });
        pair.theirs.leave();
        let live = compared?;
        engine.stop().map_err(|error| at_end(format!("the engine does not stop: {error}")))?;
        let engine = start_engine(folder.path(), self.password);
        let again = contents(port_of(&engine), self.password);
        match contents::difference(&live, &again, 0) {
            Some(what) => Err(at_end(format!("before and after a restart there is\n{what}"))),
            None => Ok(pair.sent),
        }
    }

    /// The shortest session that ends in the same difference, as text.
    fn report(&self, steps: &[Step], found: &Difference) -> String {
        let failing = steps[..found.steps].to_vec();
        let same = |other: Difference| other.name == found.name;
        let short = shrink(failing, |steps| self.run(steps).is_err_and(same));
        let last = self.run(&short).err();
        let what = last.map_or_else(|| found.what.clone(), |found| found.what);
        let lines: Vec<String> = short.iter().map(Step::to_string).collect();
        format!("{}\n{what}", lines.join("\n"))
    }
}

fn compare(first_seed: u64, commands: usize) {
    let redis = Server::start();
    let (mut seed, mut covered) = (first_seed, 0);
    let mut reports = Reports::new();
    while covered < commands && reports.len() < MAX_REPORTS {
        let steps = session(seed, STEPS);
        let case = Case { redis: &redis, clients: CLIENTS, password: None, known: &reports };
        match case.run(&steps) {
            Ok(sent) => covered += sent,
            Err(found) => {
                let text = case.report(&steps, &found);
                println!("seed {seed} differs after\n{text}\n");
                reports.insert(found.name, format!("seed {seed} differs after\n{text}"));
                covered += STEPS;
            }
        }
        seed += 1;
    }
    let texts: Vec<String> = reports.into_values().collect();
    assert!(texts.is_empty(), "{}", texts.join("\n\n"));
    println!("{covered} commands, seeds {first_seed} to {}, no difference", seed - 1);
}

#[test]
fn sessions_are_answered_as_redis_answers_them() {
    let seed = setting("STAMPEDE_DIFF_SEED").unwrap_or(1);
    let commands = setting("STAMPEDE_DIFF_COMMANDS").unwrap_or(20_000);
    compare(seed, commands as usize);
}

/// A read of every key that may expire: Redis may not have expired it yet.
fn keys_that_expire() -> Vec<Vec<u8>> {
    let kinds = ["s", "h", "l", "t", "z", "x", "y", "q", "w", "e"].into_iter();
    let keys =
        kinds.flat_map(|kind| ["1", "2", "3", "big"].map(|suffix| format!("{kind}{suffix}")));
    words("EXISTS").into_iter().chain(keys.map(String::into_bytes)).collect()
}
