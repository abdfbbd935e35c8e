//! Which keys were asked for most during the last 24 hours, in bounded memory.
//!
//! There is a slice of counters for each hour. A slice has at most 512 counters: a new key takes the place of the smallest, and
//! its count goes on from there ("space-saving", Metwally and others, 2005). So a count is never too low, and a key that made up
//! more than 1/512 of an hour's requests is always in its slice.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

const SLICE: Duration = Duration::from_secs(3_600);
const SLICES: u64 = 24;
/// Counters of a slice.
const COUNTERS: usize = 512;

/// Counts keys.
#[derive(Debug)]
pub struct Popular<K> {
    start: Instant,
    /// The newest slice last, each with its hour since the start.
    slices: VecDeque<(u64, HashMap<K, u64>)>,
}

impl<K: Hash + Eq + Ord + Clone> Popular<K> {
    /// Begins to count.
    pub fn new(now: Instant) -> Self {
        Self { start: now, slices: VecDeque::new() }
    }

    /// Counts a key.
    pub fn count(&mut self, key: &K, now: Instant) {
        let hour = self.forget(now);
        if self.slices.back().is_none_or(|(newest, _)| *newest < hour) {
            self.slices.push_back((hour, HashMap::new()));
        }
        let Some((_, counters)) = self.slices.back_mut() else { return };
        if let Some(count) = counters.get_mut(key) {
            *count += 1;
            return;
        }
        let mut before = 0;
        if counters.len() >= COUNTERS
            && let Some((smallest, count)) = counters.iter().min_by_key(|(_, count)| **count)
        {
            before = *count;
            let smallest = smallest.clone();
            counters.remove(&smallest);
        }
        counters.insert(key.clone(), before + 1);
    }

    /// The keys that were counted most, the first one most often, and each at least `least` times. Keys with the same count are
    /// in their own order.
    pub fn top(&mut self, most: usize, least: u64, now: Instant) -> Vec<K> {
        self.forget(now);
        let mut sums: HashMap<&K, u64> = HashMap::new();
        for (key, count) in self.slices.iter().flat_map(|(_, counters)| counters) {
            *sums.entry(key).or_default() += count;
        }
        let mut sorted: Vec<(&K, u64)> =
            sums.into_iter().filter(|(_, sum)| *sum >= least).collect();
        sorted.sort_unstable_by(|(a, more), (b, less)| less.cmp(more).then(a.cmp(b)));
        sorted.into_iter().take(most).map(|(key, _)| key.clone()).collect()
    }

    /// Forgets slices that are too old. Returns the present hour.
    fn forget(&mut self, now: Instant) -> u64 {
        let hour = now.saturating_duration_since(self.start).as_secs() / SLICE.as_secs();
        while self.slices.front().is_some_and(|(oldest, _)| oldest + SLICES <= hour) {
            self.slices.pop_front();
        }
        hour
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_by_how_often_they_were_asked_for() {
        let now = Instant::now();
        let mut popular = Popular::new(now);
        for (key, times) in [("b", 2), ("a", 2), ("often", 5), ("once", 1)] {
            (0..times).for_each(|_| popular.count(&key, now));
        }
        assert_eq!(popular.top(3, 1, now), ["often", "a", "b"]);
        assert_eq!(popular.top(100, 1, now).len(), 4);
        assert_eq!(popular.top(100, 2, now), ["often", "a", "b"]);
    }

    #[test]
    fn keys_are_forgotten_after_a_day() {
        let start = Instant::now();
        let mut popular = Popular::new(start);
        (0..10).for_each(|_| popular.count(&"yesterday", start));
        popular.count(&"later", start + SLICE);
        assert_eq!(popular.top(9, 1, start + 23 * SLICE), ["yesterday", "later"]);
        assert_eq!(popular.top(9, 1, start + 24 * SLICE), ["later"]);
        assert_eq!(popular.top(9, 1, start + 25 * SLICE), [""; 0]);
        popular.count(&"new", start + 1_000 * SLICE);
        assert_eq!(popular.top(9, 1, start + 1_000 * SLICE), ["new"]);
    }

    #[test]
    fn a_flood_of_different_keys_takes_no_more_memory_and_hides_no_popular_key() {
        let now = Instant::now();
        let mut popular = Popular::new(now);
        let mut random = 7_u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Every eighth request is for one of five keys.
            let key = if random >> 61 == 0 { (random >> 40) % 5 } else { random };
            popular.count(&key, now);
        }
        assert_eq!(
            popular.slices.iter().map(|(_, counters)| counters.len()).sum::<usize>(),
            COUNTERS
        );
        let mut top = popular.top(5, 1, now);
        top.sort_unstable();
        assert_eq!(top, [0, 1, 2, 3, 4]);
    }
}
