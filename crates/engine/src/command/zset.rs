//! Commands on the members of one sorted set. Ranges are in `zset_range.rs`.

use bytes::Bytes;

use super::args::{count, float, is, signed_count};
use super::list_move::{count_option, keys_and_rest, timeout_ms};
use super::set::random_indexes;
use crate::db::Db;
use crate::error::{Error, OUT_OF_RANGE, Result, SCORE_NAN, SYNTAX, arity};
use crate::reply::{Protocol, Reply};
use crate::value::ZSet;
use crate::value::zset::Item;

/// The options of `ZADD`.
#[derive(Debug, Default, Clone, Copy)]
struct Rules {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
    ch: bool,
    incr: bool,
}

/// The result for a member.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    Added(f64),
    Updated(f64),
    Same(f64),
    Refused,
}

impl Rules {
    fn parse(args: &[Bytes]) -> Result<(Self, &[Bytes])> {
        let (mut rules, mut at) = (Self::default(), 0);
        while let Some(word) = args.get(at) {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => rules.nx = true,
                b"XX" => rules.xx = true,
                b"GT" => rules.gt = true,
                b"LT" => rules.lt = true,
                b"CH" => rules.ch = true,
                b"INCR" => rules.incr = true,
                _ => break,
            }
            at += 1;
        }
        let pairs = &args[at..];
        if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
            return Err(SYNTAX);
        }
        if rules.nx && rules.xx {
            return Err(Error::Fixed("ERR XX and NX options at the same time are not compatible"));
        }
        if rules.gt && (rules.nx || rules.lt) || rules.lt && rules.nx {
            return Err(Error::Fixed(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        if rules.incr && pairs.len() > 2 {
            return Err(Error::Fixed("ERR INCR option supports a single increment-element pair"));
        }
        Ok((rules, pairs))
    }

    fn apply(self, zset: &mut ZSet, member: &[u8], score: f64) -> Result<Outcome> {
        let Some(old) = zset.score(member) else {
            if self.xx {
                return Ok(Outcome::Refused);
            }
            zset.set(member, score);
            return Ok(Outcome::Added(score));
        };
        if self.nx {
            return Ok(Outcome::Refused);
        }
        let score = if self.incr { old + score } else { score };
        if score.is_nan() {
            return Err(SCORE_NAN);
        }
        if self.gt && score <= old || self.lt && score >= old {
            return Ok(Outcome::Refused);
        }
        if score == old {
            return Ok(Outcome::Same(old));
        }
        zset.set(member, score);
        Ok(Outcome::Updated(score))
    }
}

pub(super) fn zadd(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (rules, pairs) = Rules::parse(&args[2..])?;
    add(db, &args[1], rules, pairs, reply)
}

pub(super) fn zincrby(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    add(db, &args[1], Rules { incr: true, ..Rules::default() }, &args[2..], reply)
}

fn add(db: &mut Db, key: &Bytes, rules: Rules, pairs: &[Bytes], reply: &mut Reply) -> Result {
    let scores: Vec<f64> = pairs.iter().step_by(2).map(|arg| float(arg)).collect::<Result<_>>()?;
    if db.read::<ZSet>(key)?.is_none() && rules.xx {
        if rules.incr {
            reply.nil();
        } else {
            reply.int(0);
        }
        return Ok(());
    }
    let zset = db.create::<ZSet>(key)?;
    let (mut added, mut updated, mut last) = (0, 0, None);
    for (pair, score) in pairs.chunks_exact(2).zip(scores) {
        match rules.apply(zset, &pair[1], score)? {
            Outcome::Added(score) => {
                added += 1;
                last = Some(score);
            }
            Outcome::Updated(score) => {
                updated += 1;
                last = Some(score);
            }
            Outcome::Same(score) => last = Some(score),
            Outcome::Refused => {}
        }
    }
    if added + updated > 0 {
        db.changed(key);
    }
    match (rules.incr, last) {
        (true, Some(score)) => reply.double(score),
        (true, None) => reply.nil(),
        (false, _) => reply.int(if rules.ch { added + updated } else { added }),
    }
    Ok(())
}

pub(super) fn zrem(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let Some(zset) = db.write::<ZSet>(&args[1])? else {
        reply.int(0);
        return Ok(());
    };
    let removed = args[2..].iter().filter(|member| zset.remove(member).is_some()).count();
    if removed > 0 {
        db.changed_or_emptied(&args[1]);
    }
    reply.int(removed as i64);
    Ok(())
}

pub(super) fn zscore(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    double_or_nil(db.read::<ZSet>(&args[1])?.and_then(|zset| zset.score(&args[2])), reply);
    Ok(())
}

pub(super) fn zmscore(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let zset = db.read::<ZSet>(&args[1])?;
    reply.array(args.len() - 2);
    for member in &args[2..] {
        double_or_nil(zset.and_then(|zset| zset.score(member)), reply);
    }
    Ok(())
}

pub(super) fn zcard(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    reply.int(db.read::<ZSet>(&args[1])?.map_or(0, |zset| zset.len() as i64));
    Ok(())
}

pub(super) fn zrank(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    rank(db, args, reply, |rank, _| rank)
}

pub(super) fn zrevrank(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    rank(db, args, reply, |rank, len| len - 1 - rank)
}

fn rank(
    db: &mut Db,
    args: &[Bytes],
    reply: &mut Reply,
    counted: impl Fn(usize, usize) -> usize,
) -> Result {
    let with_score = match &args[3..] {
        [] => false,
        [word] if is(word, "WITHSCORE") => true,
        [_] => return Err(SYNTAX),
        _ => return Err(arity(&String::from_utf8_lossy(&args[0]).to_lowercase())),
    };
    let zset = db.read::<ZSet>(&args[1])?;
    let found = zset
        .and_then(|zset| Some((counted(zset.rank(&args[2])?, zset.len()), zset.score(&args[2])?)));
    match found {
        Some((rank, score)) if with_score => {
            reply.array(2);
            reply.int(rank as i64);
            reply.double(score);
        }
        Some((rank, _)) => reply.int(rank as i64),
        None if with_score => reply.nil_array(),
        None => reply.nil(),
    }
    Ok(())
}

/// The end of a sorted set to pop from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Min,
    Max,
}

pub(super) fn zpopmin(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    pop(db, args, Side::Min, reply)
}

pub(super) fn zpopmax(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    pop(db, args, Side::Max, reply)
}

pub(super) fn bzpopmin(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    pop_first(db, args, Side::Min, reply)
}

pub(super) fn bzpopmax(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    pop_first(db, args, Side::Max, reply)
}

fn pop(db: &mut Db, args: &[Bytes], side: Side, reply: &mut Reply) -> Result {
    if args.len() > 3 {
        return Err(SYNTAX);
    }
    let most = args.get(2).map(|arg| count(arg)).transpose()?;
    let items = take(db, &args[1], side, most.unwrap_or(1))?.unwrap_or_default();
    let nested = most.is_some() && reply.protocol() == Protocol::Resp3;
    reply.array(if nested { items.len() } else { items.len() * 2 });
    for item in &items {
        if nested {
            reply.array(2);
        }
        reply.bulk(&item.member);
        reply.double(item.score);
    }
    Ok(())
}

fn pop_first(db: &mut Db, args: &[Bytes], side: Side, reply: &mut Reply) -> Result {
    let (timeout, keys) = args[1..].split_last().ok_or(SYNTAX)?;
    let timeout = timeout_ms(db, timeout)?;
    for key in keys {
        if let Some(item) = take(db, key, side, 1)?.and_then(|items| items.into_iter().next()) {
            reply.array(3);
            reply.bulk(key);
            reply.bulk(&item.member);
            reply.double(item.score);
            return Ok(());
        }
    }
    if !db.request_block(args, keys, timeout) {
        reply.nil_array();
    }
    Ok(())
}

pub(super) fn zmpop(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (keys, rest) = keys_and_rest(args, 1)?;
    let (side, most) = side_and_count(rest)?;
    if !pop_many(db, keys, side, most, reply)? {
        reply.nil_array();
    }
    Ok(())
}

pub(super) fn bzmpop(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (keys, rest) = keys_and_rest(args, 2)?;
    let (side, most) = side_and_count(rest)?;
    let timeout = timeout_ms(db, &args[1])?;
    if !pop_many(db, keys, side, most, reply)? && !db.request_block(args, keys, timeout) {
        reply.nil_array();
    }
    Ok(())
}

fn side_and_count(rest: &[Bytes]) -> Result<(Side, usize)> {
    let (first, rest) = rest.split_first().ok_or(SYNTAX)?;
    let side = if is(first, "MIN") {
        Side::Min
    } else if is(first, "MAX") {
        Side::Max
    } else {
        return Err(SYNTAX);
    };
    Ok((side, count_option(rest)?))
}

fn pop_many(
    db: &mut Db,
    keys: &[Bytes],
    side: Side,
    most: usize,
    reply: &mut Reply,
) -> Result<bool> {
    for key in keys {
        let Some(items) = take(db, key, side, most)? else { continue };
        reply.array(2);
        reply.bulk(key);
        reply.array(items.len());
        for item in &items {
            reply.array(2);
            reply.bulk(&item.member);
            reply.double(item.score);
        }
        return Ok(true);
    }
    Ok(false)
}

/// Removes up to `most` items; `None` if the key does not exist.
fn take(db: &mut Db, key: &Bytes, side: Side, most: usize) -> Result<Option<Vec<Item>>> {
    let Some(zset) = db.write::<ZSet>(key)? else { return Ok(None) };
    let count = most.min(zset.len());
    let ranks = match side {
        Side::Min => 0..count,
        Side::Max => zset.len() - count..zset.len(),
    };
    let mut items: Vec<Item> = zset.range(ranks.clone()).cloned().collect();
    if side == Side::Max {
        items.reverse();
    }
    if count > 0 {
        zset.remove_ranks(ranks);
        db.changed_or_emptied(key);
        let name: &[u8] = if side == Side::Min { b"ZPOPMIN" } else { b"ZPOPMAX" };
        db.record(&[name, key, count.to_string().as_bytes()]);
    }
    Ok(Some(items))
}

pub(super) fn zrandmember(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let key = &args[1];
    if args.len() == 2 {
        match pick(db, key, -1)?.first() {
            Some(item) => reply.bulk(&item.member),
            None => reply.nil(),
        }
        return Ok(());
    }
    let count = signed_count(&args[2])?;
    let with_scores = args.len() == 4 && is(&args[3], "WITHSCORES");
    if args.len() > 4 || args.len() == 4 && !with_scores {
        return Err(SYNTAX);
    }
    if with_scores && !(-i64::MAX / 2..=i64::MAX / 2).contains(&count) {
        return Err(OUT_OF_RANGE);
    }
    let items = pick(db, key, count)?;
    show(&items, with_scores, reply);
    Ok(())
}

fn pick(db: &mut Db, key: &[u8], count: i64) -> Result<Vec<Item>> {
    let len = db.read::<ZSet>(key)?.map_or(0, ZSet::len);
    let indexes = random_indexes(db, len, count)?;
    let zset = db.read::<ZSet>(key)?;
    let item = |index| zset.and_then(|zset| zset.range(index..index + 1).next().cloned());
    Ok(indexes.into_iter().filter_map(item).collect())
}

/// Replies with members, or with members and scores: pairs in RESP 3, flat in RESP 2.
pub(super) fn show(items: &[Item], with_scores: bool, reply: &mut Reply) {
    let nested = with_scores && reply.protocol() == Protocol::Resp3;
    reply.array(if with_scores && !nested { items.len() * 2 } else { items.len() });
    for item in items {
        if nested {
            reply.array(2);
        }
        reply.bulk(&item.member);
        if with_scores {
            reply.double(item.score);
        }
    }
}

fn double_or_nil(score: Option<f64>, reply: &mut Reply) {
    match score {
        Some(score) => reply.double(score),
        None => reply.nil(),
    }
}
