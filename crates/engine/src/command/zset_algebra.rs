//! Intersections, unions and differences of sorted sets; members of plain sets have score 1.

use bytes::Bytes;

use super::args::{Options, int, is};
use super::set_algebra::limit_of;
use super::zset::show;
use super::zset_range::store;
use crate::blob::Blob;
use crate::db::Db;
use crate::dict::Dict;
use crate::error::{Error, Result, SYNTAX, WRONG_TYPE};
use crate::number::parse_float;
use crate::reply::Reply;
use crate::value::zset::Item;
use crate::value::{Value, ZSet};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Inter,
    Diff,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

/// Whether the result is returned, stored or counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Show,
    Store,
    Count,
}

pub(super) fn zunion(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    shown(db, args, Operation::Union, "zunion", reply)
}

pub(super) fn zinter(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    shown(db, args, Operation::Inter, "zinter", reply)
}

pub(super) fn zdiff(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    shown(db, args, Operation::Diff, "zdiff", reply)
}

pub(super) fn zunionstore(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    stored(db, args, Operation::Union, "zunionstore", reply)
}

pub(super) fn zinterstore(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    stored(db, args, Operation::Inter, "zinterstore", reply)
}

pub(super) fn zdiffstore(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    stored(db, args, Operation::Diff, "zdiffstore", reply)
}

pub(super) fn zintercard(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let request = Request::parse(db, &args[1..], Operation::Inter, Purpose::Count, "zintercard")?;
    let count = request.compute(Operation::Inter).len();
    reply.int(count.min(if request.limit == 0 { usize::MAX } else { request.limit }) as i64);
    Ok(())
}

fn shown(
    db: &mut Db,
    args: &[Bytes],
    operation: Operation,
    name: &str,
    reply: &mut Reply,
) -> Result {
    let request = Request::parse(db, &args[1..], operation, Purpose::Show, name)?;
    let items: Vec<Item> = request.compute(operation).iter().cloned().collect();
    show(&items, request.with_scores, reply);
    Ok(())
}

fn stored(
    db: &mut Db,
    args: &[Bytes],
    operation: Operation,
    name: &str,
    reply: &mut Reply,
) -> Result {
    let request = Request::parse(db, &args[2..], operation, Purpose::Store, name)?;
    let result = request.compute(operation);
    store(db, &args[1], result, reply)
}

struct Request {
    inputs: Vec<Dict<f64>>,
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
    limit: usize,
}

impl Request {
    /// Parses `numkeys key … [options]` and reads the sets.
    fn parse(
        db: &mut Db,
        args: &[Bytes],
        operation: Operation,
        result: Purpose,
        name: &str,
    ) -> Result<Self> {
        let count = int(&args[0])?;
        if count < 1 {
            return Err(Error::quoting(format!(
                "ERR at least 1 input key is needed for '{name}' command"
            )));
        }
        let (keys, rest) = args[1..].split_at_checked(count as usize).ok_or(SYNTAX)?;
        let inputs: Vec<_> = keys.iter().map(|key| input(db, key)).collect::<Result<_>>()?;
        let mut request = Self {
            weights: vec![1.0; inputs.len()],
            inputs,
            aggregate: Aggregate::Sum,
            with_scores: false,
            limit: 0,
        };
        let scored = operation != Operation::Diff && result != Purpose::Count;
        let mut options = Options::new(rest);
        while let Some(word) = options.next() {
            if scored && is(word, "WEIGHTS") && options.left() >= keys.len() {
                for weight in &mut request.weights {
                    let error = Error::Fixed("ERR weight value is not a float");
                    *weight = parse_float(options.value()?).ok_or(error)?;
                }
            } else if scored && is(word, "AGGREGATE") && options.left() >= 1 {
                request.aggregate = match options.value()?.to_ascii_uppercase().as_slice() {
                    b"SUM" => Aggregate::Sum,
                    b"MIN" => Aggregate::Min,
                    b"MAX" => Aggregate::Max,
                    _ => return Err(SYNTAX),
                };
            } else if result == Purpose::Show && is(word, "WITHSCORES") {
                request.with_scores = true;
            } else if result == Purpose::Count && is(word, "LIMIT") && options.left() >= 1 {
                request.limit = limit_of(options.value()?)?;
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(request)
    }

    fn compute(&self, operation: Operation) -> ZSet {
        let mut result = ZSet::large();
        // Redis sums from the smallest set on; the order matters for floats.
        let mut order: Vec<usize> = (0..self.inputs.len()).collect();
        if operation != Operation::Diff {
            order.sort_by_key(|index| self.inputs[*index].len());
        }
        let Some((first, others)) = order.split_first() else { return result };
        match operation {
            Operation::Diff => {
                for (member, score) in self.inputs[*first].iter() {
                    if !others.iter().any(|other| self.inputs[*other].contains(member)) {
                        result.set(member, *score);
                    }
                }
            }
            Operation::Inter => {
                for (member, score) in self.inputs[*first].iter() {
                    let start = self.weighted(*first, *score);
                    let total = others.iter().try_fold(start, |total, other| {
                        let score = self.inputs[*other].get(member)?;
                        Some(self.combine(total, self.weighted(*other, *score)))
                    });
                    if let Some(total) = total {
                        result.set(member, total);
                    }
                }
            }
            Operation::Union => {
                let mut totals: Dict<f64> = Dict::default();
                for index in order {
                    for (member, score) in self.inputs[index].iter() {
                        let score = self.weighted(index, *score);
                        match totals.get_mut(member) {
                            Some(total) => *total = self.combine(*total, score),
                            None => drop(totals.insert(member, score)),
                        }
                    }
                }
                for (member, score) in totals.iter() {
                    result.set(member, *score);
                }
            }
        }
        result
    }

    fn weighted(&self, index: usize, score: f64) -> f64 {
        number_or_zero(self.weights[index] * score)
    }

    fn combine(&self, total: f64, score: f64) -> f64 {
        match self.aggregate {
            Aggregate::Sum => number_or_zero(total + score),
            Aggregate::Min => {
                if score < total {
                    score
                } else {
                    total
                }
            }
            Aggregate::Max => {
                if score > total {
                    score
                } else {
                    total
                }
            }
        }
    }
}

/// The sum of infinities of opposite sign is 0.
fn number_or_zero(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

fn input(db: &mut Db, key: &[u8]) -> Result<Dict<f64>> {
    let mut scores = Dict::default();
    let mut add = |member: &Blob, score: f64| {
        scores.insert(member, score);
    };
    match db.value(key) {
        None => {}
        Some(Value::ZSet(zset)) => zset.iter().for_each(|item| add(&item.member, item.score)),
        Some(Value::Set(set)) => set.iter().for_each(|member| add(&member, 1.0)),
        Some(_) => return Err(WRONG_TYPE),
    }
    Ok(scores)
}
