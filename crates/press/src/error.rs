//! Why there is no PDF, by what can be done about it.

use std::sync::Arc;

use stampede_model::Diagnostic;

/// Why there is no PDF.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The template has mistakes, or refused this event or ticket.
    #[error("{}", Diagnostic::join(.0))]
    Template(Vec<Diagnostic>),
    /// The template took more time or memory than it may, and was stopped.
    #[error("{0}")]
    Stopped(String),
    /// Making this ticket used up the memory of its process, or crashed it.
    #[error("{0}")]
    Crashed(String),
    /// There is no such template or revision (any more).
    #[error("{0}")]
    NoSuchTemplate(String),
    /// The ticket's values do not fit the compiled template.
    #[error("{0}")]
    Stamp(String),
    /// Templates cannot be compiled right now, whatever is in them.
    #[error("templates cannot be compiled right now: {0}")]
    Unavailable(String),
    /// The database.
    #[error(transparent)]
    Store(#[from] Arc<stampede_store::Error>),
}

impl From<stampede_store::Error> for Error {
    fn from(error: stampede_store::Error) -> Self {
        Self::Store(Arc::new(error))
    }
}

impl Error {
    /// The mistakes of the template, if it is at fault; a template that was stopped has one.
    pub fn diagnostics(&self) -> Option<Vec<Diagnostic>> {
        match self {
            Self::Template(diagnostics) => Some(diagnostics.clone()),
            Self::Stopped(reason) | Self::Crashed(reason) => {
                Some(vec![Diagnostic::error(None, reason.clone())])
            }
            _ => None,
        }
    }
}
