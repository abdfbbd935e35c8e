//! Keys and parts of their values, as both sinks get them.

use redis::Value;

use super::Kind;
use crate::Error;

/// A key of the source.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) name: Vec<u8>,
    pub(super) kind: Kind,
    /// When it expires, in milliseconds since 1970.
    pub(super) expires_ms: Option<i64>,
    /// The source's own estimate; unknown counts as large.
    pub(super) bytes: u64,
}

/// A key as it may be shown to a person.
pub(super) fn shown(name: &[u8]) -> String {
    const LONGEST: usize = 80;
    let mut text = name[..name.len().min(LONGEST)].escape_ascii().to_string();
    if name.len() > LONGEST {
        text.push('…');
    }
    format!("\"{text}\"")
}

/// A part of a value, in the order of the value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// Bytes of a string from an offset.
    Bytes(u64, Vec<u8>),
    /// Fields and values of a hash, in turn.
    Fields(Vec<Vec<u8>>),
    /// Items of a list from an index.
    Items(u64, Vec<Vec<u8>>),
    /// Members of a set.
    Members(Vec<Vec<u8>>),
    /// Members and scores of a sorted set, in turn.
    Scores(Vec<Vec<u8>>),
    /// Entries of a stream: id, and fields and values in turn.
    Entries(Vec<(Vec<u8>, Vec<Vec<u8>>)>),
}

impl Piece {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Bytes(_, bytes) => bytes.is_empty(),
            Self::Fields(list)
            | Self::Items(_, list)
            | Self::Members(list)
            | Self::Scores(list) => list.is_empty(),
            Self::Entries(entries) => entries.is_empty(),
        }
    }
}

/// Reads an answer as a piece.
pub(super) fn piece(kind: Kind, offset: u64, answer: Value) -> Result<Piece, Error> {
    Ok(match kind {
        Kind::String => Piece::Bytes(offset, read(answer)?),
        Kind::Hash => Piece::Fields(read(answer)?),
        Kind::List => Piece::Items(offset, read(answer)?),
        Kind::Set => Piece::Members(read(answer)?),
        Kind::SortedSet => Piece::Scores(read(answer)?),
        Kind::Stream => {
            let entries: Vec<Value> = read(answer)?;
            Piece::Entries(entries.into_iter().map(read).collect::<Result<_, _>>()?)
        }
    })
}

/// What a stream remembers beside its entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StreamState {
    pub(super) last_id: Vec<u8>,
    pub(super) entries_added: Vec<u8>,
    pub(super) max_deleted_id: Vec<u8>,
    pub(super) groups: u64,
}

/// Reads the answer of `XINFO STREAM`.
pub(super) fn stream_state(answer: Value) -> Result<StreamState, Error> {
    let mut state = StreamState::default();
    let words: Vec<Value> = read(answer)?;
    for pair in words.chunks(2) {
        let [Value::BulkString(name), value] = pair else { continue };
        let text = |value: &Value| match value {
            Value::BulkString(bytes) => bytes.clone(),
            Value::Int(number) => number.to_string().into_bytes(),
            _ => Vec::new(),
        };
        match name.as_slice() {
            b"last-generated-id" => state.last_id = text(value),
            b"entries-added" => state.entries_added = text(value),
            b"max-deleted-entry-id" => state.max_deleted_id = text(value),
            b"groups" => state.groups = read(value.clone())?,
            _ => {}
        }
    }
    Ok(state)
}

fn read<T: redis::FromRedisValue>(value: Value) -> Result<T, Error> {
    Ok(redis::from_redis_value(value).map_err(redis::RedisError::from)?)
}
