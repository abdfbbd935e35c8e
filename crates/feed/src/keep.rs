//! How many entries the stream keeps, so that it takes a bounded amount of memory whatever their size.

/// Most entries.
const MOST: u64 = 100_000;
/// Fewest entries, however large they are.
pub(crate) const FEWEST: u64 = 5_000;
/// About how many bytes the stream may take.
const BYTES: u64 = 64 << 20;
/// The weight of the newest entry in the average.
const WEIGHT: f64 = 0.01;

/// The average size of entries lately.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    average: f64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { average: 500.0 }
    }
}

impl Sizes {
    /// Notes the size of an entry in bytes.
    pub(crate) fn note(&mut self, bytes: usize) {
        self.average += (bytes as f64 - self.average) * WEIGHT;
    }

    /// How many entries to keep.
    pub(crate) fn keep(&self) -> u64 {
        ((BYTES as f64 / self.average.max(1.0)) as u64).clamp(FEWEST, MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(sizes: impl IntoIterator<Item = usize>) -> u64 {
        let mut known = Sizes::default();
        sizes.into_iter().for_each(|bytes| known.note(bytes));
        known.keep()
    }

    #[test]
    fn small_entries_are_kept_by_number_and_large_ones_by_bytes() {
        assert_eq!(after([]), MOST);
        assert_eq!(after([300; 1_000]), MOST);
        let large = after([7_000; 1_000]);
        assert!((9_000..10_000).contains(&large), "{large}");
        assert_eq!(after([1 << 20; 1_000]), FEWEST);
        // A single large entry changes little.
        assert!(after([7_000]) > 90_000);
    }
}
