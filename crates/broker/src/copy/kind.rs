//! The types of values that there are.

use std::fmt;

/// The six types of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A string.
    String,
    /// A hash.
    Hash,
    /// A list.
    List,
    /// A set.
    Set,
    /// A sorted set.
    SortedSet,
    /// A stream.
    Stream,
}

impl Kind {
    /// The name that `TYPE` answers.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::String,
            "hash" => Self::Hash,
            "list" => Self::List,
            "set" => Self::Set,
            "zset" => Self::SortedSet,
            "stream" => Self::Stream,
            _ => return None,
        })
    }

    /// The command that says how long a value is.
    pub(super) fn length_command(self) -> &'static str {
        match self {
            Self::String => "STRLEN",
            Self::Hash => "HLEN",
            Self::List => "LLEN",
            Self::Set => "SCARD",
            Self::SortedSet => "ZCARD",
            Self::Stream => "XLEN",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::String => "strings",
            Self::Hash => "hashes",
            Self::List => "lists",
            Self::Set => "sets",
            Self::SortedSet => "sorted sets",
            Self::Stream => "streams",
        })
    }
}
