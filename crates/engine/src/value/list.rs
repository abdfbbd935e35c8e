//! Lists: a ring buffer of strings.
//!
//! Both ends and any index are reached in constant time. An edit in the middle moves the shorter
//! side, 24 bytes per element; finding the place to edit costs as much.

use std::collections::VecDeque;

use crate::blob::Blob;

/// An end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The head.
    Left,
    /// The tail.
    Right,
}

/// A double-ended list of strings.
#[derive(Debug, Clone, Default)]
pub(crate) struct List(VecDeque<Blob>);

impl List {
    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds an element at one end.
    pub(crate) fn push(&mut self, end: End, element: Blob) {
        match end {
            End::Left => self.0.push_front(element),
            End::Right => self.0.push_back(element),
        }
    }

    /// Removes and returns the element at one end.
    pub(crate) fn pop(&mut self, end: End) -> Option<Blob> {
        let element = match end {
            End::Left => self.0.pop_front(),
            End::Right => self.0.pop_back(),
        };
        self.give_back();
        element
    }

    /// The element at an index; negative indexes count from the tail.
    pub(crate) fn get(&self, index: i64) -> Option<&Blob> {
        self.0.get(self.position(index)?)
    }

    /// The element at an index, mutable; negative indexes count from the tail.
    pub(crate) fn get_mut(&mut self, index: i64) -> Option<&mut Blob> {
        let position = self.position(index)?;
        self.0.get_mut(position)
    }

    /// All elements from head to tail.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Blob> + ExactSizeIterator {
        self.0.iter()
    }

    /// The elements at a range of positions within the list.
    pub(crate) fn range(
        &self,
        range: std::ops::Range<usize>,
    ) -> impl ExactSizeIterator<Item = &Blob> {
        self.0.range(range)
    }

    /// Keeps only a range of positions within the list.
    pub(crate) fn keep(&mut self, range: std::ops::Range<usize>) {
        self.0.truncate(range.end);
        self.0.drain(..range.start);
        self.give_back();
    }

    /// Inserts an element before a position.
    pub(crate) fn insert(&mut self, position: usize, element: Blob) {
        self.0.insert(position, element);
    }

    /// Removes up to `most` elements equal to `element`, searching from one end.
    pub(crate) fn remove_equal(&mut self, element: &[u8], from: End, most: usize) -> usize {
        let equal =
            |(position, candidate): (usize, &Blob)| (**candidate == *element).then_some(position);
        let mut positions: Vec<usize> = match from {
            End::Left => self.0.iter().enumerate().filter_map(equal).take(most).collect(),
            End::Right => self.0.iter().enumerate().rev().filter_map(equal).take(most).collect(),
        };
        match positions[..] {
            [] => {}
            // The usual case: one match, so only the shorter side moves.
            [position] => drop(self.0.remove(position)),
            _ => {
                positions.sort_unstable();
                let (mut position, mut doomed) = (0, positions.iter().peekable());
                self.0.retain(|_| {
                    let keep = doomed.next_if(|at| **at == position).is_none();
                    position += 1;
                    keep
                });
            }
        }
        self.give_back();
        positions.len()
    }

    /// The approximate number of bytes on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        self.0.capacity() * size_of::<Blob>() + self.0.iter().map(Blob::heap_size).sum::<usize>()
    }

    fn position(&self, index: i64) -> Option<usize> {
        let index = if index < 0 { index.checked_add(self.0.len() as i64)? } else { index };
        usize::try_from(index).ok()
    }

    /// Frees memory once a long list has become short.
    fn give_back(&mut self) {
        if self.0.capacity() > 64 && self.0.len() * 8 < self.0.capacity() {
            self.0.shrink_to(self.0.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> List {
        List(text.bytes().map(|byte| Blob::new(&[byte])).collect())
    }

    fn text(list: &List) -> String {
        list.iter().map(|element| char::from(element[0])).collect()
    }

    #[test]
    fn equal_elements_are_removed_from_the_end_that_was_asked_for() {
        for (from, most, expected, removed) in [
            (End::Left, 2, "bcbca", 2),
            (End::Right, 2, "abcbc", 2),
            (End::Left, usize::MAX, "bcbc", 3),
            (End::Right, 1, "abcabc", 1),
        ] {
            let mut list = list("abcabca");
            assert_eq!(list.remove_equal(b"a", from, most), removed);
            assert_eq!(text(&list), expected);
        }
    }

    #[test]
    fn indexes_count_from_both_ends() {
        let list = list("abc");
        assert_eq!(list.get(-1).map(|e| &**e), Some(&b"c"[..]));
        assert_eq!(list.get(-4), None);
        assert_eq!(list.get(3), None);
    }
}
