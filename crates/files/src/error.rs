//! Errors of files.

use std::io;
use std::path::Path;

/// `EIO`: the device failed.
const INPUT_OUTPUT_ERROR: i32 = 5;

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
    /// Returns whether the storage is the problem, not the request; the same call may succeed later.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unusable { .. } | Self::Storage(_))
    }

    /// Returns whether the disk has no room left or its device fails. Neither is a mistake in the settings, so the
    /// same call may succeed later.
    pub fn is_of_disk(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        self.system_error().is_some_and(|error| {
            full.contains(&error.kind()) || error.raw_os_error() == Some(INPUT_OUTPUT_ERROR)
        })
    }

    /// The reason without paths, for people who must not learn them.
    pub fn reason(&self) -> String {
        match (self.system_error(), self) {
            (Some(error), _) => error.to_string(),
            (None, Self::Unusable { reason, .. }) => reason.clone(),
            (None, _) => "the storage refused it".to_owned(),
        }
    }

    /// The error of the system at the end of the chain of causes.
    fn system_error(&self) -> Option<&io::Error> {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<io::Error>() {
                return Some(error);
            }
            cause = error.source();
        }
        None
    }

    /// The error for a folder that cannot be used.
    pub(crate) fn unusable_folder(root: &Path, reason: impl ToString) -> Self {
        Self::Unusable {
            place: format!("the folder {}", root.display()),
            reason: reason.to_string(),
            remedy: "Check PUBLIC_PATH (or DATA_DIR) and its permissions".to_owned(),
        }
    }
}
