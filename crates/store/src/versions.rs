//! Versions: a change that was meant for one version of a record is not made to another.
//!
//! The version of a record is its `updated_at`, which every change increases ([`rules::later`](crate::rules::later)).
//! Operations that end with `_as_seen` take the version that the caller has seen, and compare it in the transaction
//! that makes the change; `None` stands for any version.

/// The result of a change that may have been meant for one version of a record.
#[derive(Debug, Clone, PartialEq)]
pub enum Versioned<T> {
    /// The change is made.
    Done(T),
    /// The record has another version than the one that was seen; it stays as it is.
    ChangedMeanwhile,
    /// There is no such record.
    NotFound,
}

impl<T> Versioned<T> {
    /// What the change gave, if it was made.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(value) => Some(value),
            Self::ChangedMeanwhile | Self::NotFound => None,
        }
    }
}
