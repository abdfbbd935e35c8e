//! Stamping and merging in the sandbox: for templates that may bring their process down.

use std::sync::{Arc, Mutex, PoisonError};

use stampede_model::TicketDocument;
use stampede_render::compiled::{Compiled, Typeset};
use stampede_render::{Continuation, Piece, Prepared, Values, content_hash, decode, piece, stamp};

use crate::{Diagnostic, test_hooks};

/// The ticket as PDF, of a compiled template that is stamped.
pub fn stamp_blob(blob: &[u8], ticket: &TicketDocument) -> Result<Vec<u8>, Vec<Diagnostic>> {
    test_hooks::die_of_poison(ticket);
    let prepared = prepared(blob).map_err(mistake)?;
    let fields = ticket.fields();
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (*name, value.as_ref())).collect();
    stamp(&prepared, &Values { id: &ticket.id, fields: &fields })
        .map_err(|error| mistake(error.to_string()))
}

/// The next piece of a merged PDF, of tickets of a compiled template that is stamped.
pub fn merge_blob(
    blob: &[u8],
    tickets: &[TicketDocument],
    after: &Continuation,
) -> Result<Piece, Vec<Diagnostic>> {
    merged(&prepared(blob).map_err(mistake)?, tickets, after)
}

/// The next piece of a merged PDF, of one ticket of a template that is typeset. Runs people's code: in production only in
/// the sandbox.
pub fn merge_typeset(
    template: &Typeset,
    ticket: &TicketDocument,
    after: &Continuation,
) -> Result<Piece, Vec<Diagnostic>> {
    let page = crate::typeset_compiled(template, ticket)?;
    let prepared = Prepared::new(page).map_err(|error| mistake(error.to_string()))?;
    merged(&Arc::new(prepared), std::slice::from_ref(ticket), after)
}

fn merged(
    template: &Arc<Prepared>,
    tickets: &[TicketDocument],
    after: &Continuation,
) -> Result<Piece, Vec<Diagnostic>> {
    tickets.iter().for_each(test_hooks::die_of_poison);
    let fields: Vec<_> = tickets.iter().map(TicketDocument::fields).collect();
    let fields: Vec<Vec<(&str, &str)>> = fields
        .iter()
        .map(|fields| fields.iter().map(|(name, value)| (*name, value.as_ref())).collect())
        .collect();
    let values: Vec<Values<'_>> = tickets
        .iter()
        .zip(&fields)
        .map(|(ticket, fields)| Values { id: &ticket.id, fields })
        .collect();
    piece(template, &values, after).map_err(|error| mistake(error.to_string()))
}

/// The template, ready to be stamped. Tickets of one template come one after the other, so the last is kept.
fn prepared(blob: &[u8]) -> Result<Arc<Prepared>, String> {
    static LAST: Mutex<Option<(String, Arc<Prepared>)>> = Mutex::new(None);
    // Whoever panicked while holding it had not begun to change it.
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let hash = content_hash(blob);
    if let Some((of, prepared)) = &*last()
        && *of == hash
    {
        return Ok(Arc::clone(prepared));
    }
    let Compiled::Stamped(stamped) = decode(blob).map_err(|error| error.to_string())? else {
        return Err("the template is typeset, not stamped".to_owned());
    };
    let prepared = Arc::new(Prepared::new(*stamped).map_err(|error| error.to_string())?);
    *last() = Some((hash, Arc::clone(&prepared)));
    Ok(prepared)
}

fn mistake(message: String) -> Vec<Diagnostic> {
    vec![Diagnostic::error(None, message)]
}
