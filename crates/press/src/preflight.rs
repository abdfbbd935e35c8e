//! Lists what would not come out well on the tickets of an order, before the first of them is made.

use std::collections::HashMap;

use serde::Serialize;
use stampede_model::TicketDocument;

use crate::ready::with_values;
use crate::{Compiler, Ready};

/// Missing characters named in one message.
const NAMED: usize = 20;

/// A problem on one ticket that a person should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The kind, for programs: `missing_glyphs`, `does_not_fit`, …
    pub kind: &'static str,
    /// The field of the template.
    pub field: String,
    /// The problem, its place and its remedy, for people.
    pub message: String,
}

/// The tickets with warnings, by their place in the iterator.
///
/// Takes time in proportion to the number of different tickets; do not call it on a thread of the runtime.
pub fn preflight(
    compiler: &dyn Compiler,
    ready: &Ready,
    documents: impl Iterator<Item = TicketDocument>,
) -> Vec<(usize, Vec<Warning>)> {
    let mut stamped = ready.prepared().map(|prepared| stampede_render::Preflight::new(prepared));
    let mut check = |document: &TicketDocument| match &mut stamped {
        Some(check) => {
            let found = with_values(document, |values| check.check(values));
            found.iter().map(shown).collect()
        }
        // Only typesetting can tell how its texts come out; missing letters are found without it.
        None => missing_glyphs(compiler, document),
    };
    // An order of a thousand tickets often has one name, or a few: each is checked once.
    let mut known: HashMap<Printed, Vec<Warning>> = HashMap::new();
    let mut flagged = Vec::new();
    for (place, document) in documents.enumerate() {
        let warnings = known.entry(Printed::of(&document)).or_insert_with(|| check(&document));
        if !warnings.is_empty() {
            flagged.push((place, warnings.clone()));
        }
    }
    flagged
}

fn missing_glyphs(compiler: &dyn Compiler, document: &TicketDocument) -> Vec<Warning> {
    let texts = document.typed_texts();
    let warnings = texts.filter_map(|(field, text)| {
        let missing = compiler.missing_glyphs(text);
        if missing.is_empty() {
            return None;
        }
        let named: Vec<String> =
            missing.iter().take(NAMED).map(|c| format!("{c} (U+{:04X})", *c as u32)).collect();
        let message = format!(
            "{field:?} has characters that no font of ours has: {}. Write them differently, or add a \
             font that has them to the template",
            named.join(", ")
        );
        Some(Warning { kind: "missing_glyphs", field: field.to_owned(), message })
    });
    warnings.collect()
}

/// The values that differ between the tickets of one order and can cause warnings.
#[derive(PartialEq, Eq, Hash)]
struct Printed {
    name: String,
    seat: Option<String>,
    price: Option<String>,
    /// The number itself does not matter, but its length does.
    digits: u32,
}

impl Printed {
    fn of(document: &TicketDocument) -> Self {
        Self {
            name: document.name.clone(),
            seat: document.seat.clone(),
            price: document.price.clone(),
            digits: document.index.checked_ilog10().unwrap_or(0),
        }
    }
}

fn shown(warning: &stampede_render::Warning) -> Warning {
    use stampede_render::Warning as W;
    let (kind, field) = match warning {
        W::MissingGlyphs { field, .. } => ("missing_glyphs", field),
        W::DoesNotFit { field } => ("does_not_fit", field),
        W::TooLong { field } => ("too_long", field),
        W::CodeTooSmall { field, .. } => ("code_too_small", field),
        W::CodeTooLong { field } => ("code_too_long", field),
        W::UnknownImage { field, .. } => ("unknown_image", field),
    };
    Warning { kind, field: field.clone(), message: warning.to_string() }
}
