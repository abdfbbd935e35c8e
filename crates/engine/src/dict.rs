//! A hash table for large collections: constant-time growth, safe scanning, uniform random picks.
//!
//! Slots are dense in a vector and chained from buckets by index; removing a slot moves the last slot to
//! its index. The bucket array grows by *linear hashing*: one bucket is split per insert, so no insert
//! rehashes the whole table. Both arrays are [`Chunks`], so no insert copies them either.
//!
//! ```text
//!   buckets  0 1 2 3 4 5        n = 6, level 2: 4 buckets of two bits,
//!            └─split─┘ └ 0,1's upper halves      of which 0 and 1 are already split by a third bit
//! ```
//!
//! A scan visits buckets in the order of their *reversed* bits, as Redis does. The visited hashes are
//! then a prefix of the reversed number line for any number of buckets. So an element that stays in the
//! table is returned at least once while the table grows or shrinks.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::LazyLock;

use crate::blob::Blob;
use crate::chunks::Chunks;

const NONE: u32 = u32::MAX;
const MIN_BUCKETS: usize = 4;

/// A map from byte strings to `V`.
#[derive(Debug, Clone)]
pub(crate) struct Dict<V> {
    slots: Chunks<Slot<V>>,
    buckets: Chunks<u32>,
    hasher: RandomState,
}

#[derive(Debug, Clone)]
struct Slot<V> {
    hash: u32,
    next: u32,
    key: Blob,
    value: V,
}

/// A removed slot, and its former index.
#[derive(Debug)]
pub(crate) struct Removed<V> {
    /// The removed value.
    pub(crate) value: V,
    /// The former index; the slot that was last is at this index now.
    pub(crate) index: usize,
}

impl<V> Default for Dict<V> {
    fn default() -> Self {
        Self::with_hasher(RandomState::new())
    }
}

/// The hash function of packed collections and of the tables that they become, so that a scan goes on
/// where it was.
static PACKED: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Visits one bucket of a packed collection of `len` keys as if it were a table, and returns the next
/// cursor. `visit` gets a test for the keys of the bucket.
pub(crate) fn scan_packed(
    cursor: u64,
    len: usize,
    visit: impl FnOnce(&dyn Fn(&[u8]) -> bool),
) -> u64 {
    let bits = len.max(MIN_BUCKETS).next_power_of_two().ilog2();
    let mask = (1_u32 << bits) - 1;
    visit(&|key| (PACKED.hash_one(key) as u32 ^ cursor as u32) & mask == 0);
    next_cursor(cursor, bits)
}

impl<V> Dict<V> {
    /// An empty table that a packed collection becomes; see [`scan_packed`].
    pub(crate) fn of_packed() -> Self {
        Self::with_hasher(PACKED.clone())
    }

    fn with_hasher(hasher: RandomState) -> Self {
        let mut buckets = Chunks::default();
        (0..MIN_BUCKETS).for_each(|_| buckets.push(NONE));
        Self { slots: Chunks::default(), buckets, hasher }
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The index of a key, valid until the next removal.
    pub(crate) fn find(&self, key: &[u8]) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        self.find_hashed(key, self.hash(key))
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&V> {
        self.find(key).map(|index| &self.slots[index].value)
    }

    /// The value of a key, mutable.
    pub(crate) fn get_mut(&mut self, key: &[u8]) -> Option<&mut V> {
        self.find(key).map(|index| &mut self.slots[index].value)
    }

    /// Whether the key exists.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.find(key).is_some()
    }

    /// The key and value at an index below `len()`.
    pub(crate) fn at(&self, index: usize) -> (&Blob, &V) {
        let slot = &self.slots[index];
        (&slot.key, &slot.value)
    }

    /// The value at an index below `len()`, mutable.
    pub(crate) fn at_mut(&mut self, index: usize) -> &mut V {
        &mut self.slots[index].value
    }

    /// Sets a key's value and returns the old one.
    pub(crate) fn insert(&mut self, key: &[u8], value: V) -> Option<V> {
        let hash = self.hash(key);
        if let Some(index) = self.find_hashed(key, hash) {
            return Some(std::mem::replace(&mut self.slots[index].value, value));
        }
        self.push(hash, Blob::new(key), value);
        None
    }

    /// The index of a key; a missing key is inserted with `value()`.
    pub(crate) fn find_or_insert(&mut self, key: &[u8], value: impl FnOnce() -> V) -> usize {
        let hash = self.hash(key);
        if let Some(index) = self.find_hashed(key, hash) {
            return index;
        }
        self.push(hash, Blob::new(key), value());
        self.slots.len() - 1
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Removed<V>> {
        self.find(key).map(|index| self.remove_at(index))
    }

    /// Removes the slot at an index below `len()`.
    pub(crate) fn remove_at(&mut self, index: usize) -> Removed<V> {
        self.unlink(index);
        let last = self.slots.len() - 1;
        if index != last {
            self.relink(last, index);
        }
        let slot = self.slots.swap_remove(index);
        self.shrink();
        Removed { value: slot.value, index }
    }

    /// All keys and values, in no particular order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&Blob, &V)> {
        self.slots.iter().map(|slot| (&slot.key, &slot.value))
    }

    /// Visits the keys of one bucket and returns the next cursor; 0 begins and ends a scan.
    pub(crate) fn scan(&self, cursor: u64, mut visit: impl FnMut(&Blob, &V)) -> u64 {
        let (bucket, bits) = self.bucket_of(cursor as u32);
        let mut at = self.buckets[bucket];
        while at != NONE {
            let slot = &self.slots[at as usize];
            visit(&slot.key, &slot.value);
            at = slot.next;
        }
        next_cursor(cursor, bits)
    }

    /// The size of the table in bytes, without the allocations of keys and values.
    pub(crate) fn table_size(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<V>>() + self.buckets.capacity() * 4
    }

    fn hash(&self, key: &[u8]) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    fn find_hashed(&self, key: &[u8], hash: u32) -> Option<usize> {
        let mut at = self.buckets[self.bucket_of(hash).0];
        while at != NONE {
            let slot = &self.slots[at as usize];
            if slot.hash == hash && *slot.key == *key {
                return Some(at as usize);
            }
            at = slot.next;
        }
        None
    }

    /// The bucket of a hash, and the number of hash bits that select it.
    fn bucket_of(&self, hash: u32) -> (usize, u32) {
        let count = self.buckets.len();
        let level = count.ilog2();
        let half = 1_usize << level;
        let wide = hash as usize & (2 * half - 1);
        if wide < count {
            let split = wide >= half || wide + half < count;
            (wide, if split { level + 1 } else { level })
        } else {
            (wide & (half - 1), level)
        }
    }

    fn push(&mut self, hash: u32, key: Blob, value: V) {
        if self.slots.len() >= self.buckets.len() {
            self.split();
        }
        let bucket = self.bucket_of(hash).0;
        let index = self.slots.len() as u32;
        self.slots.push(Slot { hash, next: self.buckets[bucket], key, value });
        self.buckets[bucket] = index;
    }

    /// Adds a bucket and moves the slots that belong to it from the bucket that is split.
    fn split(&mut self) {
        let new = self.buckets.len();
        let half = 1_usize << new.ilog2();
        let old = new - half;
        let (mut stay, mut go) = (NONE, NONE);
        let mut at = self.buckets[old];
        while at != NONE {
            let slot = &mut self.slots[at as usize];
            let next = slot.next;
            let head = if slot.hash as usize & half == 0 { &mut stay } else { &mut go };
            slot.next = *head;
            *head = at;
            at = next;
        }
        self.buckets[old] = stay;
        self.buckets.push(go);
    }

    /// Merges the last buckets while there are four times more buckets than slots.
    fn shrink(&mut self) {
        // At most two merges per removal, so that a removal takes constant time.
        for _ in 0..2 {
            let count = self.buckets.len();
            if count <= MIN_BUCKETS || self.slots.len() * 4 >= count {
                return;
            }
            let last = count - 1;
            let target = last - (1_usize << last.ilog2());
            let Some(head) = self.buckets.pop() else { return };
            let mut tail = head;
            while tail != NONE && self.slots[tail as usize].next != NONE {
                tail = self.slots[tail as usize].next;
            }
            if tail != NONE {
                self.slots[tail as usize].next = self.buckets[target];
                self.buckets[target] = head;
            }
        }
        self.buckets.shrink();
        self.slots.shrink();
    }

    fn unlink(&mut self, index: usize) {
        let next = self.slots[index].next;
        self.redirect(index, next);
    }

    fn relink(&mut self, from: usize, to: usize) {
        self.redirect(from, to as u32);
    }

    /// Redirects the link that points to slot `index` to `target`.
    fn redirect(&mut self, index: usize, target: u32) {
        let bucket = self.bucket_of(self.slots[index].hash).0;
        let mut at = self.buckets[bucket];
        if at == index as u32 {
            self.buckets[bucket] = target;
            return;
        }
        while at != NONE {
            let slot = &mut self.slots[at as usize];
            if slot.next == index as u32 {
                slot.next = target;
                return;
            }
            at = slot.next;
        }
    }
}

/// The cursor after a bucket of `bits` bits: its reversed bits plus one.
fn next_cursor(cursor: u64, bits: u32) -> u64 {
    let reversed = (cursor as u32 | u32::MAX.checked_shl(bits).unwrap_or(0)).reverse_bits();
    u64::from(reversed.wrapping_add(1).reverse_bits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    fn key(number: usize) -> Vec<u8> {
        format!("key:{number}").into_bytes()
    }

    #[test]
    fn it_agrees_with_the_standard_map_while_growing_and_shrinking() {
        let mut dict = Dict::default();
        let mut model = HashMap::new();
        let mut state = 1_usize;
        for round in 0..60_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let name = key((state >> 33) % 3000);
            // Mostly inserts at first, mostly removals later.
            if (state >> 20) % 10 < if round < 30_000 { 8 } else { 2 } {
                assert_eq!(dict.insert(&name, round), model.insert(name, round));
            } else {
                assert_eq!(dict.remove(&name).map(|removed| removed.value), model.remove(&name));
            }
            assert_eq!(dict.len(), model.len());
        }
        for number in 0..3000 {
            assert_eq!(dict.get(&key(number)), model.get(&key(number)));
        }
        for (name, value) in dict.iter() {
            assert_eq!(model.get(&**name), Some(value));
        }
    }

    #[test]
    fn a_scan_returns_what_stays_while_the_table_grows_and_shrinks() {
        for (before, added, removed) in [(500, 20_000, 0), (20_000, 0, 19_500), (300, 0, 0)] {
            let mut dict = Dict::default();
            for number in 0..before {
                dict.insert(&key(number), ());
            }
            let stay: HashSet<Vec<u8>> = (removed..before).map(key).collect();
            let mut seen = HashSet::new();
            let (mut cursor, mut step) = (0, 0);
            loop {
                cursor = dict.scan(cursor, |name, ()| {
                    seen.insert(name.to_vec());
                });
                if cursor == 0 {
                    break;
                }
                for _ in 0..50 {
                    if step < added {
                        dict.insert(&key(1_000_000 + step), ());
                    }
                    if step < removed {
                        dict.remove(&key(step));
                    }
                    step += 1;
                }
            }
            assert!(stay.is_subset(&seen));
        }
    }

    #[test]
    fn indexes_are_dense_and_a_removal_names_the_hole() {
        let mut dict = Dict::default();
        for number in 0..10 {
            dict.insert(&key(number), number);
        }
        let removed = dict.remove(&key(3)).map(|removed| (removed.value, removed.index));
        assert_eq!(removed, Some((3, 3)));
        assert_eq!(dict.at(3).1, &9);
        assert_eq!(dict.find(&key(9)), Some(3));
    }
}
