//! Places for downloads of whole batches: few, and shared fairly by the owners of the batches.
//!
//! An owner has two places. More are given to the same owner only while at least half of all are free: a lone organiser
//! whose guests open links at the same time gets half of the places, and one client that reads slowly leaves the other
//! half to other organisers. Who reads counts less than whose batch it is: links have no user, and may all come from one cache.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Places that an owner has, however few are free.
const OF_ONE_OWNER: usize = 2;

/// The places of a node. Clones share them.
#[derive(Clone)]
pub(crate) struct Places {
    all: usize,
    taken: Taken,
}

/// Places that are taken, by owner.
type Taken = Arc<Mutex<HashMap<String, usize>>>;

/// A place, which is free again when it is dropped.
pub(crate) struct Place {
    taken: Taken,
    owner: String,
}

impl Places {
    /// So many places.
    pub(crate) fn new(all: usize) -> Self {
        Self { all, taken: Taken::default() }
    }

    /// A place for a batch of this owner, if there is one.
    pub(crate) fn take(&self, owner: &str) -> Option<Place> {
        let mut taken = self.taken.lock();
        let free = self.all.saturating_sub(taken.values().sum());
        let own = taken.get(owner).copied().unwrap_or_default();
        let is_within_share = own < OF_ONE_OWNER || free > self.all / 2;
        if free == 0 || !is_within_share {
            return None;
        }
        *taken.entry(owner.to_owned()).or_default() += 1;
        Some(Place { taken: self.taken.clone(), owner: owner.to_owned() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        if let Some(count) = taken.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_of(places: &Places, owner: &str) -> Vec<Place> {
        std::iter::from_fn(|| places.take(owner)).collect()
    }

    #[test]
    fn one_owner_leaves_half_of_the_places_to_others() {
        let places = Places::new(16);
        let anns = all_of(&places, "ann");
        assert_eq!(anns.len(), 8);
        let others: Vec<_> =
            ["bob", "eve", "joe", "zoe"].map(|owner| all_of(&places, owner)).into();
        assert!(others.iter().all(|places| places.len() == OF_ONE_OWNER));
        assert!(places.take("max").is_none());
        drop(anns);
        assert_eq!(all_of(&places, "max").len(), OF_ONE_OWNER, "half of all are taken by others");
        drop(others);
        assert!(places.taken.lock().is_empty());
        assert_eq!(all_of(&Places::new(1), "ann").len(), 1);
    }
}
