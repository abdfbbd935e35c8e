//! Events, orders, completions and failures to test with.

use std::time::Duration;

use stampede_model::{
    BatchId, Branding, Currency, Event, EventDetails, EventId, Holder, Money, Order, Pdf, Ticket,
    TicketId, TicketStatus, Timestamp,
};
use stampede_store::{Completion, Failure, Placed, Store};

/// A moment some seconds after a fixed one.
pub(crate) fn at(second: u64) -> Timestamp {
    "2026-11-16T10:00:00.123Z".parse::<Timestamp>().unwrap() + Duration::from_secs(second)
}

pub(crate) fn event(owner: &str) -> Event {
    Event {
        id: EventId::generate(),
        owner: owner.into(),
        details: EventDetails {
            name: "Ночь \"музеев\" 🎟".into(),
            location: "O'Hara's; DROP TABLE events".into(),
            starts_at: Some(at(86_400)),
            time_zone: "Europe/Moscow".into(),
            currency: Currency::USD,
            branding: Branding::default(),
            lang: Some("pt-BR".parse().unwrap()),
            template: None,
        },
        created_at: at(0),
        updated_at: at(0),
    }
}

pub(crate) fn order(event: &Event, quantity: u32) -> Order {
    let batch_id = BatchId::generate();
    let ticket = |index| Ticket {
        id: TicketId::generate(),
        event_id: event.id,
        batch_id,
        owner: event.owner.clone(),
        index,
        serial: 0,
        generation: 1,
        signing_key: None,
        holder: Holder {
            name: format!("Zoë \\ \"{index}\""),
            email: Some("zoe@example.com".into()),
            phone: (index % 2 == 1).then(|| format!("8 999 000-00-{index:02}")),
            chat: (index % 3 == 0).then(|| format!("{index}")),
            seat: (index % 2 == 0).then(|| format!("A-{index}")),
        },
        price: Some(Money::parse("49.9", Currency::USD).unwrap()),
        status: TicketStatus::Pending,
        error: None,
        pdf: None,
        processed_by: None,
        processed_at: None,
        created_at: at(1),
        updated_at: at(1),
    };
    Order {
        batch_id,
        event_id: event.id,
        owner: event.owner.clone(),
        tickets: (1..=quantity).map(ticket).collect(),
        idempotency: None,
        created_at: at(1),
    }
}

/// Writes an event of Ann's and an order of so many tickets for it.
pub(crate) async fn ordered(store: &Store, quantity: u32) -> (Event, Order) {
    let event = event("ann");
    store.insert_event(&event).await.unwrap();
    let mut order = order(&event, quantity);
    assert!(matches!(store.place_order(&order).await.unwrap(), Placed::New(_)));
    number(&mut order, 1);
    (event, order)
}

/// Gives the tickets of an order the serials and the key that the store gives them.
pub(crate) fn number(order: &mut Order, first_serial: u32) {
    for (ticket, serial) in order.tickets.iter_mut().zip(first_serial..) {
        (ticket.serial, ticket.signing_key) = (serial, Some(1));
    }
}

/// The first completion of a ticket that was read right after it was ordered.
pub(crate) fn completion(ticket_id: TicketId) -> Completion {
    let pdf = Pdf::of("f1".into(), b"%PDF");
    Completion { ticket_id, seen: at(1), pdf, worker: "w1".into(), at: at(5) }
}

/// A completion of the ticket as it is now.
pub(crate) async fn completion_of_current(store: &Store, id: TicketId) -> Completion {
    let ticket = store.ticket(id).await.unwrap();
    let seen = ticket.map_or(at(1), |ticket| ticket.updated_at);
    Completion { seen, ..completion(id) }
}

pub(crate) fn failure(ticket_id: TicketId) -> Failure {
    Failure { ticket_id, reason: "no glyph for '𓀀'".into(), worker: "w1".into(), at: at(6) }
}

/// Total, completed, failed, voided.
pub(crate) async fn counts(store: &Store, batch: BatchId) -> [u64; 4] {
    let batch = store.batch(batch).await.unwrap().unwrap();
    [batch.total, batch.completed, batch.failed, batch.voided]
}

/// Asserts that the counters of all batches equal a count of their tickets.
pub(crate) async fn assert_no_drift(store: &Store) {
    assert_eq!(store.drifted_batches().await.unwrap(), []);
}

/// Random numbers that can be repeated: a linear congruential generator.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below the limit.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    /// Up to six of the values; a value may come twice.
    pub(crate) fn some<T: Copy>(&mut self, from: &[T]) -> Vec<T> {
        (0..1 + self.below(6)).map(|_| from[self.below(from.len())]).collect()
    }
}
