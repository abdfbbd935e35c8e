//! A byte string as the keyspace stores it.
//!
//! Arguments arrive as slices of a network buffer; keeping such a slice would keep the whole buffer
//! alive. A [`Blob`] owns its bytes: up to 22 bytes inline (most ids, fields and numbers), longer
//! strings in one allocation of exact size. A [`Blob`] is always 24 bytes wide.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

const INLINE: usize = 22;

/// An owned byte string; short strings are stored inline.
#[derive(Clone)]
pub(crate) struct Blob(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE] },
    Heap(Box<[u8]>),
}

impl Blob {
    /// The empty string.
    pub(crate) const EMPTY: Self = Self(Repr::Inline { len: 0, bytes: [0; INLINE] });

    /// A copy of `source`.
    pub(crate) fn new(source: &[u8]) -> Self {
        if source.len() <= INLINE {
            let mut bytes = [0; INLINE];
            bytes[..source.len()].copy_from_slice(source);
            Self(Repr::Inline { len: source.len() as u8, bytes })
        } else {
            Self(Repr::Heap(source.into()))
        }
    }

    /// The decimal text of an integer.
    pub(crate) fn from_int(value: i64) -> Self {
        Self::new(itoa::Buffer::new().format(value).as_bytes())
    }

    /// Edits the bytes as a vector, which `edit` may grow or shrink.
    pub(crate) fn edit(&mut self, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = std::mem::replace(self, Self::EMPTY).into_vec();
        edit(&mut bytes);
        *self = Self::from(bytes);
    }

    /// The number of bytes allocated on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        match &self.0 {
            Repr::Inline { .. } => 0,
            Repr::Heap(bytes) => bytes.len() + 8,
        }
    }

    fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Repr::Inline { len, bytes } => bytes[..usize::from(len)].to_vec(),
            Repr::Heap(bytes) => bytes.into_vec(),
        }
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() <= INLINE {
            Self::new(&bytes)
        } else {
            Self(Repr::Heap(bytes.into_boxed_slice()))
        }
    }
}

impl From<&[u8]> for Blob {
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes)
    }
}

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Repr::Heap(bytes) => bytes,
        }
    }
}

impl Borrow<[u8]> for Blob {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl AsRef<[u8]> for Blob {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Blob {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Blob {}

impl PartialOrd for Blob {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Blob {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Blob {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_strings_keep_their_bytes() {
        for len in [0, 1, INLINE, INLINE + 1, 1000] {
            let bytes = vec![7; len];
            assert_eq!(&*Blob::new(&bytes), bytes);
            assert_eq!(Blob::new(&bytes), Blob::from(bytes));
        }
    }

    #[test]
    fn a_blob_is_three_words_wide() {
        assert_eq!(size_of::<Blob>(), 24);
        assert_eq!(size_of::<Option<Blob>>(), 24);
    }

    #[test]
    fn an_edit_may_cross_the_boundary_both_ways() {
        let mut blob = Blob::new(b"short");
        blob.edit(|bytes| bytes.resize(100, b'x'));
        assert_eq!(blob.len(), 100);
        blob.edit(|bytes| bytes.truncate(3));
        assert_eq!(&*blob, b"sho");
    }
}
