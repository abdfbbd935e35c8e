//! The commands that read a value, whole or piece by piece.

use redis::{Cmd, Value, cmd};

use super::Kind;
use super::piece::{Key, Piece, piece};
use crate::Error;

/// Small values read in one go, and pieces of large ones.
pub(super) const PIECE: u64 = 1 << 20;

/// The command that reads a whole value.
pub(super) fn whole(key: &Key) -> Cmd {
    let command = |name: &str, rest: &[&str]| {
        let mut command = cmd(name);
        command.arg(&key.name).arg(rest);
        command
    };
    match key.kind {
        Kind::String => command("GET", &[]),
        Kind::Hash => command("HGETALL", &[]),
        Kind::List => command("LRANGE", &["0", "-1"]),
        Kind::Set => command("SMEMBERS", &[]),
        Kind::SortedSet => command("ZRANGE", &["0", "-1", "WITHSCORES"]),
        Kind::Stream => command("XRANGE", &["-", "+"]),
    }
}

/// Where the next piece of a large value begins.
pub(super) struct Position {
    offset: u64,
    cursor: Vec<u8>,
    after: Vec<u8>,
}

impl Position {
    /// The beginning of a value.
    pub(super) fn first() -> Self {
        Self { offset: 0, cursor: b"0".to_vec(), after: b"-".to_vec() }
    }

    /// Takes an answer apart and moves on; `false` when it was the last.
    pub(super) fn advance(
        &mut self,
        kind: Kind,
        count: u64,
        answer: Value,
    ) -> Result<(Piece, bool), Error> {
        if matches!(kind, Kind::Hash | Kind::Set | Kind::SortedSet) {
            let (cursor, elements): (Vec<u8>, Value) =
                redis::from_redis_value(answer).map_err(redis::RedisError::from)?;
            let more = cursor != b"0";
            self.cursor = cursor;
            return Ok((piece(kind, 0, elements)?, more));
        }
        let piece = piece(kind, self.offset, answer)?;
        let (read, wanted) = match &piece {
            Piece::Bytes(_, bytes) => (bytes.len() as u64, PIECE),
            Piece::Items(_, items) => (items.len() as u64, count),
            Piece::Entries(entries) => {
                if let Some((id, _)) = entries.last() {
                    self.after = [b"(", id.as_slice()].concat();
                }
                (entries.len() as u64, count)
            }
            _ => (0, 1),
        };
        self.offset += read;
        Ok((piece, read == wanted))
    }
}

/// The command that reads the next piece.
pub(super) fn part(key: &Key, position: &Position, count: u64) -> Cmd {
    let at = position.offset;
    let mut command = cmd(match key.kind {
        Kind::String => "GETRANGE",
        Kind::Hash => "HSCAN",
        Kind::List => "LRANGE",
        Kind::Set => "SSCAN",
        Kind::SortedSet => "ZSCAN",
        Kind::Stream => "XRANGE",
    });
    command.arg(&key.name);
    match key.kind {
        Kind::String => command.arg(at).arg(at + PIECE - 1),
        Kind::List => command.arg(at).arg(at + count - 1),
        Kind::Stream => command.arg(&position.after).arg("+").arg("COUNT").arg(count),
        Kind::Hash | Kind::Set | Kind::SortedSet => {
            command.arg(&position.cursor).arg("COUNT").arg(count)
        }
    };
    command
}
