//! Entries that a consumer group has delivered and that were not acknowledged: `XACK` and `XPENDING`.

use bytes::Bytes;

use super::args::{int, is};
use super::group::no_key_or_group;
use super::stream::id;
use super::stream_read::interval;
use crate::db::Db;
use crate::error::{Result, SYNTAX};
use crate::reply::Reply;
use crate::value::Stream;
use crate::value::stream::Id;
use crate::value::stream::group::{Group, Pending};

pub(super) fn xack(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let stream = db.write::<Stream>(&args[1])?;
    let Some(group) = stream.and_then(|stream| stream.groups.get_mut(&args[2][..])) else {
        reply.int(0);
        return Ok(());
    };
    let ids: Vec<Id> = args[3..].iter().map(|arg| id(arg, 0)).collect::<Result<_>>()?;
    let released = ids.into_iter().filter(|id| group.release(*id)).count();
    if released > 0 {
        db.changed_unwatched();
    }
    reply.int(released as i64);
    Ok(())
}

/// The arguments of the long form of `XPENDING`.
struct Range<'a> {
    start: Id,
    end: Id,
    most: usize,
    min_idle_ms: i64,
    consumer: Option<&'a Bytes>,
}

impl<'a> Range<'a> {
    /// Parses `[IDLE ms] start end count [consumer]`; `None` for the short form.
    fn parse(args: &'a [Bytes]) -> Result<Option<Self>> {
        if args.len() == 3 {
            return Ok(None);
        }
        if !(6..=9).contains(&args.len()) {
            return Err(SYNTAX);
        }
        let mut at = 3;
        let mut min_idle_ms = 0;
        if is(&args[3], "IDLE") {
            min_idle_ms = int(&args[4])?;
            if args.len() < 8 {
                return Err(SYNTAX);
            }
            at = 5;
        }
        let most = int(&args[at + 2])?.max(0) as usize;
        let (start, end) = interval(&args[at], &args[at + 1])?;
        Ok(Some(Self { start, end, most, min_idle_ms, consumer: args.get(at + 3) }))
    }
}

pub(super) fn xpending(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let range = Range::parse(args)?;
    let now = db.now_ms();
    let stream = db.read::<Stream>(&args[1])?;
    let group = stream.and_then(|stream| stream.groups.get(&args[2][..]));
    let group = group.ok_or_else(|| no_key_or_group(&args[1], &args[2]))?;
    match range {
        None => summary(group, reply),
        Some(range) => list(group, &range, now, reply),
    }
    Ok(())
}

fn summary(group: &Group, reply: &mut Reply) {
    reply.array(4);
    reply.int(group.pending_len() as i64);
    let mut all = group.pending_in(..);
    let Some((first, _)) = all.next() else {
        reply.nil();
        reply.nil();
        reply.nil_array();
        return;
    };
    let last = all.next_back().map_or(first, |(last, _)| last);
    reply.bulk(first.to_string().as_bytes());
    reply.bulk(last.to_string().as_bytes());
    let busy: Vec<_> = group.consumers().filter(|(_, consumer)| consumer.pending() > 0).collect();
    reply.array(busy.len());
    for (name, consumer) in busy {
        reply.array(2);
        reply.bulk(name);
        reply.bulk(consumer.pending().to_string().as_bytes());
    }
}

fn list(group: &Group, range: &Range<'_>, now_ms: i64, reply: &mut Reply) {
    // A range that ends before it starts would be a programming mistake for a map.
    if range.start > range.end {
        return reply.array(0);
    }
    let (span, most) = (range.start..=range.end, range.most);
    let idle = |pending: &Pending| now_ms.saturating_sub(pending.delivery.time_ms);
    let wanted = |(_, pending): &(Id, &Pending)| {
        range.min_idle_ms == 0 || idle(pending) >= range.min_idle_ms
    };
    let found: Vec<(Id, &Pending)> = match range.consumer {
        Some(name) => group.pending_of(name, span).filter(wanted).take(most).collect(),
        None => group.pending_in(span).filter(wanted).take(most).collect(),
    };
    reply.array(found.len());
    for (id, pending) in found {
        reply.array(4);
        reply.bulk(id.to_string().as_bytes());
        reply.bulk(&pending.consumer);
        reply.int(idle(pending).max(0));
        reply.int(pending.delivery.count);
    }
}
