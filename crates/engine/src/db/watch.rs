//! Watched keys (`WATCH`) and keys that clients are blocked on.
//!
//! A watch stores the version of its key. Versions are kept only for watched keys, so that
//! unwatched keys cost nothing.

use super::Db;
use crate::blob::Blob;

/// A watched key; end the watch with [`Db::unwatch`].
#[derive(Debug)]
pub(crate) struct Watch {
    db: usize,
    key: Blob,
    version: u64,
}

impl Db {
    /// Starts to watch a key of the selected database.
    pub(crate) fn watch(&mut self, key: &[u8]) -> Watch {
        // An expired key is removed first: its later removal must not invalidate the watch.
        self.find(key);
        let version = self.space_mut().watch(key);
        Watch { db: self.selected, key: Blob::new(key), version }
    }

    /// Whether the key was changed or has expired since the watch began.
    pub(crate) fn is_stale(&self, watch: &Watch) -> bool {
        let space = &self.spaces[watch.db];
        let expiry = space.find(&watch.key).and_then(|index| space.expiry(index));
        space.version(&watch.key) != watch.version
            || expiry.is_some_and(|expiry| self.now_ms() > expiry)
    }

    /// Ends a watch.
    pub(crate) fn unwatch(&mut self, watch: Watch) {
        self.spaces[watch.db].unwatch(&watch.key);
    }

    /// Reports changes of a key in [`Db::take_ready`]; calls are counted.
    pub(crate) fn await_key(&mut self, db: usize, key: &[u8]) {
        self.spaces[db].await_key(key);
    }

    /// Reverses one [`Db::await_key`].
    pub(crate) fn release_key(&mut self, db: usize, key: &[u8]) {
        self.spaces[db].release_key(key);
    }

    /// Counts a client blocked on a stream: from now on the end of a stream makes its key ready.
    pub(crate) fn add_stream_reader(&mut self) {
        self.stream_readers += 1;
    }

    /// Reverses one [`Db::add_stream_reader`].
    pub(crate) fn remove_stream_reader(&mut self) {
        self.stream_readers -= 1;
    }

    /// Whether a client is blocked on a key that has changed since the last [`Db::take_ready`].
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The keys with blocked clients that have changed since the last call, in the order in which
    /// they first got a value.
    pub(crate) fn take_ready(&mut self) -> Vec<(usize, Blob)> {
        std::mem::take(&mut self.ready)
    }
}
