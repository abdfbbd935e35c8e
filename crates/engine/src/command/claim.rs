//! Taking over pending entries of other consumers: `XCLAIM` and `XAUTOCLAIM`.

use bytes::Bytes;

use super::args::{Options, is};
use super::group::{no_key_or_group, quoting};
use super::group_effects::{Assigned, record_consumer, record_position, record_released};
use super::stream::id;
use super::stream_read::{end_of_interval, show_entry};
use crate::db::Db;
use crate::error::{Error, Result, SYNTAX};
use crate::number::parse_int;
use crate::reply::Reply;
use crate::value::Stream;
use crate::value::stream::Id;
use crate::value::stream::group::{Delivery, Group};

/// The number of pending entries that `XAUTOCLAIM` looks at for each entry it may claim.
const LOOKS_PER_CLAIM: usize = 10;
/// The highest `COUNT` of `XAUTOCLAIM`.
const MOST_CLAIMS: i64 = i64::MAX / 16;

/// How an entry is claimed.
#[derive(Debug)]
struct Claim {
    now_ms: i64,
    min_idle_ms: i64,
    /// The delivery time to set.
    time_ms: i64,
    /// The number of deliveries to set; without it, it is incremented unless only ids are asked for.
    count: Option<i64>,
    just_id: bool,
    force: bool,
}

/// What a command has done to a group.
#[derive(Debug, Default)]
struct Claimed {
    assigned: Vec<Assigned>,
    /// Pending entries that were dropped because their stream entries are gone.
    dropped: Vec<Id>,
}

impl Claimed {
    fn record(&self, db: &mut Db, key: &[u8], group: &[u8], (consumer, now_ms): (&[u8], i64)) {
        if !self.dropped.is_empty() {
            db.changed_unwatched();
            record_released(db, key, group, &self.dropped);
        }
        if !self.assigned.is_empty() {
            db.changed_unwatched();
            record_consumer(db, key, group, (consumer, now_ms), &self.assigned);
        }
    }
}

/// The result of claiming one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Claimed,
    Dropped,
    Left,
}

impl Claim {
    /// Claims one entry for a consumer, which is seen only if it gets something.
    fn take(
        &self,
        stream: &Stream,
        group: &mut Group,
        (id, consumer): (Id, &[u8]),
        done: &mut Claimed,
    ) -> Outcome {
        let known = group.pending(id).map(|pending| pending.delivery);
        if stream.entry(id).is_none() {
            if known.is_none() {
                return Outcome::Left;
            }
            group.release(id);
            done.dropped.push(id);
            return Outcome::Dropped;
        }
        // An entry that was not pending begins with one delivery, as in Redis.
        let before = match known {
            Some(delivery) if self.min_idle_ms > 0 => {
                let idle = self.now_ms.saturating_sub(delivery.time_ms);
                if idle < self.min_idle_ms {
                    return Outcome::Left;
                }
                delivery.count
            }
            Some(delivery) => delivery.count,
            None if self.force => 1,
            None => return Outcome::Left,
        };
        let step = i64::from(!self.just_id);
        let count = self.count.unwrap_or_else(|| before.wrapping_add(step));
        let delivery = Delivery { time_ms: self.time_ms, count };
        group.see(consumer, self.now_ms);
        group.assign(id, consumer, delivery);
        done.assigned.push((id, delivery));
        Outcome::Claimed
    }

    /// Writes a claimed entry, or only its id.
    fn show(&self, stream: &Stream, id: Id, reply: &mut Reply) {
        match stream.entry(id).filter(|_| !self.just_id) {
            Some(entry) => show_entry(&entry, reply),
            None => reply.bulk(id.to_string().as_bytes()),
        }
    }
}

pub(super) fn xclaim(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (key, name, consumer, now) = (&args[1], &args[2], &args[3], db.now_ms());
    let stream = db.write::<Stream>(key)?;
    let stream = stream.filter(|stream| stream.groups.contains_key(&name[..]));
    let stream = stream.ok_or_else(|| no_key_or_group(key, name))?;
    let min_idle_ms = min_idle(&args[4], "XCLAIM")?;
    let ids: Vec<Id> = args[5..].iter().map_while(|arg| id(arg, 0).ok()).collect();
    let (claim, last_id) = claim_options(&args[5 + ids.len()..], now, min_idle_ms)?;
    let mut body = Reply::new(reply.protocol());
    let work = |stream: &Stream, group: &mut Group| {
        let moved = last_id > group.last_id;
        group.last_id = group.last_id.max(last_id);
        let mut done = Claimed::default();
        for id in ids {
            if claim.take(stream, group, (id, consumer), &mut done) == Outcome::Claimed {
                claim.show(stream, id, &mut body);
            }
        }
        (done, moved.then_some((group.last_id, group.entries_read)))
    };
    let Some((done, position)) = stream.with_group(name, work) else { return Ok(()) };
    reply.array(done.assigned.len());
    reply.append(&body);
    if let Some((last_id, read)) = position {
        db.changed_unwatched();
        record_position(db, key, name, last_id, read);
    }
    done.record(db, key, name, (consumer, now));
    Ok(())
}

/// Parses the options of `XCLAIM` after its ids; returns the given last id, too.
fn claim_options(args: &[Bytes], now_ms: i64, min_idle_ms: i64) -> Result<(Claim, Id)> {
    let (mut time_ms, mut count, mut last_id) = (None, None, Id::MIN);
    let (mut just_id, mut force) = (false, false);
    let mut options = Options::new(args);
    while let Some(word) = options.next() {
        let value = options.left() > 0;
        if is(word, "FORCE") {
            force = true;
        } else if is(word, "JUSTID") {
            just_id = true;
        } else if is(word, "IDLE") && value {
            let idle = number(options.value()?, "ERR Invalid IDLE option argument for XCLAIM")?;
            time_ms = Some(now_ms.wrapping_sub(idle));
        } else if is(word, "TIME") && value {
            let text = "ERR Invalid TIME option argument for XCLAIM";
            time_ms = Some(number(options.value()?, text)?);
        } else if is(word, "RETRYCOUNT") && value {
            let text = "ERR Invalid RETRYCOUNT option argument for XCLAIM";
            count = Some(number(options.value()?, text)?);
        } else if is(word, "LASTID") && value {
            last_id = id(options.value()?, 0)?;
        } else {
            return Err(quoting(&[b"ERR Unrecognized XCLAIM option '", word, b"'"]));
        }
    }
    // A time outside of the past is a mistake of the client's clock: the entry is delivered now.
    let time_ms = time_ms.filter(|time| (0..=now_ms).contains(time)).unwrap_or(now_ms);
    let count = count.filter(|count| *count >= 0);
    Ok((Claim { now_ms, min_idle_ms, time_ms, count, just_id, force }, last_id))
}

pub(super) fn xautoclaim(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (key, name, consumer, now) = (&args[1], &args[2], &args[3], db.now_ms());
    let min_idle_ms = min_idle(&args[4], "XAUTOCLAIM")?;
    let (start, excluded) = end_of_interval(&args[5], 0)?;
    let start = if excluded { start.next() } else { Some(start) };
    let start = start.ok_or(Error::Fixed("ERR invalid start ID for the interval"))?;
    let (most, just_id) = auto_options(&args[6..])?;
    let claim =
        Claim { now_ms: now, min_idle_ms, time_ms: now, count: None, just_id, force: false };
    let stream = db.write::<Stream>(key)?;
    let stream = stream.filter(|stream| stream.groups.contains_key(&name[..]));
    let stream = stream.ok_or_else(|| no_key_or_group(key, name))?;
    let mut body = Reply::new(reply.protocol());
    let work = |stream: &Stream, group: &mut Group| {
        let looks = most.saturating_mul(LOOKS_PER_CLAIM);
        let mut next = group.pending_in(start..).next().map(|(id, _)| id);
        let (mut done, mut looked) = (Claimed::default(), 0);
        while let Some(id) = next
            && looked < looks
            && done.assigned.len() + done.dropped.len() < most
        {
            looked += 1;
            if claim.take(stream, group, (id, consumer), &mut done) == Outcome::Claimed {
                claim.show(stream, id, &mut body);
            }
            next = id.next().and_then(|after| group.pending_in(after..).next()).map(|(id, _)| id);
        }
        (done, next.unwrap_or(Id::MIN))
    };
    let Some((done, cursor)) = stream.with_group(name, work) else { return Ok(()) };
    reply.array(3);
    reply.bulk(cursor.to_string().as_bytes());
    reply.array(done.assigned.len());
    reply.append(&body);
    reply.array(done.dropped.len());
    done.dropped.iter().for_each(|id| reply.bulk(id.to_string().as_bytes()));
    done.record(db, key, name, (consumer, now));
    Ok(())
}

/// Parses `[COUNT n] [JUSTID]`.
fn auto_options(args: &[Bytes]) -> Result<(usize, bool)> {
    let (mut most, mut just_id, mut options) = (100, false, Options::new(args));
    while let Some(word) = options.next() {
        if is(word, "COUNT") && options.left() > 0 {
            let count = number(options.value()?, "ERR COUNT must be > 0")?;
            if !(1..=MOST_CLAIMS).contains(&count) {
                return Err(Error::Fixed("ERR COUNT must be > 0"));
            }
            most = count as usize;
        } else if is(word, "JUSTID") {
            just_id = true;
        } else {
            return Err(SYNTAX);
        }
    }
    Ok((most, just_id))
}

fn min_idle(arg: &[u8], command: &str) -> Result<i64> {
    let error = || Error::quoting(format!("ERR Invalid min-idle-time argument for {command}"));
    parse_int(arg).map(|ms| ms.max(0)).ok_or_else(error)
}

fn number(arg: &[u8], error: &'static str) -> Result<i64> {
    parse_int(arg).ok_or(Error::Fixed(error))
}
