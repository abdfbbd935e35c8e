//! Commands that move elements between lists, pop from the first non-empty list, or block until
//! there is one.
//!
//! A blocking command records the effect of its non-blocking form.

use bytes::Bytes;

use super::args::{Options, is, positive_or};
use crate::blob::Blob;
use crate::db::Db;
use crate::error::{BAD_TIMEOUT, Error, NEGATIVE_TIMEOUT, Result, SYNTAX, TIMEOUT_OUT_OF_RANGE};
use crate::number::long_double::{self, Parsed};
use crate::number::parse_float;
use crate::reply::Reply;
use crate::value::List;
use crate::value::list::End;

pub(super) fn lmove(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (from, to) = (end(&args[3])?, end(&args[4])?);
    if !shift(db, &args[1], &args[2], from, to, reply)? {
        reply.nil();
    }
    Ok(())
}

pub(super) fn rpoplpush(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    if !shift(db, &args[1], &args[2], End::Right, End::Left, reply)? {
        reply.nil();
    }
    Ok(())
}

pub(super) fn blmove(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (from, to) = (end(&args[3])?, end(&args[4])?);
    let timeout = timeout_ms(db, &args[5])?;
    if shift(db, &args[1], &args[2], from, to, reply)? {
        db.record(&[b"LMOVE", &*args[1], &args[2], &args[3], &args[4]]);
    } else if !db.request_block(args, &args[1..2], timeout) {
        reply.nil();
    }
    Ok(())
}

pub(super) fn brpoplpush(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let timeout = timeout_ms(db, &args[3])?;
    if shift(db, &args[1], &args[2], End::Right, End::Left, reply)? {
        db.record(&[b"RPOPLPUSH", &*args[1], &args[2]]);
    } else if !db.request_block(args, &args[1..2], timeout) {
        reply.nil();
    }
    Ok(())
}

pub(super) fn blpop(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    pop_first(db, args, End::Left, reply)
}

pub(super) fn brpop(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    pop_first(db, args, End::Right, reply)
}

pub(super) fn lmpop(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (keys, rest) = keys_and_rest(args, 1)?;
    let (from, most) = end_and_count(rest)?;
    if !pop_many(db, keys, from, most, reply)? {
        reply.nil_array();
    }
    Ok(())
}

pub(super) fn blmpop(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (keys, rest) = keys_and_rest(args, 2)?;
    let (from, most) = end_and_count(rest)?;
    let timeout = timeout_ms(db, &args[1])?;
    if !pop_many(db, keys, from, most, reply)? && !db.request_block(args, keys, timeout) {
        reply.nil_array();
    }
    Ok(())
}

/// A blocking timeout in milliseconds; 0 means none.
pub(super) fn timeout_ms(db: &Db, arg: &[u8]) -> Result<i64> {
    let seconds = match long_double::parse(arg).ok_or(BAD_TIMEOUT)? {
        Parsed::Infinite => f64::INFINITY,
        Parsed::Finite(_) => parse_float(arg).unwrap_or(f64::INFINITY),
    };
    let ms = (seconds * 1000.0).ceil();
    // Redis treats values out of range as negative.
    if ms < 0.0 || ms >= i64::MAX as f64 {
        return Err(NEGATIVE_TIMEOUT);
    }
    let ms = ms as i64;
    ms.checked_add(db.now_ms()).map(|_| ms).ok_or(TIMEOUT_OUT_OF_RANGE)
}

/// The keys after their count at `at`, and the remaining arguments.
pub(super) fn keys_and_rest(args: &[Bytes], at: usize) -> Result<(&[Bytes], &[Bytes])> {
    let error = Error::Fixed("ERR numkeys should be greater than 0");
    let count = positive_or(&args[at], error)?;
    args[at + 1..].split_at_checked(count).ok_or(SYNTAX)
}

/// Moves one element; `false` if the source is empty. The target must be a list in any case.
fn shift(
    db: &mut Db,
    source: &Bytes,
    target: &Bytes,
    from: End,
    to: End,
    reply: &mut Reply,
) -> Result<bool> {
    if db.read::<List>(source)?.is_none() {
        return Ok(false);
    }
    db.read::<List>(target)?;
    let Some(element) = db.write::<List>(source)?.and_then(|list| list.pop(from)) else {
        return Ok(false);
    };
    reply.bulk(&element);
    // The source is kept, because it may be the target too.
    db.create::<List>(target)?.push(to, element);
    db.changed(target);
    db.changed_or_emptied(source);
    Ok(true)
}

fn pop_first(db: &mut Db, args: &[Bytes], from: End, reply: &mut Reply) -> Result {
    let (timeout, keys) = args[1..].split_last().ok_or(SYNTAX)?;
    let timeout = timeout_ms(db, timeout)?;
    for key in keys {
        if let Some(element) = db.write::<List>(key)?.and_then(|list| list.pop(from)) {
            reply.array(2);
            reply.bulk(key);
            reply.bulk(&element);
            db.changed_or_emptied(key);
            db.record(&[pop_name(from), &**key]);
            return Ok(());
        }
    }
    if !db.request_block(args, keys, timeout) {
        reply.nil_array();
    }
    Ok(())
}

fn pop_many(
    db: &mut Db,
    keys: &[Bytes],
    from: End,
    most: usize,
    reply: &mut Reply,
) -> Result<bool> {
    for key in keys {
        let Some(list) = db.write::<List>(key)? else { continue };
        let count = most.min(list.len());
        let elements: Vec<Blob> = (0..count).filter_map(|_| list.pop(from)).collect();
        reply.array(2);
        reply.bulk(key);
        reply.array(count);
        elements.iter().for_each(|element| reply.bulk(element));
        db.changed_or_emptied(key);
        db.record(&[pop_name(from), &**key, count.to_string().as_bytes()]);
        return Ok(true);
    }
    Ok(false)
}

fn pop_name(from: End) -> &'static [u8] {
    match from {
        End::Left => b"LPOP",
        End::Right => b"RPOP",
    }
}

fn end(arg: &[u8]) -> Result<End> {
    if is(arg, "LEFT") {
        Ok(End::Left)
    } else if is(arg, "RIGHT") {
        Ok(End::Right)
    } else {
        Err(SYNTAX)
    }
}

fn end_and_count(rest: &[Bytes]) -> Result<(End, usize)> {
    let (first, rest) = rest.split_first().ok_or(SYNTAX)?;
    Ok((end(first)?, count_option(rest)?))
}

/// `[COUNT n]`, at most once.
pub(super) fn count_option(rest: &[Bytes]) -> Result<usize> {
    let (mut count, mut options) = (None, Options::new(rest));
    while let Some(word) = options.next() {
        if count.is_some() || !is(word, "COUNT") || options.left() == 0 {
            return Err(SYNTAX);
        }
        let error = Error::Fixed("ERR count should be greater than 0");
        count = Some(positive_or(options.value()?, error)?);
    }
    Ok(count.unwrap_or(1))
}
