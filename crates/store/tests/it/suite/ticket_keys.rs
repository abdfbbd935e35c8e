//! Ticket keys: made, rotated, revoked, and which tokens are accepted then.

use stampede_model::{Event, EventId, Refusal, Signer, Ticket, TicketId, Token};
use stampede_store::{Edited, Revoked, Rotated, Store, TicketEdit};

use crate::backends::Database;
use crate::suite::samples::{assert_no_drift, at, completion_of_current, event, order, ordered};

on_every_backend!(
    a_token_is_the_same_every_time_and_proves_its_ticket,
    rotation_leaves_issued_tickets_as_they_are,
    a_revoked_key_proves_nothing_and_its_tickets_get_another,
    of_racing_changes_and_revocations_no_ticket_keeps_a_revoked_key,
    racing_rotations_make_one_key_each,
    another_name_or_seat_begins_a_generation_and_another_price_does_not,
    a_ticket_issued_anew_supersedes_its_paper,
    void_deleted_and_foreign_tickets_are_refused_with_a_reason,
    keys_go_with_their_event,
);

async fn ticket(store: &Store, id: TicketId) -> Ticket {
    store.ticket(id).await.unwrap().unwrap()
}

/// Why the token is refused, if it is; what goes to a scanner and comes back is text.
async fn refusal(store: &Store, token: &Token) -> Option<Refusal> {
    let read: Token = token.to_string().parse().unwrap();
    store.verify(&read).await.unwrap().refusal
}

fn rotated(result: Rotated) -> u32 {
    match result {
        Rotated::New(key) => key.number,
        other => panic!("{other:?}"),
    }
}

async fn a_token_is_the_same_every_time_and_proves_its_ticket(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 2).await;
    let ring = store.key_ring(&event).await.unwrap();
    assert_eq!((ring.keys().len(), ring.signing().unwrap().number), (1, 1));
    let second = ticket(&store, order.tickets[1].id).await;
    assert_eq!((second.serial, second.generation, second.signing_key), (2, 1, Some(1)));
    let token = store.token(&second).await.unwrap();
    let elsewhere = db.handle().await;
    assert_eq!(elsewhere.token(&second).await.unwrap(), token);

    let verdict = store.verify(&token).await.unwrap();
    assert!(verdict.is_genuine());
    assert_eq!((verdict.refusal, verdict.ticket), (None, Some(second)));
    assert_eq!(verdict.event, Some(event));
}

async fn rotation_leaves_issued_tickets_as_they_are(db: Database) {
    let store = db.store().await;
    let (event, first) = ordered(&store, 1).await;
    let before = ticket(&store, first.tickets[0].id).await;
    let old = store.token(&before).await.unwrap();
    assert_eq!(rotated(store.rotate_ticket_key(event.id, at(2)).await.unwrap()), 2);
    assert_eq!(ticket(&store, before.id).await, before);
    assert_eq!(store.token(&before).await.unwrap(), old);
    assert_eq!(refusal(&store, &old).await, None);

    let second = order(&event, 1);
    store.place_order(&second).await.unwrap();
    let after = ticket(&store, second.tickets[0].id).await;
    assert_eq!((after.serial, after.signing_key), (2, Some(2)));
    assert_eq!(refusal(&store, &store.token(&after).await.unwrap()).await, None);
    assert_eq!(
        store.rotate_ticket_key(EventId::generate(), at(2)).await.unwrap(),
        Rotated::NotFound
    );
}

async fn a_revoked_key_proves_nothing_and_its_tickets_get_another(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 3).await;
    let before = ticket(&store, order.tickets[0].id).await;
    let old = store.token(&before).await.unwrap();
    let half_done = completion_of_current(&store, before.id).await;

    let done = Revoked::Done { signing: 2, tickets: 3 };
    assert_eq!(store.revoke_ticket_key(event.id, 1, at(3)).await.unwrap(), done);
    assert_eq!(refusal(&store, &old).await, Some(Refusal::RevokedKey));
    let after = ticket(&store, before.id).await;
    assert_eq!((after.signing_key, after.generation, after.serial), (Some(2), 1, 1));
    assert_eq!(refusal(&store, &store.token(&after).await.unwrap()).await, None);
    // A PDF with the old token, made at that moment, must not count as made.
    assert_eq!(store.complete_tickets(&[half_done]).await.unwrap().changed, []);

    let again = Revoked::Done { signing: 2, tickets: 0 };
    assert_eq!(store.revoke_ticket_key(event.id, 1, at(9)).await.unwrap(), again);
    let ring = store.key_ring(&event).await.unwrap();
    assert_eq!(ring.key(1).unwrap().revoked_at, Some(at(3)), "the first time counts");
    assert_eq!(store.revoke_ticket_key(event.id, 7, at(3)).await.unwrap(), Revoked::NotFound);
    let nobody = EventId::generate();
    assert_eq!(store.revoke_ticket_key(nobody, 1, at(3)).await.unwrap(), Revoked::NotFound);

    // An older key than the one that signs takes nothing along.
    assert_eq!(rotated(store.rotate_ticket_key(event.id, at(4)).await.unwrap()), 3);
    let moved = Revoked::Done { signing: 3, tickets: 3 };
    assert_eq!(store.revoke_ticket_key(event.id, 2, at(5)).await.unwrap(), moved);
    assert_no_drift(&store).await;
}

async fn of_racing_changes_and_revocations_no_ticket_keeps_a_revoked_key(db: Database) {
    let store = db.store().await;
    let (event, first) = ordered(&store, 4).await;
    let ids: Vec<TicketId> = first.tickets.iter().map(|ticket| ticket.id).collect();
    for round in 1..=8u32 {
        let editor = db.handle().await;
        let buyer = db.handle().await;
        let order = order(&event, 3);
        let edits = async {
            for id in &ids {
                editor.reissue_ticket(*id, at(5)).await.unwrap();
            }
        };
        let (revoked, (), placed) = tokio::join!(
            store.revoke_ticket_key(event.id, round, at(5)),
            edits,
            buyer.place_order(&order)
        );
        placed.unwrap();
        assert!(matches!(revoked.unwrap(), Revoked::Done { signing, .. } if signing == round + 1));
        for id in ids.iter().copied().chain(order.tickets.iter().map(|ticket| ticket.id)) {
            assert_eq!(ticket(&store, id).await.signing_key, Some(round + 1));
        }
    }
    assert_no_drift(&store).await;
}

async fn racing_rotations_make_one_key_each(db: Database) {
    let store = db.store().await;
    let event = event("ann");
    store.insert_event(&event).await.unwrap();
    let rotations: Vec<_> = (0..6)
        .map(|_| {
            let (store, id) = (store.clone(), event.id);
            tokio::spawn(async move { rotated(store.rotate_ticket_key(id, at(2)).await.unwrap()) })
        })
        .collect();
    let mut numbers = Vec::new();
    for rotation in rotations {
        numbers.push(rotation.await.unwrap());
    }
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3, 4, 5, 6, 7]);
}

async fn edit(store: &Store, id: TicketId, change: impl FnOnce(&mut TicketEdit)) -> Ticket {
    let ticket = ticket(store, id).await;
    let mut edit = TicketEdit { holder: ticket.holder.clone(), price: ticket.price };
    change(&mut edit);
    match store.edit_ticket(id, &edit, ticket.updated_at, at(9)).await.unwrap() {
        Edited::Changed(ticket, _) => *ticket,
        other => panic!("{other:?}"),
    }
}

async fn another_name_or_seat_begins_a_generation_and_another_price_does_not(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 1).await;
    let id = order.tickets[0].id;
    let paper = store.token(&ticket(&store, id).await).await.unwrap();
    rotated(store.rotate_ticket_key(event.id, at(2)).await.unwrap());

    let cheaper = edit(&store, id, |edit| edit.price = None).await;
    let mailed = edit(&store, id, |edit| edit.holder.email = Some("new@example.com".into())).await;
    for same in [&cheaper, &mailed] {
        assert_eq!((same.generation, same.signing_key), (1, Some(1)));
    }
    assert_eq!(refusal(&store, &paper).await, None);

    let sold = edit(&store, id, |edit| edit.holder.name = "Bob".into()).await;
    assert_eq!((sold.generation, sold.signing_key, sold.serial), (2, Some(2), 1));
    assert_eq!(refusal(&store, &paper).await, Some(Refusal::Superseded));
    assert_eq!(refusal(&store, &store.token(&sold).await.unwrap()).await, None);
    for (generation, seat) in [(3, Some("B-1")), (4, None), (4, None), (5, Some("B-2"))] {
        let moved = edit(&store, id, |edit| edit.holder.seat = seat.map(str::to_owned)).await;
        assert_eq!(moved.generation, generation, "{seat:?}");
    }
}

async fn a_ticket_issued_anew_supersedes_its_paper(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 1).await;
    let id = order.tickets[0].id;
    let stolen = store.token(&ticket(&store, id).await).await.unwrap();
    let completion = completion_of_current(&store, id).await;
    store.complete_tickets(&[completion]).await.unwrap();
    let (anew, batch) = store.reissue_ticket(id, at(9)).await.unwrap().unwrap();
    assert_eq!((anew.generation, anew.status.as_str(), batch.completed), (2, "pending", 0));
    assert_eq!(refusal(&store, &stolen).await, Some(Refusal::Superseded));
    assert_eq!(refusal(&store, &store.token(&anew).await.unwrap()).await, None);
    assert_eq!(store.reissue_ticket(TicketId::generate(), at(9)).await.unwrap(), None);
    store.void_ticket(id, at(10)).await.unwrap();
    let (void, _) = store.reissue_ticket(id, at(11)).await.unwrap().unwrap();
    assert_eq!((void.generation, void.status.as_str()), (2, "void"), "void stays void");
    assert_no_drift(&store).await;
}

async fn void_deleted_and_foreign_tickets_are_refused_with_a_reason(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 2).await;
    let (one, two) = (order.tickets[0].id, order.tickets[1].id);
    let tokens = [
        store.token(&ticket(&store, one).await).await.unwrap(),
        store.token(&ticket(&store, two).await).await.unwrap(),
    ];
    store.void_ticket(one, at(5)).await.unwrap();
    store.delete_ticket(two, at(5)).await.unwrap();
    assert_eq!(refusal(&store, &tokens[0]).await, Some(Refusal::Void));
    assert_eq!(refusal(&store, &tokens[1]).await, Some(Refusal::UnknownTicket));
    assert!(store.verify(&tokens[1]).await.unwrap().is_genuine());

    let forged = Signer::new(event.id, 1, &[1; 32]).sign(1, 1);
    let verdict = store.verify(&forged).await.unwrap();
    assert_eq!((verdict.refusal, verdict.is_genuine()), (Some(Refusal::Forged), false));
    assert_eq!(verdict.ticket, None, "a forged token learns nothing of the ticket it names");
    let elsewhere = Signer::new(EventId::generate(), 1, &[1; 32]).sign(1, 1);
    assert_eq!(refusal(&store, &elsewhere).await, Some(Refusal::UnknownEvent));
}

async fn keys_go_with_their_event(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 1).await;
    let token = store.token(&ticket(&store, order.tickets[0].id).await).await.unwrap();
    rotated(store.rotate_ticket_key(event.id, at(2)).await.unwrap());
    store.delete_event_with_tickets(event.id).await.unwrap();
    assert_eq!(refusal(&store, &token).await, Some(Refusal::UnknownEvent));
    assert_eq!(keys_left(&store, &event).await, 0);
}

async fn keys_left(store: &Store, event: &Event) -> usize {
    store.key_ring(event).await.unwrap().keys().len()
}
