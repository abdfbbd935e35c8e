//! A ticket that nobody ordered: to try out a template before the first order does.

use anyhow::{Context, Result};
use stampede_model::{
    BatchId, Branding, Currency, Event, EventDetails, EventId, Holder, Signer, Ticket,
    TicketDocument, TicketId, TicketStatus, Timestamp,
};
use stampede_template::{Template, Typesetter};

/// Makes one ticket with the template, without keeping it.
pub(crate) fn try_out(template: Template) -> Result<Vec<u8>> {
    let rendered = Typesetter::new(template).render(&document());
    rendered.context("the ticket template does not work (TICKET_TEMPLATE)")
}

fn document() -> TicketDocument {
    let now = Timestamp::UNIX_EPOCH;
    let event = Event {
        id: EventId::generate(),
        owner: String::new(),
        details: EventDetails {
            name: "Doctor's visit".to_owned(),
            location: "Here".to_owned(),
            starts_at: Some(now),
            time_zone: "UTC".to_owned(),
            currency: Currency::USD,
            branding: Branding::default(),
        },
        created_at: now,
        updated_at: now,
    };
    let ticket = Ticket {
        id: TicketId::generate(),
        event_id: event.id,
        batch_id: BatchId::generate(),
        owner: String::new(),
        index: 1,
        serial: 1,
        generation: 1,
        signing_key: Some(1),
        holder: Holder {
            name: "Пациент Patient".to_owned(),
            email: None,
            seat: Some("A-1".to_owned()),
        },
        price: None,
        status: TicketStatus::Pending,
        error: None,
        pdf: None,
        processed_by: None,
        processed_at: None,
        created_at: now,
        updated_at: now,
    };
    // A key that everybody knows: this ticket opens no door.
    let token = Signer::new(event.id, 1, &[0; 32]).sign(1, 1);
    TicketDocument::new(&event, &ticket, &token)
}
