//! What can go wrong, and how Typst's diagnostics become one message for a person.

use typst::World;
use typst::WorldExt;
use typst::diag::SourceDiagnostic;
use typst::syntax::{DiagSpan, DiagSpanKind, FileId, Lines};

/// Why a ticket could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The template refused this ticket or has a mistake.
    #[error("{message}")]
    Template {
        /// All diagnostics, as in `template.typ:12:5: no such seat (hint: …)`.
        message: String,
    },
    /// The code does not fit the largest QR symbol.
    #[error("the ticket's code has {length} bytes, too many for a QR code")]
    CodeTooLong {
        /// Bytes it has.
        length: usize,
    },
}

impl Error {
    /// Joins the diagnostics into one message; the world tells their lines and columns.
    pub(crate) fn template(world: &dyn World, diagnostics: &[SourceDiagnostic]) -> Self {
        let all: Vec<String> = diagnostics.iter().map(|one| describe(world, one)).collect();
        Self::Template { message: all.join("; ") }
    }
}

fn describe(world: &dyn World, diagnostic: &SourceDiagnostic) -> String {
    let mut text = match position(world, diagnostic.span) {
        Some(position) => format!("{position}: {}", diagnostic.message),
        None => diagnostic.message.to_string(),
    };
    for hint in &diagnostic.hints {
        text.push_str(&format!(" (hint: {})", hint.v));
    }
    text
}

/// `file:line:column`, counted from 1, as editors do.
fn position(world: &dyn World, span: DiagSpan) -> Option<String> {
    let (DiagSpanKind::Number { id, .. } | DiagSpanKind::Range { id, .. }) = span.get() else {
        return None;
    };
    let start = world.range(span)?.start;
    let (line, column) = lines(world, id)?.byte_to_line_column(start)?;
    let file = id.get().vpath().get_without_slash();
    Some(format!("{file}:{}:{}", line + 1, column + 1))
}

fn lines(world: &dyn World, id: FileId) -> Option<Lines<String>> {
    match world.source(id) {
        Ok(source) => Some(source.lines().clone()),
        Err(_) => world.file(id).ok()?.lines().ok(),
    }
}
