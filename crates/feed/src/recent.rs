//! Drops events that come twice: a relay that died before it settled its rows may have told them already.

use std::collections::{HashSet, VecDeque};

/// Ids that are remembered: more than a relay appends between two settlements.
const REMEMBERED: usize = 2_000;

/// The ids of the last events.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    known: HashSet<String>,
    order: VecDeque<String>,
}

impl Recent {
    /// Remembers an id; `false`: it was known already.
    pub(crate) fn is_new(&mut self, id: &str) -> bool {
        if !self.known.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_and_the_oldest_are_forgotten() {
        let mut recent = Recent::default();
        assert!(recent.is_new("a"));
        assert!(!recent.is_new("a"));
        for n in 0..REMEMBERED {
            assert!(recent.is_new(&n.to_string()));
        }
        assert!(recent.is_new("a"));
        assert_eq!(recent.known.len(), REMEMBERED);
    }
}
