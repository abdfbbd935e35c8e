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

impl From<stampede_store::Error> for Error {
    fn from(error: stampede_store::Error) -> Self {
        match error.is_outage() {
            true => Self::Unavailable { what: "the database", cause: error.to_string() },
            false => Self::Internal(error.to_string()),
        }
    }
}

impl From<stampede_broker::Error> for Error {
    fn from(error: stampede_broker::Error) -> Self {
        match error.is_outage() {
            true => Self::Unavailable { what: "Redis", cause: error.to_string() },
            false => Self::Internal(error.to_string()),
        }
    }
}
