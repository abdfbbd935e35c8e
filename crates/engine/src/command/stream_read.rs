//! Commands that read streams.

use bytes::Bytes;

use super::args::{Options, int, is};
use super::stream::id;
use crate::db::{Blocking, Db};
use crate::error::{
    Error, NEGATIVE_TIMEOUT, NO_SUCH_KEY, Result, SYNTAX, TIMEOUT_NOT_INTEGER,
    TIMEOUT_OUT_OF_RANGE, arity, subcommand, subcommand_syntax,
};
use crate::reply::{Protocol, Reply};
use crate::value::Stream;
use crate::value::stream::{Entry, Id};

pub(super) fn xlen(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    reply.int(db.read::<Stream>(&args[1])?.map_or(0, |stream| stream.len() as i64));
    Ok(())
}

pub(super) fn xrange(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (start, end) = interval(&args[2], &args[3])?;
    range(db, args, reply, |stream, most| stream.range(start, end).take(most).collect())
}

pub(super) fn xrevrange(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (start, end) = interval(&args[3], &args[2])?;
    range(db, args, reply, |stream, most| stream.range(start, end).rev().take(most).collect())
}

fn range(
    db: &mut Db,
    args: &[Bytes],
    reply: &mut Reply,
    entries: impl for<'a> Fn(&'a Stream, usize) -> Vec<Entry<'a>>,
) -> Result {
    let (mut most, mut options) = (None, Options::new(&args[4..]));
    while let Some(word) = options.next() {
        if !is(word, "COUNT") || options.left() == 0 {
            return Err(SYNTAX);
        }
        most = Some(int(options.value()?)?.max(0) as usize);
    }
    match (db.read::<Stream>(&args[1])?, most) {
        (None, _) => reply.array(0),
        (Some(_), Some(0)) => reply.nil_array(),
        (Some(stream), most) => {
            show(&entries(stream, most.unwrap_or(usize::MAX)), reply);
        }
    }
    Ok(())
}

/// Parses the bounds of a range: `-`, `+`, an id, or `(` and an id that is excluded.
fn interval(start: &[u8], end: &[u8]) -> Result<(Id, Id)> {
    let (start, open) = end_of_interval(start, 0)?;
    let start = if open { start.next() } else { Some(start) };
    let start = start.ok_or(Error::Fixed("ERR invalid start ID for the interval"))?;
    let (end, open) = end_of_interval(end, u64::MAX)?;
    let end = if open { end.previous() } else { Some(end) };
    Ok((start, end.ok_or(Error::Fixed("ERR invalid end ID for the interval"))?))
}

fn end_of_interval(arg: &[u8], missing_seq: u64) -> Result<(Id, bool)> {
    match arg {
        b"-" => Ok((Id::MIN, false)),
        b"+" => Ok((Id::MAX, false)),
        [b'(', rest @ ..] if !rest.is_empty() => Ok((id(rest, missing_seq)?, true)),
        _ => Ok((id(arg, missing_seq)?, false)),
    }
}

pub(super) fn xread(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (mut block, mut most, mut options) = (None, 0, Options::new(&args[1..]));
    let rest = loop {
        let word = options.next().ok_or(SYNTAX)?;
        let more = options.left() >= 1;
        if is(word, "BLOCK") && more {
            if db.blocking() == Blocking::Forbidden {
                let name = String::from_utf8_lossy(&args[0]);
                return Err(Error::quoting(format!(
                    "ERR {name} command is not allowed with BLOCK option from scripts"
                )));
            }
            block = Some(timeout_ms(db, options.value()?)?);
        } else if is(word, "COUNT") && more {
            most = int(options.value()?)?.max(0) as usize;
        } else if is(word, "STREAMS") && more {
            break options.rest();
        } else if is(word, "GROUP") && options.left() >= 2 {
            return Err(Error::Fixed(
                "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
            ));
        } else if is(word, "NOACK") {
            return Err(Error::Fixed(
                "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
            ));
        } else {
            return Err(SYNTAX);
        }
    };
    if !rest.len().is_multiple_of(2) {
        return Err(Error::Fixed(
            "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be \
             specified.",
        ));
    }
    let (keys, given) = rest.split_at(rest.len() / 2);
    let mut after = Vec::with_capacity(keys.len());
    for (key, arg) in keys.iter().zip(given) {
        let stream = db.read::<Stream>(key)?;
        after.push(match &**arg {
            b"$" => stream.map_or(Id::MIN, |stream| stream.last_id),
            b">" => {
                return Err(Error::Fixed(
                    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP \
                     <group> <consumer> option.",
                ));
            }
            arg => id(arg, 0)?,
        });
    }
    if read_after(db, keys, &after, if most == 0 { usize::MAX } else { most }, reply)? {
        return Ok(());
    }
    let denied = block.is_none_or(|timeout| {
        // `$` means the last id at the time of the call.
        let head = &args[..args.len() - after.len()];
        let ids = after.iter().map(|id| Bytes::from(id.to_string()));
        let again: Vec<Bytes> = head.iter().cloned().chain(ids).collect();
        !db.request_block(&again, keys, timeout)
    });
    if denied {
        reply.nil_array();
    }
    Ok(())
}

/// Replies with the entries after the given ids; `false` if there are none.
fn read_after(
    db: &mut Db,
    keys: &[Bytes],
    after: &[Id],
    most: usize,
    reply: &mut Reply,
) -> Result<bool> {
    let mut ready = Vec::new();
    for (key, after) in keys.iter().zip(after) {
        let (Some(stream), Some(start)) = (db.read::<Stream>(key)?, after.next()) else { continue };
        if stream.range(start, Id::MAX).next().is_some() {
            ready.push((key, start));
        }
    }
    if ready.is_empty() {
        return Ok(false);
    }
    let flat = reply.protocol() == Protocol::Resp3;
    if flat {
        reply.map(ready.len());
    } else {
        reply.array(ready.len());
    }
    for (key, start) in ready {
        if !flat {
            reply.array(2);
        }
        reply.bulk(key);
        let stream = db.read::<Stream>(key)?;
        let entries = stream.into_iter().flat_map(|stream| stream.range(start, Id::MAX));
        show(&entries.take(most).collect::<Vec<_>>(), reply);
    }
    Ok(true)
}

fn timeout_ms(db: &Db, arg: &[u8]) -> Result<i64> {
    let ms = int(arg).map_err(|_| TIMEOUT_NOT_INTEGER)?;
    if ms < 0 {
        return Err(NEGATIVE_TIMEOUT);
    }
    ms.checked_add(db.now_ms()).map(|_| ms).ok_or(TIMEOUT_OUT_OF_RANGE)
}

fn show(entries: &[Entry<'_>], reply: &mut Reply) {
    reply.array(entries.len());
    for entry in entries {
        show_entry(entry, reply);
    }
}

fn show_entry(entry: &Entry<'_>, reply: &mut Reply) {
    let texts = entry.texts();
    reply.array(2);
    reply.bulk(entry.id.to_string().as_bytes());
    reply.array(texts.len());
    texts.iter().for_each(|text| reply.bulk(text));
}

pub(super) fn xinfo(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let word = String::from_utf8_lossy(&args[1]).to_lowercase();
    match (word.as_str(), args.len()) {
        ("stream", 3..) => {}
        ("stream", _) => return Err(arity("xinfo|stream")),
        _ => return Err(subcommand("xinfo", &args[1])),
    }
    let stream = db.read::<Stream>(&args[2])?.ok_or(NO_SUCH_KEY)?;
    let full = full_form(args)?;
    reply.map(if full.is_some() { 9 } else { 10 });
    describe(stream, reply);
    match full {
        Some(most) => {
            reply.bulk(b"entries");
            show(&stream.range(Id::MIN, Id::MAX).take(most).collect::<Vec<_>>(), reply);
            reply.bulk(b"groups");
            reply.array(0);
        }
        None => {
            reply.bulk(b"groups");
            reply.int(0);
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
    }
    Ok(())
}

/// The number of entries of `[FULL [COUNT n]]`; `None` for the short form.
fn full_form(args: &[Bytes]) -> Result<Option<usize>> {
    let error = || subcommand_syntax("xinfo", &args[1]);
    match &args[3..] {
        [] => Ok(None),
        [full] if is(full, "FULL") => Ok(Some(10)),
        [full, word, count] if is(full, "FULL") && is(word, "COUNT") => {
            Ok(Some(match int(count)? {
                0 => usize::MAX,
                count => usize::try_from(count).unwrap_or(10),
            }))
        }
        _ => Err(error()),
    }
}

/// The fields common to both forms of `XINFO STREAM`.
fn describe(stream: &Stream, reply: &mut Reply) {
    let numbers = [
        ("length", stream.len()),
        ("radix-tree-keys", stream.blocks()),
        ("radix-tree-nodes", stream.blocks() + 1),
    ];
    for (name, value) in numbers {
        reply.bulk(name.as_bytes());
        reply.int(value as i64);
    }
    let ids =
        [("last-generated-id", stream.last_id), ("max-deleted-entry-id", stream.max_deleted_id)];
    for (name, id) in ids {
        reply.bulk(name.as_bytes());
        reply.bulk(id.to_string().as_bytes());
    }
    reply.bulk(b"entries-added");
    reply.int(stream.entries_added as i64);
    reply.bulk(b"recorded-first-entry-id");
    reply.bulk(stream.first_id().to_string().as_bytes());
}
