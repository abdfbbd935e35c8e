//! Errors of files.

use std::path::Path;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The storage cannot be used at all.
    #[error("cannot write to {place}: {reason}. {remedy}")]
    Unusable {
        /// The storage, for a person.
        place: String,
        /// The reason that the system gave.
        reason: String,
        /// What the operator can do.
        remedy: String,
    },
    /// One operation failed.
    #[error("files: {0}")]
    Storage(#[from] object_store::Error),
    /// The name would lead out of the storage or is otherwise not allowed.
    #[error("files: {0:?} is not a valid name")]
    Name(String),
}

impl Error {
    /// The error for a folder that cannot be used.
    pub(crate) fn unusable_folder(root: &Path, reason: impl ToString) -> Self {
        Self::Unusable {
            place: format!("the folder {}", root.display()),
            reason: reason.to_string(),
            remedy: "Check PUBLIC_PATH (or DATA_DIR) and its permissions".to_owned(),
        }
    }
}
