//! The keyspace: 16 logical databases, and the interface through which commands use them.
//!
//! One [`Db`] belongs to one executor. Before each command, transaction or script, the caller selects
//! the logical database, says whether the command may block, and sets the clock. The clock then stands
//! still, so a script sees one time. Commands reach keys only through the functions here, which ensure:
//!
//! - **Expiry.** A key whose time has passed is removed on access (*lazy*), or by [`Db::expire_due`]
//!   (*active*). The removal is an effect; while the journal takes none, the key is hidden instead.
//! - **Effects.** [`Db::changed`] marks a command as a write. Its arguments are then recorded as its
//!   effect, unless the command has recorded a deterministic one with [`Db::record`]: a replay of the
//!   journal must give the same result at any time.
//! - **Notification.** A change invalidates watches and makes keys ready for blocked clients. The end of a
//!   stream does so too: a client that reads it with a consumer group must learn of it.
//!
//! ```text
//!   caller ─ begin(clock, db) ─▶ command ─ changed(key) ─┬▶ effects      → journal
//!                                                        ├▶ watches      → EXEC of others
//!                                                        └▶ ready keys   → blocked clients
//! ```

mod blocking;
pub(crate) mod effects;
mod keyspace;
mod random;
mod typed;
mod watch;

pub(crate) use blocking::{BlockRequest, Blocking};
pub(crate) use effects::Effects;
pub(crate) use watch::Watch;

use bytes::Bytes;

use crate::blob::Blob;
use crate::value::Value;
use keyspace::Keyspace;
use random::Random;

/// The number of logical databases.
pub(crate) const DATABASES: usize = 16;

/// The keyspace.
#[derive(Debug)]
pub(crate) struct Db {
    spaces: Vec<Keyspace>,
    selected: usize,
    now_us: i64,
    effects: Effects,
    changes: u64,
    recorded: bool,
    ready: Vec<(usize, Blob)>,
    stream_readers: usize,
    blocking: Blocking,
    block_request: Option<BlockRequest>,
    random: Random,
    expiry: Expiry,
}

/// What happens to a key whose time has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// It is removed, which is an effect.
    Removes,
    /// It is hidden: the journal takes no effects now.
    Hides,
}

impl Default for Db {
    fn default() -> Self {
        Self::new()
    }
}

impl Db {
    /// An empty keyspace whose clock is 0.
    pub(crate) fn new() -> Self {
        Self {
            spaces: (0..DATABASES).map(|_| Keyspace::default()).collect(),
            selected: 0,
            now_us: 0,
            effects: Effects::default(),
            changes: 0,
            recorded: false,
            ready: Vec::new(),
            stream_readers: 0,
            blocking: Blocking::Denied,
            block_request: None,
            random: Random::new(),
            expiry: Expiry::Removes,
        }
    }

    /// Sets what happens to keys whose time has passed.
    pub(crate) fn set_expiry_mode(&mut self, expiry: Expiry) {
        self.expiry = expiry;
    }

    /// Sets the clock (microseconds since 1970) for the following commands.
    pub(crate) fn set_time_us(&mut self, now_us: i64) {
        self.now_us = now_us;
    }

    /// The clock in milliseconds.
    pub(crate) fn now_ms(&self) -> i64 {
        self.now_us / 1000
    }

    /// The clock in microseconds.
    pub(crate) fn now_us(&self) -> i64 {
        self.now_us
    }

    /// Selects a logical database; `false` if the index is out of range.
    pub(crate) fn select(&mut self, index: usize) -> bool {
        if index < DATABASES {
            self.selected = index;
        }
        index < DATABASES
    }

    /// The selected logical database.
    pub(crate) fn selected(&self) -> usize {
        self.selected
    }

    /// The effects that have not been taken yet.
    pub(crate) fn effects(&mut self) -> &mut Effects {
        &mut self.effects
    }

    /// The number of changes since the keyspace was created.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// The number of keys in the selected database, including expired keys not removed yet.
    pub(crate) fn len(&self) -> usize {
        self.space().len()
    }

    /// Whether the selected database is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of keys in a database, and how many of them have an expiry.
    pub(crate) fn counts(&self, index: usize) -> (usize, usize) {
        self.spaces.get(index).map_or((0, 0), |space| (space.len(), space.expiring()))
    }

    /// A random number below `limit`, which must not be 0.
    pub(crate) fn random_below(&mut self, limit: usize) -> usize {
        self.random.below(limit)
    }

    /// Whether a key exists.
    pub(crate) fn exists(&mut self, key: &[u8]) -> bool {
        self.find(key).is_some()
    }

    /// The value of a key.
    pub(crate) fn value(&mut self, key: &[u8]) -> Option<&Value> {
        let index = self.find(key)?;
        Some(self.space().value(index))
    }

    /// Sets a key of any type and clears its expiry.
    pub(crate) fn set(&mut self, key: &[u8], value: Value) {
        self.stream_ends(key);
        self.space_mut().set(key, value);
        self.changed(key);
    }

    /// Sets a key of any type and keeps its expiry.
    pub(crate) fn set_keeping_expiry(&mut self, key: &[u8], value: Value) {
        self.find(key);
        self.stream_ends(key);
        self.space_mut().set_keeping_expiry(key, value);
        self.changed(key);
    }

    /// Removes a key and returns its value and expiry.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<(Value, Option<i64>)> {
        self.find(key)?;
        self.stream_ends(key);
        let removed = self.space_mut().remove(key);
        self.changed(key);
        removed
    }

    /// Moves a key with its expiry onto another name, which is ready before the old name is.
    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8]) {
        if self.find(from).is_none() {
            return;
        }
        let Some((value, expiry)) = self.space_mut().remove(from) else { return };
        let wakes = self.stream_readers > 0 && matches!(value, Value::Stream(_));
        self.set(to, value);
        if expiry.is_some() {
            self.set_expiry(to, expiry);
        }
        if wakes {
            self.wake(from);
        }
        self.changed(from);
    }

    /// The expiry of a key (milliseconds since 1970): `None` if the key does not exist,
    /// `Some(None)` if it does not expire.
    pub(crate) fn expiry(&mut self, key: &[u8]) -> Option<Option<i64>> {
        let index = self.find(key)?;
        Some(self.space().expiry(index))
    }

    /// Sets or clears the expiry of an existing key.
    pub(crate) fn set_expiry(&mut self, key: &[u8], expiry: Option<i64>) {
        if let Some(index) = self.find(key) {
            self.space_mut().set_expiry(index, expiry);
            self.changed_for_watches(key);
        }
    }

    /// Notes that a key was written: the command's effect is recorded, watches become stale, and
    /// clients blocked on the key are served.
    pub(crate) fn changed(&mut self, key: &[u8]) {
        self.changes += 1;
        if self.spaces[self.selected].touch(key) && self.can_serve(key) {
            self.make_ready(Blob::new(key));
        }
    }

    /// Notes that a key was written in a way that gives blocked clients nothing.
    pub(crate) fn changed_for_watches(&mut self, key: &[u8]) {
        self.changes += 1;
        self.spaces[self.selected].touch(key);
    }

    /// Notes a write that leaves watches valid, as in Redis: the state of consumer groups.
    pub(crate) fn changed_unwatched(&mut self) {
        self.changes += 1;
    }

    /// Has the clients served that are blocked on a key.
    pub(crate) fn wake(&mut self, key: &[u8]) {
        if self.space().is_awaited(key) {
            self.make_ready(Blob::new(key));
        }
    }

    /// Wakes clients blocked on a stream that is about to be removed or overwritten.
    fn stream_ends(&mut self, key: &[u8]) {
        if self.stream_readers > 0 && self.holds_stream(key) {
            self.wake(key);
        }
    }

    fn holds_stream(&self, key: &[u8]) -> bool {
        let value = self.space().find(key).map(|index| self.space().value(index));
        matches!(value, Some(Value::Stream(_)))
    }

    fn make_ready(&mut self, key: Blob) {
        let ready = (self.selected, key);
        if !self.ready.contains(&ready) {
            self.ready.push(ready);
        }
    }

    /// Whether the key holds a value that a client may be blocked on. A removal makes no key ready, but
    /// that of a stream, so that keys are served in the order in which they got a value.
    fn can_serve(&self, key: &[u8]) -> bool {
        let value = self.space().find(key).map(|index| self.space().value(index));
        matches!(value, Some(Value::List(_) | Value::ZSet(_) | Value::Stream(_)))
    }

    /// Like [`Db::changed`], and removes a collection that has become empty.
    pub(crate) fn changed_or_emptied(&mut self, key: &[u8]) {
        if let Some(index) = self.space().find(key)
            && self.space().value(index).is_empty()
        {
            self.space_mut().remove(key);
        }
        self.changed(key);
    }

    /// Records an effect in place of the command's arguments.
    pub(crate) fn record<T: AsRef<[u8]>>(&mut self, args: &[T]) {
        self.recorded = true;
        self.effects.push(self.selected, args);
    }

    /// Removes every key of one database.
    pub(crate) fn flush(&mut self, index: usize) {
        if index >= DATABASES {
            return;
        }
        self.changes += 1;
        let selected = std::mem::replace(&mut self.selected, index);
        if self.stream_readers > 0 {
            for key in self.space().awaited() {
                self.stream_ends(&key);
            }
        }
        self.space_mut().flush();
        self.selected = selected;
    }

    /// Removes up to `most` expired keys and returns their number.
    pub(crate) fn expire_due(&mut self, most: usize) -> usize {
        let selected = self.selected;
        let mut removed = 0;
        for index in 0..DATABASES {
            self.selected = index;
            while removed < most
                && self.expiry == Expiry::Removes
                && let Some(key) = self.space().due(self.now_ms())
                && self.effects.has_room(&[&b"DEL"[..], &key])
            {
                self.expire(&key);
                removed += 1;
            }
        }
        self.selected = selected;
        removed
    }

    /// The earliest expiry.
    pub(crate) fn next_expiry(&self) -> Option<i64> {
        self.spaces.iter().filter_map(Keyspace::next_expiry).min()
    }

    /// Visits some keys of the selected database and returns the next cursor.
    pub(crate) fn scan(&self, cursor: u64, visit: impl FnMut(&Blob, &Value, Option<i64>)) -> u64 {
        self.space().scan(cursor, visit)
    }

    /// The key at an index below `len()`, and whether it has expired.
    pub(crate) fn key_at(&self, index: usize) -> (&Blob, bool) {
        let (key, expiry) = self.space().key_at(index);
        (key, expiry.is_some_and(|expiry| self.now_ms() > expiry))
    }

    /// Begins a command: resets its recorded effects and its block request.
    pub(crate) fn begin_command(&mut self) -> u64 {
        self.recorded = false;
        self.block_request = None;
        self.changes
    }

    /// Ends a command that began with `changes`: records its arguments as its effect if it changed
    /// a key and recorded no other effect.
    pub(crate) fn end_command(&mut self, changes: u64, args: &[Bytes]) {
        if self.changes != changes && !self.recorded {
            self.effects.push(self.selected, args);
        }
    }

    /// The index of a key that exists and has not expired.
    fn find(&mut self, key: &[u8]) -> Option<usize> {
        let index = self.space().find(key)?;
        if self.space().expiry(index).is_some_and(|expiry| self.now_ms() > expiry) {
            if self.expiry == Expiry::Removes {
                self.expire(key);
            }
            return None;
        }
        Some(index)
    }

    /// Removes an expired key; the removal is an effect of its own, not of the running command.
    fn expire(&mut self, key: &[u8]) {
        self.stream_ends(key);
        self.space_mut().remove(key);
        self.spaces[self.selected].touch(key);
        self.effects.push(self.selected, &[b"DEL", key]);
    }

    fn space(&self) -> &Keyspace {
        &self.spaces[self.selected]
    }

    fn space_mut(&mut self) -> &mut Keyspace {
        &mut self.spaces[self.selected]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Value {
        Value::String(Blob::new(text.as_bytes()))
    }

    fn effects(db: &mut Db) -> Vec<String> {
        let record = db.effects().take();
        let text = |args: Vec<Bytes>| {
            let words: Vec<_> = args.iter().map(|arg| String::from_utf8_lossy(arg)).collect();
            words.join(" ")
        };
        effects::decode(&record).map(|effect| effect.map(|(_, args)| text(args)).unwrap()).collect()
    }

    #[test]
    fn a_key_is_gone_after_its_time_and_that_is_an_effect() {
        let mut db = Db::new();
        db.set(b"k", string("v"));
        db.set_expiry(b"k", Some(1000));
        db.set_time_us(1_000_000);
        assert!(db.exists(b"k"));
        db.set_time_us(1_001_000);
        assert!(!db.exists(b"k"));
        assert_eq!(effects(&mut db), ["DEL k"]);
    }

    #[test]
    fn due_keys_are_removed_without_being_looked_at() {
        let mut db = Db::new();
        for number in 0..100 {
            let key = format!("k{number}");
            db.set(key.as_bytes(), string("v"));
            db.set_expiry(key.as_bytes(), (number % 2 == 0).then_some(number));
        }
        assert_eq!(db.next_expiry(), Some(0));
        db.set_time_us(50_000);
        assert_eq!((db.expire_due(10), db.expire_due(1000)), (10, 15));
        assert_eq!((db.len(), db.next_expiry()), (75, Some(50)));
    }

    #[test]
    fn a_hidden_key_is_gone_for_readers_and_has_no_effect() {
        let mut db = Db::new();
        db.set(b"k", string("v"));
        db.set_expiry(b"k", Some(1000));
        db.set_time_us(2_000_000);
        db.set_expiry_mode(Expiry::Hides);
        assert!(!db.exists(b"k") && db.expire_due(10) == 0);
        assert!(effects(&mut db).is_empty());
        db.set_expiry_mode(Expiry::Removes);
        assert_eq!(db.expire_due(10), 1);
        assert_eq!(effects(&mut db), ["DEL k"]);
    }

    #[test]
    fn a_watch_is_stale_after_a_change_or_an_expiry() {
        let mut db = Db::new();
        db.set(b"k", string("v"));
        let watch = db.watch(b"k");
        assert!(!db.is_stale(&watch));
        db.set(b"other", string("v"));
        assert!(!db.is_stale(&watch));
        db.set(b"k", string("w"));
        assert!(db.is_stale(&watch));
        db.unwatch(watch);
        db.set_expiry(b"k", Some(10));
        let watch = db.watch(b"k");
        db.set_time_us(11_000);
        assert!(db.is_stale(&watch));
    }

    #[test]
    fn only_awaited_keys_become_ready_and_only_once() {
        let mut db = Db::new();
        db.await_key(0, b"q");
        let list = || Value::List(Box::default());
        for key in ["a", "q", "q"] {
            db.set(key.as_bytes(), list());
        }
        assert_eq!(db.take_ready(), [(0, Blob::new(b"q"))]);
        // No client can be blocked on a string, or on a missing key.
        db.set(b"q", string("v"));
        db.remove(b"q");
        assert_eq!(db.take_ready(), []);
        db.release_key(0, b"q");
        db.set(b"q", list());
        assert_eq!(db.take_ready(), []);
    }
}
