//! Events: round trip, paging, deleting.

use std::time::Duration;

use stampede_model::{Event, EventId};
use stampede_store::{Deleted, Placed};

use crate::backends::Database;
use crate::suite::samples::{assert_no_drift, at, event, order, ordered};

on_every_backend!(
    an_event_comes_back_as_it_was_written,
    of_racing_changes_none_is_lost,
    pages_are_newest_first_and_meet_without_gap_or_overlap,
    only_an_event_without_tickets_is_deleted_alone,
    an_event_deleted_with_its_tickets_leaves_nothing,
    an_order_and_the_deletion_of_its_event_never_leave_half,
);

async fn an_event_comes_back_as_it_was_written(db: Database) {
    let store = db.store().await;
    let mut event = event("ann");
    store.insert_event(&event).await.unwrap();
    assert_eq!(store.event(event.id).await.unwrap().as_ref(), Some(&event));

    event.details.name = "Другое".into();
    event.details.starts_at = None;
    event.details.branding.primary = "#000000".parse().unwrap();
    event.updated_at = at(9);
    assert!(store.update_event(&event, at(0)).await.unwrap());
    assert_eq!(store.event(event.id).await.unwrap().as_ref(), Some(&event));

    event.id = EventId::generate();
    assert!(!store.update_event(&event, at(9)).await.unwrap());
    assert_eq!(store.event(event.id).await.unwrap(), None);
}

async fn of_racing_changes_none_is_lost(db: Database) {
    let store = db.store().await;
    let first = event("ann");
    store.insert_event(&first).await.unwrap();
    let editors: Vec<_> = (0..6)
        .map(|_| {
            let (store, id) = (store.clone(), first.id);
            tokio::spawn(async move {
                // All by the same clock, which stands still and is behind.
                loop {
                    let mut event = store.event(id).await.unwrap().unwrap();
                    let seen = event.updated_at;
                    event.details.name += "+";
                    event.updated_at = at(0);
                    if store.update_event(&event, seen).await.unwrap() {
                        break;
                    }
                }
            })
        })
        .collect();
    for editor in editors {
        editor.await.unwrap();
    }
    let last = store.event(first.id).await.unwrap().unwrap();
    assert_eq!(last.details.name, format!("{}++++++", first.details.name));
    assert_eq!(last.updated_at, at(0) + Duration::from_millis(6));
}

async fn pages_are_newest_first_and_meet_without_gap_or_overlap(db: Database) {
    let store = db.store().await;
    let mut all: Vec<Event> = Vec::new();
    for owner in ["ann", "bob", "ann", "ann", "bob", "ann", "ann"] {
        let event = event(owner);
        store.insert_event(&event).await.unwrap();
        all.insert(0, event);
    }
    let mut seen = Vec::new();
    loop {
        let after = seen.last().map(|event: &Event| event.id);
        let page = store.events(None, after, 3).await.unwrap();
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 3);
        seen.extend(page);
    }
    assert_eq!(seen, all);
    let of_ann = store.events(Some("ann"), None, 100).await.unwrap();
    assert_eq!(of_ann.len(), 5);
    assert!(of_ann.iter().all(|event| event.owner == "ann"));
    let rest = store.events(Some("ann"), Some(of_ann[1].id), 2).await.unwrap();
    assert_eq!(rest, of_ann[2..4]);
}

async fn only_an_event_without_tickets_is_deleted_alone(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 2).await;
    assert_eq!(store.delete_event(event.id).await.unwrap(), Deleted::HasTickets(2));
    for ticket in &order.tickets {
        store.delete_ticket(ticket.id, at(3)).await.unwrap();
    }
    assert_eq!(store.delete_event(event.id).await.unwrap(), Deleted::Gone);
    assert_eq!(store.delete_event(event.id).await.unwrap(), Deleted::NotFound);
    assert_eq!(store.batch(order.batch_id).await.unwrap(), None);
}

async fn an_event_deleted_with_its_tickets_leaves_nothing(db: Database) {
    let store = db.store().await;
    let (event, gone) = ordered(&store, 3).await;
    let (_, other) = ordered(&store, 1).await;
    let mut ids = store.delete_event_with_tickets(event.id).await.unwrap();
    ids.sort();
    assert_eq!(ids, gone.tickets.iter().map(|ticket| ticket.id).collect::<Vec<_>>());
    assert_eq!(store.event(event.id).await.unwrap(), None);
    assert_eq!(store.batch(gone.batch_id).await.unwrap(), None);
    assert_eq!(store.ticket(gone.tickets[0].id).await.unwrap(), None);
    assert!(store.ticket(other.tickets[0].id).await.unwrap().is_some());
    assert_eq!(store.delete_event_with_tickets(event.id).await.unwrap(), []);
    assert_no_drift(&store).await;
}

async fn an_order_and_the_deletion_of_its_event_never_leave_half(db: Database) {
    let store = db.store().await;
    for _ in 0..10 {
        let event = event("ann");
        store.insert_event(&event).await.unwrap();
        let order = order(&event, 20);
        let (placed, deleted) =
            tokio::join!(store.place_order(&order), store.delete_event(event.id));
        let left = store.batch_ticket_ids(order.batch_id).await.unwrap().len();
        match (placed.unwrap(), deleted.unwrap()) {
            (Placed::New(_), Deleted::HasTickets(20)) => assert_eq!(left, 20),
            (Placed::NoSuchEvent, Deleted::Gone) => assert_eq!(left, 0),
            other => panic!("{other:?}"),
        }
    }
}
