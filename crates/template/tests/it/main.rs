//! Renders tickets and reads them back with the tools a customer's reader is made of:
//! poppler for the page and its text, zbar for the QR code, qpdf for the file's structure.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod confinement;
mod designs;
mod failures;
mod fields;
mod page;
mod readers;
mod stability;
mod texts;

use std::sync::Arc;

use stampede_model::TicketDocument;
use stampede_render::compiled::{Compiled, Stamped, Typeset};
use stampede_render::{Prepared, Values, blob, stamp};
use stampede_template::{Bundle, EventData, Published, Template, Typesetter, compile};

/// A ticket with everything on it.
fn ticket() -> TicketDocument {
    TicketDocument {
        id: "0198f3a2-7c41-7d20-9b1e-4f6a2c8d5e01".into(),
        code: "0198f3a2-7c41-7d20-9b1e-4f6a2c8d5e01".into(),
        index: 7,
        name: "Amelia Hartmann".into(),
        seat: Some("Row C, Seat 14".into()),
        price: Some("48.00 EUR".into()),
        event: "Midsummer Night Festival".into(),
        location: "Tempelhofer Feld, Berlin".into(),
        starts: Some("Saturday, 20 June 2026, 19:30".into()),
        primary: "#667eea".into(),
        secondary: "#764ba2".into(),
    }
}

/// Renders with the older shipped template.
fn pdf(document: &TicketDocument) -> Vec<u8> {
    Typesetter::new(Template::default_ticket()).render(document).unwrap()
}

/// A typesetter for a template written in a test.
fn typesetter(source: &str) -> Typesetter {
    Typesetter::new(Template::from_source(source.to_owned()))
}

/// Compiles a template for the sample event.
fn published(source: &str) -> Published {
    let bundle = Bundle::of_source(source).unwrap();
    compile(&bundle, &EventData::sample()).unwrap_or_else(|mistakes| panic!("{mistakes:#?}"))
}

/// What a template was compiled to; it must be one that is stamped.
fn stamped(published: &Published) -> Stamped {
    match blob::decode(&published.blob).unwrap() {
        Compiled::Stamped(stamped) => *stamped,
        Compiled::Typeset(typeset) => panic!("it is typeset: {}", typeset.reason),
    }
}

/// The ticket, stamped.
fn stamp_ticket(published: &Published, ticket: &TicketDocument) -> Vec<u8> {
    let fields = ticket.fields();
    let fields: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (*n, v.as_ref())).collect();
    let prepared = Arc::new(Prepared::new(stamped(published)).unwrap());
    stamp(&prepared, &Values { id: &ticket.id, fields: &fields }).unwrap()
}

/// A template as the slow path has it, whether it needs that path or not.
fn slow(bundle: &Bundle) -> Typeset {
    let mut files: Vec<(String, Vec<u8>)> =
        bundle.files().iter().map(|(name, bytes)| (name.clone(), bytes.clone())).collect();
    files.push(("event.json".into(), serde_json::to_vec(&EventData::sample()).unwrap()));
    Typeset { reason: "a test".into(), files }
}
