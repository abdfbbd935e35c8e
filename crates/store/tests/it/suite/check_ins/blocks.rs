//! Blocked tickets.

use stampede_model::{Refusal, ScanResult, TicketId};

use super::{entry, exit, result, seq, ticket};
use crate::backends::Database;
use crate::suite::samples::{at, event, ordered};

on_every_backend!(
    a_blocked_ticket_is_refused_until_the_block_is_lifted,
    blocks_go_with_their_ticket_and_their_event,
);

async fn a_blocked_ticket_is_refused_until_the_block_is_lifted(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 3).await;
    let first = ticket(&store, order.tickets[0].id).await;
    let second = ticket(&store, order.tickets[1].id).await;
    let before = seq(&store, event.id).await;
    let block = store.block_ticket(event.id, first.id, Some("not paid"), at(5)).await.unwrap();
    let block = block.unwrap();
    assert_eq!((block.serial, block.reason.as_deref()), (first.serial, Some("not paid")));
    assert!(seq(&store, event.id).await > before, "scanners have to know");
    assert_eq!(result(&store, entry(&first, "north", "1")).await, ScanResult::Blocked);
    assert_eq!(result(&store, entry(&second, "north", "2")).await, ScanResult::Ok);
    let token = store.token(&first).await.unwrap();
    let verdict = store.verify(&token).await.unwrap();
    assert_eq!((verdict.refusal, verdict.is_genuine()), (Some(Refusal::Blocked), true));

    let again = store.block_ticket(event.id, first.id, None, at(9)).await.unwrap().unwrap();
    assert_eq!((again.reason, again.created_at), (None, at(5)), "blocked since the first time");
    store.block_ticket(event.id, second.id, None, at(9)).await.unwrap();
    let exit = result(&store, exit(&second, "north", "3")).await;
    assert_eq!(exit, ScanResult::Ok, "whoever is inside may leave");
    for since in [None, Some(seq(&store, event.id).await)] {
        let snapshot = store.check_in_snapshot(event.id, since).await.unwrap().unwrap();
        assert_eq!(snapshot.blocked, [first.serial, second.serial], "all of them: {since:?}");
    }

    assert!(store.unblock_ticket(event.id, first.id).await.unwrap());
    assert!(!store.unblock_ticket(event.id, first.id).await.unwrap());
    assert_eq!(result(&store, entry(&first, "north", "1")).await, ScanResult::Blocked, "as before");
    assert_eq!(result(&store, entry(&first, "north", "4")).await, ScanResult::Ok);
    assert_eq!(store.verify(&token).await.unwrap().refusal, None);
}

async fn blocks_go_with_their_ticket_and_their_event(db: Database) {
    let store = db.store().await;
    let (theirs, order) = ordered(&store, 2).await;
    let ids = [order.tickets[0].id, order.tickets[1].id];
    for id in ids {
        assert!(store.block_ticket(theirs.id, id, None, at(5)).await.unwrap().is_some());
    }
    let other = event("bob");
    store.insert_event(&other).await.unwrap();
    for (event, id) in [(other.id, ids[0]), (theirs.id, TicketId::generate())] {
        assert_eq!(store.block_ticket(event, id, None, at(5)).await.unwrap(), None);
        assert!(!store.unblock_ticket(event, id).await.unwrap());
    }
    store.delete_ticket(ids[0], at(6)).await.unwrap();
    assert!(!store.is_blocked(ids[0]).await.unwrap());
    let left: Vec<TicketId> =
        store.blocks(theirs.id).await.unwrap().iter().map(|block| block.ticket_id).collect();
    assert_eq!(left, [ids[1]]);
    store.delete_event_with_tickets(theirs.id).await.unwrap();
    assert!(!store.is_blocked(ids[1]).await.unwrap());
    assert_eq!(store.block_ticket(theirs.id, ids[1], None, at(7)).await.unwrap(), None);
}
