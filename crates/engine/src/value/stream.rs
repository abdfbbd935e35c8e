//! Streams: an append-only log of entries with ascending ids.
//!
//! Entries are stored in blocks, as in Redis: up to 100 entries or about 4096 bytes each. An entry
//! with the same fields as the first of its block stores only values. `MAXLEN ~` removes whole
//! blocks, so a block must be full exactly when Redis's is. `stream/listpack.rs` computes the size
//! of a block in Redis's form. Consumer groups are part of the stream: `stream/group.rs`.

pub(crate) mod group;
mod lag;
mod listpack;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use self::group::Group;
use super::packed;
use crate::blob::Blob;
use crate::number::parse_uint;

const BLOCK_ENTRIES: usize = 100;
const BLOCK_BYTES: usize = 4096;

/// The id of an entry: milliseconds and a sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Id {
    /// Milliseconds since 1970, or a number chosen by the client.
    pub(crate) ms: u64,
    /// The sequence number within the millisecond.
    pub(crate) seq: u64,
}

impl Id {
    /// The lowest id.
    pub(crate) const MIN: Self = Self { ms: 0, seq: 0 };
    /// The highest id.
    pub(crate) const MAX: Self = Self { ms: u64::MAX, seq: u64::MAX };

    /// Parses `ms` or `ms-seq`; `missing_seq` replaces a missing sequence number.
    pub(crate) fn parse(text: &[u8], missing_seq: u64) -> Option<Self> {
        match text.iter().position(|byte| *byte == b'-') {
            None => Some(Self { ms: parse_uint(text)?, seq: missing_seq }),
            Some(dash) => {
                Some(Self { ms: parse_uint(&text[..dash])?, seq: parse_uint(&text[dash + 1..])? })
            }
        }
    }

    /// The next higher id.
    pub(crate) fn next(self) -> Option<Self> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => Some(Self { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// The next lower id.
    pub(crate) fn previous(self) -> Option<Self> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => Some(Self { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

/// The limit to trim a stream to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// At most this many entries.
    MaxLen(usize),
    /// No entry below this id.
    MinId(Id),
}

/// The precision of a trim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// Exact to the entry.
    Exact,
    /// Whole blocks only, and at most this many entries (0: any number).
    Blocks(usize),
}

/// An append-only log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream {
    blocks: VecDeque<Block>,
    len: usize,
    /// The highest id ever assigned; later entries must have a higher one.
    pub(crate) last_id: Id,
    /// The highest id ever removed by `XDEL`.
    pub(crate) max_deleted_id: Id,
    /// The number of entries ever added.
    pub(crate) entries_added: u64,
    /// The consumer groups by name.
    pub(crate) groups: BTreeMap<Blob, Group>,
}

#[derive(Debug, Clone)]
struct Block {
    first: Id,
    last: Id,
    fields: Box<[Blob]>,
    entries: Vec<Stored>,
    deleted: usize,
    redis_bytes: usize,
}

#[derive(Debug, Clone)]
struct Stored {
    id: Id,
    /// Values if the fields are those of the block, else alternating fields and values.
    texts: Box<[u8]>,
    own_fields: bool,
}

/// An entry of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    /// The entry's id.
    pub(crate) id: Id,
    block: &'a Block,
    stored: &'a Stored,
}

impl<'a> Entry<'a> {
    /// The entry's alternating fields and values.
    pub(crate) fn texts(&self) -> Vec<&'a [u8]> {
        let texts = packed::texts(&self.stored.texts);
        if self.stored.own_fields {
            return texts.collect();
        }
        self.block.fields.iter().zip(texts).flat_map(|(field, value)| [&**field, value]).collect()
    }
}

impl Stream {
    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether the stream is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of blocks (keys of Redis's radix tree).
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The id of the first entry, or zero.
    pub(crate) fn first_id(&self) -> Id {
        self.range(Id::MIN, Id::MAX).next().map_or(Id::MIN, |entry| entry.id)
    }

    /// The id for an entry added at `now_ms`; it ascends even if the clock goes back.
    pub(crate) fn next_id(&self, now_ms: u64) -> Option<Id> {
        if now_ms > self.last_id.ms { Some(Id { ms: now_ms, seq: 0 }) } else { self.last_id.next() }
    }

    /// Appends an entry; its id must be higher than the last one.
    pub(crate) fn add<T: AsRef<[u8]>>(&mut self, id: Id, texts: &[T]) {
        let raw: usize = texts.iter().map(|text| text.as_ref().len()).sum();
        let full = |block: &Block| {
            block.redis_bytes + raw >= BLOCK_BYTES
                || block.entries.len() + block.deleted >= BLOCK_ENTRIES
        };
        if self.blocks.back().is_none_or(full) {
            self.blocks.push_back(Block::new(id, texts));
        }
        if let Some(block) = self.blocks.back_mut() {
            block.add(id, texts);
        }
        self.len += 1;
        self.last_id = id;
        self.entries_added += 1;
    }

    /// Removes an entry; `true` if it existed.
    pub(crate) fn remove(&mut self, id: Id) -> bool {
        let at = self.blocks.partition_point(|block| block.last < id);
        let Some(block) = self.blocks.get_mut(at) else { return false };
        let Ok(position) = block.entries.binary_search_by_key(&id, |entry| entry.id) else {
            return false;
        };
        block.entries.remove(position);
        block.deleted += 1;
        if block.entries.is_empty() {
            self.blocks.remove(at);
        }
        self.len -= 1;
        self.max_deleted_id = self.max_deleted_id.max(id);
        true
    }

    /// Removes entries from the front and returns their number.
    pub(crate) fn trim(&mut self, limit: Limit, precision: Precision) -> usize {
        let mut removed = 0;
        while let Some(block) = self.blocks.front_mut() {
            let count = block.entries.len();
            if matches!(limit, Limit::MaxLen(most) if self.len <= most) {
                break;
            }
            if matches!(precision, Precision::Blocks(most) if most > 0 && removed + count > most) {
                break;
            }
            let whole = match limit {
                Limit::MaxLen(most) => self.len - count >= most,
                Limit::MinId(min) => block.last < min,
            };
            let some = match (whole, precision, limit) {
                (true, ..) => count,
                (false, Precision::Blocks(_), _) => 0,
                (false, _, Limit::MaxLen(most)) => self.len - most,
                (false, _, Limit::MinId(min)) => block.entries.partition_point(|e| e.id < min),
            };
            block.entries.drain(..some);
            block.deleted += some;
            self.len -= some;
            removed += some;
            if !whole {
                break;
            }
            self.blocks.pop_front();
        }
        removed
    }

    /// The entries from `start` to `end`, both inclusive, as a double-ended iterator.
    pub(crate) fn range(&self, start: Id, end: Id) -> impl DoubleEndedIterator<Item = Entry<'_>> {
        let first = self.blocks.partition_point(|block| block.last < start);
        let after = self.blocks.partition_point(|block| block.first <= end).max(first);
        self.blocks.range(first..after).flat_map(move |block| {
            let from = block.entries.partition_point(|entry| entry.id < start);
            let to = block.entries.partition_point(|entry| entry.id <= end).max(from);
            block.entries[from..to].iter().map(|stored| Entry { id: stored.id, block, stored })
        })
    }

    /// The approximate number of bytes on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        let block = |block: &Block| {
            let texts: usize = block.entries.iter().map(|entry| entry.texts.len()).sum();
            block.entries.capacity() * size_of::<Stored>() + texts + size_of::<Block>()
        };
        let group = |(name, group): (&Blob, &Group)| {
            size_of::<Blob>() + name.heap_size() + size_of::<Group>() + group.heap_size()
        };
        self.blocks.iter().map(block).sum::<usize>() + self.groups.iter().map(group).sum::<usize>()
    }

    /// Runs `work` on the stream and one of its groups; `None` if there is no such group.
    pub(crate) fn with_group<T>(
        &mut self,
        name: &[u8],
        work: impl FnOnce(&Self, &mut Group) -> T,
    ) -> Option<T> {
        let mut group = std::mem::take(self.groups.get_mut(name)?);
        let result = work(self, &mut group);
        if let Some(place) = self.groups.get_mut(name) {
            *place = group;
        }
        Some(result)
    }

    /// The entry with this id.
    pub(crate) fn entry(&self, id: Id) -> Option<Entry<'_>> {
        self.range(id, id).next()
    }
}

impl Block {
    fn new<T: AsRef<[u8]>>(first: Id, texts: &[T]) -> Self {
        let fields: Box<[Blob]> =
            texts.iter().step_by(2).map(|field| Blob::new(field.as_ref())).collect();
        let redis_bytes = listpack::block(&fields);
        Self { first, last: first, fields, entries: Vec::new(), deleted: 0, redis_bytes }
    }

    fn add<T: AsRef<[u8]>>(&mut self, id: Id, texts: &[T]) {
        let given = texts.iter().step_by(2).map(AsRef::as_ref);
        let own_fields = !given.eq(self.fields.iter().map(|field| &**field));
        let kept = |position: usize| own_fields || position % 2 == 1;
        let mut bytes = Vec::new();
        for (_, text) in texts.iter().enumerate().filter(|(position, _)| kept(*position)) {
            packed::append(&mut bytes, text.as_ref());
        }
        self.redis_bytes += listpack::entry(self.first, id, texts, own_fields);
        self.entries.push(Stored { id, texts: bytes.into_boxed_slice(), own_fields });
        self.last = id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(count: u64) -> Stream {
        let mut stream = Stream::default();
        for ms in 1..=count {
            stream.add(Id { ms, seq: 0 }, &[&b"event"[..], b"added"]);
        }
        stream
    }

    #[test]
    fn a_rough_trim_removes_whole_blocks_and_keeps_at_least_the_limit() {
        let mut stream = filled(1000);
        assert_eq!(stream.trim(Limit::MaxLen(550), Precision::Blocks(0)), 400);
        assert_eq!(stream.len(), 600);
        assert_eq!(stream.trim(Limit::MaxLen(550), Precision::Exact), 50);
        assert_eq!(stream.first_id(), Id { ms: 451, seq: 0 });
        assert_eq!(stream.trim(Limit::MinId(Id { ms: 990, seq: 0 }), Precision::Exact), 539);
    }

    #[test]
    fn ids_ascend_when_the_clock_goes_back() {
        let stream = filled(10);
        assert_eq!(stream.next_id(5), Some(Id { ms: 10, seq: 1 }));
        assert_eq!(stream.next_id(11), Some(Id { ms: 11, seq: 0 }));
    }

    #[test]
    fn entries_keep_their_own_fields() {
        let mut stream = filled(1);
        stream.add(Id { ms: 2, seq: 0 }, &[&b"a"[..], b"1", b"b", b"2"]);
        let texts: Vec<Vec<&[u8]>> =
            stream.range(Id::MIN, Id::MAX).rev().map(|entry| entry.texts()).collect();
        assert_eq!(texts, [vec![&b"a"[..], b"1", b"b", b"2"], vec![b"event", b"added"]]);
        assert!(stream.remove(Id { ms: 1, seq: 0 }));
        assert!(!stream.remove(Id { ms: 1, seq: 0 }));
        assert_eq!(stream.len(), 1);
    }
}
