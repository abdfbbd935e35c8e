//! How many streams there may be: of one key, of one user, and on one node; and sockets whose key is not known yet.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use stampede_model::Principal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Streams of a node. A node serves 4,096 connections, so requests find one even if all streams are taken.
const PER_NODE: usize = 2_000;
/// Streams of a key, or of a user without a key.
const PER_KEY: usize = 50;
/// Streams of a user, with whatever keys.
const PER_USER: usize = 200;
/// Sockets of a node that have not told their key. Each has ten seconds for it.
const STRANGERS: usize = 256;
/// Those of one address.
const STRANGERS_PER_ADDRESS: usize = 32;

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// The key, or its user, has too many streams.
    Key,
    /// The node has too many streams.
    Node,
}

/// The places of a node. Clones share them.
#[derive(Clone)]
pub(super) struct Places {
    streams: Pool,
    strangers: Pool,
}

/// A number of places, of which everybody has a share.
#[derive(Clone)]
struct Pool {
    all: Arc<Semaphore>,
    taken: Taken,
}

/// Places by who has them.
type Taken = Arc<Mutex<HashMap<String, usize>>>;

impl Default for Places {
    fn default() -> Self {
        Self { streams: Pool::new(PER_NODE), strangers: Pool::new(STRANGERS) }
    }
}

/// A place, which is free again when it is dropped.
pub(crate) struct Place {
    _of_node: OwnedSemaphorePermit,
    taken: Taken,
    holders: Vec<String>,
}

impl Places {
    /// Takes a place for a stream.
    pub(super) fn take(&self, caller: &Principal) -> Result<Place, Full> {
        let key = match caller.key {
            Some(key) => format!("key:{key}"),
            None => format!("keyless:{}", caller.user),
        };
        self.streams.take(vec![(key, PER_KEY), (format!("user:{}", caller.user), PER_USER)])
    }

    /// Takes a place for a socket whose key is not known yet.
    pub(super) fn take_as_stranger(&self, from: Option<IpAddr>) -> Result<Place, Full> {
        let holder = from.map(|from| (from.to_string(), STRANGERS_PER_ADDRESS));
        self.strangers.take(holder.into_iter().collect())
    }
}

impl Pool {
    fn new(places: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(places)), taken: Taken::default() }
    }

    /// Takes a place of holders that each have fewer than their share.
    fn take(&self, holders: Vec<(String, usize)>) -> Result<Place, Full> {
        let of_node = self.all.clone().try_acquire_owned().map_err(|_| Full::Node)?;
        let mut taken = self.taken.lock();
        let has = |holder: &String| taken.get(holder).copied().unwrap_or_default();
        if holders.iter().any(|(holder, share)| has(holder) >= *share) {
            return Err(Full::Key);
        }
        let holders: Vec<String> = holders.into_iter().map(|(holder, _)| holder).collect();
        for holder in &holders {
            *taken.entry(holder.clone()).or_default() += 1;
        }
        Ok(Place { _of_node: of_node, taken: self.taken.clone(), holders })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        for holder in &self.holders {
            if let Some(count) = taken.get_mut(holder) {
                *count -= 1;
                if *count == 0 {
                    taken.remove(holder);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use stampede_model::{KeyId, Role};

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
        assert!(places.streams.taken.lock().is_empty());
        assert!(places.take(&user(9_999)).is_ok());
    }

    #[test]
    fn a_user_with_many_keys_has_no_more_than_its_share() {
        let places = Places::default();
        let with_key = || {
            let mut caller = Principal::new("ann", Role::Viewer);
            caller.key = Some(KeyId::generate());
            caller
        };
        let held: Vec<Place> =
            (0..PER_USER).map(|_| places.take(&with_key()).ok().unwrap()).collect();
        assert_eq!(places.take(&with_key()).err(), Some(Full::Key));
        assert!(places.take(&Principal::new("bob", Role::Viewer)).is_ok());
        drop(held);
        assert!(places.take(&with_key()).is_ok());
    }

    #[test]
    fn strangers_have_a_pool_of_their_own_and_each_address_a_share() {
        let places = Places::default();
        let from = |n: usize| Some(Ipv4Addr::from(n as u32).into());
        let mut held: Vec<Place> = (0..STRANGERS_PER_ADDRESS)
            .map(|_| places.take_as_stranger(from(0)).ok().unwrap())
            .collect();
        assert_eq!(places.take_as_stranger(from(0)).err(), Some(Full::Key));
        while held.len() < STRANGERS {
            held.push(places.take_as_stranger(from(held.len())).ok().unwrap());
        }
        assert_eq!(places.take_as_stranger(from(9_999)).err(), Some(Full::Node));
        assert!(places.take(&Principal::new("ann", Role::Viewer)).is_ok(), "streams have theirs");
        held.clear();
        assert!(places.take_as_stranger(from(0)).is_ok());
    }
}
