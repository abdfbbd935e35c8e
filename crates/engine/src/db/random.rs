//! A random generator for `SPOP`, `RANDOMKEY` and similar commands; not for secrets.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new() -> Self {
        Self(RandomState::new().hash_one(0))
    }

    /// A number below `limit`, which must not be 0 (SplitMix64; the bias is below 2⁻³²).
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * limit as u128) >> 64) as usize
    }
}
