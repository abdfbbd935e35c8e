//! Keys that somebody else has an eye on: watched by transactions, awaited by blocked clients.
//!
//! A watch remembers the version its key had. Versions are kept only while a key is watched, so
//! that a keyspace nobody watches pays nothing.

use super::Db;
use crate::blob::Blob;

/// A key under `WATCH`; give it back with [`Db::unwatch`].
#[derive(Debug)]
pub struct Watch {
    db: usize,
    key: Blob,
    version: u64,
}

impl Db {
    /// Watches a key of the selected database from now on.
    pub fn watch(&mut self, key: &[u8]) -> Watch {
        // An expired key goes first: its removal later must not make the watch stale.
        self.find(key);
        let version = self.space_mut().watch(key);
        Watch { db: self.selected, key: Blob::new(key), version }
    }

    /// Whether the key was changed or has expired since.
    pub fn is_stale(&self, watch: &Watch) -> bool {
        let space = &self.spaces[watch.db];
        let expiry = space.find(&watch.key).and_then(|index| space.expiry(index));
        space.version(&watch.key) != watch.version
            || expiry.is_some_and(|expiry| self.now_ms() > expiry)
    }

    /// Ends a watch.
    pub fn unwatch(&mut self, watch: Watch) {
        self.spaces[watch.db].unwatch(&watch.key);
    }

    /// Makes changes of a key show up in [`Db::take_ready`]; counted per call.
    pub fn await_key(&mut self, db: usize, key: &[u8]) {
        self.spaces[db].await_key(key);
    }

    /// Takes one [`Db::await_key`] back.
    pub fn release_key(&mut self, db: usize, key: &[u8]) {
        self.spaces[db].release_key(key);
    }

    /// Whether an awaited key was changed since the last [`Db::take_ready`].
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The awaited keys that were changed since the last call, in order of their first change that left
    /// something to take.
    pub fn take_ready(&mut self) -> Vec<(usize, Blob)> {
        std::mem::take(&mut self.ready)
    }
}
