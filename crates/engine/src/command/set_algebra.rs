//! Intersections, unions and differences of sets.

use bytes::Bytes;

use super::args::{Options, int, is, positive_or};
use crate::blob::Blob;
use crate::db::Db;
use crate::error::{Error, Result, SYNTAX};
use crate::reply::Reply;
use crate::value::{Set, Value};

pub(super) fn sinter(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let members = inter(db, &args[1..], usize::MAX)?;
    show(&members, reply)
}

pub(super) fn sunion(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let set = union(db, &args[1..])?;
    show(&set.iter().collect::<Vec<_>>(), reply)
}

pub(super) fn sdiff(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let set = diff(db, &args[1..])?;
    show(&set.iter().collect::<Vec<_>>(), reply)
}

pub(super) fn sinterstore(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let members = inter(db, &args[2..], usize::MAX)?;
    store(db, &args[1], collect(members), reply)
}

pub(super) fn sunionstore(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let set = union(db, &args[2..])?;
    store(db, &args[1], set, reply)
}

pub(super) fn sdiffstore(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let set = diff(db, &args[2..])?;
    store(db, &args[1], set, reply)
}

pub(super) fn sintercard(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (keys, limit) = card_arguments(args)?;
    reply.int(inter(db, keys, limit)?.len() as i64);
    Ok(())
}

/// Parses `numkeys key … [LIMIT n]` of `SINTERCARD`.
fn card_arguments(args: &[Bytes]) -> Result<(&[Bytes], usize)> {
    let count = positive_or(&args[1], Error::Fixed("ERR numkeys should be greater than 0"))?;
    let too_many = Error::Fixed("ERR Number of keys can't be greater than number of args");
    let (keys, rest) = args[2..].split_at_checked(count).ok_or(too_many)?;
    let (mut limit, mut options) = (0, Options::new(rest));
    while let Some(word) = options.next() {
        if !is(word, "LIMIT") || options.left() == 0 {
            return Err(SYNTAX);
        }
        limit = limit_of(options.value()?)?;
    }
    Ok((keys, if limit == 0 { usize::MAX } else { limit }))
}

/// Parses a limit of zero or more.
pub(super) fn limit_of(arg: &[u8]) -> Result<usize> {
    let error = Error::Fixed("ERR LIMIT can't be negative");
    int(arg).ok().and_then(|limit| usize::try_from(limit).ok()).ok_or(error)
}

/// Up to `limit` members of the intersection.
fn inter(db: &mut Db, keys: &[Bytes], limit: usize) -> Result<Vec<Blob>> {
    let mut smallest: Option<(usize, &Bytes)> = None;
    for key in keys {
        // A missing key makes the result empty, but a wrong type is still an error.
        let len = db.read::<Set>(key)?.map_or(0, Set::len);
        if smallest.is_none_or(|(least, _)| len < least) {
            smallest = Some((len, key));
        }
    }
    let Some((_, base)) = smallest else { return Ok(Vec::new()) };
    let mut members: Vec<Blob> = db.read::<Set>(base)?.into_iter().flat_map(Set::iter).collect();
    for key in keys.iter().filter(|key| *key != base) {
        if let Some(set) = db.read::<Set>(key)? {
            members.retain(|member| set.contains(member));
        }
    }
    members.truncate(limit);
    Ok(members)
}

fn union(db: &mut Db, keys: &[Bytes]) -> Result<Set> {
    check(db, keys)?;
    let mut union = Set::default();
    for key in keys {
        for member in db.read::<Set>(key)?.into_iter().flat_map(Set::iter) {
            union.add(&member);
        }
    }
    Ok(union)
}

/// The members of the first set that no other set contains.
///
/// Redis either adds the remaining members, or adds all and removes the others, whichever is
/// cheaper. The second way leaves a table where non-integers were removed, which clients can see.
fn diff(db: &mut Db, keys: &[Bytes]) -> Result<Set> {
    check(db, keys)?;
    let mut result = Set::default();
    let Some((first, rest)) = keys.split_first() else { return Ok(result) };
    let members: Vec<Blob> = db.read::<Set>(first)?.into_iter().flat_map(Set::iter).collect();
    let (mut one_by_one, mut all_first) = (members.len(), members.len());
    for key in rest {
        if let Some(set) = db.read::<Set>(key)? {
            one_by_one += members.len();
            all_first += set.len();
        }
    }
    if one_by_one / 2 <= all_first {
        let mut stay = members;
        for key in rest {
            if let Some(set) = db.read::<Set>(key)? {
                stay.retain(|member| !set.contains(member));
            }
        }
        return Ok(collect(stay));
    }
    members.iter().for_each(|member| {
        result.add(member);
    });
    for key in rest {
        for member in db.read::<Set>(key)?.into_iter().flat_map(Set::iter) {
            result.remove(&member);
        }
    }
    Ok(result)
}

fn check(db: &mut Db, keys: &[Bytes]) -> Result {
    keys.iter().try_for_each(|key| db.read::<Set>(key).map(|_| ()))
}

fn collect(members: Vec<Blob>) -> Set {
    let mut set = Set::default();
    for member in &members {
        set.add(member);
    }
    set
}

fn show(members: &[Blob], reply: &mut Reply) -> Result {
    reply.set(members.len());
    members.iter().for_each(|member| reply.bulk(member));
    Ok(())
}

fn store(db: &mut Db, key: &Bytes, set: Set, reply: &mut Reply) -> Result {
    reply.int(set.len() as i64);
    if set.is_empty() {
        db.remove(key);
    } else {
        db.set(key, Value::Set(Box::new(set)));
    }
    Ok(())
}
