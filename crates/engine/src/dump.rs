//! Dumping a key as the commands that create it; used for snapshots.
//!
//! Large collections become several commands, and a key with many commands several items of a snapshot:
//! an item has a size limit, as a record of the journal has. Consumer groups become commands that no client can
//! call: run a dump with [`crate::command::apply`].

use crate::blob::Blob;
use crate::command::group_effects;
use crate::db::Effects;
use crate::number::{format_float, parse_int};
use crate::value::stream::Id;
use crate::value::{Set, Stream, Value};

/// The approximate maximum number of arguments of a command.
const MAX_ARGS: usize = 256;
/// The size at which a command or an item ends, and the next one begins.
const MAX_BYTES: usize = 1 << 20;

/// The key as items of a snapshot: effects on database `index` that create it, one item after the other.
pub(crate) fn items(
    index: usize,
    key: &[u8],
    value: &Value,
    expiry: Option<i64>,
    mut feed: impl FnMut(&[u8]),
) {
    let mut item = Effects::default();
    dump(key, value, expiry, |args| {
        item.push(index, args);
        if item.as_bytes().len() >= MAX_BYTES {
            feed(item.as_bytes());
            item.clear();
        }
    });
    if !item.is_empty() {
        feed(item.as_bytes());
    }
}

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
            let pairs = hash.iter().map(|(field, value)| [field.into(), value.into()]);
            chunks(b"HSET", key, pairs, &mut emit);
        }
        Value::List(list) => chunks(b"RPUSH", key, list.iter().map(|one| [one.clone()]), &mut emit),
        Value::Set(set) => dump_set(key, set, &mut emit),
        Value::ZSet(zset) => {
            let score = |score| Blob::new(format_float(score).as_bytes());
            let pairs = zset.iter().map(|item| [score(item.score), item.member.clone()]);
            chunks(b"ZADD", key, pairs, &mut emit);
        }
        Value::Stream(stream) => dump_stream(key, stream, &mut emit),
    }
    if let Some(at) = expiry {
        emit(&[b"PEXPIREAT", key, at.to_string().as_bytes()]);
    }
}

/// Emits as many commands as needed; texts of one element stay together.
fn chunks<const N: usize>(
    name: &[u8],
    key: &[u8],
    elements: impl Iterator<Item = [Blob; N]>,
    emit: &mut impl FnMut(&[&[u8]]),
) {
    let mut chunk: Vec<Blob> = Vec::with_capacity(MAX_ARGS);
    let mut bytes = 0;
    let mut emit_chunk = |chunk: &[Blob]| {
        let args: Vec<&[u8]> = [name, key].into_iter().chain(chunk.iter().map(|t| &**t)).collect();
        emit(&args);
    };
    for element in elements {
        bytes += element.iter().map(|text| text.len()).sum::<usize>();
        chunk.extend(element);
        if chunk.len() >= MAX_ARGS || bytes >= MAX_BYTES {
            emit_chunk(&chunk);
            chunk.clear();
            bytes = 0;
        }
    }
    if !chunk.is_empty() {
        emit_chunk(&chunk);
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
        _ => return chunks(b"SADD", key, members.into_iter().map(|one| [one]), emit),
    };
    let is_free = |guard: &Vec<u8>| !set.contains(guard);
    let guard = (0..).map(|n| guard_text(guard, n)).find(is_free).unwrap_or_default();
    // With the guard, a list must not exceed the number of members of a list.
    let rest = members.split_off(members.len().min(MAX_GUARDED));
    let guarded = [Blob::new(&guard)].into_iter().chain(members);
    chunks(b"SADD", key, guarded.map(|one| [one]), emit);
    emit(&[b"SREM", key, &guard]);
    if !rest.is_empty() {
        chunks(b"SADD", key, rest.into_iter().map(|one| [one]), emit);
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
    // `XSETID` takes no larger number.
    let added = stream.entries_added.min(i64::MAX as u64).to_string();
    emit(&[
        b"XSETID",
        key,
        last.as_bytes(),
        b"ENTRIESADDED",
        added.as_bytes(),
        b"MAXDELETEDID",
        deleted.as_bytes(),
    ]);
    for (name, group) in &stream.groups {
        group_effects::dump(key, (name, group), MAX_ARGS, emit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::apply;
    use crate::db::Db;
    use crate::reply::{Protocol, Reply};
    use bytes::Bytes;
    use std::collections::BTreeMap;

    fn run(db: &mut Db, args: &[&[u8]]) -> Bytes {
        let mut reply = Reply::new(Protocol::Resp2);
        let args: Vec<Bytes> = args.iter().map(|arg| Bytes::copy_from_slice(arg)).collect();
        apply(db, &args, &mut reply);
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
    fn a_large_key_becomes_several_items_that_make_it_again() {
        let mut db = Db::new();
        for number in 0..30 {
            let number = number.to_string();
            let long = number.repeat(200_000);
            run(&mut db, &[b"RPUSH", b"list", long.as_bytes()]);
            run(&mut db, &[b"HSET", b"hash", number.as_bytes(), long.as_bytes()]);
            run(&mut db, &[b"XADD", b"stream", b"*", b"f", long.as_bytes()]);
        }
        run(&mut db, &[b"PEXPIREAT", b"hash", b"5000"]);
        let (mut copy, mut largest, mut count) = (Db::new(), 0, 0);
        let mut cursor = 0;
        loop {
            cursor = db.scan(cursor, |key, value, expiry| {
                items(0, key, value, expiry, |item| {
                    largest = largest.max(item.len());
                    count += 1;
                    crate::command::replay(&mut copy, &Bytes::copy_from_slice(item)).unwrap();
                });
            });
            if cursor == 0 {
                break;
            }
        }
        assert!(largest < MAX_BYTES + 500_000 && count > 20, "{count} of up to {largest}");
        assert_eq!(all(&copy), all(&db));
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
            "XGROUP CREATE made g $ MKSTREAM ENTRIESREAD 3",
            "XGROUP CREATE x g 0",
            "XGROUP CREATECONSUMER x g idle",
            "XREADGROUP GROUP g reader COUNT 1 STREAMS x >",
            "XDEL x 5-1",
            "XADD pel 1-1 f v",
            "XGROUP CREATE pel g 0",
        ] {
            run(&mut db, &line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        }
        for number in 0..1000 {
            run(&mut db, &[b"RPUSH", b"long", number.to_string().as_bytes()]);
            run(&mut db, &[b"XADD", b"pel", b"*", b"n", number.to_string().as_bytes()]);
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
        run(
            &mut db,
            &b"XREADGROUP GROUP g c STREAMS pel >".split(|b| *b == b' ').collect::<Vec<_>>(),
        );
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
