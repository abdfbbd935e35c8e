//! Commands that write to streams.
//!
//! Effects carry the chosen id and the exact remaining length, never `*` or `~`.

use bytes::Bytes;

use super::args::{int, is};
use crate::blob::Blob;
use crate::db::Db;
use crate::error::{BAD_STREAM_ID, Error, NO_SUCH_KEY, Result, SYNTAX, arity};
use crate::reply::Reply;
use crate::value::Stream;
use crate::value::stream::{Id, Limit, Precision};

/// The default limit of entries that `~` removes.
const ROUGH_LIMIT: usize = 10_000;

const TOO_SMALL: Error = Error::Fixed(
    "ERR The ID specified in XADD is equal or smaller than the target stream top item",
);

/// The requested id of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestedId {
    Auto,
    /// `ms-*`: a given millisecond and an automatic sequence.
    Within(u64),
    Exactly(Id),
}

/// Options shared by `XADD` and `XTRIM`.
#[derive(Debug)]
struct Plan {
    make: bool,
    trim: Option<(Limit, Precision)>,
    requested: RequestedId,
    /// The index of the first field.
    fields: usize,
}

/// The command whose options are parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    Add,
    Trim,
}

impl Plan {
    fn parse(args: &[Bytes], reader: For) -> Result<Self> {
        let (mut make, mut limit, mut rough, mut most) = (true, None, false, None);
        let (mut at, mut requested) = (2, RequestedId::Auto);
        while let Some(word) = args.get(at) {
            let left = args.len() - 1 - at;
            let by_len = is(word, "MAXLEN");
            if reader == For::Add && **word == *b"*" {
                break;
            } else if (by_len || is(word, "MINID")) && left > 0 {
                if limit.is_some() {
                    return Err(Error::Fixed(
                        "ERR syntax error, MAXLEN and MINID options at the same time are not \
                         compatible",
                    ));
                }
                rough = left >= 2 && *args[at + 1] == *b"~";
                if rough || left >= 2 && *args[at + 1] == *b"=" {
                    at += 1;
                }
                limit = Some(if by_len { max_len(&args[at + 1])? } else { min_id(&args[at + 1])? });
                at += 1;
            } else if is(word, "LIMIT") && left > 0 {
                let value = int(&args[at + 1])?;
                let error = Error::Fixed("ERR The LIMIT argument must be >= 0.");
                most = Some(usize::try_from(value).map_err(|_| error)?);
                at += 1;
            } else if reader == For::Add && is(word, "NOMKSTREAM") {
                make = false;
            } else if reader == For::Add {
                requested = parse_requested_id(word)?;
                break;
            } else {
                return Err(SYNTAX);
            }
            at += 1;
        }
        if most.is_some_and(|most| most > 0) && limit.is_none() {
            return Err(Error::Fixed(
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
            ));
        }
        if reader == For::Trim && limit.is_none() {
            return Err(Error::Fixed(
                "ERR syntax error, XTRIM must be called with MAXLEN or MINID",
            ));
        }
        if most.is_some() && !rough {
            return Err(Error::Fixed(
                "ERR syntax error, LIMIT cannot be used without the special ~ option",
            ));
        }
        let blocks = Precision::Blocks(most.unwrap_or(ROUGH_LIMIT));
        let precision = if rough { blocks } else { Precision::Exact };
        Ok(Self { make, trim: limit.map(|limit| (limit, precision)), requested, fields: at + 1 })
    }
}

fn max_len(arg: &[u8]) -> Result<Limit> {
    let error = Error::Fixed("ERR The MAXLEN argument must be >= 0.");
    usize::try_from(int(arg)?).map(Limit::MaxLen).map_err(|_| error)
}

fn min_id(arg: &[u8]) -> Result<Limit> {
    id(arg, 0).map(Limit::MinId)
}

/// Parses an id with or without a sequence number.
pub(super) fn id(arg: &[u8], missing_seq: u64) -> Result<Id> {
    Id::parse(arg, missing_seq).ok_or(BAD_STREAM_ID)
}

fn parse_requested_id(arg: &[u8]) -> Result<RequestedId> {
    match arg.strip_suffix(b"-*") {
        Some(ms) if !ms.contains(&b'-') => Ok(RequestedId::Within(id(ms, 0)?.ms)),
        _ => id(arg, 0).map(RequestedId::Exactly),
    }
}

pub(super) fn xadd(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let key = &args[1];
    let plan = Plan::parse(args, For::Add)?;
    let texts = args.get(plan.fields..).unwrap_or_default();
    if texts.len() < 2 || !texts.len().is_multiple_of(2) {
        return Err(arity("xadd"));
    }
    if plan.requested == RequestedId::Exactly(Id::MIN) {
        return Err(Error::Fixed("ERR The ID specified in XADD must be greater than 0-0"));
    }
    let now = u64::try_from(db.now_ms()).unwrap_or_default();
    let existing = db.read::<Stream>(key)?;
    if existing.is_none() && !plan.make {
        reply.nil();
        return Ok(());
    }
    let id = choose(existing, plan.requested, now)?;
    let stream = db.create::<Stream>(key)?;
    stream.add(id, texts);
    let trimmed = plan.trim.map_or(0, |(limit, precision)| stream.trim(limit, precision));
    let kept = stream.len();
    db.changed(key);
    let id = Blob::new(id.to_string().as_bytes());
    let head = [&b"XADD"[..], key, &id];
    let effect = head.into_iter().chain(texts.iter().map(|text| &**text));
    db.record(&effect.collect::<Vec<_>>());
    if trimmed > 0 {
        record_trim(db, key, kept);
    }
    reply.bulk(&id);
    Ok(())
}

fn choose(stream: Option<&Stream>, requested: RequestedId, now_ms: u64) -> Result<Id> {
    let fresh = Stream::default();
    let stream = stream.unwrap_or(&fresh);
    let last = stream.last_id;
    if last == Id::MAX {
        return Err(Error::Fixed(
            "ERR The stream has exhausted the last possible ID, unable to add more items",
        ));
    }
    let id = match requested {
        RequestedId::Auto => stream.next_id(now_ms),
        RequestedId::Exactly(id) => Some(id),
        RequestedId::Within(ms) if ms == last.ms => {
            last.seq.checked_add(1).map(|seq| Id { ms, seq })
        }
        RequestedId::Within(ms) => Some(Id { ms, seq: 0 }),
    };
    id.filter(|id| *id > last).ok_or(TOO_SMALL)
}

pub(super) fn xtrim(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let key = &args[1];
    let plan = Plan::parse(args, For::Trim)?;
    let (mut removed, mut kept) = (0, 0);
    if let (Some(stream), Some((limit, precision))) = (db.write::<Stream>(key)?, plan.trim) {
        removed = stream.trim(limit, precision);
        kept = stream.len();
    }
    if removed > 0 {
        db.changed_for_watches(key);
        record_trim(db, key, kept);
    }
    reply.int(removed as i64);
    Ok(())
}

fn record_trim(db: &mut Db, key: &Bytes, kept: usize) {
    db.record(&[b"XTRIM", &**key, b"MAXLEN", b"=", kept.to_string().as_bytes()]);
}

pub(super) fn xdel(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let Some(stream) = db.write::<Stream>(&args[1])? else {
        reply.int(0);
        return Ok(());
    };
    let ids: Vec<Id> = args[2..].iter().map(|arg| id(arg, 0)).collect::<Result<_>>()?;
    let removed = ids.into_iter().filter(|id| stream.remove(*id)).count();
    if removed > 0 {
        db.changed_for_watches(&args[1]);
    }
    reply.int(removed as i64);
    Ok(())
}

pub(super) fn xsetid(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let last = id(&args[2], 0)?;
    let (mut added, mut deleted, mut at) = (None, None, 3);
    while let Some(word) = args.get(at) {
        let value = args.get(at + 1);
        match value {
            Some(value) if is(word, "ENTRIESADDED") => {
                let error = Error::Fixed("ERR entries_added must be positive");
                added = Some(u64::try_from(int(value)?).map_err(|_| error)?);
            }
            Some(value) if is(word, "MAXDELETEDID") => {
                let given = id(value, 0)?;
                if last < given {
                    return Err(Error::Fixed(
                        "ERR The ID specified in XSETID is smaller than the provided \
                         max_deleted_entry_id",
                    ));
                }
                deleted = Some(given);
            }
            _ => return Err(SYNTAX),
        }
        at += 2;
    }
    let stream = db.write::<Stream>(&args[1])?.ok_or(NO_SUCH_KEY)?;
    if let Some(top) = stream.range(Id::MIN, Id::MAX).next_back() {
        if last < top.id {
            return Err(Error::Fixed(
                "ERR The ID specified in XSETID is smaller than the target stream top item",
            ));
        }
        if added.is_some_and(|added| added < stream.len() as u64) {
            return Err(Error::Fixed(
                "ERR The entries_added specified in XSETID is smaller than the target stream \
                 length",
            ));
        }
    }
    stream.last_id = last;
    stream.entries_added = added.unwrap_or(stream.entries_added);
    // Zero means not given.
    stream.max_deleted_id = deleted.filter(|id| *id != Id::MIN).unwrap_or(stream.max_deleted_id);
    db.changed_unwatched();
    reply.ok();
    Ok(())
}
