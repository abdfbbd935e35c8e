//! Effects on consumer groups, as absolute values: commands that exist only in records and snapshots.
//!
//! Redis's own commands cannot restore a group: `XCLAIM` limits times to the clock, which is 0 in a replay,
//! and refuses entries that were deleted. No client can call the two commands here.
//!
//! ```text
//!   XGROUP.POSITION key group last-id entries-read                          creates stream and group if missing
//!   XGROUP.CONSUMER key group consumer seen-ms (id delivery-ms count) …     creates the consumer if missing
//! ```
//!
//! What leaves a group is recorded as `XACK`, `XGROUP DELCONSUMER` and `XGROUP DESTROY`.

use bytes::Bytes;

use super::args::int;
use super::stream::id;
use crate::db::Db;
use crate::error::{Result, SYNTAX};
use crate::value::Stream;
use crate::value::stream::Id;
use crate::value::stream::group::{Delivery, Group};

const POSITION: &[u8] = b"XGROUP.POSITION";
const CONSUMER: &[u8] = b"XGROUP.CONSUMER";
const UNKNOWN: i64 = -1;

/// The entries of a consumer that an effect assigns.
pub(crate) type Assigned = (Id, Delivery);

/// Whether a name is one of the two commands.
pub(super) fn is_effect(name: &[u8]) -> bool {
    name == POSITION || name == CONSUMER
}

/// Records the position of a group.
pub(super) fn record_position(
    db: &mut Db,
    key: &[u8],
    name: &[u8],
    last_id: Id,
    read: Option<i64>,
) {
    position(key, name, last_id, read, |args| db.record(args));
}

/// Records that a consumer was seen, and the entries that it now has.
pub(super) fn record_consumer(
    db: &mut Db,
    key: &[u8],
    group: &[u8],
    (name, seen_ms): (&[u8], i64),
    assigned: &[Assigned],
) {
    consumer(key, group, (name, seen_ms), assigned, |args| db.record(args));
}

/// Records that entries are no longer pending.
pub(super) fn record_released(db: &mut Db, key: &[u8], group: &[u8], released: &[Id]) {
    let ids: Vec<String> = released.iter().map(Id::to_string).collect();
    let head = [&b"XACK"[..], key, group];
    let args: Vec<&[u8]> = head.into_iter().chain(ids.iter().map(String::as_bytes)).collect();
    db.record(&args);
}

/// Emits the commands that create a group with its consumers and pending entries.
pub(crate) fn dump(
    key: &[u8],
    (name, group): (&[u8], &Group),
    most: usize,
    emit: &mut impl FnMut(&[&[u8]]),
) {
    position(key, name, group.last_id, group.entries_read, &mut *emit);
    for (member, state) in group.consumers() {
        let all: Vec<Assigned> =
            group.pending_of(member, ..).map(|(id, pending)| (id, pending.delivery)).collect();
        let parts = all.chunks(most / 3).chain(all.is_empty().then_some(&[][..]));
        for part in parts {
            consumer(key, name, (member, state.seen_ms), part, &mut *emit);
        }
    }
}

fn position(key: &[u8], name: &[u8], last_id: Id, read: Option<i64>, emit: impl FnOnce(&[&[u8]])) {
    let (last_id, read) = (last_id.to_string(), read.unwrap_or(UNKNOWN).to_string());
    emit(&[POSITION, key, name, last_id.as_bytes(), read.as_bytes()]);
}

fn consumer(
    key: &[u8],
    group: &[u8],
    (name, seen_ms): (&[u8], i64),
    assigned: &[Assigned],
    emit: impl FnOnce(&[&[u8]]),
) {
    let numbers = |(id, delivery): &Assigned| {
        [id.to_string(), delivery.time_ms.to_string(), delivery.count.to_string()]
    };
    let texts: Vec<String> =
        [seen_ms.to_string()].into_iter().chain(assigned.iter().flat_map(numbers)).collect();
    let head = [CONSUMER, key, group, name];
    emit(&head.into_iter().chain(texts.iter().map(String::as_bytes)).collect::<Vec<_>>());
}

/// Applies an effect of this file; `None` if the arguments are another command.
pub(super) fn apply(db: &mut Db, args: &[Bytes]) -> Option<Result> {
    match &**args.first()? {
        POSITION => Some(apply_position(db, args)),
        CONSUMER => Some(apply_consumer(db, args)),
        _ => None,
    }
}

fn apply_position(db: &mut Db, args: &[Bytes]) -> Result {
    let [_, key, name, last_id, read] = args else { return Err(SYNTAX) };
    let (last_id, read) = (id(last_id, 0)?, Some(int(read)?).filter(|read| *read != UNKNOWN));
    let stream = db.create::<Stream>(key)?;
    let group = stream.groups.entry(name[..].into()).or_default();
    (group.last_id, group.entries_read) = (last_id, read);
    Ok(())
}

fn apply_consumer(db: &mut Db, args: &[Bytes]) -> Result {
    let [_, key, group, name, seen_ms, entries @ ..] = args else { return Err(SYNTAX) };
    let seen_ms = int(seen_ms)?;
    let stream = db.create::<Stream>(key)?;
    let group = stream.groups.entry(group[..].into()).or_default();
    group.see(name, seen_ms);
    for entry in entries.chunks(3) {
        let [entry_id, time_ms, count] = entry else { return Err(SYNTAX) };
        let delivery = Delivery { time_ms: int(time_ms)?, count: int(count)? };
        group.assign(id(entry_id, 0)?, name, delivery);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{apply as run, call};
    use crate::reply::{Protocol, Reply};

    fn args(line: &str) -> Vec<Bytes> {
        line.split(' ').map(|arg| Bytes::from(arg.to_owned())).collect()
    }

    #[test]
    fn a_pending_entry_comes_back_although_its_stream_entry_is_gone() {
        let (mut db, mut reply) = (Db::new(), Reply::new(Protocol::Resp2));
        for line in [
            "XGROUP.POSITION s g 5-0 -1",
            "XGROUP.CONSUMER s g c 1700 5-0 1600 3",
            "XGROUP.CONSUMER s g d 1800",
        ] {
            run(&mut db, &args(line), &mut reply);
        }
        assert!(reply.is_empty());
        let stream = db.read::<Stream>(b"s").unwrap().unwrap();
        let group = &stream.groups[&b"g"[..]];
        let pending = group.pending(Id { ms: 5, seq: 0 }).unwrap();
        assert_eq!((&*pending.consumer, pending.delivery.count), (&b"c"[..], 3));
        assert_eq!((group.consumers().len(), group.entries_read), (2, None));
    }

    #[test]
    fn a_client_cannot_call_them() {
        let (mut db, mut reply) = (Db::new(), Reply::new(Protocol::Resp2));
        call(&mut db, &args("XGROUP.POSITION s g 5-0 -1"), &mut reply);
        assert!(reply.as_bytes().starts_with(b"-ERR unknown command"));
        assert!(db.is_empty());
    }
}
