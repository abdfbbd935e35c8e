//! Commands on one set.

use std::collections::HashSet;

use bytes::Bytes;

use super::args::{count, signed_count};
use crate::blob::Blob;
use crate::db::Db;
use crate::error::{OUT_OF_RANGE, RECORD_TOO_LARGE, Result, SYNTAX};
use crate::reply::Reply;
use crate::value::Set;

/// The maximum number of draws with repetitions.
const MAX_DRAWS: usize = 1 << 20;

pub(super) fn sadd(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let set = db.create::<Set>(&args[1])?;
    set.reserve(&args[2], args.len() - 2);
    let added = args[2..].iter().filter(|member| set.add(member)).count();
    if added > 0 {
        db.changed(&args[1]);
    }
    reply.int(added as i64);
    Ok(())
}

pub(super) fn srem(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let Some(set) = db.write::<Set>(&args[1])? else {
        reply.int(0);
        return Ok(());
    };
    let removed = args[2..].iter().filter(|member| set.remove(member)).count();
    if removed > 0 {
        db.changed_or_emptied(&args[1]);
    }
    reply.int(removed as i64);
    Ok(())
}

pub(super) fn sismember(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let found = db.read::<Set>(&args[1])?.is_some_and(|set| set.contains(&args[2]));
    reply.int(found.into());
    Ok(())
}

pub(super) fn smismember(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let set = db.read::<Set>(&args[1])?;
    reply.array(args.len() - 2);
    for member in &args[2..] {
        reply.int(set.is_some_and(|set| set.contains(member)).into());
    }
    Ok(())
}

pub(super) fn smembers(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let set = db.read::<Set>(&args[1])?;
    reply.set(set.map_or(0, Set::len));
    set.into_iter().flat_map(Set::iter).for_each(|member| reply.bulk(&member));
    Ok(())
}

pub(super) fn scard(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    reply.int(db.read::<Set>(&args[1])?.map_or(0, |set| set.len() as i64));
    Ok(())
}

pub(super) fn smove(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (source, target, member) = (&args[1], &args[2], &args[3]);
    let found = match db.read::<Set>(source)? {
        Some(set) => set.contains(member),
        None => {
            reply.int(0);
            return Ok(());
        }
    };
    db.read::<Set>(target)?;
    if found && source != target {
        if let Some(set) = db.write::<Set>(source)? {
            set.remove(member);
        }
        db.changed_or_emptied(source);
        // A target that has the member already does not change, and its watches stay valid.
        if db.create::<Set>(target)?.add(member) {
            db.changed(target);
        }
    }
    reply.int(found.into());
    Ok(())
}

pub(super) fn spop(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    if args.len() > 3 {
        return Err(SYNTAX);
    }
    let wanted = args.get(2).map(|arg| count(arg)).transpose()?;
    let members = pick(db, &args[1], wanted.map_or(1, |count| count.min(1 << 62) as i64))?;
    let is_all = db.read::<Set>(&args[1])?.is_some_and(|set| set.len() == members.len());
    let effect: Vec<&[u8]> = match is_all {
        true => vec![b"DEL", &args[1]],
        false => [&b"SREM"[..], &args[1]].into_iter().chain(members.iter().map(|m| &**m)).collect(),
    };
    if !db.effects().has_room(&effect) {
        return Err(RECORD_TOO_LARGE);
    }
    match (wanted, members.first()) {
        (Some(_), _) => {
            reply.set(members.len());
            members.iter().for_each(|member| reply.bulk(member));
        }
        (None, Some(member)) => reply.bulk(member),
        (None, None) => reply.nil(),
    }
    if members.is_empty() {
        return Ok(());
    }
    if let Some(set) = db.write::<Set>(&args[1])? {
        for member in &members {
            set.remove(member);
        }
    }
    db.changed_or_emptied(&args[1]);
    db.record(&effect);
    Ok(())
}

pub(super) fn srandmember(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    if args.len() > 3 {
        return Err(SYNTAX);
    }
    let wanted = args.get(2).map(|arg| signed_count(arg)).transpose()?;
    let members = pick(db, &args[1], wanted.unwrap_or(-1))?;
    match (wanted, members.first()) {
        (Some(_), _) => {
            reply.array(members.len());
            members.iter().for_each(|member| reply.bulk(member));
        }
        (None, Some(member)) => reply.bulk(member),
        (None, None) => reply.nil(),
    }
    Ok(())
}

fn pick(db: &mut Db, key: &[u8], count: i64) -> Result<Vec<Blob>> {
    let len = db.read::<Set>(key)?.map_or(0, Set::len);
    let indexes = random_indexes(db, len, count)?;
    let set = db.read::<Set>(key)?;
    Ok(indexes.into_iter().filter_map(|index| set.map(|set| set.at(index))).collect())
}

/// Random indexes below `len`: up to `count` different ones, or `-count` with repetitions.
///
/// Redis draws as often as it is asked, until its memory is full; here more than [`MAX_DRAWS`] is an
/// error.
pub(super) fn random_indexes(db: &mut Db, len: usize, count: i64) -> Result<Vec<usize>> {
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if len == 0 || wanted == 0 {
        return Ok(Vec::new());
    }
    if count < 0 {
        if wanted > MAX_DRAWS {
            return Err(OUT_OF_RANGE);
        }
        return Ok((0..wanted).map(|_| db.random_below(len)).collect());
    }
    if wanted >= len {
        return Ok((0..len).collect());
    }
    // Floyd's algorithm: one draw per index, for any share of `len`.
    let (mut chosen, mut indexes) = (HashSet::new(), Vec::with_capacity(wanted));
    for upper in len - wanted..len {
        let draw = db.random_below(upper + 1);
        let index = if chosen.insert(draw) { draw } else { upper };
        chosen.insert(index);
        indexes.push(index);
    }
    Ok(indexes)
}
