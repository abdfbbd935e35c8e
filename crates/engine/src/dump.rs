//! Dumping a key as the commands that create it; used for snapshots.
//!
//! Long collections become several commands, so that no command is large. Consumer groups become commands
//! that no client can call: run a dump with [`crate::command::apply`].

use crate::blob::Blob;
use crate::command::group_effects;
use crate::number::format_float;
use crate::value::stream::Id;
use crate::value::{Stream, Value};

/// The approximate maximum number of arguments of a command.
const MAX_ARGS: usize = 256;

/// Emits the commands that create `key` in an empty database.
pub(crate) fn dump(key: &[u8], value: &Value, expiry: Option<i64>, mut emit: impl FnMut(&[&[u8]])) {
    match value {
        Value::String(text) => emit(&[b"SET", key, text]),
        Value::Hash(hash) => {
            chunks(b"HSET", key, hash.iter().flat_map(|(f, v)| [f.into(), v.into()]), &mut emit);
        }
        Value::List(list) => chunks(b"RPUSH", key, list.iter().cloned(), &mut emit),
        Value::Set(set) => chunks(b"SADD", key, set.iter(), &mut emit),
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
    }
}
