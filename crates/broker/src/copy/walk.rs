//! Walks one database of the source: all keys, and their values in pieces of bounded size.
//!
//! `SCAN` may show a key twice. Sinks take it: the first piece of a value replaces whatever was there.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use redis::{Pipeline, Value, cmd, pipe};

use super::piece::{Key, Piece, StreamState, piece, shown, stream_state};
use super::position::{PIECE, Position, part, whole};
use super::server::Server;
use super::{Counts, Kind, MARKER};
use crate::Error;

/// Keys asked for at a time.
const SCAN_COUNT: usize = 500;
/// A value up to this size is read whole.
const SMALL: u64 = 32 << 10;
/// Most elements in a piece.
const ELEMENTS: u64 = 1000;

/// Which part a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    First,
    Later,
}

/// Who gets the pieces.
pub(super) trait Sink {
    /// A piece of a key's value.
    async fn piece(&mut self, key: &Key, place: Place, piece: Piece) -> Result<(), Error>;
    /// All pieces of a key have come.
    async fn end(&mut self, key: &Key, stream: Option<&StreamState>) -> Result<(), Error>;
    /// Nothing may be held back any longer.
    async fn flush(&mut self) -> Result<(), Error>;
}

/// A walk through the selected database.
pub(super) struct Walk<'a> {
    source: &'a mut Server,
    /// `None` at the end.
    cursor: Option<u64>,
    counts: Counts,
    seen: HashSet<u64>,
    hasher: RandomState,
    left_out: Vec<String>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(source: &'a mut Server) -> Self {
        Self {
            source,
            cursor: Some(0),
            counts: Counts::new(),
            seen: HashSet::new(),
            hasher: RandomState::new(),
            left_out: Vec::new(),
        }
    }

    /// Keys seen so far.
    pub(super) fn keys(&self) -> u64 {
        self.counts.values().sum()
    }

    /// What was seen, and what was left out.
    pub(super) fn finish(self) -> (Counts, Vec<String>) {
        (self.counts, self.left_out)
    }

    /// Gives the next keys to a sink; `false` when there were none left.
    pub(super) async fn page(&mut self, sink: &mut impl Sink) -> Result<bool, Error> {
        let Some(cursor) = self.cursor else { return Ok(false) };
        let mut scan = cmd("SCAN");
        let (next, names): (u64, Vec<Vec<u8>>) =
            self.source.ask(scan.arg(cursor).arg("COUNT").arg(SCAN_COUNT)).await?;
        self.cursor = Some(next).filter(|next| *next != 0);
        let keys = self.describe(names).await?;
        let (small, large): (Vec<Key>, Vec<Key>) =
            keys.into_iter().partition(|key| key.bytes <= SMALL);
        for group in small.chunk_by(grouping()) {
            self.read_whole(group, sink).await?;
        }
        for key in &large {
            self.read_in_pieces(key, sink).await?;
        }
        sink.flush().await?;
        Ok(true)
    }

    /// Types, expiry and sizes of keys; those that have just gone are left out.
    async fn describe(&mut self, names: Vec<Vec<u8>>) -> Result<Vec<Key>, Error> {
        let mut pipe = pipe();
        // The size is only a hint, and not every operator lets us ask for it.
        pipe.ignore_errors();
        for name in &names {
            pipe.cmd("TYPE").arg(name).cmd("PEXPIRETIME").arg(name);
            pipe.cmd("MEMORY").arg("USAGE").arg(name);
        }
        let answers: Vec<Value> = self.source.ask_all(&pipe).await?;
        let mut keys = Vec::new();
        for (name, answer) in names.into_iter().zip(answers.chunks(3)) {
            let [kind, expires, bytes] = answer else { continue };
            let word: String =
                redis::from_redis_value_ref(kind).map_err(redis::RedisError::from)?;
            if word == "none" || name == MARKER.as_bytes() {
                continue;
            }
            let Some(kind) = Kind::of(&word) else {
                self.left_out.push(format!("{} (type {word})", shown(&name)));
                continue;
            };
            let expires_ms = match expires {
                Value::Int(ms) if *ms >= 0 => Some(*ms),
                Value::Int(_) => None,
                other => return Err(unexpected("PEXPIRETIME", other)),
            };
            let bytes = if let Value::Int(bytes) = bytes { *bytes as u64 } else { u64::MAX };
            keys.push(Key { name, kind, expires_ms, bytes });
        }
        Ok(keys)
    }

    fn count(&mut self, key: &Key) {
        if self.seen.insert(self.hasher.hash_one(&key.name)) {
            *self.counts.entry(key.kind).or_default() += 1;
        }
    }

    /// Reads a group of small values in one round trip.
    async fn read_whole(&mut self, keys: &[Key], sink: &mut impl Sink) -> Result<(), Error> {
        let mut pipe = Pipeline::new();
        pipe.ignore_errors();
        for key in keys {
            pipe.add_command(whole(key));
            if key.kind == Kind::Stream {
                pipe.cmd("XINFO").arg("STREAM").arg(&key.name);
            }
        }
        let answers: Vec<Value> = self.source.ask_all(&pipe).await?;
        let mut answers = answers.into_iter();
        for key in keys {
            let value = answers.next().unwrap_or_default();
            let state = if key.kind == Kind::Stream { answers.next() } else { None };
            if let Value::ServerError(_) | Value::Nil = value {
                // It has gone, or is of another type by now: the second pass finds out.
                continue;
            }
            let piece = piece(key.kind, 0, value)?;
            let state = match state {
                Some(Value::ServerError(_)) => continue,
                Some(state) => Some(self.stream_state(key, state).await?),
                None if piece.is_empty() && key.kind != Kind::String => continue,
                None => None,
            };
            self.count(key);
            sink.piece(key, Place::First, piece).await?;
            sink.end(key, state.as_ref()).await?;
        }
        Ok(())
    }

    /// Reads a large value piece by piece.
    async fn read_in_pieces(&mut self, key: &Key, sink: &mut impl Sink) -> Result<(), Error> {
        let length: u64 = self.source.ask(cmd(key.kind.length_command()).arg(&key.name)).await?;
        let element = (key.bytes.min(1 << 40) / length.max(1)).max(1);
        let count = (PIECE / element).clamp(1, ELEMENTS);
        let mut position = Position::first();
        let mut place = Place::First;
        loop {
            let answer: Value = self.source.ask(&mut part(key, &position, count)).await?;
            let (piece, more) = position.advance(key.kind, count, answer)?;
            let may_be_empty = matches!(key.kind, Kind::String | Kind::Stream);
            if place == Place::First && !more && piece.is_empty() && !may_be_empty {
                // It has gone.
                return Ok(());
            }
            if !piece.is_empty() || (place == Place::First && !more) {
                sink.piece(key, place, piece).await?;
                sink.flush().await?;
                place = Place::Later;
            }
            if !more {
                break;
            }
        }
        let state = if key.kind == Kind::Stream {
            let state = self.source.ask(cmd("XINFO").arg("STREAM").arg(&key.name)).await?;
            Some(self.stream_state(key, state).await?)
        } else {
            None
        };
        self.count(key);
        sink.end(key, state.as_ref()).await
    }

    async fn stream_state(&mut self, key: &Key, answer: Value) -> Result<StreamState, Error> {
        let state = stream_state(answer)?;
        if state.groups > 0 {
            let groups: Vec<Vec<Value>> =
                self.source.ask(cmd("XINFO").arg("GROUPS").arg(&key.name)).await?;
            let names = groups.into_iter().filter_map(|group| match group.into_iter().nth(1) {
                Some(Value::BulkString(name)) => Some(name.escape_ascii().to_string()),
                _ => None,
            });
            let names = names.collect::<Vec<_>>().join(", ");
            self.left_out.push(format!("consumer groups of stream {}: {names}", shown(&key.name)));
        }
        Ok(state)
    }
}

/// Cuts a list of keys where a group would become too large.
fn grouping() -> impl FnMut(&Key, &Key) -> bool {
    let mut sum = 0;
    move |_, next| {
        sum += next.bytes;
        let fits = sum <= PIECE;
        if !fits {
            sum = next.bytes;
        }
        fits
    }
}

fn unexpected(command: &'static str, answer: &Value) -> Error {
    Error::Protocol { script: command, answer: format!("{answer:?}") }
}
