//! Consumer groups of a stream: what a group has delivered, to whom, and what is not acknowledged yet.
//!
//! ```text
//!   group ── last_id, entries_read
//!     ├── pending:    id → consumer, delivery time, number of deliveries
//!     └── consumers:  name → last seen, ids of its own pending entries
//! ```
//!
//! Every pending entry has exactly one consumer, and its id is in that consumer's set: all changes go
//! through [`Group::assign`] and [`Group::release`]. A pending entry may outlive its stream entry.
//! `lag.rs` computes how far a group is behind.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeBounds;
use std::sync::Arc;

use super::Id;

/// A consumer group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Group {
    /// The highest id delivered to a consumer.
    pub(crate) last_id: Id,
    /// The number of entries ever read, if known.
    pub(crate) entries_read: Option<i64>,
    pending: BTreeMap<Id, Pending>,
    consumers: BTreeMap<Arc<[u8]>, Consumer>,
}

/// An entry that was delivered and not acknowledged.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    /// The name of the consumer that the entry was delivered to.
    pub(crate) consumer: Arc<[u8]>,
    /// When it was delivered last.
    pub(crate) delivery: Delivery,
}

/// The last delivery of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// The time in milliseconds since 1970.
    pub(crate) time_ms: i64,
    /// How often the entry has been delivered.
    pub(crate) count: i64,
}

/// A member of a group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Consumer {
    /// When the consumer last called a command, in milliseconds since 1970.
    pub(crate) seen_ms: i64,
    pending: BTreeSet<Id>,
}

impl Consumer {
    /// The number of pending entries of this consumer.
    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }
}

impl Group {
    /// A group that has delivered everything up to `last_id`.
    pub(crate) fn new(last_id: Id, entries_read: Option<i64>) -> Self {
        Self { last_id, entries_read, ..Self::default() }
    }

    /// The number of pending entries.
    pub(crate) fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// A pending entry.
    pub(crate) fn pending(&self, id: Id) -> Option<&Pending> {
        self.pending.get(&id)
    }

    /// Pending entries by id.
    pub(crate) fn pending_in(
        &self,
        range: impl RangeBounds<Id>,
    ) -> impl DoubleEndedIterator<Item = (Id, &Pending)> {
        self.pending.range(range).map(|(id, pending)| (*id, pending))
    }

    /// Pending entries of one consumer by id; none if there is no such consumer.
    pub(crate) fn pending_of(
        &self,
        consumer: &[u8],
        range: impl RangeBounds<Id>,
    ) -> impl Iterator<Item = (Id, &Pending)> {
        let own = self.consumers.get(consumer).map(|own| own.pending.range(range));
        own.into_iter().flatten().filter_map(|id| Some((*id, self.pending.get(id)?)))
    }

    /// All consumers by name.
    pub(crate) fn consumers(&self) -> impl ExactSizeIterator<Item = (&[u8], &Consumer)> {
        self.consumers.iter().map(|(name, consumer)| (&**name, consumer))
    }

    /// Whether the group has a consumer of this name.
    pub(crate) fn has_consumer(&self, name: &[u8]) -> bool {
        self.consumers.contains_key(name)
    }

    /// Notes that a consumer was seen; creates it if it is new, and then returns `true`.
    pub(crate) fn see(&mut self, name: &[u8], now_ms: i64) -> bool {
        if let Some(consumer) = self.consumers.get_mut(name) {
            consumer.seen_ms = now_ms;
            return false;
        }
        let consumer = Consumer { seen_ms: now_ms, ..Consumer::default() };
        self.consumers.insert(name.into(), consumer);
        true
    }

    /// Removes a consumer with its pending entries and returns their number; `None` if there is no
    /// such consumer.
    pub(crate) fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let consumer = self.consumers.remove(name)?;
        for id in &consumer.pending {
            self.pending.remove(id);
        }
        Some(consumer.pending.len())
    }

    /// Makes an entry pending for a consumer, whoever had it before. The consumer must exist.
    pub(crate) fn assign(&mut self, id: Id, name: &[u8], delivery: Delivery) {
        let Some((name, _)) = self.consumers.get_key_value(name) else { return };
        let pending = Pending { consumer: name.clone(), delivery };
        let new_owner = pending.consumer.clone();
        let old_owner = self.pending.insert(id, pending).map(|old| old.consumer);
        if let Some(old) = old_owner.filter(|old| *old != new_owner)
            && let Some(consumer) = self.consumers.get_mut(&old)
        {
            consumer.pending.remove(&id);
        }
        if let Some(consumer) = self.consumers.get_mut(&new_owner) {
            consumer.pending.insert(id);
        }
    }

    /// Forgets a pending entry; `false` if it was not pending.
    pub(crate) fn release(&mut self, id: Id) -> bool {
        let Some(pending) = self.pending.remove(&id) else { return false };
        if let Some(consumer) = self.consumers.get_mut(&pending.consumer) {
            consumer.pending.remove(&id);
        }
        true
    }

    /// The approximate number of bytes on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        // An id is stored twice: in the group's map and in the consumer's set.
        let entry = 2 * size_of::<Id>() + size_of::<Pending>();
        let names: usize = self.consumers.keys().map(|name| name.len() + 16).sum();
        let consumer = size_of::<Arc<[u8]>>() + size_of::<Consumer>();
        self.pending.len() * entry + self.consumers.len() * consumer + names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ms: u64) -> Id {
        Id { ms, seq: 0 }
    }

    const ONCE: Delivery = Delivery { time_ms: 5, count: 1 };

    fn ids_of(group: &Group, consumer: &[u8]) -> Vec<u64> {
        group.pending_of(consumer, ..).map(|(id, _)| id.ms).collect()
    }

    #[test]
    fn an_entry_has_one_consumer_at_a_time() {
        let mut group = Group::default();
        assert!(group.see(b"a", 1) && group.see(b"b", 1) && !group.see(b"a", 2));
        for ms in 1..=3 {
            group.assign(id(ms), b"a", ONCE);
        }
        group.assign(id(2), b"b", ONCE);
        assert_eq!((ids_of(&group, b"a"), ids_of(&group, b"b")), (vec![1, 3], vec![2]));
        assert!(group.release(id(1)) && !group.release(id(1)));
        assert_eq!(group.remove_consumer(b"a"), Some(1));
        assert_eq!(group.remove_consumer(b"a"), None);
        assert_eq!((group.pending_len(), ids_of(&group, b"b")), (1, vec![2]));
    }

    #[test]
    fn memory_grows_with_pending_entries_and_consumers() {
        let mut group = Group::default();
        group.see(b"a", 1);
        let before = group.heap_size();
        (1..=100).for_each(|ms| group.assign(id(ms), b"a", ONCE));
        assert!(group.heap_size() >= before + 100 * 48);
        (1..=100).for_each(|ms| assert!(group.release(id(ms))));
        assert_eq!(group.heap_size(), before);
    }
}
