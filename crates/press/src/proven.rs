//! Templates that have made a ticket in a process with limits, so that this process is trusted with them.
//!
//! Kept apart from the compiled templates: those are forgotten when memory is short, and read again from the store. A
//! template that is proven need not prove itself again then.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

/// Templates that are remembered: about 1 MB.
const REMEMBERED: usize = 4_096;

/// The proven templates, by their key.
#[derive(Default)]
pub(crate) struct Proven {
    keys: Mutex<Keys>,
}

#[derive(Default)]
struct Keys {
    all: HashSet<Arc<str>>,
    /// The one proven first is first.
    in_order: VecDeque<Arc<str>>,
}

impl Proven {
    /// Whether a template is proven.
    pub(crate) fn contains(&self, key: &str) -> bool {
        self.keys.lock().all.contains(key)
    }

    /// Notes that a template is proven. Beyond a limit, those that were proven first are forgotten.
    pub(crate) fn insert(&self, key: &Arc<str>) {
        let mut keys = self.keys.lock();
        if !keys.all.insert(key.clone()) {
            return;
        }
        keys.in_order.push_back(key.clone());
        if keys.in_order.len() > REMEMBERED
            && let Some(first) = keys.in_order.pop_front()
        {
            keys.all.remove(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_templates_are_remembered_as_the_limit_says() {
        let proven = Proven::default();
        for number in 0..=REMEMBERED {
            proven.insert(&number.to_string().into());
            proven.insert(&number.to_string().into());
        }
        assert!(!proven.contains("0") && proven.contains("1"));
        assert!(proven.contains(&REMEMBERED.to_string()));
        assert_eq!(proven.keys.lock().all.len(), REMEMBERED);
    }
}
