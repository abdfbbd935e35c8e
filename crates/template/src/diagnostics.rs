//! What can go wrong with a template, told to the person who wrote it: file, line, column, hints.

use std::fmt;

use serde::{Deserialize, Serialize};
use stampede_model::TicketDocument;
use typst::World;
use typst::WorldExt;
use typst::diag::SourceDiagnostic;
use typst::syntax::{DiagSpan, DiagSpanKind, FileId, Lines};

use crate::prelude;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The template cannot be used.
    Error,
    /// It can, but somebody should look.
    Warning,
}

/// One mistake in a template, or one warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Which file of the bundle.
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
    /// An error in a file, or in the bundle as a whole.
    pub(crate) fn error(file: Option<&str>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            file: file.map(str::to_owned),
            line: None,
            column: None,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    pub(crate) fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(None, message) }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// What Typst says; `lines_before` lines of the main file are not the organiser's.
    pub(crate) fn of(world: &dyn World, one: &SourceDiagnostic, lines_before: usize) -> Self {
        let severity = match one.severity {
            typst::diag::Severity::Error => Severity::Error,
            typst::diag::Severity::Warning => Severity::Warning,
        };
        let mut diagnostic = Self { severity, ..Self::error(None, one.message.as_str()) };
        diagnostic.hints = one.hints.iter().map(|hint| hint.v.to_string()).collect();
        if is_in_prelude(one.span) {
            diagnostic.speak_for_the_prelude();
        }
        // A mistake that shows inside the prelude was made where the prelude was called.
        let calls = one.trace.iter().map(|call| DiagSpan::from(call.span));
        let place = std::iter::once(one.span)
            .chain(calls)
            .filter(|span| !is_in_prelude(*span))
            .find_map(|span| position(world, span));
        if let Some((file, line, column)) = place {
            let before = if file == crate::bundle::MAIN_FILE { lines_before } else { 0 };
            diagnostic.file = Some(file);
            diagnostic.line = u32::try_from((line + 1).saturating_sub(before)).ok();
            diagnostic.column = u32::try_from(column + 1).ok();
        }
        diagnostic
    }

    /// The prelude's own refusals read like Stampede's, not like a panic.
    fn speak_for_the_prelude(&mut self) {
        if let Some(message) = self.message.strip_prefix("panicked with: ") {
            self.message = message.trim_matches('"').to_owned();
        }
        if let Some(name) = self.message.strip_prefix("unknown field: ") {
            let known = TicketDocument::FIELDS;
            if let Some(near) = nearest(name, known) {
                self.hints.push(format!("did you mean \"{near}\"?"));
            }
            self.hints.push(format!("a ticket has {}", known.join(", ")));
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}:")?;
        }
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "{line}:{column}:")?;
        }
        if self.file.is_some() {
            write!(f, " ")?;
        }
        write!(f, "{}", self.message)?;
        self.hints.iter().try_for_each(|hint| write!(f, " (hint: {hint})"))
    }
}

/// All of them in one line.
pub(crate) fn join(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(Diagnostic::to_string).collect::<Vec<_>>().join("; ")
}

fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |other: &str| strsim::damerau_levenshtein(&name.to_lowercase(), other);
    known
        .iter()
        .copied()
        .map(|other| (distance(other), other))
        .filter(|(d, _)| *d <= 2)
        .min()
        .map(|near| near.1)
}

fn is_in_prelude(span: DiagSpan) -> bool {
    file_of(span).is_some_and(|id| id == prelude::file())
}

fn file_of(span: DiagSpan) -> Option<FileId> {
    match span.get() {
        DiagSpanKind::Number { id, .. } | DiagSpanKind::Range { id, .. } => Some(id),
        _ => None,
    }
}

/// File, line and column, counted from 0.
fn position(world: &dyn World, span: DiagSpan) -> Option<(String, usize, usize)> {
    let id = file_of(span)?;
    let start = world.range(span)?.start;
    let (line, column) = lines(world, id)?.byte_to_line_column(start)?;
    Some((id.get().vpath().get_without_slash().to_owned(), line, column))
}

fn lines(world: &dyn World, id: FileId) -> Option<Lines<String>> {
    match world.source(id) {
        Ok(source) => Some(source.lines().clone()),
        Err(_) => world.file(id).ok()?.lines().ok(),
    }
}
