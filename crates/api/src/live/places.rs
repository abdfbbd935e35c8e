//! How many streams there may be: of one key, and on one node.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use stampede_model::Principal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Streams of a node. A node serves 4,096 connections, so requests find one even if all streams are taken.
const PER_NODE: usize = 2_000;
/// Streams of a key, or of a user without a key.
const PER_KEY: usize = 50;

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// The key has too many streams.
    Key,
    /// The node has too many streams.
    Node,
}

/// The places of a node. Clones share them.
#[derive(Clone)]
pub(super) struct Places {
    all: Arc<Semaphore>,
    taken: Taken,
}

/// Streams by key.
type Taken = Arc<Mutex<HashMap<String, usize>>>;

impl Default for Places {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(PER_NODE)), taken: Taken::default() }
    }
}

/// A place, which is free again when it is dropped.
pub(crate) struct Place {
    _of_node: OwnedSemaphorePermit,
    taken: Taken,
    key: String,
}

impl Places {
    /// Takes a place.
    pub(super) fn take(&self, caller: &Principal) -> Result<Place, Full> {
        let key = match caller.key {
            Some(key) => format!("key:{key}"),
            None => format!("user:{}", caller.user),
        };
        let of_node = self.all.clone().try_acquire_owned().map_err(|_| Full::Node)?;
        let mut taken = self.taken.lock();
        let count = taken.entry(key.clone()).or_default();
        if *count >= PER_KEY {
            return Err(Full::Key);
        }
        *count += 1;
        Ok(Place { _of_node: of_node, taken: self.taken.clone(), key })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        if let Some(count) = taken.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use stampede_model::Role;

    use super::*;

    #[test]
    fn a_key_has_its_share_and_a_node_its_limit() {
        let places = Places::default();
        let user = |n: usize| Principal::new(format!("u{n}"), Role::Viewer);
        let mut held: Vec<Place> =
            (0..PER_KEY).map(|_| places.take(&user(0)).ok().unwrap()).collect();
        assert_eq!(places.take(&user(0)).err(), Some(Full::Key));
        held.pop();
        held.push(places.take(&user(0)).ok().unwrap());
        for n in 1..PER_NODE / PER_KEY {
            held.extend((0..PER_KEY).map(|_| places.take(&user(n)).ok().unwrap()));
        }
        assert_eq!(places.take(&user(9_999)).err(), Some(Full::Node));
        held.clear();
        assert!(places.taken.lock().is_empty());
        assert!(places.take(&user(9_999)).is_ok());
    }
}
