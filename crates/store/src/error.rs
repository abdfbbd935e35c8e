//! Errors, by what a caller can do about them.

use std::time::Duration;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database is away, overloaded or locked; the same call may succeed later.
    #[error("{0}")]
    Unavailable(String),
    /// A person has to act first: a wrong address, a folder that cannot be written, a newer database.
    #[error("{0}")]
    Unusable(String),
    /// A record holds a value that this program never writes; trying again does not help.
    #[error("a record in the database is damaged: {0}")]
    Corrupt(String),
    /// The database refused a statement.
    #[error("the database refused a statement: {0}")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Returns whether the database is the problem, not the request; the same call may succeed later.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    pub(crate) fn unusable(message: impl Into<String>) -> Self {
        Self::Unusable(message.into())
    }

    /// The error for an operation without an answer; the change may have been made or not.
    pub(crate) fn no_answer(limit: Duration) -> Self {
        Self::Unavailable(format!("the database does not answer: nothing within {limit:?}"))
    }
}
