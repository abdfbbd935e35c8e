//! Dumping a key as the commands that create it; used for snapshots.
//!
//! Large collections become several commands, and a key with many commands several items of a snapshot:
//! an item has a size limit, as a record of the journal has.

use crate::blob::Blob;
use crate::db::Effects;
use crate::number::format_float;
use crate::value::stream::Id;
use crate::value::{Stream, Value};

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

/// Emits the commands that create `key` in an empty database.
pub(crate) fn dump(key: &[u8], value: &Value, expiry: Option<i64>, mut emit: impl FnMut(&[&[u8]])) {
    match value {
        Value::String(text) => emit(&[b"SET", key, text]),
        Value::Hash(hash) => {
            let pairs = hash.iter().map(|(field, value)| [field.into(), value.into()]);
            chunks(b"HSET", key, pairs, &mut emit);
        }
        Value::List(list) => chunks(b"RPUSH", key, list.iter().map(|one| [one.clone()]), &mut emit),
        Value::Set(set) => chunks(b"SADD", key, set.iter().map(|one| [one]), &mut emit),
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
        let mut copy = Db::new();
        for command in all(&db).into_values().flatten() {
            let reply = run(&mut copy, &command.iter().map(|arg| &**arg).collect::<Vec<_>>());
            assert!(!reply.starts_with(b"-"), "{reply:?}");
        }
        assert_eq!(all(&copy), all(&db));
    }
}
