//! Why a verb could not be carried out, by what the caller can do about it.

/// Why a verb could not be carried out. Refusals that belong to a verb are in the verb's own result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The database or Redis is away; the same call may succeed later.
    #[error("{what} is not available: {cause}")]
    Unavailable {
        /// What is away.
        what: &'static str,
        /// Why, for the log.
        cause: String,
    },
    /// A defect, damaged data or a wrong setting. Only an operator can act.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// A defect or damaged data.
    pub(crate) fn internal(cause: impl std::fmt::Display) -> Self {
        Self::Internal(cause.to_string())
    }
}

impl From<stampede_store::Error> for Error {
    fn from(error: stampede_store::Error) -> Self {
        Self::from(&error)
    }
}

impl From<&stampede_store::Error> for Error {
    fn from(error: &stampede_store::Error) -> Self {
        match error.is_outage() {
            true => Self::Unavailable { what: "the database", cause: error.to_string() },
            false => Self::internal(error),
        }
    }
}

impl From<stampede_broker::Error> for Error {
    fn from(error: stampede_broker::Error) -> Self {
        match error.is_outage() {
            true => Self::Unavailable { what: "Redis", cause: error.to_string() },
            false => Self::internal(error),
        }
    }
}

impl From<stampede_ticketing::Error> for Error {
    fn from(error: stampede_ticketing::Error) -> Self {
        match error {
            stampede_ticketing::Error::Unavailable { what, cause } => {
                Self::Unavailable { what, cause }
            }
            other => Self::internal(other),
        }
    }
}

/// A value that a request gives and that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The field of the request, such as `pacing.limit.max`.
    pub field: String,
    /// What is wrong with it and what would be right.
    pub message: String,
}

impl Mistake {
    /// A mistake in a field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}
