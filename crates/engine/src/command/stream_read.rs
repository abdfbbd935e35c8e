//! Commands that read streams.

use bytes::Bytes;

use super::args::{Options, int, is};
use super::stream::id;
use crate::db::{Blocking, Db};
use crate::error::{
    Error, NEGATIVE_TIMEOUT, Result, SYNTAX, TIMEOUT_NOT_INTEGER, TIMEOUT_OUT_OF_RANGE,
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
pub(super) fn interval(start: &[u8], end: &[u8]) -> Result<(Id, Id)> {
    let (start, open) = end_of_interval(start, 0)?;
    let start = if open { start.next() } else { Some(start) };
    let start = start.ok_or(Error::Fixed("ERR invalid start ID for the interval"))?;
    let (end, open) = end_of_interval(end, u64::MAX)?;
    let end = if open { end.previous() } else { Some(end) };
    Ok((start, end.ok_or(Error::Fixed("ERR invalid end ID for the interval"))?))
}

/// Parses one bound of a range, and whether it is excluded.
pub(super) fn end_of_interval(arg: &[u8], missing_seq: u64) -> Result<(Id, bool)> {
    match arg {
        b"-" => Ok((Id::MIN, false)),
        b"+" => Ok((Id::MAX, false)),
        [b'(', rest @ ..] if !rest.is_empty() => Ok((id(rest, missing_seq)?, true)),
        _ => Ok((id(arg, missing_seq)?, false)),
    }
}

/// The options and streams of `XREAD` and `XREADGROUP`.
#[derive(Debug)]
pub(super) struct ReadOptions<'a> {
    /// The time to wait in milliseconds; `None`: not at all, 0: without limit.
    pub(super) block: Option<i64>,
    /// The number of entries of each stream; 0: all.
    pub(super) most: usize,
    /// Group and consumer.
    pub(super) group: Option<(&'a Bytes, &'a Bytes)>,
    /// Whether entries count as acknowledged when they are delivered.
    pub(super) no_ack: bool,
    pub(super) keys: &'a [Bytes],
    pub(super) ids: &'a [Bytes],
}

/// The command whose options are parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    Alone,
    InGroup,
}

impl<'a> ReadOptions<'a> {
    pub(super) fn parse(db: &Db, args: &'a [Bytes], reader: Reader) -> Result<Self> {
        let (mut block, mut most, mut group, mut no_ack) = (None, 0, None, false);
        let mut options = Options::new(&args[1..]);
        let rest = loop {
            let word = options.next().ok_or(SYNTAX)?;
            let more = options.left() >= 1;
            if is(word, "BLOCK") && more {
                refuse_in_script(db, &args[0])?;
                block = Some(timeout_ms(db, options.value()?)?);
            } else if is(word, "COUNT") && more {
                most = int(options.value()?)?.max(0) as usize;
            } else if is(word, "STREAMS") && more {
                break options.rest();
            } else if is(word, "GROUP") && options.left() >= 2 {
                refuse_alone(reader, GROUP_ALONE)?;
                group = Some((options.value()?, options.value()?));
            } else if is(word, "NOACK") {
                refuse_alone(reader, NOACK_ALONE)?;
                no_ack = true;
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
        let (keys, ids) = rest.split_at(rest.len() / 2);
        Ok(Self { block, most, group, no_ack, keys, ids })
    }
}

const GROUP_ALONE: Error =
    Error::Fixed("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.");
const NOACK_ALONE: Error =
    Error::Fixed("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.");

fn refuse_alone(reader: Reader, error: Error) -> Result {
    if reader == Reader::Alone { Err(error) } else { Ok(()) }
}

fn refuse_in_script(db: &Db, name: &[u8]) -> Result {
    if db.blocking() != Blocking::Forbidden {
        return Ok(());
    }
    let name = String::from_utf8_lossy(name);
    Err(Error::quoting(format!("ERR {name} command is not allowed with BLOCK option from scripts")))
}

pub(super) fn xread(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let ReadOptions { block, most, keys, ids, .. } = ReadOptions::parse(db, args, Reader::Alone)?;
    let mut after = Vec::with_capacity(keys.len());
    for (key, arg) in keys.iter().zip(ids) {
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
        let ids = after.iter().map(|id| Bytes::from(id.to_string()));
        let head = [Bytes::from_static(b"XREAD")];
        let again = head.into_iter().chain(blocked_options(most)).chain(keys.iter().cloned());
        !db.request_block(&again.chain(ids).collect::<Vec<_>>(), keys, timeout)
    });
    if denied {
        reply.nil_array();
    }
    Ok(())
}

/// The options of a blocked read when it is run again. A client that gave no count gets at most 1000
/// entries after waiting, as in Redis.
pub(super) fn blocked_options(most: usize) -> [Bytes; 5] {
    let count = if most == 0 { 1000 } else { most };
    let words = [&b"COUNT"[..], b"BLOCK", b"0", b"STREAMS"].map(Bytes::from_static);
    let [count_word, block, zero, streams] = words;
    [count_word, Bytes::from(count.to_string()), block, zero, streams]
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
    show_streams(ready.len(), reply);
    for (key, start) in ready {
        show_stream(key, reply);
        let stream = db.read::<Stream>(key)?;
        let entries = stream.into_iter().flat_map(|stream| stream.range(start, Id::MAX));
        show(&entries.take(most).collect::<Vec<_>>(), reply);
    }
    Ok(true)
}

/// The header of a reply about several streams: a map in RESP 3, an array of pairs in RESP 2.
pub(super) fn show_streams(count: usize, reply: &mut Reply) {
    match reply.protocol() {
        Protocol::Resp2 => reply.array(count),
        Protocol::Resp3 => reply.map(count),
    }
}

/// The name of a stream in such a reply; its entries follow.
pub(super) fn show_stream(key: &[u8], reply: &mut Reply) {
    if reply.protocol() == Protocol::Resp2 {
        reply.array(2);
    }
    reply.bulk(key);
}

fn timeout_ms(db: &Db, arg: &[u8]) -> Result<i64> {
    let ms = int(arg).map_err(|_| TIMEOUT_NOT_INTEGER)?;
    if ms < 0 {
        return Err(NEGATIVE_TIMEOUT);
    }
    ms.checked_add(db.now_ms()).map(|_| ms).ok_or(TIMEOUT_OUT_OF_RANGE)
}

/// An array of entries.
pub(super) fn show(entries: &[Entry<'_>], reply: &mut Reply) {
    reply.array(entries.len());
    for entry in entries {
        show_entry(entry, reply);
    }
}

/// An entry: its id and its fields.
pub(super) fn show_entry(entry: &Entry<'_>, reply: &mut Reply) {
    let texts = entry.texts();
    reply.array(2);
    reply.bulk(entry.id.to_string().as_bytes());
    reply.array(texts.len());
    texts.iter().for_each(|text| reply.bulk(text));
}
