//! Changes that are meant for one version of a record.

use stampede_model::{Gate, GateId, Holder, KeyHash, KeyId, Principal, Role, Timestamp};
use stampede_store::{
    Deleted, Edited, KeyEdit, KeyWritten, NewKey, Store, TemplateDeleted, TicketEdit, Versioned,
};

use super::samples::{at, event, ordered};
use super::templates::written;
use crate::backends::Database;

on_every_backend!(
    a_change_of_another_version_is_not_made,
    of_concurrent_changes_of_one_version_one_is_made,
    keys_and_devices_have_versions_that_their_use_does_not_change,
);

fn gate(event: &stampede_model::Event) -> Gate {
    let name = "North".to_owned();
    Gate { id: GateId::generate(), event_id: event.id, name, created_at: at(0), updated_at: at(0) }
}

fn key(name: &str) -> NewKey {
    NewKey {
        id: KeyId::generate(),
        hash: KeyHash::of(name),
        principal: Principal::new("ann", Role::Organiser),
        name: name.to_owned(),
        expires_at: None,
    }
}

async fn a_change_of_another_version_is_not_made(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 2).await;
    let ticket = order.tickets[0].id;
    let old = Some(at(500));
    let changed = Versioned::ChangedMeanwhile;
    assert_eq!(store.delete_event_as_seen(event.id, old).await.unwrap(), Deleted::ChangedMeanwhile);
    assert!(matches!(
        store.delete_event_with_tickets_as_seen(event.id, old).await.unwrap(),
        Versioned::ChangedMeanwhile
    ));
    assert_eq!(
        store.delete_ticket_as_seen(ticket, old, at(9)).await.unwrap(),
        Versioned::ChangedMeanwhile
    );
    assert!(matches!(
        store.void_ticket_as_seen(ticket, old, at(9)).await.unwrap(),
        Versioned::ChangedMeanwhile
    ));
    let gate = gate(&event);
    store.put_gate(&gate).await.unwrap();
    assert_eq!(store.delete_gate_as_seen(gate.id, old).await.unwrap(), changed);
    let renamed = Gate { name: "South".into(), updated_at: at(9), ..gate.clone() };
    let other = store.rename_gate_as_seen(&renamed, old).await.unwrap();
    assert_eq!(other, Versioned::ChangedMeanwhile);
    let Versioned::Done(now) = store.rename_gate_as_seen(&renamed, Some(at(0))).await.unwrap()
    else {
        panic!("it has this version")
    };
    assert_eq!((now.name.as_str(), now.updated_at), ("South", at(9)));
    // A clock that went back does not give a version again.
    let late = Gate { updated_at: at(3), ..renamed };
    let Versioned::Done(later) = store.rename_gate_as_seen(&late, Some(at(9))).await.unwrap()
    else {
        panic!("it has this version")
    };
    assert!(later.updated_at > at(9), "{later:?}");
    assert_eq!(store.gate(gate.id).await.unwrap(), Some(later));

    let none = store.block_ticket_as_seen(event.id, ticket, None, old, at(1)).await.unwrap();
    assert_eq!(none, Versioned::ChangedMeanwhile, "there is no block of this version");
    let first = store.block_ticket(event.id, ticket, None, at(1)).await.unwrap().unwrap();
    let seen = Some(first.updated_at);
    let why = Some("stolen");
    let again = store.block_ticket_as_seen(event.id, ticket, why, seen, at(2)).await.unwrap();
    let again = again.done().unwrap();
    assert_eq!((again.created_at, again.updated_at), (at(1), at(2)));
    assert_eq!(store.block(ticket).await.unwrap(), Some(again));
    let lifted = store.unblock_ticket_as_seen(event.id, ticket, seen).await.unwrap();
    assert_eq!(lifted, Versioned::ChangedMeanwhile);
    assert_eq!(
        store.unblock_ticket_as_seen(event.id, ticket, Some(at(2))).await.unwrap(),
        Versioned::Done(())
    );

    let template = written(&store, "ann", "one").await;
    let kept = store.delete_template_as_seen(template.id, old).await.unwrap();
    assert_eq!(kept, TemplateDeleted::ChangedMeanwhile);
    let seen = Some(template.updated_at);
    let gone = store.delete_template_as_seen(template.id, seen).await.unwrap();
    assert_eq!(gone, TemplateDeleted::Gone);
}

/// How many of eight changes were made.
async fn made<F: Future<Output = bool>>(change: impl Fn(u64) -> F) -> usize {
    let all = (0..8).map(change);
    futures::future::join_all(all).await.into_iter().filter(|made| *made).count()
}

async fn of_concurrent_changes_of_one_version_one_is_made(db: Database) {
    let store = &db.store().await;
    let (event, order) = ordered(store, 1).await;
    let gate = &gate(&event);
    store.put_gate(gate).await.unwrap();
    let renamed = made(async |n| {
        let gate = Gate { name: format!("Gate {n}"), updated_at: at(n), ..gate.clone() };
        store.rename_gate_as_seen(&gate, Some(at(0))).await.unwrap().done().is_some()
    });
    assert_eq!(renamed.await, 1);

    let ticket = store.ticket(order.tickets[0].id).await.unwrap().unwrap();
    let (id, seen) = (ticket.id, ticket.updated_at);
    let edited = made(async |n| match n % 2 {
        0 => store.void_ticket_as_seen(id, Some(seen), at(n)).await.unwrap().done().is_some(),
        _ => {
            let holder = Holder { name: format!("Guest {n}"), ..ticket.holder.clone() };
            let edit = TicketEdit { holder, price: ticket.price };
            matches!(store.edit_ticket(id, &edit, seen, at(n)).await.unwrap(), Edited::Changed(..))
        }
    });
    assert_eq!(edited.await, 1);

    let key = key("one");
    store.insert_key(&key, at(0)).await.unwrap();
    let changed = made(async |n| match n % 2 {
        0 => store.end_key_as_seen(key.id, Some(at(0)), at(n)).await.unwrap().done().is_some(),
        _ => {
            let edit = KeyEdit { name: Some(format!("name {n}")), expires_at: None };
            let written = store.edit_key_as_seen(key.id, &edit, Some(at(0)), at(n)).await.unwrap();
            written == KeyWritten::Done
        }
    });
    assert_eq!(changed.await, 1);

    let block = store.block_ticket(event.id, id, None, at(0)).await.unwrap().unwrap();
    let seen = Some(block.updated_at);
    let blocked = made(async |n| match n % 2 {
        0 => store.unblock_ticket_as_seen(event.id, id, seen).await.unwrap().done().is_some(),
        _ => {
            let changed = store.block_ticket_as_seen(event.id, id, Some("x"), seen, at(n)).await;
            changed.unwrap().done().is_some()
        }
    });
    assert_eq!(blocked.await, 1);
}

async fn version(store: &Store, id: KeyId) -> Timestamp {
    store.api_key(id, at(0)).await.unwrap().unwrap().updated_at
}

async fn keys_and_devices_have_versions_that_their_use_does_not_change(db: Database) {
    let store = db.store().await;
    let event = event("ann");
    store.insert_event(&event).await.unwrap();
    let key = key("one");
    store.insert_key(&key, at(0)).await.unwrap();
    assert_eq!(version(&store, key.id).await, at(0));
    let used = stampede_store::KeyUse { key: key.id, at: at(50), from: None };
    store.note_key_uses(&[used]).await.unwrap();
    assert_eq!(version(&store, key.id).await, at(0));
    store.rotate_key(key.id, &KeyHash::of("two"), None, at(60)).await.unwrap();
    assert_eq!(version(&store, key.id).await, at(60));
    assert!(store.revoke_key(&KeyHash::of("two"), at(70)).await.unwrap());
    assert_eq!(version(&store, key.id).await, at(70));

    let device = super::check_ins::device(&event, "secret", "code");
    store.insert_device(&device, at(0)).await.unwrap();
    store.touch_device(device.key.id, Some(3), at(10)).await.unwrap();
    assert_eq!(store.device(device.key.id).await.unwrap().unwrap().updated_at, at(0));
    let enrolled = store.enrol_device(&KeyHash::of("code"), &KeyHash::of("new"), at(20)).await;
    assert_eq!(enrolled.unwrap().unwrap().updated_at, at(20));
    let id = device.key.id;
    let old = store.revoke_device_as_seen(id, Some(at(0)), at(30)).await.unwrap();
    assert_eq!(old, Versioned::ChangedMeanwhile);
    let revoked = store.revoke_device_as_seen(id, Some(at(20)), at(30)).await.unwrap();
    assert_eq!(revoked, Versioned::Done(()));
    assert_eq!(version(&store, id).await, at(30));
}
