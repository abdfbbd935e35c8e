//! Reading libraries: refused.

use std::ops::Range;

use crate::{Library, REASON};

/// Why BibLaTeX was refused.
pub enum BibLaTeXError {
    /// The text.
    Parse(Refused),
    /// A value.
    Type(Refused),
}

/// A place in a text, and the reason.
pub struct Refused {
    /// The place.
    pub span: Range<usize>,
    /// The reason.
    pub kind: &'static str,
}

/// Refuses a library in YAML.
pub fn from_yaml_str(_: &str) -> Result<Library, serde_yaml::Error> {
    Err(serde::de::Error::custom(REASON))
}

/// Refuses a library in BibLaTeX.
pub fn from_biblatex_str(_: &str) -> Result<Library, Vec<BibLaTeXError>> {
    Err(vec![BibLaTeXError::Parse(Refused { span: 0..0, kind: REASON })])
}
