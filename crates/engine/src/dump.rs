//! Dumping a key as the commands that create it; used for snapshots.
//!
//! Long collections become several commands, so that no command is large.

use crate::blob::Blob;
use crate::number::{format_float, parse_int};
use crate::value::stream::Id;
use crate::value::{Set, Stream, Value};

/// The approximate maximum number of arguments of a command.
const MAX_ARGS: usize = 256;

/// Tables of up to this many members might become integers or a list when they are created again.
const SMALL_SET: usize = 512;
/// The length of a member that makes a list of a set, and of one that makes a table of it.
const LIST_GUARD: usize = 8;
const TABLE_GUARD: usize = 65;
/// The number of members that are added together with a guard.
const MAX_GUARDED: usize = 127;

/// Emits the commands that create `key` in an empty database.
pub(crate) fn dump(key: &[u8], value: &Value, expiry: Option<i64>, mut emit: impl FnMut(&[&[u8]])) {
    match value {
        Value::String(text) => emit(&[b"SET", key, text]),
        Value::Hash(hash) => {
            chunks(b"HSET", key, hash.iter().flat_map(|(f, v)| [f.into(), v.into()]), &mut emit);
        }
        Value::List(list) => chunks(b"RPUSH", key, list.iter().cloned(), &mut emit),
        Value::Set(set) => dump_set(key, set, &mut emit),
        Value::ZSet(zset) => {
            let score = |score| Blob::new(format_float(score).as_bytes());
            let items = zset.iter().flat_map(|item| [score(item.score), item.member.clone()]);
            chunks(b"ZADD", key, items, &mut emit);
        }
        Value::Stream(stream) => dump_stream(key, stream, &mut emit),
    }
    if let Some(at) = expiry {
        emit(&[b"PEXPIREAT", key, at.to_string().as_bytes()]);
    }
}

fn chunks(
    name: &[u8],
    key: &[u8],
    texts: impl Iterator<Item = Blob>,
    emit: &mut impl FnMut(&[&[u8]]),
) {
    let texts: Vec<Blob> = texts.collect();
    for chunk in texts.chunks(MAX_ARGS) {
        let args: Vec<&[u8]> = [name, key].into_iter().chain(chunk.iter().map(|t| &**t)).collect();
        emit(&args);
    }
}

/// Emits a set so that it gets the form and the order that it has: a list that begins with an
/// integer would become integers in numeric order, and a small table a list. A member that is added
/// first and removed again prevents that.
fn dump_set(key: &[u8], set: &Set, emit: &mut impl FnMut(&[&[u8]])) {
    let mut members: Vec<Blob> = set.iter().collect();
    let begins_with_int = members.first().is_some_and(|first| parse_int(first).is_some());
    let guard = match set {
        Set::List { .. } if begins_with_int => LIST_GUARD,
        Set::Table(_) if members.len() <= SMALL_SET => TABLE_GUARD,
        _ => return chunks(b"SADD", key, members.into_iter(), emit),
    };
    let is_free = |guard: &Vec<u8>| !set.contains(guard);
    let guard = (0..).map(|n| guard_text(guard, n)).find(is_free).unwrap_or_default();
    // With the guard, a list must not exceed the number of members of a list.
    let rest = members.split_off(members.len().min(MAX_GUARDED));
    chunks(b"SADD", key, [Blob::new(&guard)].into_iter().chain(members), emit);
    emit(&[b"SREM", key, &guard]);
    if !rest.is_empty() {
        chunks(b"SADD", key, rest.into_iter(), emit);
    }
}

/// A text of `len` bytes that is no integer; another one for each `n`.
fn guard_text(len: usize, n: usize) -> Vec<u8> {
    format!("{n:->len$}").into_bytes()
}

fn dump_stream(key: &[u8], stream: &Stream, emit: &mut impl FnMut(&[&[u8]])) {
    if stream.is_empty() {
        // No command creates an empty stream, so one entry is added and trimmed at once.
        let id = if stream.last_id == Id::MIN { Id { ms: 0, seq: 1 } } else { stream.last_id };
        emit(&[b"XADD", key, b"MAXLEN", b"0", id.to_string().as_bytes(), b"x", b"y"]);
    }
    for entry in stream.range(Id::MIN, Id::MAX) {
        let id = entry.id.to_string();
        let head = [&b"XADD"[..], key, id.as_bytes()];
        emit(&head.into_iter().chain(entry.texts()).collect::<Vec<_>>());
    }
    // `XSETID` may have lowered the last id, but does not accept a larger deleted id at the same
    // time.
    let deleted = stream.max_deleted_id.min(stream.last_id).to_string();
    let last = stream.last_id.to_string();
    let added = stream.entries_added.to_string();
    emit(&[
        b"XSETID",
        key,
        last.as_bytes(),
        b"ENTRIESADDED",
        added.as_bytes(),
        b"MAXDELETEDID",
        deleted.as_bytes(),
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::call;
    use crate::db::Db;
    use crate::reply::{Protocol, Reply};
    use bytes::Bytes;
    use std::collections::BTreeMap;

    fn run(db: &mut Db, args: &[&[u8]]) -> Bytes {
        let mut reply = Reply::new(Protocol::Resp2);
        let args: Vec<Bytes> = args.iter().map(|arg| Bytes::copy_from_slice(arg)).collect();
        call(db, &args, &mut reply);
        reply.take().freeze()
    }

    /// The dump of every key.
    fn all(db: &Db) -> BTreeMap<Vec<u8>, Vec<Vec<Vec<u8>>>> {
        let (mut keys, mut cursor) = (BTreeMap::new(), 0);
        loop {
            cursor = db.scan(cursor, |key, value, expiry| {
                let mut commands = Vec::new();
                dump(key, value, expiry, |args| {
                    commands.push(args.iter().map(|arg| arg.to_vec()).collect());
                });
                keys.insert(key.to_vec(), commands);
            });
            if cursor == 0 {
                return keys;
            }
        }
    }

    #[test]
    fn a_dump_makes_the_same_keys_again() {
        let mut db = Db::new();
        for line in [
            "SET s text",
            "HSET h a 1 b 2",
            "RPUSH l x y z",
            "SADD ints 3 1 2",
            "SADD list 9 1 a 5",
            "SREM list a",
            "SADD words b a 1",
            "SADD table 1 longer-than-the-64-bytes-that-a-member-of-a-list-may-have-0123456789",
            "SREM table longer-than-the-64-bytes-that-a-member-of-a-list-may-have-0123456789",
            "ZADD z 1.5 a inf b",
            "XADD x 5-1 f v",
            "XADD x 6-1 f v g w",
            "XDEL x 6-1",
            "XADD empty 7-7 f v",
            "XTRIM empty MAXLEN 0",
            "PEXPIREAT s 5000",
        ] {
            run(&mut db, &line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        }
        for number in 0..1000 {
            run(&mut db, &[b"RPUSH", b"long", number.to_string().as_bytes()]);
        }
        for number in 0..128 {
            run(&mut db, &[b"SADD", b"full", format!("m{number}").as_bytes()]);
        }
        run(&mut db, &[b"SREM", b"full", b"m0"]);
        run(&mut db, &[b"SADD", b"full", b"77"]);
        for number in 2..30 {
            run(&mut db, &[b"SREM", b"full", format!("m{number}").as_bytes()]);
            run(&mut db, &[b"SADD", b"full", number.to_string().as_bytes()]);
        }
        run(&mut db, &[b"SREM", b"full", b"m1"]);
        run(&mut db, &[b"SADD", b"full", b"1"]);
        let mut copy = Db::new();
        for command in all(&db).into_values().flatten() {
            let reply = run(&mut copy, &command.iter().map(|arg| &**arg).collect::<Vec<_>>());
            assert!(!reply.starts_with(b"-"), "{reply:?}");
        }
        assert_eq!(all(&copy), all(&db));
        for key in ["ints", "list", "words", "table", "full"] {
            let ask = [&b"OBJECT"[..], b"ENCODING", key.as_bytes()];
            assert_eq!(run(&mut copy, &ask), run(&mut db, &ask), "{key}");
            let ask = [&b"SMEMBERS"[..], key.as_bytes()];
            let (copied, live) = (run(&mut copy, &ask), run(&mut db, &ask));
            assert_eq!(copied, live, "{key}");
        }
    }
}
