//! Renders tickets and reads them back with the tools a customer's reader is made of:
//! poppler for the page and its text, zbar for the QR code, qpdf for the file's structure.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod confinement;
mod designs;
mod failures;
mod fields;
mod page;
mod readers;
mod reading;
mod stability;
mod texts;

use std::sync::Arc;

use stampede_model::TicketDocument;
use stampede_render::compiled::{Compiled, Stamped, Typeset};
use stampede_render::{Prepared, Values, blob, stamp};
use stampede_template::{
    Bundle, Design, Diagnostic, EventData, Published, compile, shipped, typeset,
};

/// Names in every script a ticket can be printed in, very short and very long ones.
const NAMES: &[&str] = &[
    "Amelia Hartmann",
    "Ян Ли",
    "Мария-Антуанетта Белосельская-Белозерская",
    "Άννα Παπαδοπούλου",
    "محمد عبد الله الهاشمي",
    "יוסי כהן",
    "अमिताभ बच्चन",
    "สมชาย ใจดี",
    "王小明",
    "김민준",
    "Zoë 🎉 O’Brien",
    "Li",
    "Maximiliane Featherstonehaugh-Cholmondeley von und zu Hohenlohe-Waldenburg-Schillingsfürst, the Third of That Name",
    "Wolfeschlegelsteinhausenbergerdorffwelchevoralternwarengewissenhaft",
];

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
        lang: "en".into(),
        primary: "#667eea".into(),
        secondary: "#764ba2".into(),
    }
}

/// A ticket of this guest, with a code as long as a signed token.
fn named(name: &str) -> TicketDocument {
    TicketDocument { name: name.into(), ..EventData::sample().sample_ticket() }
}

/// The event that a ticket names.
fn event_of(ticket: &TicketDocument) -> EventData {
    EventData {
        name: ticket.event.clone(),
        location: ticket.location.clone(),
        starts: ticket.starts.clone(),
        primary: ticket.primary.clone(),
        secondary: ticket.secondary.clone(),
        ..EventData::sample()
    }
}

/// The ticket in a design, stamped and by the slow path: everything must hold for both.
fn both_ways(design: &Design, ticket: &TicketDocument) -> [Vec<u8>; 2] {
    let event = event_of(ticket);
    let published = compile(&design.bundle, &event).unwrap_or_else(|all| panic!("{all:#?}"));
    let typeset = typeset(&slow_for(&design.bundle, &event), ticket);
    [stamp_ticket(&published, ticket), typeset.unwrap_or_else(|all| panic!("{all:#?}"))]
}

/// The ticket in the A4 design, stamped and by the slow path.
fn a4(ticket: &TicketDocument) -> [Vec<u8>; 2] {
    both_ways(&shipped()[0], ticket)
}

/// The ticket by the slow path of a template written in a test.
fn typeset_source(source: &str, ticket: &TicketDocument) -> Result<Vec<u8>, Vec<Diagnostic>> {
    typeset(&slow(&Bundle::of_source(source).unwrap()), ticket)
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
    slow_for(bundle, &EventData::sample())
}

/// The same for this event.
fn slow_for(bundle: &Bundle, event: &EventData) -> Typeset {
    let mut files: Vec<(String, Vec<u8>)> =
        bundle.files().iter().map(|(name, bytes)| (name.clone(), bytes.clone())).collect();
    files.push(("event.json".into(), serde_json::to_vec(event).unwrap()));
    Typeset { reason: "a test".into(), files }
}
