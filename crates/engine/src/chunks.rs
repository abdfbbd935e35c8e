//! A vector in pieces of fixed size: growing it never moves its elements.
//!
//! Doubling an ordinary vector of a million slots copies it as a whole, and all clients wait
//! meanwhile. Here only the first, small piece grows by doubling; every further piece is allocated
//! at full size.

use std::ops::{Index, IndexMut};

/// The number of elements per piece, as a power of two.
const BITS: u32 = 12;
const PIECE: usize = 1 << BITS;

/// A growable array with constant-time access and constant-time growth.
#[derive(Debug, Clone)]
pub(crate) struct Chunks<T> {
    /// All pieces but the last used one are full. One empty piece may follow, so that a length that
    /// oscillates around a piece boundary does not allocate each time.
    pieces: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { pieces: Vec::new(), len: 0 }
    }
}

impl<T> Chunks<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of elements that fit into the allocated memory.
    pub(crate) fn capacity(&self) -> usize {
        self.pieces.iter().map(Vec::capacity).sum()
    }

    pub(crate) fn push(&mut self, element: T) {
        let piece = self.len >> BITS;
        if piece == self.pieces.len() {
            // The first piece starts small: most tables are small.
            self.pieces.push(if piece == 0 { Vec::new() } else { Vec::with_capacity(PIECE) });
        }
        self.pieces[piece].push(element);
        self.len += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let piece = self.len.checked_sub(1)? >> BITS;
        let element = self.pieces[piece].pop()?;
        self.len -= 1;
        // All pieces after the one kept in reserve are freed.
        self.pieces.truncate(piece + 2);
        Some(element)
    }

    /// Removes an element and moves the last one to its index.
    pub(crate) fn swap_remove(&mut self, index: usize) -> T {
        let Some(last) = self.pop() else { panic!("index {index} of an empty vector") };
        if index == self.len { last } else { std::mem::replace(&mut self[index], last) }
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        (0..self.len).map(|index| &self[index])
    }

    /// Frees memory if the first piece is mostly empty; `pop` frees the other pieces.
    pub(crate) fn shrink(&mut self) {
        if let [first] = &mut self.pieces[..]
            && first.len() * 4 < first.capacity()
        {
            first.shrink_to(first.len() * 2);
        }
    }
}

impl<T> Index<usize> for Chunks<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        &self.pieces[index >> BITS][index & (PIECE - 1)]
    }
}

impl<T> IndexMut<usize> for Chunks<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.pieces[index >> BITS][index & (PIECE - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_a_vector_would() {
        let (mut chunks, mut model) = (Chunks::default(), Vec::new());
        let mut state = 1_usize;
        for round in 0..100_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Mostly growing at first, mostly shrinking later, over several piece boundaries.
            if (state >> 20) % 10 < if round < 50_000 { 7 } else { 3 } {
                chunks.push(round);
                model.push(round);
            } else if !model.is_empty() {
                let index = (state >> 33) % model.len();
                assert_eq!(chunks.swap_remove(index), model.swap_remove(index));
            }
            assert_eq!(chunks.len(), model.len());
        }
        assert!(chunks.iter().eq(model.iter()));
        while let Some(last) = chunks.pop() {
            assert_eq!(Some(last), model.pop());
        }
        assert!(model.is_empty() && chunks.capacity() <= 2 * PIECE);
    }

    #[test]
    fn growing_moves_nothing_but_the_first_piece() {
        let mut chunks = Chunks::default();
        for number in 0..PIECE + 1 {
            chunks.push(number);
        }
        let places: Vec<*const usize> = chunks.iter().map(std::ptr::from_ref).collect();
        for number in 0..10 * PIECE {
            chunks.push(number);
        }
        assert!(chunks.iter().map(std::ptr::from_ref).take(places.len()).eq(places));
    }
}
