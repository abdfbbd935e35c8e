//! Tickets: paging, filters, edits, withdrawing, deleting.

use std::time::Duration;

use stampede_model::{Currency, Holder, Money, Pdf, Ticket, TicketId, TicketStatus};
use stampede_store::{Completion, Edited, Failure, TicketEdit, TicketFilter};

use crate::backends::Database;
use crate::suite::samples::{
    assert_no_drift, at, completion, counts, event, failure, number, order, ordered,
};

on_every_backend!(
    pages_are_oldest_first_and_meet_without_gap_or_overlap,
    filters_are_joined_by_and,
    many_tickets_come_with_their_events,
    an_edited_ticket_is_made_anew,
    a_ticket_changed_meanwhile_is_not_overwritten,
    every_change_of_a_ticket_makes_it_later,
    a_void_ticket_is_never_left,
    a_deleted_ticket_is_counted_out,
    only_a_completed_ticket_can_be_stale,
    the_reconciler_sees_what_has_been_pending_for_long,
);

async fn pages_are_oldest_first_and_meet_without_gap_or_overlap(db: Database) {
    let store = db.store().await;
    let (event, first) = ordered(&store, 4).await;
    let mut second = order(&event, 3);
    store.place_order(&second).await.unwrap();
    number(&mut second, 5);
    let mut seen: Vec<Ticket> = Vec::new();
    loop {
        let after = seen.last().map(|ticket| ticket.id);
        let page = store.tickets(&TicketFilter::default(), after, 3).await.unwrap();
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 3);
        seen.extend(page);
    }
    assert_eq!(seen, [first.tickets, second.tickets].concat());
}

async fn filters_are_joined_by_and(db: Database) {
    let store = db.store().await;
    let (event_of_ann, first) = ordered(&store, 3).await;
    let second = order(&event_of_ann, 2);
    store.place_order(&second).await.unwrap();
    let event_of_bob = event("bob");
    store.insert_event(&event_of_bob).await.unwrap();
    store.place_order(&order(&event_of_bob, 1)).await.unwrap();
    store.complete_tickets(&[completion(first.tickets[0].id)]).await.unwrap();

    let any = TicketFilter::default;
    let completed = Some(TicketStatus::Completed);
    for (filter, expected) in [
        (any(), 6),
        (TicketFilter { owner: Some("ann".into()), ..any() }, 5),
        (TicketFilter { owner: Some("nobody".into()), ..any() }, 0),
        (TicketFilter { event: Some(event_of_bob.id), ..any() }, 1),
        (TicketFilter { batch: Some(second.batch_id), ..any() }, 2),
        (TicketFilter { status: completed, ..any() }, 1),
        (TicketFilter { status: completed, batch: Some(second.batch_id), ..any() }, 0),
        (TicketFilter { owner: Some("bob".into()), event: Some(event_of_ann.id), ..any() }, 0),
    ] {
        let found = store.tickets(&filter, None, 100).await.unwrap();
        assert_eq!(found.len(), expected, "{filter:?}");
    }
}

async fn many_tickets_come_with_their_events(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 3).await;
    let (other_event, other) = ordered(&store, 1).await;
    let ids = [other.tickets[0].id, order.tickets[2].id, TicketId::generate(), order.tickets[0].id];
    let found = store.tickets_with_events(&ids).await.unwrap();
    let expected = [
        (order.tickets[0].clone(), event.clone()),
        (order.tickets[2].clone(), event),
        (other.tickets[0].clone(), other_event),
    ];
    assert_eq!(found, expected);
    assert_eq!(store.tickets_with_events(&[]).await.unwrap(), []);
}

fn edit() -> TicketEdit {
    TicketEdit {
        holder: Holder {
            name: "Max".into(),
            phone: Some("+79991234567".into()),
            chat: Some("@max_news".into()),
            seat: Some("VIP".into()),
            ..Holder::default()
        },
        price: Some(Money::parse("12", "JPY".parse::<Currency>().unwrap()).unwrap()),
    }
}

async fn an_edited_ticket_is_made_anew(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 2).await;
    let id = order.tickets[0].id;
    store.complete_tickets(&[completion(id)]).await.unwrap();
    store.fail_tickets(&[failure(order.tickets[1].id)]).await.unwrap();
    assert_eq!(counts(&store, order.batch_id).await, [2, 1, 1, 0]);
    let before = store.batch(order.batch_id).await.unwrap().unwrap();

    for ticket in &order.tickets {
        let seen = store.ticket(ticket.id).await.unwrap().unwrap().updated_at;
        let edited = store.edit_ticket(ticket.id, &edit(), seen, at(8)).await.unwrap();
        let Edited::Changed(changed, batch) = edited else { panic!("{edited:?}") };
        assert_eq!(changed.holder, edit().holder);
        assert_eq!(changed.price, edit().price);
        assert_eq!(changed.status, TicketStatus::Pending);
        assert_eq!(changed.error, None);
        assert_eq!(changed.updated_at, at(8));
        assert_eq!(store.ticket(ticket.id).await.unwrap(), Some(*changed));
        assert_eq!(store.batch(order.batch_id).await.unwrap(), Some(batch));
    }
    // The former PDF is remembered: its fingerprint tells that it is stale.
    assert_eq!(store.ticket(id).await.unwrap().unwrap().pdf, Some(completion(id).pdf));
    let after = store.batch(order.batch_id).await.unwrap().unwrap();
    assert_eq!(counts(&store, order.batch_id).await, [2, 0, 0, 0]);
    assert!(after.revision > before.revision);
    assert_eq!(after.updated_at, at(8));
    let unknown = store.edit_ticket(TicketId::generate(), &edit(), at(1), at(9)).await.unwrap();
    assert_eq!(unknown, Edited::NotFound);
    assert_no_drift(&store).await;
}

async fn a_ticket_changed_meanwhile_is_not_overwritten(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 1).await;
    let id = order.tickets[0].id;
    // Two editors saw the same, in the same millisecond.
    let other = TicketEdit { price: None, ..edit() };
    let first = store.edit_ticket(id, &edit(), at(1), at(1)).await.unwrap();
    let Edited::Changed(ticket, batch) = first else { panic!("{first:?}") };
    let second = store.edit_ticket(id, &other, at(1), at(1)).await.unwrap();
    assert_eq!(second, Edited::ChangedMeanwhile);
    assert_eq!(store.ticket(id).await.unwrap().as_ref(), Some(&*ticket));
    assert_eq!(store.batch(order.batch_id).await.unwrap(), Some(batch));
    let again = store.edit_ticket(id, &other, ticket.updated_at, at(1)).await.unwrap();
    assert!(matches!(again, Edited::Changed(changed, _) if changed.price.is_none()));
}

async fn every_change_of_a_ticket_makes_it_later(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 1).await;
    let id = order.tickets[0].id;
    // Everybody's clock stands still at a time before the order.
    let now = at(0);
    let mut seen = at(1);
    for step in ["edit", "fail", "complete", "replace", "stale", "void"] {
        let done = Completion { seen, at: now, ..completion(id) };
        match step {
            "edit" => drop(store.edit_ticket(id, &edit(), seen, now).await.unwrap()),
            "fail" => {
                let failed = Failure { at: now, ..failure(id) };
                drop(store.fail_tickets(&[failed]).await.unwrap());
            }
            "complete" => drop(store.complete_tickets(&[done]).await.unwrap()),
            "replace" => {
                let pdf = Pdf::of("f2".into(), b"other");
                drop(store.complete_tickets(&[Completion { pdf, ..done }]).await.unwrap());
            }
            "stale" => drop(store.mark_stale(id, now).await.unwrap()),
            _ => drop(store.void_ticket(id, now).await.unwrap()),
        }
        let later = store.ticket(id).await.unwrap().unwrap().updated_at;
        assert_eq!(later, seen + Duration::from_millis(1), "{step}");
        seen = later;
    }
}

async fn a_void_ticket_is_never_left(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 2).await;
    let id = order.tickets[0].id;
    store.complete_tickets(&[completion(id)]).await.unwrap();
    let (ticket, batch) = store.void_ticket(id, at(7)).await.unwrap().unwrap();
    assert_eq!(ticket.status, TicketStatus::Void);
    assert_eq!([batch.total, batch.completed, batch.voided], [2, 0, 1]);

    assert_eq!(store.void_ticket(id, at(8)).await.unwrap(), Some((ticket.clone(), batch)));
    assert_eq!(store.edit_ticket(id, &edit(), at(7), at(9)).await.unwrap(), Edited::Void);
    assert_eq!(store.mark_stale(id, at(9)).await.unwrap(), None);
    assert_eq!(store.complete_tickets(&[completion(id)]).await.unwrap().changed, []);
    assert_eq!(store.fail_tickets(&[failure(id)]).await.unwrap().changed, []);
    assert_eq!(store.ticket(id).await.unwrap(), Some(ticket));
    assert_eq!(counts(&store, order.batch_id).await, [2, 0, 0, 1]);
    assert_eq!(store.void_ticket(TicketId::generate(), at(9)).await.unwrap(), None);
}

async fn a_deleted_ticket_is_counted_out(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 3).await;
    let ids: Vec<TicketId> = order.tickets.iter().map(|ticket| ticket.id).collect();
    store.complete_tickets(&[completion(ids[0])]).await.unwrap();
    let batch = store.delete_ticket(ids[0], at(9)).await.unwrap().unwrap();
    assert_eq!([batch.total, batch.completed], [2, 0]);
    assert_eq!(batch.updated_at, at(9));
    assert_eq!(store.delete_ticket(ids[0], at(9)).await.unwrap(), None);
    assert_eq!(store.batch_ticket_ids(order.batch_id).await.unwrap(), ids[1..]);
    assert_no_drift(&store).await;
}

async fn only_a_completed_ticket_can_be_stale(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 1).await;
    let id = order.tickets[0].id;
    assert_eq!(store.mark_stale(id, at(4)).await.unwrap(), None);
    store.complete_tickets(&[completion(id)]).await.unwrap();
    let batch = store.mark_stale(id, at(9)).await.unwrap().unwrap();
    assert_eq!([batch.completed, batch.pending()], [0, 1]);
    assert_eq!(batch.updated_at, at(9));
    assert_eq!(store.mark_stale(id, at(9)).await.unwrap(), None);
}

async fn the_reconciler_sees_what_has_been_pending_for_long(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 5).await;
    let ids: Vec<TicketId> = order.tickets.iter().map(|ticket| ticket.id).collect();
    store.complete_tickets(&[completion(ids[1])]).await.unwrap();
    store.edit_ticket(ids[2], &edit(), at(1), at(50)).await.unwrap();
    let pending = async |before, after, limit| -> Vec<TicketId> {
        let found = store.pending_tickets(before, after, limit).await.unwrap();
        found.iter().map(|ticket| ticket.id).collect()
    };
    assert_eq!(pending(at(1), None, 10).await, []);
    assert_eq!(pending(at(2), None, 10).await, [ids[0], ids[3], ids[4]]);
    assert_eq!(pending(at(2), None, 2).await, [ids[0], ids[3]]);
    assert_eq!(pending(at(2), Some(ids[3]), 2).await, [ids[4]]);
    assert_eq!(pending(at(60), None, 10).await, [ids[0], ids[2], ids[3], ids[4]]);
}
