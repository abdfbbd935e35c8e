//! What can go wrong with a template, by what somebody can do about it.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The template cannot be used.
    Error,
    /// It can, but perhaps not as meant.
    Warning,
}

/// Something in a template's files that its author should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The file, if it is about one.
    pub file: Option<String>,
    /// Line in the file, from 1.
    pub line: Option<u32>,
    /// Column in the line, from 1.
    pub column: Option<u32>,
    /// What is wrong.
    pub message: String,
    /// What might help.
    pub hints: Vec<String>,
}

impl Diagnostic {
    /// An error that is about no place in particular.
    pub fn general(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            file: None,
            line: None,
            column: None,
            message: message.into(),
            hints: Vec::new(),
        }
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

/// Why there is no PDF.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The template has mistakes, or refused this event or ticket.
    #[error("{}", joined(.0))]
    Template(Vec<Diagnostic>),
    /// The template took more time or memory than it may, and was stopped.
    #[error("{0}")]
    Stopped(String),
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
    /// The diagnostics, if it is the template's fault; a template that was stopped has one too.
    pub fn diagnostics(&self) -> Option<Vec<Diagnostic>> {
        match self {
            Self::Template(diagnostics) => Some(diagnostics.clone()),
            Self::Stopped(reason) => Some(vec![Diagnostic::general(reason.clone())]),
            _ => None,
        }
    }
}

fn joined(diagnostics: &[Diagnostic]) -> String {
    let all: Vec<String> = diagnostics.iter().map(Diagnostic::to_string).collect();
    all.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_reads_like_that_of_a_compiler() {
        let diagnostic = Diagnostic {
            file: Some("template.typ".into()),
            line: Some(12),
            column: Some(5),
            hints: vec!["try this".into()],
            ..Diagnostic::general("no such seat")
        };
        let error = Error::Template(vec![diagnostic, Diagnostic::general("and more")]);
        let expected = "template.typ:12:5: no such seat (hint: try this); and more";
        assert_eq!(error.to_string(), expected);
    }
}
