//! Text: cleaned, split into runs of one direction, script and font, shaped, fitted into its box.

pub(crate) mod clean;
pub(crate) mod fit;
pub(crate) mod runs;
pub(crate) mod shape;

pub use clean::{MAX_CHARS, MAX_MARKS, clean};
