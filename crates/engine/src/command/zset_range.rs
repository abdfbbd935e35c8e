//! Ranges of sorted sets: by rank, by score, by text; read, counted, removed or stored.

use std::ops::Range;

use bytes::Bytes;

use super::args::{Options, int, is, positions};
use super::zset::show;
use crate::db::Db;
use crate::error::{BAD_LEX_RANGE, BAD_SCORE_RANGE, Error, Result, SYNTAX};
use crate::number::parse_bound;
use crate::reply::Reply;
use crate::value::zset::{Bound, Item, MAX_SMALL, Span};
use crate::value::{Value, ZSet};

/// The kind of bounds of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Reverse,
}

/// The kind of range that a command's name implies.
#[derive(Debug, Clone, Copy)]
struct Form {
    by: Option<By>,
    direction: Option<Direction>,
    store: bool,
}

const fn form(by: By, direction: Direction) -> Form {
    Form { by: Some(by), direction: Some(direction), store: false }
}

pub(super) fn zrange(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    range(db, &args[1..], Form { by: None, direction: None, store: false }, reply)
}

pub(super) fn zrevrange(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    range(db, &args[1..], form(By::Rank, Direction::Reverse), reply)
}

pub(super) fn zrangebyscore(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    range(db, &args[1..], form(By::Score, Direction::Forward), reply)
}

pub(super) fn zrevrangebyscore(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    range(db, &args[1..], form(By::Score, Direction::Reverse), reply)
}

pub(super) fn zrangebylex(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    range(db, &args[1..], form(By::Lex, Direction::Forward), reply)
}

pub(super) fn zrevrangebylex(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    range(db, &args[1..], form(By::Lex, Direction::Reverse), reply)
}

pub(super) fn zrangestore(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let form = Form { by: None, direction: None, store: true };
    let Query { items, by, .. } = query(db, &args[2..], form)?;
    // As in Redis, which knows the size of a range of ranks beforehand.
    let large = by == By::Rank && items.len() > MAX_SMALL;
    let mut result = if large { ZSet::large() } else { ZSet::default() };
    for item in &items {
        result.set(&item.member, item.score);
    }
    store(db, &args[1], result, reply)
}

/// Stores a result under a key, or removes the key if it is empty; replies with its size.
pub(super) fn store(db: &mut Db, key: &Bytes, mut result: ZSet, reply: &mut Reply) -> Result {
    reply.int(result.len() as i64);
    if result.is_empty() {
        db.remove(key);
    } else {
        result.compact();
        db.set(key, Value::ZSet(Box::new(result)));
    }
    Ok(())
}

fn range(db: &mut Db, args: &[Bytes], form: Form, reply: &mut Reply) -> Result {
    let Query { items, with_scores, .. } = query(db, args, form)?;
    show(&items, with_scores, reply);
    Ok(())
}

struct Query {
    items: Vec<Item>,
    by: By,
    with_scores: bool,
}

/// Runs a query `key min max [options]`.
fn query(db: &mut Db, args: &[Bytes], form: Form) -> Result<Query> {
    let Form { mut by, mut direction, store } = form;
    let (mut with_scores, mut offset, mut limit) = (false, 0, -1);
    let mut options = Options::new(&args[3..]);
    while let Some(word) = options.next() {
        if !store && is(word, "WITHSCORES") {
            with_scores = true;
        } else if is(word, "LIMIT") && options.left() >= 2 {
            offset = int(options.value()?)?;
            limit = int(options.value()?)?;
        } else if direction.is_none() && is(word, "REV") {
            direction = Some(Direction::Reverse);
        } else if by.is_none() && is(word, "BYLEX") {
            by = Some(By::Lex);
        } else if by.is_none() && is(word, "BYSCORE") {
            by = Some(By::Score);
        } else {
            return Err(SYNTAX);
        }
    }
    let by = by.unwrap_or(By::Rank);
    let direction = direction.unwrap_or(Direction::Forward);
    if limit != -1 && by == By::Rank {
        return Err(Error::Fixed(
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
        ));
    }
    if with_scores && by == By::Lex {
        return Err(Error::Fixed(
            "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
        ));
    }
    let wanted = Wanted::parse(by, direction, &args[1], &args[2])?;
    let items = match db.read::<ZSet>(&args[0])? {
        None => Vec::new(),
        Some(zset) => {
            let mut ranks = wanted.ranks(zset, direction);
            if by != By::Rank {
                ranks = cut(ranks, direction, offset, limit);
            }
            let items = zset.range(ranks).cloned();
            match direction {
                Direction::Forward => items.collect(),
                Direction::Reverse => items.rev().collect(),
            }
        }
    };
    Ok(Query { items, by, with_scores })
}

/// Skips `offset` ranks and keeps `limit` of them, or all if negative.
fn cut(ranks: Range<usize>, direction: Direction, offset: i64, limit: i64) -> Range<usize> {
    let Ok(offset) = usize::try_from(offset) else { return 0..0 };
    let offset = offset.min(ranks.len());
    let count = usize::try_from(limit).unwrap_or(usize::MAX).min(ranks.len() - offset);
    match direction {
        Direction::Forward => ranks.start + offset..ranks.start + offset + count,
        Direction::Reverse => ranks.end - offset - count..ranks.end - offset,
    }
}

/// The parsed bounds of a range.
enum Wanted {
    Ranks(i64, i64),
    Span(Span),
}

impl Wanted {
    fn parse(by: By, direction: Direction, first: &[u8], second: &[u8]) -> Result<Self> {
        let (min, max) = match (by, direction) {
            (By::Rank, _) | (_, Direction::Forward) => (first, second),
            (_, Direction::Reverse) => (second, first),
        };
        Ok(match by {
            By::Rank => Self::Ranks(int(min)?, int(max)?),
            By::Score => Self::Span(Span::Score(score_bound(min)?, score_bound(max)?)),
            By::Lex => Self::Span(Span::Lex(lex_bound(min)?, lex_bound(max)?)),
        })
    }

    fn ranks(&self, zset: &ZSet, direction: Direction) -> Range<usize> {
        let len = zset.len();
        match (self, direction) {
            (Self::Span(span), _) => zset.ranks(span),
            (Self::Ranks(start, end), Direction::Forward) => positions(*start, *end, len),
            (Self::Ranks(start, end), Direction::Reverse) => {
                let back = positions(*start, *end, len);
                len - back.end..len - back.start
            }
        }
    }
}

fn score_bound(arg: &[u8]) -> Result<Bound<f64>> {
    match arg.strip_prefix(b"(") {
        Some(score) => parse_bound(score).map(Bound::Excluding),
        None => parse_bound(arg).map(Bound::Including),
    }
    .ok_or(BAD_SCORE_RANGE)
}

fn lex_bound(arg: &[u8]) -> Result<Bound<Vec<u8>>> {
    match arg {
        b"-" => Ok(Bound::Lowest),
        b"+" => Ok(Bound::Highest),
        [b'(', rest @ ..] => Ok(Bound::Excluding(rest.to_vec())),
        [b'[', rest @ ..] => Ok(Bound::Including(rest.to_vec())),
        _ => Err(BAD_LEX_RANGE),
    }
}

pub(super) fn zcount(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    counted(db, args, By::Score, reply)
}

pub(super) fn zlexcount(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    counted(db, args, By::Lex, reply)
}

fn counted(db: &mut Db, args: &[Bytes], by: By, reply: &mut Reply) -> Result {
    let wanted = Wanted::parse(by, Direction::Forward, &args[2], &args[3])?;
    let zset = db.read::<ZSet>(&args[1])?;
    reply.int(zset.map_or(0, |zset| wanted.ranks(zset, Direction::Forward).len() as i64));
    Ok(())
}

pub(super) fn zremrangebyrank(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    removed(db, args, By::Rank, reply)
}

pub(super) fn zremrangebyscore(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    removed(db, args, By::Score, reply)
}

pub(super) fn zremrangebylex(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    removed(db, args, By::Lex, reply)
}

fn removed(db: &mut Db, args: &[Bytes], by: By, reply: &mut Reply) -> Result {
    let wanted = Wanted::parse(by, Direction::Forward, &args[2], &args[3])?;
    let count = match db.write::<ZSet>(&args[1])? {
        None => 0,
        Some(zset) => {
            let ranks = wanted.ranks(zset, Direction::Forward);
            zset.remove_ranks(ranks)
        }
    };
    if count > 0 {
        db.changed_or_emptied(&args[1]);
    }
    reply.int(count as i64);
    Ok(())
}
