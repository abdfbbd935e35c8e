//! A counted B+ tree: a sequence with O(log n) access by rank, used by large sorted sets.
//!
//! Every inner node stores the number of items below each child, so access, insertion and removal at a
//! rank take O(log n). The caller keeps the order and finds ranks with [`Ranked::partition_point`]; a
//! range by score or by text is then a range of ranks.
//!
//! ```text
//!            inner [3 | 2 | 3]           count per child
//!           ╱       │       ╲
//!      [a b c]    [d e]    [f g h]       leaves, all at the same depth
//! ```

use std::ops::Range;

const LEAF: usize = 64;
const FAN: usize = 32;

/// A sequence of items with access by rank.
#[derive(Debug, Clone)]
pub(crate) struct Ranked<T> {
    root: Node<T>,
    len: usize,
}

#[derive(Debug, Clone)]
enum Node<T> {
    Leaf(Vec<T>),
    Inner(Vec<Child<T>>),
}

#[derive(Debug, Clone)]
struct Child<T> {
    count: usize,
    node: Node<T>,
}

impl<T> Default for Ranked<T> {
    fn default() -> Self {
        Self { root: Node::Leaf(Vec::new()), len: 0 }
    }
}

impl<T> Ranked<T> {
    /// The number of items.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The number of leading items that satisfy `before`, which must hold for a prefix only.
    pub(crate) fn partition_point(&self, before: impl Fn(&T) -> bool) -> usize {
        let (mut node, mut rank) = (&self.root, 0);
        loop {
            match node {
                Node::Leaf(items) => return rank + items.partition_point(&before),
                Node::Inner(children) => {
                    let after =
                        children.partition_point(|child| child.node.first().is_some_and(&before));
                    let Some(at) = after.checked_sub(1) else { return rank };
                    rank += children[..at].iter().map(|child| child.count).sum::<usize>();
                    node = &children[at].node;
                }
            }
        }
    }

    /// Inserts an item at a rank, at most `len()`.
    pub(crate) fn insert(&mut self, rank: usize, item: T) {
        self.len += 1;
        if let Some(right) = self.root.insert(rank, item) {
            let left = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
            self.root = Node::Inner(vec![Child::new(left), Child::new(right)]);
        }
    }

    /// Removes the item at a rank below `len()`.
    pub(crate) fn remove(&mut self, rank: usize) -> Option<T> {
        if rank >= self.len {
            return None;
        }
        let item = self.root.remove(rank)?;
        self.len -= 1;
        while let Node::Inner(children) = &mut self.root
            && children.len() <= 1
        {
            self.root = children.pop().map_or(Node::Leaf(Vec::new()), |child| child.node);
        }
        Some(item)
    }

    /// The items of a range of ranks, as a double-ended iterator.
    pub(crate) fn range(&self, range: Range<usize>) -> Iter<'_, T> {
        let end = range.end.min(self.len);
        Iter { tree: self, front: range.start.min(end), back: end, head: (&[], 0), tail: (&[], 0) }
    }

    /// The size of all leaves in bytes, without the items' own allocations.
    pub(crate) fn table_size(&self) -> usize {
        self.len * size_of::<T>() * 5 / 4
    }

    /// The leaf that holds a rank, and the rank of its first item.
    fn leaf_at(&self, rank: usize) -> Option<(&[T], usize)> {
        if rank >= self.len {
            return None;
        }
        let (mut node, mut start) = (&self.root, 0);
        loop {
            match node {
                Node::Leaf(items) => return Some((items, start)),
                Node::Inner(children) => {
                    let mut at = 0;
                    while rank >= start + children[at].count {
                        start += children[at].count;
                        at += 1;
                    }
                    node = &children[at].node;
                }
            }
        }
    }
}

impl<T> Child<T> {
    fn new(node: Node<T>) -> Self {
        Self { count: node.count(), node }
    }
}

impl<T> Node<T> {
    fn count(&self) -> usize {
        match self {
            Self::Leaf(items) => items.len(),
            Self::Inner(children) => children.iter().map(|child| child.count).sum(),
        }
    }

    fn first(&self) -> Option<&T> {
        match self {
            Self::Leaf(items) => items.first(),
            Self::Inner(children) => children.first()?.node.first(),
        }
    }

    /// Inserts an item; returns the right half if the node had to split.
    fn insert(&mut self, rank: usize, item: T) -> Option<Self> {
        match self {
            Self::Leaf(items) => {
                items.insert(rank, item);
                // Items inserted in order leave full leaves.
                let cut = if rank + 1 == items.len() { items.len() - 1 } else { items.len() / 2 };
                (items.len() > LEAF).then(|| Self::Leaf(items.split_off(cut)))
            }
            Self::Inner(children) => {
                let (mut at, mut rank) = (0, rank);
                while rank > children[at].count {
                    rank -= children[at].count;
                    at += 1;
                }
                children[at].count += 1;
                let right = Child::new(children[at].node.insert(rank, item)?);
                children[at].count -= right.count;
                children.insert(at + 1, right);
                let cut = if at + 2 == children.len() { children.len() - 1 } else { FAN / 2 };
                (children.len() > FAN).then(|| Self::Inner(children.split_off(cut)))
            }
        }
    }

    fn remove(&mut self, rank: usize) -> Option<T> {
        match self {
            Self::Leaf(items) => (rank < items.len()).then(|| items.remove(rank)),
            Self::Inner(children) => {
                let (mut at, mut rank) = (0, rank);
                while rank >= children[at].count {
                    rank -= children[at].count;
                    at += 1;
                }
                let item = children[at].node.remove(rank)?;
                children[at].count -= 1;
                rebalance(children, at);
                Some(item)
            }
        }
    }

    fn width(&self) -> usize {
        match self {
            Self::Leaf(items) => items.len(),
            Self::Inner(children) => children.len(),
        }
    }

    fn append(&mut self, other: Self) {
        match (self, other) {
            (Self::Leaf(items), Self::Leaf(mut more)) => items.append(&mut more),
            (Self::Inner(children), Self::Inner(mut more)) => children.append(&mut more),
            // Siblings are of one kind, because all leaves have the same depth.
            _ => {}
        }
    }
}

/// Removes a child that became empty, or merges one that became small with its neighbour.
fn rebalance<T>(children: &mut Vec<Child<T>>, at: usize) {
    if children[at].count == 0 {
        children.remove(at);
        return;
    }
    let most = if matches!(children[at].node, Node::Leaf(_)) { LEAF } else { FAN };
    if children[at].node.width() * 4 >= most || children.len() < 2 {
        return;
    }
    let left = at.min(children.len() - 2);
    if children[left].node.width() + children[left + 1].node.width() <= most * 3 / 4 {
        let right = children.remove(left + 1);
        children[left].count += right.count;
        children[left].node.append(right.node);
    }
}

/// An iterator over a range of ranks.
#[derive(Debug)]
pub(crate) struct Iter<'a, T> {
    tree: &'a Ranked<T>,
    front: usize,
    back: usize,
    /// The leaf at each end and the rank of its first item.
    head: (&'a [T], usize),
    tail: (&'a [T], usize),
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        if self.front >= self.back {
            return None;
        }
        let (leaf, start) = self.head;
        if !(start..start + leaf.len()).contains(&self.front) {
            self.head = self.tree.leaf_at(self.front)?;
        }
        let (leaf, start) = self.head;
        self.front += 1;
        leaf.get(self.front - 1 - start)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.back.saturating_sub(self.front);
        (len, Some(len))
    }
}

impl<T> DoubleEndedIterator for Iter<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.front >= self.back {
            return None;
        }
        self.back -= 1;
        let (leaf, start) = self.tail;
        if !(start..start + leaf.len()).contains(&self.back) {
            self.tail = self.tree.leaf_at(self.back)?;
        }
        let (leaf, start) = self.tail;
        leaf.get(self.back - start)
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_a_vector_under_random_edits() {
        let mut tree = Ranked::default();
        let mut model: Vec<u64> = Vec::new();
        let mut state = 7_u64;
        for round in 0..40_000_u64 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let random = (state >> 33) as usize;
            if model.is_empty() || random % 10 < if round < 20_000 { 7 } else { 3 } {
                let rank = (random / 10) % (model.len() + 1);
                tree.insert(rank, round);
                model.insert(rank, round);
            } else {
                let rank = (random / 10) % model.len();
                assert_eq!(tree.remove(rank), Some(model.remove(rank)));
            }
            assert_eq!(tree.len(), model.len());
            if round % 1000 == 0 {
                assert!(tree.range(0..model.len()).eq(model.iter()));
                assert!(tree.range(0..model.len()).rev().eq(model.iter().rev()));
                let middle = model.len() / 3..model.len() / 2;
                assert!(tree.range(middle.clone()).eq(model[middle].iter()));
            }
        }
    }

    #[test]
    fn a_partition_point_is_found_in_a_sorted_sequence() {
        let mut tree = Ranked::default();
        for number in 0..5000 {
            tree.insert(number, number * 2);
        }
        for limit in [0, 1, 2, 777, 5000, 9999, 10_001] {
            assert_eq!(tree.partition_point(|item| *item < limit), limit.div_ceil(2).min(5000));
        }
        assert_eq!(tree.range(2500..2501).next(), Some(&5000));
        assert_eq!(tree.range(5000..5000).next(), None);
    }
}
