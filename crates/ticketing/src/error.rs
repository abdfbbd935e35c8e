//! Why a verb could not be carried out, by what the caller can do about it.

use stampede_model::Diagnostic;

/// Why a verb could not be carried out. Refusals that belong to a verb are in the verb's own result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Something that is needed is down. The same call may succeed later.
    #[error("{what} is not available: {cause}")]
    Unavailable {
        /// The service that is down: `the database`, `the compiler of templates`.
        what: &'static str,
        /// The error of that service.
        cause: String,
    },
    /// The event's template has mistakes, or was stopped at its limits. Its author has to correct it.
    #[error("{}", Diagnostic::join(.0))]
    Template(Vec<Diagnostic>),
    /// The event or ticket cannot be printed with its template. Another template or other values are needed.
    #[error("{0}")]
    Unprintable(String),
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

impl From<&stampede_store::Error> for Error {
    fn from(error: &stampede_store::Error) -> Self {
        if error.is_outage() {
            Self::Unavailable { what: "the database", cause: error.to_string() }
        } else {
            Self::internal(error)
        }
    }
}

impl From<stampede_store::Error> for Error {
    fn from(error: stampede_store::Error) -> Self {
        Self::from(&error)
    }
}

impl From<stampede_press::Error> for Error {
    fn from(error: stampede_press::Error) -> Self {
        if let Some(diagnostics) = error.diagnostics() {
            return Self::Template(diagnostics);
        }
        match error {
            stampede_press::Error::Store(error) => Self::from(&*error),
            stampede_press::Error::Unavailable(cause) => {
                Self::Unavailable { what: "the compiler of templates", cause }
            }
            other => Self::Unprintable(other.to_string()),
        }
    }
}

impl From<stampede_files::Error> for Error {
    fn from(error: stampede_files::Error) -> Self {
        if error.is_outage() {
            Self::Unavailable { what: "the storage of PDFs", cause: error.to_string() }
        } else {
            Self::internal(error)
        }
    }
}
