//! Values of keys: one file per type. A type knows nothing of keys, clients or replies.
//!
//! Adding a type? Add its file, a variant of [`Value`] with its arms below, and a file of commands.

pub(crate) mod bitmap;
pub(crate) mod hash;
pub(crate) mod list;
mod packed;
pub(crate) mod ranked;
pub(crate) mod set;
pub(crate) mod stream;
pub(crate) mod string;
pub(crate) mod zset;

pub(crate) use hash::Hash;
pub(crate) use list::List;
pub(crate) use set::Set;
pub(crate) use stream::Stream;
pub(crate) use zset::ZSet;

use crate::blob::Blob;

/// The value of a key. All types but strings are boxed, so that a value is as wide as a string.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// A byte string.
    String(Blob),
    /// A map of fields.
    Hash(Box<Hash>),
    /// A double-ended list.
    List(Box<List>),
    /// A set.
    Set(Box<Set>),
    /// A set ordered by score.
    ZSet(Box<ZSet>),
    /// A log of entries.
    Stream(Box<Stream>),
}

impl Value {
    /// The reply of `TYPE`.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::String(_) => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::ZSet(_) => "zset",
            Self::Stream(_) => "stream",
        }
    }

    /// The reply of `OBJECT ENCODING`: the encoding Redis would use, which may differ from ours.
    pub(crate) fn encoding(&self) -> &'static str {
        match self {
            Self::String(text) => string::encoding(text),
            Self::Hash(hash) => hash.encoding(),
            Self::List(_) => "quicklist",
            Self::Set(set) => set.encoding(),
            Self::ZSet(zset) => zset.encoding(),
            Self::Stream(_) => "stream",
        }
    }

    /// Whether the value is an empty collection, which must not stay in the keyspace.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::String(_) | Self::Stream(_) => false,
            Self::Hash(hash) => hash.len() == 0,
            Self::List(list) => list.len() == 0,
            Self::Set(set) => set.len() == 0,
            Self::ZSet(zset) => zset.len() == 0,
        }
    }

    /// The approximate number of bytes on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        match self {
            Self::String(text) => text.heap_size(),
            Self::Hash(hash) => size_of::<Hash>() + hash.heap_size(),
            Self::List(list) => size_of::<List>() + list.heap_size(),
            Self::Set(set) => size_of::<Set>() + set.heap_size(),
            Self::ZSet(zset) => size_of::<ZSet>() + zset.heap_size(),
            Self::Stream(stream) => size_of::<Stream>() + stream.heap_size(),
        }
    }
}

/// A type of value; lets the keyspace return any type with one function.
pub(crate) trait Typed: Sized {
    /// The value as this type.
    fn of(value: &Value) -> Option<&Self>;
    /// The value as this type, mutable.
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    /// An empty value of this type.
    fn empty() -> Value;
}

macro_rules! typed {
    ($type:ty, $variant:ident) => {
        impl Typed for $type {
            fn of(value: &Value) -> Option<&Self> {
                if let Value::$variant(inner) = value { Some(inner) } else { None }
            }

            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                if let Value::$variant(inner) = value { Some(inner) } else { None }
            }

            fn empty() -> Value {
                Value::$variant(Default::default())
            }
        }
    };
}

impl Default for Blob {
    fn default() -> Self {
        Self::EMPTY
    }
}

typed!(Blob, String);
typed!(Hash, Hash);
typed!(List, List);
typed!(Set, Set);
typed!(ZSet, ZSet);
typed!(Stream, Stream);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_as_wide_as_a_string() {
        assert_eq!(size_of::<Value>(), 24);
    }
}
