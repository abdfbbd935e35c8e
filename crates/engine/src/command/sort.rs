//! `SORT` and `SORT_RO`: the elements of a list, set or sorted set, ordered by themselves or by other
//! keys.
//!
//! ```text
//!   elements ─▶ weight of each (BY) ─▶ order ─▶ LIMIT ─▶ GET patterns ─▶ reply, or STORE as a list
//! ```
//!
//! Redis leaves the order of equal elements to chance; here they are ordered by their bytes. A pattern
//! without `*` (`BY nosort`) keeps the order of the value; a set is then ordered by its bytes if the
//! result is stored or a script reads it, because its own order would not be the same at a replay.

use std::cmp::Ordering;

use bytes::Bytes;

use super::args::{Options, int};
use crate::blob::Blob;
use crate::db::{Blocking, Db};
use crate::error::{Error, Result, SYNTAX, WRONG_TYPE};
use crate::number::parse_sortable;
use crate::reply::Reply;
use crate::value::list::End;
use crate::value::{Hash, List, Value};

const NOT_A_NUMBER: Error = Error::Fixed("ERR One or more scores can't be converted into double");

/// Whether the result may be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Store,
    ReadOnly,
}

/// The options of a call.
#[derive(Debug)]
struct Request<'a> {
    by: Option<&'a Bytes>,
    get: Vec<&'a Bytes>,
    offset: i64,
    count: i64,
    descending: bool,
    alpha: bool,
    /// Whether the elements keep the order that they have.
    unsorted: bool,
    store: Option<&'a Bytes>,
}

impl<'a> Request<'a> {
    fn parse(args: &'a [Bytes], mode: Mode) -> Result<Self> {
        let mut request = Self {
            by: None,
            get: Vec::new(),
            offset: 0,
            count: -1,
            descending: false,
            alpha: false,
            unsorted: false,
            store: None,
        };
        let mut options = Options::new(args);
        while let Some(word) = options.next() {
            let left = options.left();
            match word.to_ascii_uppercase().as_slice() {
                b"ASC" => request.descending = false,
                b"DESC" => request.descending = true,
                b"ALPHA" => request.alpha = true,
                b"LIMIT" if left >= 2 => {
                    request.offset = int(options.value()?)?;
                    request.count = int(options.value()?)?;
                }
                b"STORE" if left >= 1 && mode == Mode::Store => {
                    request.store = Some(options.value()?);
                }
                b"BY" if left >= 1 => {
                    let pattern = options.value()?;
                    request.by = Some(pattern);
                    request.unsorted |= !c_text(pattern).contains(&b'*');
                }
                b"GET" if left >= 1 => request.get.push(options.value()?),
                _ => return Err(SYNTAX),
            }
        }
        Ok(request)
    }

    /// The range of positions that `LIMIT` keeps.
    fn range(&self, len: usize) -> std::ops::Range<usize> {
        let start = usize::try_from(self.offset).unwrap_or(0).min(len);
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        start..start.saturating_add(count).min(len)
    }
}

pub(super) fn sort(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    run(db, &args[1], Request::parse(&args[2..], Mode::Store)?, reply)
}

pub(super) fn sort_ro(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    run(db, &args[1], Request::parse(&args[2..], Mode::ReadOnly)?, reply)
}

fn run(db: &mut Db, key: &Bytes, mut request: Request<'_>, reply: &mut Reply) -> Result {
    let in_script = db.blocking() == Blocking::Forbidden;
    let (mut elements, is_set) = elements(db, key)?;
    if request.unsorted && is_set && (request.store.is_some() || in_script) {
        request.unsorted = false;
        request.alpha = true;
        request.by = None;
    }
    if !request.unsorted {
        order(db, &mut elements, &request)?;
    } else if request.descending && !is_set {
        elements.reverse();
    }
    let wanted = &elements[request.range(elements.len())];
    let mut found: Vec<Option<Blob>> = Vec::new();
    for element in wanted {
        if request.get.is_empty() {
            found.push(Some(element.clone()));
        }
        for pattern in &request.get {
            found.push(if ***pattern == *b"#" {
                Some(element.clone())
            } else {
                look_up(db, pattern, element)
            });
        }
    }
    match request.store {
        Some(target) => store(db, target, found, reply),
        None => {
            reply.array(found.len());
            for text in &found {
                match text {
                    Some(text) => reply.bulk(text),
                    None => reply.nil(),
                }
            }
        }
    }
    Ok(())
}

/// The elements in the order of the value, and whether it is a set.
fn elements(db: &mut Db, key: &Bytes) -> Result<(Vec<Blob>, bool)> {
    Ok(match db.value(key) {
        None => (Vec::new(), false),
        Some(Value::List(list)) => (list.iter().cloned().collect(), false),
        Some(Value::Set(set)) => (set.iter().collect(), true),
        Some(Value::ZSet(zset)) => (zset.iter().map(|item| item.member.clone()).collect(), false),
        Some(_) => return Err(WRONG_TYPE),
    })
}

/// Orders the elements by their weights: numbers, or texts with `ALPHA`.
fn order(db: &mut Db, elements: &mut Vec<Blob>, request: &Request<'_>) -> Result {
    let mut weighted = Vec::with_capacity(elements.len());
    for element in elements.drain(..) {
        let weight = match request.by {
            Some(pattern) => look_up(db, pattern, &element),
            None => Some(element.clone()),
        };
        let number = match &weight {
            Some(text) if !request.alpha => parse_sortable(text).ok_or(NOT_A_NUMBER)?,
            _ => 0.0,
        };
        weighted.push((number, if request.alpha { weight } else { None }, element));
    }
    weighted.sort_by(|(a, a_text, a_own), (b, b_text, b_own)| {
        let by_number = a.partial_cmp(b).unwrap_or(Ordering::Equal);
        let order = by_number.then_with(|| a_text.cmp(b_text)).then_with(|| a_own.cmp(b_own));
        if request.descending { order.reverse() } else { order }
    });
    elements.extend(weighted.into_iter().map(|(_, _, element)| element));
    Ok(())
}

/// The value of the key that a pattern makes of an element: a string, or a field of a hash
/// (`weight_*->field`).
fn look_up(db: &mut Db, pattern: &[u8], element: &[u8]) -> Option<Blob> {
    let star = c_text(pattern).iter().position(|byte| *byte == b'*')?;
    let (prefix, rest) = (&pattern[..star], &pattern[star + 1..]);
    let arrow = c_text(rest).windows(2).position(|pair| pair == b"->");
    let (suffix, field) = match arrow.filter(|at| c_text(rest).len() > at + 2) {
        Some(at) => (&rest[..at], Some(&rest[at + 2..])),
        None => (rest, None),
    };
    let key = [prefix, element, suffix].concat();
    match field {
        Some(field) => db.read::<Hash>(&key).ok()??.get(field).map(Blob::new),
        None => db.read::<Blob>(&key).ok()?.cloned(),
    }
}

/// Redis reads patterns as C strings, which end at the first zero byte.
fn c_text(pattern: &[u8]) -> &[u8] {
    pattern.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn store(db: &mut Db, target: &Bytes, found: Vec<Option<Blob>>, reply: &mut Reply) {
    reply.int(found.len() as i64);
    if found.is_empty() {
        db.remove(target);
        return;
    }
    let mut list = List::default();
    found.into_iter().for_each(|text| list.push(End::Right, text.unwrap_or_default()));
    db.set(target, Value::List(Box::new(list)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::call;
    use crate::reply::Protocol;

    fn say(db: &mut Db, line: &str) -> String {
        let mut reply = Reply::new(Protocol::Resp2);
        let args: Vec<Bytes> = line.split(' ').map(|arg| Bytes::from(arg.to_owned())).collect();
        call(db, &args, &mut reply);
        String::from_utf8_lossy(reply.as_bytes()).replace("\r\n", " ")
    }

    #[test]
    fn elements_are_ordered_as_numbers_and_words_are_refused() {
        let mut db = Db::new();
        say(&mut db, "RPUSH numbers 10 9 -1 1e2 0x1f inf");
        assert_eq!(say(&mut db, "SORT numbers STORE sorted"), ":6 ");
        let sorted = "*6 $2 -1 $1 9 $2 10 $4 0x1f $3 1e2 $3 inf ";
        assert_eq!(say(&mut db, "LRANGE sorted 0 -1"), sorted);
        let refused = "-ERR One or more scores can't be converted into double ";
        for words in ["1 two", "nan", "1e400", "1e-310", "3_"] {
            say(&mut db, "DEL words");
            say(&mut db, &format!("RPUSH words {words}"));
            assert_eq!(say(&mut db, "SORT words STORE sorted"), refused, "{words}");
        }
        // What was stored before is still there.
        assert_eq!(say(&mut db, "LRANGE sorted 0 -1"), sorted);
    }
}
