//! Renders tickets and reads them back with the tools a customer's reader is made of:
//! poppler for the page and its text, zbar for the QR code.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod confinement;
mod failures;
mod page;
mod readers;
mod stability;
mod texts;

use stampede_model::TicketDocument;
use stampede_template::{Template, Typesetter};

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

/// Renders with the shipped template.
fn pdf(document: &TicketDocument) -> Vec<u8> {
    Typesetter::new(Template::default_ticket()).render(document).unwrap()
}

/// A typesetter for a template written in a test.
fn typesetter(source: &str) -> Typesetter {
    Typesetter::new(Template::from_source(source.to_owned()))
}
