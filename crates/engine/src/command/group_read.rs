//! `XREADGROUP`: delivers new entries to a consumer, or shows those that it has not acknowledged.
//!
//! ```text
//!   >    new entries of the group ──▶ pending for this consumer (with NOACK: only the position moves)
//!   id   the consumer's own pending entries after this id; they count as delivered once more
//! ```
//!
//! A read of history replies at once, even with nothing. Only a read of new entries blocks; it is run
//! again for the stream that got an entry (`server/blocked.rs`).

use bytes::Bytes;

use super::group::quoting;
use super::group_effects::{Assigned, record_consumer, record_position};
use super::stream::id;
use super::stream_read::{
    ReadOptions, Reader, blocked_options, show_entry, show_stream, show_streams,
};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::reply::Reply;
use crate::value::Stream;
use crate::value::stream::Id;
use crate::value::stream::group::{Delivery, Group};

/// The entries that a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    New,
    After(Id),
}

/// A call on behalf of a consumer.
struct Read<'a> {
    group: &'a Bytes,
    consumer: &'a Bytes,
    most: usize,
    no_ack: bool,
    now_ms: i64,
}

/// What a read has changed in a group.
#[derive(Default)]
struct Changes {
    assigned: Vec<Assigned>,
    position: Option<(Id, Option<i64>)>,
}

pub(super) fn xreadgroup(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let options = ReadOptions::parse(db, args, Reader::InGroup)?;
    let (group, consumer) =
        options.group.ok_or(Error::Fixed("ERR Missing GROUP option for XREADGROUP"))?;
    let mut wanted = Vec::with_capacity(options.keys.len());
    for (key, arg) in options.keys.iter().zip(options.ids) {
        let stream = db.read::<Stream>(key)?;
        if !stream.is_some_and(|stream| stream.groups.contains_key(&group[..])) {
            return Err(no_group(key, group));
        }
        wanted.push(parse_wanted(arg)?);
    }
    let most = if options.most == 0 { usize::MAX } else { options.most };
    let read = Read { group, consumer, most, no_ack: options.no_ack, now_ms: db.now_ms() };
    let (mut body, mut served) = (Reply::new(reply.protocol()), 0);
    for (key, wanted) in options.keys.iter().zip(wanted) {
        served += usize::from(read.serve(db, key, wanted, &mut body)?);
    }
    if served > 0 {
        show_streams(served, reply);
        reply.append(&body);
    } else if !options.block.is_some_and(|timeout| {
        db.request_block(&again(&options, group, consumer), options.keys, timeout)
    }) {
        reply.nil_array();
    }
    Ok(())
}

fn parse_wanted(arg: &[u8]) -> Result<Wanted> {
    match arg {
        b">" => Ok(Wanted::New),
        b"$" => Err(Error::Fixed(
            "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history \
             of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ \
             ID would just return an empty result set.",
        )),
        // In Redis the highest id stands for `>`.
        arg => id(arg, 0).map(|id| if id == Id::MAX { Wanted::New } else { Wanted::After(id) }),
    }
}

fn no_group(key: &[u8], group: &[u8]) -> Error {
    let end = b"' in XREADGROUP with GROUP option";
    quoting(&[b"NOGROUP No such key '", key, b"' or consumer group '", group, end])
}

/// The arguments of a blocked call; `STREAMS` follows the group, whatever its name.
fn again(options: &ReadOptions<'_>, group: &Bytes, consumer: &Bytes) -> Vec<Bytes> {
    let head = [Bytes::from_static(b"XREADGROUP"), Bytes::from_static(b"GROUP")];
    let no_ack = options.no_ack.then_some(Bytes::from_static(b"NOACK"));
    let names = [group.clone(), consumer.clone()];
    let options_again = head.into_iter().chain(names).chain(no_ack);
    let streams = options.keys.iter().chain(options.ids).cloned();
    options_again.chain(blocked_options(options.most)).chain(streams).collect()
}

impl Read<'_> {
    /// Writes the entries of one stream; `false` if it has none.
    fn serve(&self, db: &mut Db, key: &[u8], wanted: Wanted, body: &mut Reply) -> Result<bool> {
        let Some(stream) = db.write::<Stream>(key)? else { return Ok(false) };
        let work = |stream: &Stream, group: &mut Group| {
            // Nothing follows the highest id.
            let start = match wanted {
                Wanted::New => group.last_id.next()?,
                Wanted::After(id) => id.next()?,
            };
            if wanted == Wanted::New && stream.range(start, Id::MAX).next().is_none() {
                return None;
            }
            show_stream(key, body);
            group.see(self.consumer, self.now_ms);
            Some(match wanted {
                Wanted::New => self.deliver(stream, group, start, body),
                Wanted::After(_) => self.show_history(stream, group, start, body),
            })
        };
        let Some(changes) = stream.with_group(self.group, work).flatten() else { return Ok(false) };
        db.changed_unwatched();
        if let Some((last_id, read)) = changes.position {
            record_position(db, key, self.group, last_id, read);
        }
        let seen = (&self.consumer[..], self.now_ms);
        record_consumer(db, key, self.group, seen, &changes.assigned);
        Ok(true)
    }

    /// Delivers new entries.
    fn deliver(&self, stream: &Stream, group: &mut Group, start: Id, body: &mut Reply) -> Changes {
        let entries: Vec<_> = stream.range(start, Id::MAX).take(self.most).collect();
        let mut changes = Changes::default();
        body.array(entries.len());
        for entry in entries {
            stream.advance(group, entry.id);
            show_entry(&entry, body);
            if !self.no_ack {
                let delivery = Delivery { time_ms: self.now_ms, count: 1 };
                group.assign(entry.id, self.consumer, delivery);
                changes.assigned.push((entry.id, delivery));
            }
        }
        changes.position = Some((group.last_id, group.entries_read));
        changes
    }

    /// Shows the consumer's pending entries; one that was deleted has no fields.
    fn show_history(
        &self,
        stream: &Stream,
        group: &mut Group,
        start: Id,
        body: &mut Reply,
    ) -> Changes {
        let own = group.pending_of(self.consumer, start..).take(self.most);
        let own: Vec<_> = own.map(|(id, pending)| (id, pending.delivery.count)).collect();
        let mut changes = Changes::default();
        body.array(own.len());
        for (id, count) in own {
            match stream.entry(id) {
                Some(entry) => {
                    show_entry(&entry, body);
                    let count = count.wrapping_add(1);
                    let delivery = Delivery { time_ms: self.now_ms, count };
                    group.assign(id, self.consumer, delivery);
                    changes.assigned.push((id, delivery));
                }
                None => {
                    body.array(2);
                    body.bulk(id.to_string().as_bytes());
                    body.nil_array();
                }
            }
        }
        changes
    }
}
