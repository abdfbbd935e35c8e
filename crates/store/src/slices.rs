//! Parts of lists that are sorted by id: ids begin with the time they were made, so such a list is sorted by age.

use stampede_model::Timestamp;

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sorted {
    /// The newest record first.
    #[default]
    NewestFirst,
    /// The oldest record first.
    OldestFirst,
}

/// A part of a list. Records that are added meanwhile do not move the others: the next part begins after the last record of
/// the one before, not at a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice<I> {
    /// The last record of the part before.
    pub after: Option<I>,
    /// Only records that were made at this moment or later.
    pub from: Option<Timestamp>,
    /// Only records that were made before this moment.
    pub to: Option<Timestamp>,
    /// The order.
    pub sorted: Sorted,
    /// Most records of the part.
    pub limit: u32,
}

impl<I> Slice<I> {
    /// A part of the whole list.
    pub fn new(sorted: Sorted, after: Option<I>, limit: u32) -> Self {
        Self { after, from: None, to: None, sorted, limit }
    }
}
