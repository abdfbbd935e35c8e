//! The slow path: Typst lays out one ticket.
//!
//! For templates whose layout depends on the ticket. The prelude's fields draw the values themselves,
//! by the stamper's rules.

use std::sync::{Arc, Mutex, PoisonError};

use stampede_model::TicketDocument;
use stampede_render::compiled::{Stamped, Typeset};
use typst_layout::{Page, PagedDocument};

use crate::clusters::joined;
use crate::compile::{lay_out, options, refused, without_fields};
use crate::prelude::Mode;
use crate::world::{Kit, TemplateWorld};
use crate::{Bundle, Diagnostic, EventData};

/// The ticket as PDF. Runs people's code: in production only in the sandbox.
pub fn typeset(template: &Typeset, ticket: &TicketDocument) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let document = titled(document(template, ticket)?, ticket);
    typst_pdf::pdf(&document, &options(&ticket.id)).map_err(refused)
}

/// The ticket as a template without fields: what merged PDFs are made of.
pub fn typeset_compiled(
    template: &Typeset,
    ticket: &TicketDocument,
) -> Result<Stamped, Vec<Diagnostic>> {
    let mut document = titled(document(template, ticket)?, ticket);
    let title = document.info_mut().title.clone().unwrap_or_default();
    without_fields(&document, title.into())
}

fn document(template: &Typeset, ticket: &TicketDocument) -> Result<PagedDocument, Vec<Diagnostic>> {
    let world = TemplateWorld::new(kit(template)?, ticket)?;
    let (mut document, _) = lay_out(&world)?;
    let info = std::mem::take(document.info_mut());
    let whole = |page: &Page| Page { frame: joined(&page.frame), ..page.clone() };
    Ok(PagedDocument::new(document.pages().iter().map(whole).collect(), info))
}

/// What the template brings along. Tickets of one template come one after the other, so the last is kept:
/// fonts and images need not be parsed and hashed again for each of them.
fn kit(template: &Typeset) -> Result<Arc<Kit>, Vec<Diagnostic>> {
    static LAST: Mutex<Option<(Files, Arc<Kit>)>> = Mutex::new(None);
    // Whoever panicked while holding it had not begun to change it.
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((files, kit)) = &*last()
        && *files == template.files
    {
        return Ok(Arc::clone(kit));
    }
    let (bundle, event) = parts(template)?;
    let kit = Arc::new(Kit::new(&bundle, &event, Mode::Typeset)?);
    *last() = Some((template.files.clone(), Arc::clone(&kit)));
    Ok(kit)
}

type Files = Vec<(String, Vec<u8>)>;

/// The bundle and the event a compiled template was made of.
fn parts(template: &Typeset) -> Result<(Bundle, EventData), Vec<Diagnostic>> {
    let (event, files): (Vec<_>, Vec<_>) =
        template.files.iter().cloned().partition(|(name, _)| name == "event.json");
    let event = event
        .first()
        .and_then(|(_, json)| serde_json::from_slice(json).ok())
        .ok_or_else(|| vec![Diagnostic::error(Some("event.json"), "is missing or damaged")])?;
    Ok((Bundle::new(files.into_iter().collect())?, event))
}

/// Gives the document a title if its template sets none.
fn titled(mut pages: PagedDocument, ticket: &TicketDocument) -> PagedDocument {
    let title = &mut pages.info_mut().title;
    if title.is_none() {
        *title = Some(format!("{} – {}", ticket.event, ticket.name).into());
    }
    pages
}
