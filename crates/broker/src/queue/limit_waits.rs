//! How often this process had to wait for rate limits, for metrics.
//!
//! A wait follows a call of Redis, so that a lock does not matter here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kinds of limits that are told apart; waits for others are counted as one kind.
const MOST: usize = 32;
/// That kind.
const OTHER: &str = "other";

/// Waits by the kind of their limit: the part of its name before the first colon. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct LimitWaits(Arc<Mutex<BTreeMap<String, u64>>>);

impl LimitWaits {
    pub(crate) fn count(&self, limit: &str) {
        let kind = limit.split(':').next().unwrap_or(OTHER);
        let mut kinds = self.lock();
        if let Some(count) = kinds.get_mut(kind) {
            *count += 1;
            return;
        }
        let kind = if kinds.len() < MOST { kind } else { OTHER };
        *kinds.entry(kind.to_owned()).or_default() += 1;
    }

    pub(crate) fn by_kind(&self) -> BTreeMap<String, u64> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_by_kind_and_kinds_are_limited() {
        let waits = LimitWaits::default();
        ["queue:mails", "queue:tickets", "day:7", "plain"]
            .iter()
            .for_each(|name| waits.count(name));
        let counted = waits.by_kind();
        assert_eq!((counted["queue"], counted["day"], counted["plain"]), (2, 1, 1));
        (0..100).for_each(|n| waits.count(&format!("made-up-{n}:x")));
        let counted = waits.by_kind();
        assert_eq!((counted.len(), counted["other"]), (MOST + 1, 71));
    }
}
