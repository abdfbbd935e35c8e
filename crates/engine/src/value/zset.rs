//! Sorted sets: members ordered by score, then by their bytes.
//!
//! Up to 128 members are one sorted vector. Larger sets are a [`Ranked`] tree, for ranges and
//! ranks, and a table from member to score. Every range (by rank, score or text) is first converted
//! to a range of ranks, see [`ZSet::ranks`].

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Range;

use super::ranked::{self, Ranked};
use crate::blob::Blob;
use crate::dict::Dict;

/// The maximum number of members of the small form.
pub(crate) const MAX_SMALL: usize = 128;
const MAX_SMALL_LEN: usize = 64;

/// A member with its score.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    /// The score, never NaN.
    pub(crate) score: f64,
    /// The member, unique in its set.
    pub(crate) member: Blob,
}

impl Item {
    fn order(&self, score: f64, member: &[u8]) -> Ordering {
        // Not `total_cmp`: 0 and -0 are equal.
        let by_score = self.score.partial_cmp(&score).unwrap_or(Ordering::Equal);
        by_score.then_with(|| (*self.member).cmp(member))
    }
}

/// A set ordered by score.
#[derive(Debug, Clone)]
pub(crate) struct ZSet(Form);

#[derive(Debug, Clone)]
enum Form {
    Small(Vec<Item>),
    Large { order: Ranked<Item>, scores: Dict<f64> },
}

impl Default for ZSet {
    fn default() -> Self {
        Self(Form::Small(Vec::new()))
    }
}

/// One bound of a range.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Bound<T> {
    /// Below all values.
    Lowest,
    /// Above all values.
    Highest,
    /// The value is part of the range.
    Including(T),
    /// The value is not part of the range.
    Excluding(T),
}

/// A range by score or by member.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Span {
    /// By score.
    Score(Bound<f64>, Bound<f64>),
    /// By the member's bytes; all scores are equal.
    Lex(Bound<Vec<u8>>, Bound<Vec<u8>>),
}

impl<T> Bound<T> {
    /// Whether a value is below a range with this lower bound.
    fn is_after<V: PartialOrd + ?Sized>(&self, value: &V) -> bool
    where
        T: Borrow<V>,
    {
        match self {
            Self::Lowest => false,
            Self::Highest => true,
            Self::Including(bound) => value < bound.borrow(),
            Self::Excluding(bound) => value <= bound.borrow(),
        }
    }

    /// Whether a value is not above a range with this upper bound.
    fn is_not_before<V: PartialOrd + ?Sized>(&self, value: &V) -> bool
    where
        T: Borrow<V>,
    {
        match self {
            Self::Lowest => false,
            Self::Highest => true,
            Self::Including(bound) => value <= bound.borrow(),
            Self::Excluding(bound) => value < bound.borrow(),
        }
    }
}

impl ZSet {
    /// An empty set in large form, for results of unknown size; see [`ZSet::compact`].
    pub(crate) fn large() -> Self {
        Self(Form::Large { order: Ranked::default(), scores: Dict::default() })
    }

    /// The number of members.
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Form::Small(items) => items.len(),
            Form::Large { order, .. } => order.len(),
        }
    }

    /// Whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of Redis's encoding.
    pub(crate) fn encoding(&self) -> &'static str {
        match self.0 {
            Form::Small(_) => "listpack",
            Form::Large { .. } => "skiplist",
        }
    }

    /// The score of a member.
    pub(crate) fn score(&self, member: &[u8]) -> Option<f64> {
        match &self.0 {
            Form::Small(items) => {
                items.iter().find(|item| *item.member == *member).map(|item| item.score)
            }
            Form::Large { scores, .. } => scores.get(member).copied(),
        }
    }

    /// Sets a member's score and returns the old one.
    pub(crate) fn set(&mut self, member: &[u8], score: f64) -> Option<f64> {
        let old = self.score(member);
        if let Some(old) = old {
            if old == score {
                return Some(old);
            }
            self.take(old, member);
        } else if self.len() >= MAX_SMALL || member.len() > MAX_SMALL_LEN {
            self.make_large();
        }
        let rank = self.partition_point(|item| item.order(score, member) == Ordering::Less);
        let item = Item { score, member: Blob::new(member) };
        match &mut self.0 {
            // Redis's small form stores integers, which have no -0.
            Form::Small(items) => items.insert(rank, Item { score: score + 0.0, ..item }),
            Form::Large { order, scores } => {
                order.insert(rank, item);
                scores.insert(member, score);
            }
        }
        old
    }

    /// Removes a member and returns its score.
    pub(crate) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let score = self.score(member)?;
        self.take(score, member);
        if let Form::Large { scores, .. } = &mut self.0 {
            scores.remove(member);
        }
        Some(score)
    }

    /// Removes the items of a range of ranks.
    pub(crate) fn remove_ranks(&mut self, ranks: Range<usize>) -> usize {
        let count = ranks.len();
        match &mut self.0 {
            Form::Small(items) => drop(items.drain(ranks)),
            Form::Large { order, scores } => {
                for _ in 0..count {
                    if let Some(item) = order.remove(ranks.start) {
                        scores.remove(&item.member);
                    }
                }
            }
        }
        count
    }

    /// A member's rank; the lowest score has rank 0.
    pub(crate) fn rank(&self, member: &[u8]) -> Option<usize> {
        let score = self.score(member)?;
        Some(self.partition_point(|item| item.order(score, member) == Ordering::Less))
    }

    /// The ranks of the items in a span; empty if the span is.
    pub(crate) fn ranks(&self, span: &Span) -> Range<usize> {
        let (start, end) = match span {
            Span::Score(min, max) => (
                self.partition_point(|item| min.is_after(&item.score)),
                self.partition_point(|item| max.is_not_before(&item.score)),
            ),
            Span::Lex(min, max) => (
                self.partition_point(|item| min.is_after(&*item.member)),
                self.partition_point(|item| max.is_not_before(&*item.member)),
            ),
        };
        start..end.max(start)
    }

    /// The items of a range of ranks, as a double-ended iterator.
    pub(crate) fn range(&self, ranks: Range<usize>) -> Iter<'_> {
        match &self.0 {
            Form::Small(items) => Iter::Small(items[ranks].iter()),
            Form::Large { order, .. } => Iter::Large(order.range(ranks)),
        }
    }

    /// All items in order.
    pub(crate) fn iter(&self) -> Iter<'_> {
        self.range(0..self.len())
    }

    /// Visits some items and returns the next cursor; small sets are visited whole.
    pub(crate) fn scan(&self, cursor: u64, mut visit: impl FnMut(&Blob, f64)) -> u64 {
        match &self.0 {
            Form::Small(items) => {
                items.iter().for_each(|item| visit(&item.member, item.score));
                0
            }
            Form::Large { scores, .. } => {
                scores.scan(cursor, |member, score| visit(member, *score))
            }
        }
    }

    /// Converts a set that a command has just built to the small form, where Redis does.
    pub(crate) fn compact(&mut self) {
        let fits = |item: &Item| item.member.len() <= MAX_SMALL_LEN;
        if self.len() <= MAX_SMALL && self.iter().all(fits) {
            let one_zero = |item: &Item| Item { score: item.score + 0.0, ..item.clone() };
            self.0 = Form::Small(self.iter().map(one_zero).collect());
        }
    }

    /// The approximate number of bytes on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        let texts: usize = self.iter().map(|item| item.member.heap_size()).sum();
        match &self.0 {
            Form::Small(items) => items.capacity() * size_of::<Item>() + texts,
            Form::Large { order, scores } => order.table_size() + scores.table_size() + 2 * texts,
        }
    }

    fn partition_point(&self, before: impl Fn(&Item) -> bool) -> usize {
        match &self.0 {
            Form::Small(items) => items.partition_point(before),
            Form::Large { order, .. } => order.partition_point(before),
        }
    }

    /// Removes an item from the order, but not from the table of scores.
    fn take(&mut self, score: f64, member: &[u8]) {
        let rank = self.partition_point(|item| item.order(score, member) == Ordering::Less);
        match &mut self.0 {
            Form::Small(items) => drop(items.remove(rank)),
            Form::Large { order, .. } => drop(order.remove(rank)),
        }
    }

    fn make_large(&mut self) {
        if let Form::Small(items) = &mut self.0 {
            let (mut order, mut scores) = (Ranked::default(), Dict::default());
            for (rank, item) in std::mem::take(items).into_iter().enumerate() {
                scores.insert(&item.member, item.score);
                order.insert(rank, item);
            }
            self.0 = Form::Large { order, scores };
        }
    }
}

/// An iterator in order of rank.
#[derive(Debug)]
pub(crate) enum Iter<'a> {
    /// Over a small set.
    Small(std::slice::Iter<'a, Item>),
    /// Over a large set.
    Large(ranked::Iter<'a, Item>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Item;

    fn next(&mut self) -> Option<&'a Item> {
        match self {
            Self::Small(items) => items.next(),
            Self::Large(items) => items.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Small(items) => items.size_hint(),
            Self::Large(items) => items.size_hint(),
        }
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Self::Small(items) => items.next_back(),
            Self::Large(items) => items.next_back(),
        }
    }
}

impl ExactSizeIterator for Iter<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(count: usize) -> ZSet {
        let mut set = ZSet::default();
        for number in 0..count {
            set.set(format!("m{number}").as_bytes(), (number * 7919 % count) as f64);
        }
        set
    }

    #[test]
    fn ranks_and_scores_agree_in_both_forms() {
        for count in [100, 5000] {
            let set = filled(count);
            assert_eq!(set.len(), count);
            for (rank, item) in set.iter().enumerate() {
                assert_eq!(item.score, rank as f64);
                assert_eq!(set.rank(&item.member), Some(rank));
            }
            let span = Span::Score(Bound::Excluding(10.0), Bound::Including(20.0));
            assert_eq!(set.ranks(&span), 11..21);
        }
    }

    #[test]
    fn a_range_of_ranks_is_removed_in_both_forms() {
        for count in [100, 5000] {
            let mut set = filled(count);
            assert_eq!(set.remove_ranks(10..60), 50);
            assert_eq!(set.len(), count - 50);
            assert_eq!(set.range(10..11).next().map(|item| item.score), Some(60.0));
            assert_eq!(set.remove(b"m0"), Some(0.0));
        }
    }

    #[test]
    fn a_changed_score_moves_the_member() {
        let mut set = filled(1000);
        assert_eq!(set.set(b"m0", 1e9), Some(0.0));
        assert_eq!(set.rank(b"m0"), Some(999));
        assert_eq!(set.len(), 1000);
    }
}
