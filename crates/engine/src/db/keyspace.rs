//! One logical database: keys with values and expiries, watched keys and keys that clients are
//! blocked on.
//!
//! Expiries are also indexed by time, each with its key's index in the table, so that expired keys
//! are found without sampling. Removing a key moves another key to its index; this file updates the
//! time index.

use std::collections::{BTreeSet, HashMap};

use crate::blob::Blob;
use crate::dict::Dict;
use crate::value::Value;

/// Stands for "no expiry": no key can have this expiry, because it would be removed at once.
const NEVER: i64 = i64::MIN;

#[derive(Debug, Default)]
pub(super) struct Keyspace {
    keys: Dict<Stored>,
    expiries: BTreeSet<(i64, u32)>,
    watched: HashMap<Blob, Watched>,
    awaited: HashMap<Blob, usize>,
}

#[derive(Debug)]
struct Stored {
    value: Value,
    expiry: i64,
}

#[derive(Debug, Default)]
struct Watched {
    watchers: usize,
    version: u64,
}

impl Keyspace {
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn expiring(&self) -> usize {
        self.expiries.len()
    }

    pub(super) fn find(&self, key: &[u8]) -> Option<usize> {
        self.keys.find(key)
    }

    pub(super) fn value(&self, index: usize) -> &Value {
        &self.keys.at(index).1.value
    }

    pub(super) fn value_mut(&mut self, index: usize) -> &mut Value {
        &mut self.keys.at_mut(index).value
    }

    pub(super) fn key_at(&self, index: usize) -> (&Blob, Option<i64>) {
        (self.keys.at(index).0, self.expiry(index))
    }

    pub(super) fn expiry(&self, index: usize) -> Option<i64> {
        Some(self.keys.at(index).1.expiry).filter(|expiry| *expiry != NEVER)
    }

    /// Sets a key without an expiry and returns its index.
    pub(super) fn set(&mut self, key: &[u8], value: Value) -> usize {
        let index = self.set_keeping_expiry(key, value);
        self.set_expiry(index, None);
        index
    }

    pub(super) fn set_keeping_expiry(&mut self, key: &[u8], value: Value) -> usize {
        let mut value = Some(value);
        let new = || Stored { value: value.take().unwrap_or_else(empty), expiry: NEVER };
        let index = self.keys.find_or_insert(key, new);
        if let Some(value) = value {
            self.keys.at_mut(index).value = value;
        }
        index
    }

    pub(super) fn set_expiry(&mut self, index: usize, expiry: Option<i64>) {
        let expiry = expiry.unwrap_or(NEVER);
        let old = std::mem::replace(&mut self.keys.at_mut(index).expiry, expiry);
        if old != expiry {
            self.reorder(index, old, index, expiry);
        }
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<(Value, Option<i64>)> {
        let removed = self.keys.remove(key)?;
        let Stored { value, expiry } = removed.value;
        self.reorder(removed.index, expiry, removed.index, NEVER);
        if removed.index < self.keys.len() {
            let moved = self.keys.at(removed.index).1.expiry;
            self.reorder(self.keys.len(), moved, removed.index, moved);
        }
        Some((value, Some(expiry).filter(|expiry| *expiry != NEVER)))
    }

    pub(super) fn flush(&mut self) {
        for (key, watched) in &mut self.watched {
            watched.version += u64::from(self.keys.contains(key));
        }
        self.keys = Dict::default();
        self.expiries.clear();
    }

    /// A key whose expiry has passed.
    pub(super) fn due(&self, now_ms: i64) -> Option<Blob> {
        let (expiry, index) = self.expiries.first()?;
        (now_ms > *expiry).then(|| self.keys.at(*index as usize).0.clone())
    }

    pub(super) fn next_expiry(&self) -> Option<i64> {
        self.expiries.first().map(|(expiry, _)| *expiry)
    }

    pub(super) fn scan(
        &self,
        cursor: u64,
        mut visit: impl FnMut(&Blob, &Value, Option<i64>),
    ) -> u64 {
        self.keys.scan(cursor, |key, stored| {
            visit(key, &stored.value, Some(stored.expiry).filter(|expiry| *expiry != NEVER));
        })
    }

    /// Invalidates watches of a key; `true` if a client is blocked on it.
    pub(super) fn touch(&mut self, key: &[u8]) -> bool {
        if !self.watched.is_empty()
            && let Some(watched) = self.watched.get_mut(key)
        {
            watched.version += 1;
        }
        !self.awaited.is_empty() && self.awaited.contains_key(key)
    }

    pub(super) fn watch(&mut self, key: &[u8]) -> u64 {
        let watched = self.watched.entry(Blob::new(key)).or_default();
        watched.watchers += 1;
        watched.version
    }

    pub(super) fn version(&self, key: &[u8]) -> u64 {
        self.watched.get(key).map_or(0, |watched| watched.version)
    }

    pub(super) fn unwatch(&mut self, key: &[u8]) {
        if let Some(watched) = self.watched.get_mut(key) {
            watched.watchers -= 1;
            if watched.watchers == 0 {
                self.watched.remove(key);
            }
        }
    }

    pub(super) fn await_key(&mut self, key: &[u8]) {
        *self.awaited.entry(Blob::new(key)).or_default() += 1;
    }

    pub(super) fn is_awaited(&self, key: &[u8]) -> bool {
        self.awaited.contains_key(key)
    }

    /// The keys that clients are blocked on, sorted.
    pub(super) fn awaited(&self) -> Vec<Blob> {
        let mut keys: Vec<Blob> = self.awaited.keys().cloned().collect();
        keys.sort();
        keys
    }

    pub(super) fn release_key(&mut self, key: &[u8]) {
        if let Some(count) = self.awaited.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.awaited.remove(key);
            }
        }
    }

    fn reorder(&mut self, from: usize, old: i64, to: usize, new: i64) {
        if old != NEVER {
            self.expiries.remove(&(old, from as u32));
        }
        if new != NEVER {
            self.expiries.insert((new, to as u32));
        }
    }
}

fn empty() -> Value {
    Value::String(Blob::EMPTY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_with_its_expiry_fits_a_cache_line() {
        // A slot of the table also holds the key and two numbers.
        assert_eq!(size_of::<Stored>() + size_of::<Blob>() + 8, 64);
    }

    #[test]
    fn the_order_of_expiries_follows_keys_that_move() {
        let mut space = Keyspace::default();
        for number in 0..50_i64 {
            let index = space.set(format!("k{number}").as_bytes(), empty());
            space.set_expiry(index, Some(1000 - number));
        }
        for number in (0..50).step_by(3) {
            space.remove(format!("k{number}").as_bytes());
        }
        while let Some(key) = space.due(i64::MAX - 1) {
            assert_eq!(space.find(&key).and_then(|at| space.expiry(at)), space.next_expiry());
            assert!(space.remove(&key).is_some());
        }
        assert_eq!((space.len(), space.expiring()), (0, 0));
    }
}
