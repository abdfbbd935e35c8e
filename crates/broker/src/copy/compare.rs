//! The second pass: everything the walk reads must be the same in the target.
//!
//! For each piece the target is asked for the same part: the same fields, the same range, the same ids.
//! Lengths, types, expiry and the state of streams follow at the end of each key, and the number of keys
//! of each type at the end of each database, so that nothing can be missing or left over.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use redis::{Cmd, Pipeline, Value, cmd};

use super::piece::{Key, Piece, StreamState, shown, stream_state};
use super::server::Server;
use super::walk::{Place, Sink};
use super::{Counts, Kind, MARKER};
use crate::Error;

/// Questions asked in one go.
const BATCH: usize = 500;
/// Differences that are told; more say nothing new.
const TOLD: usize = 5;

/// What the target should answer.
enum Wanted {
    Value(Value),
    Scores(Vec<f64>),
    Stream(StreamState),
    Expiry(Option<i64>),
}

/// Compares with the selected database of the target.
pub(super) struct Comparer<'a> {
    target: &'a mut Server,
    /// Its number in the source, for messages.
    database: i64,
    pipe: Pipeline,
    wanted: Vec<(Vec<u8>, Wanted)>,
    different: Vec<Vec<u8>>,
    known: HashSet<Vec<u8>>,
}

impl<'a> Comparer<'a> {
    pub(super) fn new(target: &'a mut Server, database: i64) -> Self {
        Self {
            target,
            database,
            pipe: fresh_pipe(),
            wanted: Vec::new(),
            different: Vec::new(),
            known: HashSet::new(),
        }
    }

    fn ask(&mut self, key: &Key, command: Cmd, wanted: Wanted) {
        self.pipe.add_command(command);
        self.wanted.push((key.name.clone(), wanted));
    }

    /// All differences in words; `keys` is what the walk has seen.
    pub(super) async fn finish(
        self,
        keys: &Counts,
        source: &mut Server,
    ) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        for name in &self.different {
            // One that expired while we looked is not a difference.
            if source.ask::<u64>(cmd("EXISTS").arg(name)).await? == 0
                && self.target.ask::<u64>(cmd("EXISTS").arg(name)).await? == 0
            {
                continue;
            }
            found.push(format!("key {} of database {} differs", shown(name), self.database));
        }
        let more = found.len().saturating_sub(TOLD);
        found.truncate(TOLD);
        if more > 0 {
            found.push(format!("and {more} more keys"));
        }
        let counted = count(self.target).await?;
        // Keys with an expiry come and go by themselves; every single one was compared above.
        if found.is_empty()
            && counted != *keys
            && !self.only_expired(keys, &counted, source).await?
        {
            found.push(format!(
                "database {} has {} in the source and {} in the target",
                self.database,
                in_words(keys),
                in_words(&counted)
            ));
        }
        Ok(found)
    }

    /// Whether counting the source again gives what the target has.
    async fn only_expired(
        &self,
        keys: &Counts,
        counted: &Counts,
        source: &mut Server,
    ) -> Result<bool, Error> {
        let again = count(source).await?;
        Ok(again == *counted && again.iter().all(|(kind, n)| keys.get(kind) >= Some(n)))
    }
}

impl Sink for Comparer<'_> {
    async fn piece(&mut self, key: &Key, _: Place, piece: Piece) -> Result<(), Error> {
        let mut command = Cmd::new();
        let bulk = |bytes: &Vec<u8>| Value::BulkString(bytes.clone());
        let every_second = |from: usize| {
            move |list: &[Vec<u8>]| list.iter().skip(from).step_by(2).cloned().collect::<Vec<_>>()
        };
        let (names, values) = (every_second(0), every_second(1));
        let wanted = match &piece {
            Piece::Bytes(start, bytes) => {
                let end = (start + bytes.len() as u64).saturating_sub(1);
                command.arg("GETRANGE").arg(&key.name).arg(start).arg(end);
                Wanted::Value(bulk(bytes))
            }
            Piece::Fields(pairs) if !pairs.is_empty() => {
                command.arg("HMGET").arg(&key.name).arg(names(pairs));
                Wanted::Value(Value::Array(values(pairs).iter().map(bulk).collect()))
            }
            Piece::Items(start, items) if !items.is_empty() => {
                command.arg("LRANGE").arg(&key.name).arg(start).arg(start + items.len() as u64 - 1);
                Wanted::Value(Value::Array(items.iter().map(bulk).collect()))
            }
            Piece::Members(members) if !members.is_empty() => {
                command.arg("SMISMEMBER").arg(&key.name).arg(members);
                Wanted::Value(Value::Array(vec![Value::Int(1); members.len()]))
            }
            Piece::Scores(pairs) if !pairs.is_empty() => {
                command.arg("ZMSCORE").arg(&key.name).arg(names(pairs));
                Wanted::Scores(values(pairs).iter().map(|score| number(score)).collect())
            }
            Piece::Entries(entries) => {
                let (Some((first, _)), Some((last, _))) = (entries.first(), entries.last()) else {
                    return Ok(());
                };
                command.arg("XRANGE").arg(&key.name).arg(first).arg(last);
                let entry = |(id, fields): &(Vec<u8>, Vec<Vec<u8>>)| {
                    Value::Array(vec![bulk(id), Value::Array(fields.iter().map(bulk).collect())])
                };
                Wanted::Value(Value::Array(entries.iter().map(entry).collect()))
            }
            _ => return Ok(()),
        };
        self.ask(key, command, wanted);
        Ok(())
    }

    async fn end(&mut self, key: &Key, stream: Option<&StreamState>) -> Result<(), Error> {
        self.pipe.cmd("PEXPIRETIME").arg(&key.name);
        self.wanted.push((key.name.clone(), Wanted::Expiry(key.expires_ms)));
        if let Some(state) = stream {
            let mut command = cmd("XINFO");
            command.arg("STREAM").arg(&key.name);
            self.ask(key, command, Wanted::Stream(state.clone()));
        }
        if self.wanted.len() >= BATCH {
            self.flush().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Error> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        let pipe = std::mem::replace(&mut self.pipe, fresh_pipe());
        let answers: Vec<Value> = self.target.ask_all(&pipe).await?;
        for ((name, wanted), answer) in self.wanted.drain(..).zip(answers) {
            if !wanted.is(answer) && self.known.insert(name.clone()) {
                self.different.push(name);
            }
        }
        Ok(())
    }
}

impl Wanted {
    fn is(&self, answer: Value) -> bool {
        match (self, answer) {
            (Self::Value(wanted), answer) => *wanted == answer,
            (Self::Scores(wanted), Value::Array(scores)) => {
                let number = |score: &Value| match score {
                    Value::BulkString(text) => number(text),
                    _ => f64::NAN,
                };
                scores.iter().map(number).eq(wanted.iter().copied())
            }
            (Self::Stream(wanted), answer) => {
                stream_state(answer).is_ok_and(|state| state.is_copied_from(wanted))
            }
            (Self::Expiry(wanted), Value::Int(ms)) => match wanted {
                Some(wanted) => ms == *wanted,
                None => ms == -1,
            },
            _ => false,
        }
    }
}

impl StreamState {
    /// Consumer groups are not copied.
    fn is_copied_from(&self, source: &Self) -> bool {
        (&self.last_id, &self.entries_added, &self.max_deleted_id)
            == (&source.last_id, &source.entries_added, &source.max_deleted_id)
    }
}

fn fresh_pipe() -> Pipeline {
    let mut pipe = Pipeline::new();
    // A key of another type is a difference like others.
    pipe.ignore_errors();
    pipe
}

/// Keys of each type in the selected database.
async fn count(server: &mut Server) -> Result<Counts, Error> {
    let (mut counts, mut seen, hasher) = (Counts::new(), HashSet::new(), RandomState::new());
    let mut cursor = 0_u64;
    loop {
        let mut scan = cmd("SCAN");
        let (next, names): (u64, Vec<Vec<u8>>) =
            server.ask(scan.arg(cursor).arg("COUNT").arg(1000)).await?;
        let mut pipe = Pipeline::new();
        for name in &names {
            pipe.cmd("TYPE").arg(name);
        }
        let kinds: Vec<String> = server.ask_all(&pipe).await?;
        for (name, kind) in names.iter().zip(kinds) {
            if name != MARKER.as_bytes()
                && let Some(kind) = Kind::of(&kind)
                && seen.insert(hasher.hash_one(name))
            {
                *counts.entry(kind).or_default() += 1;
            }
        }
        cursor = next;
        if cursor == 0 {
            return Ok(counts);
        }
    }
}

fn number(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

fn in_words(counts: &Counts) -> String {
    if counts.is_empty() {
        return "no keys".to_owned();
    }
    counts.iter().map(|(kind, n)| format!("{n} {kind}")).collect::<Vec<_>>().join(", ")
}
