//! What would go wrong with the tickets of an order, before the first of them is made.

use std::collections::HashMap;

use serde::Serialize;
use stampede_model::TicketDocument;
use stampede_render::Values;

use crate::Ready;
use crate::ready::with_values;

/// Something on one ticket that a person should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// What kind of thing, for programs: `missing_glyphs`, `does_not_fit`, …
    pub kind: &'static str,
    /// The field of the template, if it is about one.
    pub field: Option<String>,
    /// What, where, and what to do.
    pub message: String,
}

/// The tickets with warnings, by their place in the iterator. Slow templates have none: what becomes of
/// their texts only typesetting can tell.
///
/// Takes time in proportion to the number of different tickets; not for a thread that others wait for.
pub fn preflight(
    ready: &Ready,
    documents: impl Iterator<Item = TicketDocument>,
) -> Vec<(usize, Vec<Warning>)> {
    let Some(prepared) = ready.prepared() else { return Vec::new() };
    // An order of a thousand tickets often has one name, or a few.
    let mut known: HashMap<Printed, Vec<Warning>> = HashMap::new();
    let mut flagged = Vec::new();
    for (place, document) in documents.enumerate() {
        let warnings = known.entry(Printed::of(&document)).or_insert_with(|| {
            let check = |values: &Values<'_>| stampede_render::preflight(prepared, values);
            with_values(&document, check).iter().map(shown).collect()
        });
        if !warnings.is_empty() {
            flagged.push((place, warnings.clone()));
        }
    }
    flagged
}

/// What differs between the tickets of one order, as far as it can go wrong.
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
        W::MissingGlyphs { field, .. } => ("missing_glyphs", Some(field.clone())),
        W::DoesNotFit { field } => ("does_not_fit", Some(field.clone())),
        W::CodeTooSmall { .. } => ("code_too_small", None),
        W::UnknownImage { field, .. } => ("unknown_image", Some(field.clone())),
        _ => ("other", None),
    };
    Warning { kind, field, message: warning.to_string() }
}
