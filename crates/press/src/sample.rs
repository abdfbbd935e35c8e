//! A sample event and a sample ticket, to try out a template before the first order.

use stampede_model::{
    BatchId, Branding, Currency, Event, EventDetails, EventId, Holder, Money, Signer, Ticket,
    TicketDocument, TicketId, TicketStatus, Timestamp, Token,
};

/// An event with everything that can be printed of one.
pub fn event() -> Event {
    // 21 November 2026, 19:30 in Berlin: always the same, so that a preview is.
    let starts_at = Timestamp::from_second(1_795_285_800).ok();
    Event {
        id: EventId::from_bytes([0; 16]),
        owner: String::new(),
        details: EventDetails {
            name: "Sample Night".to_owned(),
            location: "Main Hall, 1 Example Street".to_owned(),
            starts_at,
            time_zone: "Europe/Berlin".to_owned(),
            currency: "EUR".parse().unwrap_or(Currency::USD),
            branding: Branding::default(),
            lang: None,
            template: None,
        },
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
    }
}

/// The holder of a sample ticket.
pub fn holder() -> Holder {
    Holder {
        name: "Zoë Петрова".to_owned(),
        seat: Some("Row 12, Seat 7".to_owned()),
        ..Holder::default()
    }
}

/// The price of a sample ticket.
pub fn price(event: &Event) -> Option<Money> {
    Money::parse("49", event.details.currency).ok()
}

/// The document of a holder. Its code is as long as a real one and admits nobody.
pub fn document(event: &Event, holder: Holder, price: Option<Money>) -> TicketDocument {
    TicketDocument::new(event, &ticket(event, holder, price), &token(event))
}

/// A token of the right length, signed by a key that is public.
pub fn token(event: &Event) -> Token {
    Signer::new(event.id, 1, &[0; 32]).sign(1, 1)
}

/// A sample ticket.
pub fn ticket(event: &Event, holder: Holder, price: Option<Money>) -> Ticket {
    Ticket {
        id: TicketId::from_bytes([0; 16]),
        event_id: event.id,
        batch_id: BatchId::from_bytes([0; 16]),
        owner: String::new(),
        index: 1,
        serial: 42,
        generation: 1,
        signing_key: Some(1),
        holder,
        price,
        status: TicketStatus::Pending,
        error: None,
        pdf: None,
        processed_by: None,
        processed_at: None,
        created_at: event.created_at,
        updated_at: event.created_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_says_everything_a_ticket_can_say() {
        let event = event();
        let document = document(&event, holder(), price(&event));
        assert_eq!(document.starts.as_deref(), Some("Saturday, 21 November 2026, 19:30"));
        assert!(document.price.is_some() && document.seat.is_some());
        assert!(document.code.len() > 100, "{}", document.code);
    }
}
