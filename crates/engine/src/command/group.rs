//! `XGROUP`: creates, moves and removes consumer groups and their consumers.

use bytes::Bytes;

use super::args::{int, is};
use super::group_effects::{record_consumer, record_position};
use super::stream::id;
use crate::db::Db;
use crate::error::{BAD_STREAM_ID, Error, Result, arity, subcommand, subcommand_syntax};
use crate::reply::Reply;
use crate::value::Stream;
use crate::value::stream::Id;
use crate::value::stream::group::Group;

const NO_KEY: Error = Error::Fixed(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use \
     the MKSTREAM option to create an empty stream automatically.",
);

/// Options of `XGROUP CREATE` and `XGROUP SETID`.
#[derive(Debug, Default)]
struct GroupOptions {
    make_stream: bool,
    entries_read: Option<i64>,
}

pub(super) fn xgroup(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let Some(word) = args.get(1) else { return Err(arity("xgroup")) };
    match (word.to_ascii_lowercase().as_slice(), args.len()) {
        (b"create", 5..) => create(db, args, reply),
        (b"setid", 5..) => set_id(db, args, reply),
        (b"destroy", 4) => destroy(db, args, reply),
        (b"createconsumer", 5) => create_consumer(db, args, reply),
        (b"delconsumer", 5) => delete_consumer(db, args, reply),
        _ => Err(subcommand("xgroup", word)),
    }
}

fn options(args: &[Bytes]) -> Result<GroupOptions> {
    let creates = is(&args[1], "CREATE");
    let (mut options, mut at) = (GroupOptions::default(), 5);
    while let Some(word) = args.get(at) {
        at += 1;
        if creates && is(word, "MKSTREAM") {
            options.make_stream = true;
        } else if let Some(value) = args.get(at).filter(|_| is(word, "ENTRIESREAD")) {
            let read = int(value)?;
            if read < -1 {
                return Err(Error::Fixed("ERR value for ENTRIESREAD must be positive or -1"));
            }
            options.entries_read = Some(read).filter(|read| *read != -1);
            at += 1;
        } else {
            return Err(subcommand_syntax("xgroup", &args[1]));
        }
    }
    Ok(options)
}

fn create(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let options = options(args)?;
    let (key, name) = (&args[2], &args[3]);
    let existing = db.read::<Stream>(key)?;
    if existing.is_none() && !options.make_stream {
        return Err(NO_KEY);
    }
    if args.len() > 8 {
        return Err(subcommand_syntax("xgroup", &args[1]));
    }
    let is_new = existing.is_none();
    let last_id = match &*args[4] {
        b"$" => existing.map_or(Id::MIN, |stream| stream.last_id),
        given => id(given, 0)?,
    };
    let stream = db.create::<Stream>(key)?;
    if stream.groups.contains_key(&name[..]) {
        return Err(Error::Fixed("BUSYGROUP Consumer Group name already exists"));
    }
    stream.groups.insert(name[..].into(), Group::new(last_id, options.entries_read));
    if is_new {
        db.changed(key);
    } else {
        db.changed_unwatched();
    }
    record_position(db, key, name, last_id, options.entries_read);
    reply.ok();
    Ok(())
}

fn set_id(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let options = options(args)?;
    let (key, name) = (&args[2], &args[3]);
    let (last, group) = find(db, key, name)?;
    if !matches!(args.len(), 5 | 7) {
        return Err(subcommand_syntax("xgroup", &args[1]));
    }
    let last_id = match &*args[4] {
        b"$" => last,
        b"-" => Id::MIN,
        b"+" => Id::MAX,
        given => Id::parse(given, 0).ok_or(BAD_STREAM_ID)?,
    };
    (group.last_id, group.entries_read) = (last_id, options.entries_read);
    db.changed_unwatched();
    record_position(db, key, name, last_id, options.entries_read);
    reply.ok();
    Ok(())
}

fn destroy(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let stream = db.write::<Stream>(&args[2])?.ok_or(NO_KEY)?;
    let removed = stream.groups.remove(&args[3][..]).is_some();
    if removed {
        db.changed_unwatched();
        // Clients that wait for this group learn that it is gone.
        db.wake(&args[2]);
    }
    reply.int(removed.into());
    Ok(())
}

fn create_consumer(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (key, name, consumer, now) = (&args[2], &args[3], &args[4], db.now_ms());
    let (_, group) = find(db, key, name)?;
    let is_new = !group.has_consumer(consumer);
    if is_new {
        group.see(consumer, now);
        db.changed_unwatched();
        record_consumer(db, key, name, (consumer, now), &[]);
    }
    reply.int(is_new.into());
    Ok(())
}

fn delete_consumer(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (_, group) = find(db, &args[2], &args[3])?;
    let removed = group.remove_consumer(&args[4]);
    if removed.is_some() {
        db.changed_unwatched();
    }
    reply.int(removed.unwrap_or_default() as i64);
    Ok(())
}

/// The last id of a stream, and one of its groups.
fn find<'a>(db: &'a mut Db, key: &Bytes, name: &Bytes) -> Result<(Id, &'a mut Group)> {
    let stream = db.write::<Stream>(key)?.ok_or(NO_KEY)?;
    let last = stream.last_id;
    let group = stream.groups.get_mut(&name[..]).ok_or_else(|| no_group(name, key))?;
    Ok((last, group))
}

/// The stream has no such group.
pub(super) fn no_group(name: &[u8], key: &[u8]) -> Error {
    quoting(&[b"NOGROUP No such consumer group '", name, b"' for key name '", key, b"'"])
}

/// There is no such stream, or it has no such group.
pub(super) fn no_key_or_group(key: &[u8], name: &[u8]) -> Error {
    quoting(&[b"NOGROUP No such key '", key, b"' or consumer group '", name, b"'"])
}

/// An error of several parts; a part ends at its first NUL byte, as in C.
pub(super) fn quoting(parts: &[&[u8]]) -> Error {
    let text = |part: &&[u8]| part.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
    Error::Quoting(parts.iter().flat_map(text).collect())
}
