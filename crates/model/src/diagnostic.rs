//! Something in a template that its author should look at: file, line, column, hints.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The template cannot be used.
    Error,
    /// It can, but perhaps not as meant.
    Warning,
}

/// One mistake in a template, or one warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Which of the template's files, if it is about one.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Column in characters, from 1.
    pub column: Option<u32>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hints: Vec<String>,
}

impl Diagnostic {
    /// An error in a file, or in the template as a whole.
    pub fn error(file: Option<&str>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            file: file.map(str::to_owned),
            line: None,
            column: None,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// A warning about the template as a whole.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(None, message) }
    }

    /// With one more thing that might help.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// All of them in one line.
    pub fn join(all: &[Self]) -> String {
        all.iter().map(Self::to_string).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Diagnostic {
    /// `template.typ:12:5: no such seat (hint: …)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
            for place in [self.line, self.column].into_iter().flatten() {
                write!(f, "{place}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(&self.message)?;
        self.hints.iter().try_for_each(|hint| write!(f, " (hint: {hint})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_reads_like_that_of_a_compiler() {
        let diagnostic = Diagnostic {
            line: Some(12),
            column: Some(5),
            ..Diagnostic::error(Some("template.typ"), "no such seat").hint("try this")
        };
        let all = [diagnostic, Diagnostic::warning("and more")];
        let expected = "template.typ:12:5: no such seat (hint: try this); and more";
        assert_eq!(Diagnostic::join(&all), expected);
    }
}
