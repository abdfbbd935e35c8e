//! `KEYS` and the `SCAN` family.
//!
//! A scan visits buckets until it has seen `COUNT` elements, so it returns about that many; small
//! collections are returned whole. Elements that exist throughout a scan are returned.

use bytes::Bytes;

use super::args::{Options, int, is};
use crate::blob::Blob;
use crate::db::Db;
use crate::error::{BAD_CURSOR, Result, SYNTAX};
use crate::glob;
use crate::number::{format_float, parse_int, parse_uint};
use crate::reply::Reply;
use crate::value::{Hash, Set, ZSet};

/// The maximum number of empty buckets visited per wanted element.
const BUCKETS_PER_ELEMENT: usize = 10;

#[derive(Debug)]
struct Request<'a> {
    count: usize,
    pattern: Option<&'a [u8]>,
    type_name: Option<String>,
}

/// Whether the scan accepts the option `TYPE`.
#[derive(Debug, PartialEq, Eq)]
enum Of {
    Keys,
    Elements,
}

impl<'a> Request<'a> {
    fn parse(args: &'a [Bytes], of: Of) -> Result<Self> {
        let mut request = Self { count: 10, pattern: None, type_name: None };
        let mut options = Options::new(args);
        while let Some(word) = options.next() {
            if is(word, "COUNT") && options.left() >= 1 {
                let count = int(options.value()?)?;
                request.count = usize::try_from(count).ok().filter(|n| *n > 0).ok_or(SYNTAX)?;
            } else if is(word, "MATCH") && options.left() >= 1 {
                request.pattern = Some(options.value()?).map(|p| &**p).filter(|p| *p != b"*");
            } else if is(word, "TYPE") && of == Of::Keys && options.left() >= 1 {
                let name = String::from_utf8_lossy(options.value()?).to_lowercase();
                request.type_name = Some(name);
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(request)
    }

    fn wants(&self, element: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, element))
    }

    /// Scans until enough elements were seen, writes the cursor and returns the matching elements.
    fn run<T>(
        &self,
        mut cursor: u64,
        reply: &mut Reply,
        mut step: impl FnMut(u64, &mut Vec<T>, &mut usize) -> u64,
    ) -> Vec<T> {
        let (mut kept, mut seen) = (Vec::new(), 0);
        let mut buckets = self.count.saturating_mul(BUCKETS_PER_ELEMENT);
        loop {
            cursor = step(cursor, &mut kept, &mut seen);
            buckets -= 1;
            if cursor == 0 || seen >= self.count || buckets == 0 {
                break;
            }
        }
        reply.array(2);
        reply.bulk(cursor.to_string().as_bytes());
        kept
    }
}

pub(super) fn keys(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let pattern = &args[1];
    let mut found = Vec::new();
    for index in 0..db.len() {
        let (key, expired) = db.key_at(index);
        if !expired && glob::matches(pattern, key) {
            found.push(key);
        }
    }
    reply.array(found.len());
    found.iter().for_each(|key| reply.bulk(key));
    Ok(())
}

pub(super) fn scan(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let cursor = cursor(&args[1])?;
    let request = Request::parse(&args[2..], Of::Keys)?;
    let now = db.now_ms();
    let found = request.run(cursor, reply, |cursor, kept: &mut Vec<Blob>, seen| {
        db.scan(cursor, |key, value, expiry| {
            *seen += 1;
            let live = expiry.is_none_or(|expiry| now <= expiry);
            let typed = request.type_name.as_ref().is_none_or(|name| name == value.type_name());
            if live && typed && request.wants(key) {
                kept.push(key.clone());
            }
        })
    });
    reply.array(found.len());
    found.iter().for_each(|key| reply.bulk(key));
    Ok(())
}

pub(super) fn hscan(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let cursor = cursor(&args[2])?;
    let Some(hash) = db.read::<Hash>(&args[1])? else { return nothing(reply) };
    let request = Request::parse(&args[3..], Of::Elements)?;
    let found = request.run(cursor, reply, |cursor, kept: &mut Vec<Blob>, seen| {
        hash.scan(cursor, |field, value| {
            *seen += 1;
            if request.wants(field) {
                kept.extend([Blob::new(field), Blob::new(value)]);
            }
        })
    });
    reply.array(found.len());
    found.iter().for_each(|text| reply.bulk(text));
    Ok(())
}

pub(super) fn sscan(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let cursor = cursor(&args[2])?;
    let Some(set) = db.read::<Set>(&args[1])? else { return nothing(reply) };
    let request = Request::parse(&args[3..], Of::Elements)?;
    let found = request.run(cursor, reply, |cursor, kept: &mut Vec<Blob>, seen| {
        set.scan(cursor, |member| {
            *seen += 1;
            if request.wants(member) {
                kept.push(member.clone());
            }
        })
    });
    reply.array(found.len());
    found.iter().for_each(|member| reply.bulk(member));
    Ok(())
}

pub(super) fn zscan(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let cursor = cursor(&args[2])?;
    let Some(zset) = db.read::<ZSet>(&args[1])? else { return nothing(reply) };
    let request = Request::parse(&args[3..], Of::Elements)?;
    let found = request.run(cursor, reply, |cursor, kept: &mut Vec<(Blob, f64)>, seen| {
        zset.scan(cursor, |member, score| {
            *seen += 1;
            if request.wants(member) {
                kept.push((member.clone(), score));
            }
        })
    });
    reply.array(found.len() * 2);
    for (member, score) in &found {
        reply.bulk(member);
        // A bulk string in both protocols.
        reply.bulk(format_float(*score).as_bytes());
    }
    Ok(())
}

fn nothing(reply: &mut Reply) -> Result {
    reply.array(2);
    reply.bulk(b"0");
    reply.array(0);
    Ok(())
}

/// Parses a cursor like `strtoul`, but without leading spaces.
fn cursor(arg: &[u8]) -> Result<u64> {
    match (arg, parse_int(arg)) {
        ([], _) => Ok(0),
        (_, Some(int)) => Ok(int as u64),
        ([b' ' | b'\t'..=b'\r', ..], _) => Err(BAD_CURSOR),
        _ => parse_uint(arg).ok_or(BAD_CURSOR),
    }
}
