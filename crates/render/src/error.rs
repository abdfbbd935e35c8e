//! What can go wrong while stamping.

use crate::face::FontError;

/// Why a ticket could not be stamped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The compiled template is inconsistent.
    #[error("the compiled template is inconsistent: {0}")]
    Template(String),
    /// A font of the template cannot be used.
    #[error("{0}")]
    Font(FontError),
    /// No QR code is large enough for a value.
    #[error("the value of {field:?} is too long for a QR code")]
    CodeTooLong {
        /// Name of the field.
        field: String,
    },
}
