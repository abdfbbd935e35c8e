//! Commands on hashes.

use bytes::Bytes;

use super::args::{int, is, signed_count};
use crate::blob::Blob;
use crate::db::Db;
use crate::error::{
    Error, HASH_NOT_FLOAT, HASH_NOT_INTEGER, NAN_OR_INFINITY, NOT_FLOAT, OUT_OF_RANGE, OVERFLOW,
    Result, SYNTAX, arity,
};
use crate::number::long_double::{self, LongDouble, Parsed};
use crate::number::parse_int;
use crate::reply::{Protocol, Reply};
use crate::value::Hash;

pub(super) fn hset(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    reply.int(set_all(db, args, "hset")?);
    Ok(())
}

pub(super) fn hmset(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    set_all(db, args, "hmset")?;
    reply.ok();
    Ok(())
}

fn set_all(db: &mut Db, args: &[Bytes], name: &str) -> Result<i64> {
    if !args.len().is_multiple_of(2) {
        return Err(arity(name));
    }
    let hash = db.create::<Hash>(&args[1])?;
    if hash.is_empty() {
        hash.reserve(args.len() - 2, args[2..].iter().map(Bytes::len).sum());
    }
    let new = args[2..].chunks_exact(2).filter(|pair| hash.set(&pair[0], &pair[1])).count();
    db.changed(&args[1]);
    Ok(new as i64)
}

pub(super) fn hsetnx(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let hash = db.create::<Hash>(&args[1])?;
    let free = hash.get(&args[2]).is_none();
    if free {
        hash.set(&args[2], &args[3]);
        db.changed(&args[1]);
    }
    reply.int(free.into());
    Ok(())
}

pub(super) fn hget(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let value = db.read::<Hash>(&args[1])?.and_then(|hash| hash.get(&args[2]));
    bulk_or_nil(value, reply);
    Ok(())
}

pub(super) fn hmget(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let hash = db.read::<Hash>(&args[1])?;
    reply.array(args.len() - 2);
    for field in &args[2..] {
        bulk_or_nil(hash.and_then(|hash| hash.get(field)), reply);
    }
    Ok(())
}

pub(super) fn hdel(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let Some(hash) = db.write::<Hash>(&args[1])? else {
        reply.int(0);
        return Ok(());
    };
    let removed = args[2..].iter().filter(|field| hash.remove(field)).count();
    if removed > 0 {
        db.changed_or_emptied(&args[1]);
    }
    reply.int(removed as i64);
    Ok(())
}

pub(super) fn hlen(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    reply.int(db.read::<Hash>(&args[1])?.map_or(0, |hash| hash.len() as i64));
    Ok(())
}

pub(super) fn hstrlen(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let value = db.read::<Hash>(&args[1])?.and_then(|hash| hash.get(&args[2]));
    reply.int(value.map_or(0, |value| value.len() as i64));
    Ok(())
}

pub(super) fn hexists(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let value = db.read::<Hash>(&args[1])?.and_then(|hash| hash.get(&args[2]));
    reply.int(value.is_some().into());
    Ok(())
}

pub(super) fn hgetall(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let hash = db.read::<Hash>(&args[1])?;
    reply.map(hash.map_or(0, Hash::len));
    for (field, value) in hash.into_iter().flat_map(Hash::iter) {
        reply.bulk(field);
        reply.bulk(value);
    }
    Ok(())
}

pub(super) fn hkeys(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let hash = db.read::<Hash>(&args[1])?;
    reply.array(hash.map_or(0, Hash::len));
    hash.into_iter().flat_map(Hash::iter).for_each(|(field, _)| reply.bulk(field));
    Ok(())
}

pub(super) fn hvals(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let hash = db.read::<Hash>(&args[1])?;
    reply.array(hash.map_or(0, Hash::len));
    hash.into_iter().flat_map(Hash::iter).for_each(|(_, value)| reply.bulk(value));
    Ok(())
}

pub(super) fn hincrby(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (key, field) = (&args[1], &args[2]);
    let more = int(&args[3])?;
    let old = match db.read::<Hash>(key)?.and_then(|hash| hash.get(field)) {
        Some(text) => parse_int(text).ok_or(HASH_NOT_INTEGER)?,
        None => 0,
    };
    let sum = old.checked_add(more).ok_or(OVERFLOW)?;
    db.create::<Hash>(key)?.set(field, itoa::Buffer::new().format(sum).as_bytes());
    db.changed(key);
    reply.int(sum);
    Ok(())
}

pub(super) fn hincrbyfloat(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (key, field) = (&args[1], &args[2]);
    let Parsed::Finite(more) = long_double::parse(&args[3]).ok_or(NOT_FLOAT)? else {
        return Err(Error::Fixed("ERR value is NaN or Infinity"));
    };
    let old = match db.read::<Hash>(key)?.and_then(|hash| hash.get(field)) {
        Some(text) => long_double::parse(text).ok_or(HASH_NOT_FLOAT)?,
        None => Parsed::Finite(LongDouble::zero()),
    };
    let sum = match old {
        Parsed::Finite(old) => old.add(&more).ok_or(NAN_OR_INFINITY)?,
        Parsed::Infinite => return Err(NAN_OR_INFINITY),
    };
    let sum = sum.to_text();
    db.create::<Hash>(key)?.set(field, sum.as_bytes());
    db.changed(key);
    db.record(&[b"HSET", &**key, field, sum.as_bytes()]);
    reply.bulk(sum.as_bytes());
    Ok(())
}

pub(super) fn hrandfield(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let key = &args[1];
    if args.len() == 2 {
        let picked = pick(db, key, -1)?;
        match picked.first() {
            Some((field, _)) => reply.bulk(field),
            None => reply.nil(),
        }
        return Ok(());
    }
    let count = signed_count(&args[2])?;
    let with_values = args.len() == 4 && is(&args[3], "WITHVALUES");
    if args.len() > 4 || args.len() == 4 && !with_values {
        return Err(SYNTAX);
    }
    if with_values && !(-i64::MAX / 2..=i64::MAX / 2).contains(&count) {
        return Err(OUT_OF_RANGE);
    }
    let picked = pick(db, key, count)?;
    let nested = with_values && reply.protocol() == Protocol::Resp3;
    reply.array(if with_values && !nested { picked.len() * 2 } else { picked.len() });
    for (field, value) in &picked {
        if nested {
            reply.array(2);
        }
        reply.bulk(field);
        if with_values {
            reply.bulk(value);
        }
    }
    Ok(())
}

/// Picks up to `count` different fields, or `-count` fields with repetitions.
fn pick(db: &mut Db, key: &[u8], count: i64) -> Result<Vec<(Blob, Blob)>> {
    let len = db.read::<Hash>(key)?.map_or(0, Hash::len);
    let indexes = super::set::random_indexes(db, len, count)?;
    let hash = db.read::<Hash>(key)?;
    let pair = |index| hash.and_then(|hash| hash.at(index));
    Ok(indexes.into_iter().filter_map(pair).map(|(f, v)| (Blob::new(f), Blob::new(v))).collect())
}

fn bulk_or_nil(value: Option<&[u8]>, reply: &mut Reply) {
    match value {
        Some(value) => reply.bulk(value),
        None => reply.nil(),
    }
}
