//! Why somebody is not known, and why a verb could not be carried out.

use crate::jwt::TokenRefusal;

/// Why nobody is known by a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotKnown {
    /// No key that works has this secret.
    Key,
    /// The token is refused.
    Token(TokenRefusal),
}

/// Why a verb could not be carried out. Refusals that belong to a verb are in the verb's own result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The database or the identity provider is away; the same call may succeed later.
    #[error("{what} is not available: {cause}")]
    Unavailable {
        /// The part that is away.
        what: &'static str,
        /// The reason, for the log.
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
