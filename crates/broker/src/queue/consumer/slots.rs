//! The slots of a consumer: how many there are, and which are free.

use std::collections::BTreeSet;

/// A slot without a job.
pub(super) struct FreeSlot {
    pub(super) number: usize,
    pub(super) residue: Residue,
}

/// What may still be locked for a slot that has no job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Residue {
    /// Nothing.
    None,
    /// Perhaps a job: an answer of Redis was lost, and may have contained one.
    MaybeLocked,
    /// A job that could not be ended. It goes back to wait; if that happens to it again and again, it is failed.
    Unfinishable,
}

/// The slots there are, busy or free. Their numbers are small: they are part of lock tokens.
#[derive(Default)]
pub(super) struct Slots {
    numbers: BTreeSet<usize>,
    pub(super) free: Vec<FreeSlot>,
}

impl Slots {
    /// Makes new slots up to `count` and removes free ones beyond it.
    pub(super) fn resize(&mut self, count: usize) {
        for number in (0..count).rev() {
            if self.numbers.insert(number) {
                self.free.push(FreeSlot { number, residue: Residue::None });
            }
        }
        // A slot that may hold a lock stays until that is known.
        let (keep, go) = std::mem::take(&mut self.free)
            .into_iter()
            .partition(|slot| slot.number < count || slot.residue != Residue::None);
        self.free = keep;
        let go: Vec<FreeSlot> = go;
        for slot in go {
            self.numbers.remove(&slot.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_grow_and_shrink_and_keep_their_numbers_small() {
        let mut slots = Slots::default();
        slots.resize(3);
        let taken = slots.free.pop().unwrap();
        assert_eq!(taken.number, 0);
        slots.resize(1);
        assert!(slots.free.is_empty(), "free slots are removed, busy ones end first");
        slots.free.push(taken);
        slots.resize(2);
        let numbers: Vec<usize> = slots.free.iter().map(|slot| slot.number).collect();
        assert_eq!(numbers, [0, 1]);
        slots.free.push(FreeSlot { number: 7, residue: Residue::MaybeLocked });
        slots.numbers.insert(7);
        slots.resize(0);
        assert_eq!(slots.free.len(), 1, "a slot that may hold a lock stays until that is known");
    }
}
