//! `XINFO`: what a stream, its groups and their consumers hold.

use bytes::Bytes;

use super::args::{int, is};
use super::group::no_group;
use super::stream_read::{show, show_entry};
use crate::db::Db;
use crate::error::{NO_SUCH_KEY, Result, arity, subcommand, subcommand_syntax};
use crate::reply::Reply;
use crate::value::Stream;
use crate::value::stream::Id;
use crate::value::stream::group::Group;

pub(super) fn xinfo(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let now = db.now_ms();
    let (word, key) = match args {
        [_, word, key, ..] => (word.to_ascii_lowercase(), key),
        [_, word] if is(word, "STREAM") => return Err(arity("xinfo|stream")),
        [_, word, ..] => return Err(subcommand("xinfo", word)),
        _ => return Err(arity("xinfo")),
    };
    let stream = db.read::<Stream>(key)?.ok_or(NO_SUCH_KEY)?;
    match (word.as_slice(), args) {
        (b"stream", [_, _, _]) => describe(stream, reply),
        (b"stream", _) => {
            let most = full_form(args)?;
            describe_fully(stream, most, reply);
        }
        (b"groups", [_, _, _]) => describe_groups(stream, reply),
        (b"consumers", [_, _, key, name]) => {
            let group = stream.groups.get(&name[..]).ok_or_else(|| no_group(name, key))?;
            describe_consumers(group, now, reply);
        }
        _ => return Err(subcommand_syntax("xinfo", &args[1])),
    }
    Ok(())
}

/// The number of entries of `FULL [COUNT n]`.
fn full_form(args: &[Bytes]) -> Result<usize> {
    match &args[3..] {
        [full] if is(full, "FULL") => Ok(10),
        [full, word, count] if is(full, "FULL") && is(word, "COUNT") => Ok(match int(count)? {
            0 => usize::MAX,
            count => usize::try_from(count).unwrap_or(10),
        }),
        _ => Err(subcommand_syntax("xinfo", &args[1])),
    }
}

fn describe(stream: &Stream, reply: &mut Reply) {
    reply.map(10);
    describe_log(stream, reply);
    number("groups", stream.groups.len() as i64, reply);
    let mut ends = stream.range(Id::MIN, Id::MAX);
    let first = ends.next();
    let last = ends.next_back().or(first);
    for (name, entry) in [("first-entry", first), ("last-entry", last)] {
        reply.bulk(name.as_bytes());
        match entry {
            Some(entry) => show_entry(&entry, reply),
            None => reply.nil(),
        }
    }
}

fn describe_fully(stream: &Stream, most: usize, reply: &mut Reply) {
    reply.map(9);
    describe_log(stream, reply);
    reply.bulk(b"entries");
    show(&stream.range(Id::MIN, Id::MAX).take(most).collect::<Vec<_>>(), reply);
    reply.bulk(b"groups");
    reply.array(stream.groups.len());
    for (name, group) in &stream.groups {
        reply.map(7);
        text("name", name, reply);
        describe_position(stream, group, reply);
        number("pel-count", group.pending_len() as i64, reply);
        reply.bulk(b"pending");
        reply.array(group.pending_len().min(most));
        for (id, pending) in group.pending_in(..).take(most) {
            reply.array(4);
            reply.bulk(id.to_string().as_bytes());
            reply.bulk(&pending.consumer);
            reply.int(pending.delivery.time_ms);
            reply.int(pending.delivery.count);
        }
        describe_consumers_fully(group, most, reply);
    }
}

fn describe_consumers_fully(group: &Group, most: usize, reply: &mut Reply) {
    reply.bulk(b"consumers");
    reply.array(group.consumers().len());
    for (name, consumer) in group.consumers() {
        reply.map(4);
        text("name", name, reply);
        number("seen-time", consumer.seen_ms, reply);
        number("pel-count", consumer.pending() as i64, reply);
        reply.bulk(b"pending");
        reply.array(consumer.pending().min(most));
        for (id, pending) in group.pending_of(name, ..).take(most) {
            reply.array(3);
            reply.bulk(id.to_string().as_bytes());
            reply.int(pending.delivery.time_ms);
            reply.int(pending.delivery.count);
        }
    }
}

fn describe_groups(stream: &Stream, reply: &mut Reply) {
    reply.array(stream.groups.len());
    for (name, group) in &stream.groups {
        reply.map(6);
        text("name", name, reply);
        number("consumers", group.consumers().len() as i64, reply);
        number("pending", group.pending_len() as i64, reply);
        describe_position(stream, group, reply);
    }
}

fn describe_consumers(group: &Group, now_ms: i64, reply: &mut Reply) {
    reply.array(group.consumers().len());
    for (name, consumer) in group.consumers() {
        reply.map(3);
        text("name", name, reply);
        number("pending", consumer.pending() as i64, reply);
        number("idle", now_ms.saturating_sub(consumer.seen_ms).max(0), reply);
    }
}

fn describe_position(stream: &Stream, group: &Group, reply: &mut Reply) {
    text("last-delivered-id", group.last_id.to_string().as_bytes(), reply);
    for (name, value) in [("entries-read", group.entries_read), ("lag", stream.lag(group))] {
        reply.bulk(name.as_bytes());
        match value {
            Some(value) => reply.int(value),
            None => reply.nil(),
        }
    }
}

/// The fields common to both forms of `XINFO STREAM`.
fn describe_log(stream: &Stream, reply: &mut Reply) {
    number("length", stream.len() as i64, reply);
    number("radix-tree-keys", stream.blocks() as i64, reply);
    number("radix-tree-nodes", stream.blocks() as i64 + 1, reply);
    text("last-generated-id", stream.last_id.to_string().as_bytes(), reply);
    text("max-deleted-entry-id", stream.max_deleted_id.to_string().as_bytes(), reply);
    number("entries-added", stream.entries_added as i64, reply);
    text("recorded-first-entry-id", stream.first_id().to_string().as_bytes(), reply);
}

fn number(name: &str, value: i64, reply: &mut Reply) {
    reply.bulk(name.as_bytes());
    reply.int(value);
}

fn text(name: &str, value: &[u8], reply: &mut Reply) {
    reply.bulk(name.as_bytes());
    reply.bulk(value);
}
