//! What can go wrong with a template, told to the person who wrote it: file, line, column, hints.

use stampede_model::{Diagnostic, Severity, TicketDocument};
use typst::World;
use typst::WorldExt;
use typst::diag::SourceDiagnostic;
use typst::syntax::{DiagSpan, DiagSpanKind, FileId, Lines};

use crate::prelude;

/// What Typst says; `lines_before` lines of the main file are not the organiser's.
pub(crate) fn told(world: &dyn World, one: &SourceDiagnostic, lines_before: usize) -> Diagnostic {
    let severity = match one.severity {
        typst::diag::Severity::Error => Severity::Error,
        typst::diag::Severity::Warning => Severity::Warning,
    };
    let mut diagnostic = Diagnostic { severity, ..Diagnostic::error(None, one.message.as_str()) };
    diagnostic.hints = one.hints.iter().map(|hint| hint.v.to_string()).collect();
    if is_in_prelude(one.span) {
        speak_for_the_prelude(&mut diagnostic);
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
fn speak_for_the_prelude(diagnostic: &mut Diagnostic) {
    if let Some(message) = diagnostic.message.strip_prefix("panicked with: ") {
        diagnostic.message = message.trim_matches('"').to_owned();
    }
    if let Some(name) = diagnostic.message.strip_prefix("unknown field: ") {
        let known = TicketDocument::FIELDS;
        if let Some(near) = nearest(name, known) {
            diagnostic.hints.push(format!("did you mean \"{near}\"?"));
        }
        diagnostic.hints.push(format!("a ticket has {}", known.join(", ")));
    }
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
