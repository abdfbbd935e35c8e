//! Commands on strings.

use bytes::Bytes;

use super::args::{Options, int, is};
use super::expire::{Unit, at_ms};
use crate::blob::Blob;
use crate::db::Db;
use crate::error::{
    DECREMENT_OVERFLOW, NAN_OR_INFINITY, NOT_FLOAT, NOT_INTEGER, OFFSET_OUT_OF_RANGE, OVERFLOW,
    Result, SYNTAX, TOO_LONG, arity,
};
use crate::number::long_double::{self, LongDouble, Parsed};
use crate::number::parse_int;
use crate::reply::Reply;
use crate::value::{Value, string};

pub(super) fn get(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    bulk_or_nil(db.read::<Blob>(&args[1])?, reply);
    Ok(())
}

pub(super) fn mget(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    reply.array(args.len() - 1);
    for key in &args[1..] {
        bulk_or_nil(db.read::<Blob>(key).unwrap_or_default(), reply);
    }
    Ok(())
}

pub(super) fn strlen(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    reply.int(db.read::<Blob>(&args[1])?.map_or(0, |text| text.len() as i64));
    Ok(())
}

pub(super) fn getrange(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (start, end) = (int(&args[2])?, int(&args[3])?);
    let text = db.read::<Blob>(&args[1])?;
    reply.bulk(text.map_or(&[], |text| string::range(text, start, end)));
    Ok(())
}

/// The expiry option of a string command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expiry<'a> {
    Unsaid,
    Keep,
    Clear,
    At(Unit, &'a Bytes),
}

impl<'a> Expiry<'a> {
    /// Parses an expiry option; a second one is a syntax error.
    fn option(self, word: &[u8], options: &mut Options<'a>) -> Result<Self> {
        let unit = match word.to_ascii_uppercase().as_slice() {
            b"EX" => Unit::InSeconds,
            b"PX" => Unit::InMs,
            b"EXAT" => Unit::AtSeconds,
            b"PXAT" => Unit::AtMs,
            _ => return Err(SYNTAX),
        };
        if self == Self::Unsaid { Ok(Self::At(unit, options.value()?)) } else { Err(SYNTAX) }
    }
}

pub(super) fn set(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (key, value) = (&args[1], &args[2]);
    let (mut nx, mut xx, mut get, mut expiry) = (false, false, false, Expiry::Unsaid);
    let mut options = Options::new(&args[3..]);
    while let Some(word) = options.next() {
        match () {
            () if is(word, "NX") && !xx => nx = true,
            () if is(word, "XX") && !nx => xx = true,
            () if is(word, "GET") => get = true,
            () if is(word, "KEEPTTL") && matches!(expiry, Expiry::Unsaid | Expiry::Keep) => {
                expiry = Expiry::Keep;
            }
            () => expiry = expiry.option(word, &mut options)?,
        }
    }
    let at = match expiry {
        Expiry::At(unit, text) => Some(at_ms(db, unit, text, "set")?),
        _ => None,
    };
    if get {
        bulk_or_nil(db.read::<Blob>(key)?, reply);
    }
    if (nx || xx) && db.exists(key) == nx {
        if !get {
            reply.nil();
        }
        return Ok(());
    }
    store(db, key, value, expiry == Expiry::Keep, at);
    if !get {
        reply.ok();
    }
    Ok(())
}

pub(super) fn setex(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let at = at_ms(db, Unit::InSeconds, &args[2], "setex")?;
    store(db, &args[1], &args[3], false, Some(at));
    reply.ok();
    Ok(())
}

pub(super) fn psetex(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let at = at_ms(db, Unit::InMs, &args[2], "psetex")?;
    store(db, &args[1], &args[3], false, Some(at));
    reply.ok();
    Ok(())
}

pub(super) fn setnx(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let free = !db.exists(&args[1]);
    if free {
        db.set(&args[1], text(&args[2]));
    }
    reply.int(free.into());
    Ok(())
}

pub(super) fn getset(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    bulk_or_nil(db.read::<Blob>(&args[1])?, reply);
    store(db, &args[1], &args[2], false, None);
    Ok(())
}

pub(super) fn getdel(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    bulk_or_nil(db.read::<Blob>(&args[1])?, reply);
    if db.remove(&args[1]).is_some() {
        db.record(&[b"DEL", &*args[1]]);
    }
    Ok(())
}

pub(super) fn getex(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let key = &args[1];
    let (mut expiry, mut options) = (Expiry::Unsaid, Options::new(&args[2..]));
    while let Some(word) = options.next() {
        expiry = match expiry {
            Expiry::Unsaid | Expiry::Clear if is(word, "PERSIST") => Expiry::Clear,
            _ => expiry.option(word, &mut options)?,
        };
    }
    let Some(value) = db.read::<Blob>(key)?.cloned() else {
        reply.nil();
        return Ok(());
    };
    match expiry {
        Expiry::At(unit, text) => {
            let at = at_ms(db, unit, text, "getex")?;
            if matches!(unit, Unit::AtMs | Unit::AtSeconds) && at <= db.now_ms() {
                db.remove(key);
                db.record(&[b"DEL", &**key]);
            } else {
                db.set_expiry(key, Some(at));
                db.record(&[b"PEXPIREAT", &**key, at.to_string().as_bytes()]);
            }
        }
        Expiry::Clear if db.expiry(key).flatten().is_some() => {
            db.set_expiry(key, None);
            db.record(&[b"PERSIST", &**key]);
        }
        _ => {}
    }
    reply.bulk(&value);
    Ok(())
}

pub(super) fn mset(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    if args.len().is_multiple_of(2) {
        return Err(arity("mset"));
    }
    for pair in args[1..].chunks_exact(2) {
        db.set(&pair[0], text(&pair[1]));
    }
    reply.ok();
    Ok(())
}

pub(super) fn msetnx(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    if args.len().is_multiple_of(2) {
        return Err(arity("msetnx"));
    }
    let free = !args[1..].iter().step_by(2).any(|key| db.exists(key));
    if free {
        for pair in args[1..].chunks_exact(2) {
            db.set(&pair[0], text(&pair[1]));
        }
    }
    reply.int(free.into());
    Ok(())
}

pub(super) fn append(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (key, more) = (&args[1], &args[2]);
    let len = db.read::<Blob>(key)?.map_or(0, |text| text.len()) + more.len();
    if len > string::MAX_LEN {
        return Err(TOO_LONG);
    }
    db.create::<Blob>(key)?.edit(|text| {
        text.reserve_exact(more.len());
        text.extend_from_slice(more);
    });
    db.changed(key);
    reply.int(len as i64);
    Ok(())
}

pub(super) fn setrange(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (key, bytes) = (&args[1], &args[3]);
    let offset = usize::try_from(int(&args[2])?).map_err(|_| OFFSET_OUT_OF_RANGE)?;
    let len = db.read::<Blob>(key)?.map_or(0, |text| text.len());
    if bytes.is_empty() {
        reply.int(len as i64);
        return Ok(());
    }
    if offset.saturating_add(bytes.len()) > string::MAX_LEN {
        return Err(TOO_LONG);
    }
    db.create::<Blob>(key)?.edit(|text| string::overwrite(text, offset, bytes));
    db.changed(key);
    reply.int(len.max(offset + bytes.len()) as i64);
    Ok(())
}

pub(super) fn incr(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    add(db, &args[1], 1, reply)
}

pub(super) fn decr(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    add(db, &args[1], -1, reply)
}

pub(super) fn incrby(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    add(db, &args[1], int(&args[2])?, reply)
}

pub(super) fn decrby(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    add(db, &args[1], int(&args[2])?.checked_neg().ok_or(DECREMENT_OVERFLOW)?, reply)
}

pub(super) fn incrbyfloat(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let key = &args[1];
    let old = match db.read::<Blob>(key)? {
        Some(text) => long_double::parse(text).ok_or(NOT_FLOAT)?,
        None => Parsed::Finite(LongDouble::zero()),
    };
    let sum = match (old, long_double::parse(&args[2]).ok_or(NOT_FLOAT)?) {
        (Parsed::Finite(old), Parsed::Finite(more)) => old.add(&more).ok_or(NAN_OR_INFINITY)?,
        _ => return Err(NAN_OR_INFINITY),
    };
    let sum = sum.to_text();
    db.set_keeping_expiry(key, text(sum.as_bytes()));
    db.record(&[b"SET", &**key, sum.as_bytes(), b"KEEPTTL"]);
    reply.bulk(sum.as_bytes());
    Ok(())
}

fn add(db: &mut Db, key: &Bytes, more: i64, reply: &mut Reply) -> Result {
    let old = match db.read::<Blob>(key)? {
        Some(text) => parse_int(text).ok_or(NOT_INTEGER)?,
        None => 0,
    };
    let sum = old.checked_add(more).ok_or(OVERFLOW)?;
    *db.create::<Blob>(key)? = Blob::from_int(sum);
    db.changed(key);
    reply.int(sum);
    Ok(())
}

/// Sets a string and records it with an absolute expiry.
fn store(db: &mut Db, key: &Bytes, value: &Bytes, keep_expiry: bool, at: Option<i64>) {
    if keep_expiry {
        db.set_keeping_expiry(key, text(value));
        db.record(&[b"SET", &**key, value, b"KEEPTTL"]);
        return;
    }
    db.set(key, text(value));
    if let Some(at) = at {
        db.set_expiry(key, Some(at));
        db.record(&[b"SET", &**key, value, b"PXAT", at.to_string().as_bytes()]);
    } else {
        db.record(&[b"SET", &**key, value]);
    }
}

fn text(bytes: &[u8]) -> Value {
    Value::String(Blob::new(bytes))
}

fn bulk_or_nil(text: Option<&Blob>, reply: &mut Reply) {
    match text {
        Some(text) => reply.bulk(text),
        None => reply.nil(),
    }
}
