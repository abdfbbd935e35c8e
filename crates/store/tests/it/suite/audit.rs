//! The audit log.

use std::time::Duration;

use stampede_model::{AuditId, EventId, KeyHash, KeyId, Principal, Role, Timestamp};
use stampede_store::{
    AuditEntry, AuditFilter, AuditOrigin, AuditOutcome, AuditSettlement, Durability, NewKey,
    Placed, Slice, Sorted, Store,
};

use super::samples::{at, event, order};
use crate::backends::Database;

on_every_backend!(
    an_entry_is_settled_once_and_never_changed_again,
    entries_are_found_by_who_what_and_when,
    old_entries_and_too_many_refusals_are_removed_in_portions,
    an_order_writes_its_entry_in_its_own_transaction,
);

fn entry(id: AuditId, user: &str, operation: &str) -> AuditEntry {
    AuditEntry {
        id,
        user: user.into(),
        role: Role::Organiser,
        key: None,
        key_name: None,
        origin: AuditOrigin::Api,
        address: Some("192.0.2.7".into()),
        request_id: Some("r-1".into()),
        operation: operation.into(),
        kind: Some("event".into()),
        record: Some("record".into()),
        event: None,
        before: Some("{\"name\":\"Ночь\"}".into()),
        outcome: None,
        left_out: 0,
    }
}

fn outcome(status: u16) -> AuditOutcome {
    AuditOutcome { status, at: at(5), after: Some("{}".into()) }
}

async fn append(store: &Store, entry: &AuditEntry) {
    store.append_audit(entry, Durability::Relaxed).await.unwrap();
}

async fn an_entry_is_settled_once_and_never_changed_again(db: Database) {
    let store = db.store().await;
    let key = NewKey {
        id: KeyId::generate(),
        hash: KeyHash::of("secret"),
        principal: Principal::new("ann", Role::Organiser),
        name: "Box office".into(),
        expires_at: None,
    };
    store.insert_key(&key, at(0)).await.unwrap();
    let new = AuditEntry { key: Some(key.id), ..entry(AuditId::generate(), "ann", "updateEvent") };
    append(&store, &new).await;
    let read = store.audit_entry(new.id).await.unwrap().unwrap();
    assert_eq!(read, AuditEntry { key_name: Some("Box office".into()), ..new.clone() });
    let settlement = AuditSettlement {
        outcome: outcome(200),
        before: Some("{\"name\":\"later\"}".into()),
        record: Some("made".into()),
    };
    assert!(store.settle_audit(new.id, &settlement).await.unwrap());
    let settled = store.audit_entry(new.id).await.unwrap().unwrap();
    assert_eq!(settled.outcome, Some(outcome(200)));
    assert_eq!(settled.before.as_deref(), Some("{\"name\":\"later\"}"));
    assert_eq!(settled.record.as_deref(), Some("made"));
    let again = AuditSettlement { outcome: outcome(500), before: None, record: None };
    assert!(!store.settle_audit(new.id, &again).await.unwrap());
    assert_eq!(store.audit_entry(new.id).await.unwrap(), Some(settled));
    assert!(!store.settle_audit(AuditId::generate(), &again).await.unwrap());
}

/// An id of a moment.
fn id_at(at: Timestamp, n: u8) -> AuditId {
    let mut bytes = AuditId::earliest(at).to_bytes();
    bytes[15] = n;
    AuditId::from_bytes(bytes)
}

async fn entries_are_found_by_who_what_and_when(db: Database) {
    let store = db.store().await;
    let event = EventId::generate();
    let mut all = Vec::new();
    for n in 0..6_u8 {
        let id = id_at(at(u64::from(n)), n);
        let (user, operation) =
            (["ann", "bob"][usize::from(n % 2)], ["a", "b", "c"][usize::from(n % 3)]);
        let new = AuditEntry {
            event: (n < 2).then_some(event),
            record: Some(format!("r{}", n / 3)),
            ..entry(id, user, operation)
        };
        append(&store, &new).await;
        all.insert(0, new.id);
    }
    let whole = Slice::new(Sorted::NewestFirst, None, 100);
    let part = async |filter: AuditFilter, slice: Slice<AuditId>| -> Vec<AuditId> {
        let page = store.audit_entries(&filter, &slice).await.unwrap();
        page.into_iter().map(|entry| entry.id).collect()
    };
    let found = async |filter: AuditFilter| part(filter, whole).await;
    let none = AuditFilter::default;
    assert_eq!(found(none()).await, all, "newest first");
    let of_ann = AuditFilter { user: Some("ann".into()), ..none() };
    assert_eq!(found(of_ann).await, [all[1], all[3], all[5]]);
    let of_b = AuditFilter { operation: Some("b".into()), ..none() };
    assert_eq!(found(of_b).await, [all[1], all[4]]);
    let of_record = AuditFilter { record: Some("r1".into()), ..none() };
    assert_eq!(found(of_record).await, [all[0], all[1], all[2]]);
    let of_event = AuditFilter { event: Some(event), ..none() };
    assert_eq!(found(of_event).await, [all[4], all[5]]);
    let some_time = Slice { from: Some(at(1)), to: Some(at(3)), ..whole };
    assert_eq!(part(none(), some_time).await, [all[3], all[4]], "the end does not belong to it");
    let second = Slice { after: Some(all[1]), limit: 2, ..whole };
    assert_eq!(part(none(), second).await, all[2..4]);
    let oldest = Slice { after: Some(all[4]), limit: 2, sorted: Sorted::OldestFirst, ..whole };
    assert_eq!(part(none(), oldest).await, [all[3], all[2]]);
}

async fn old_entries_and_too_many_refusals_are_removed_in_portions(db: Database) {
    let store = db.store().await;
    for n in 0..7_u8 {
        append(&store, &entry(id_at(at(u64::from(n)), n), "ann", "a")).await;
    }
    assert_eq!(store.remove_audit_before(at(5), 3).await.unwrap(), 3);
    assert_eq!(store.remove_audit_before(at(5), 3).await.unwrap(), 2);
    assert_eq!(store.remove_audit_before(at(5), 3).await.unwrap(), 0);
    let later = at(0) + Duration::from_secs(100);
    for n in 0..7_u8 {
        let refused = AuditEntry {
            outcome: Some(outcome(403)),
            ..entry(id_at(later + Duration::from_secs(n.into()), n), "mallory", "a")
        };
        append(&store, &refused).await;
    }
    assert_eq!(store.remove_refusals_beyond(4, 2).await.unwrap(), 2);
    assert_eq!(store.remove_refusals_beyond(4, 2).await.unwrap(), 1);
    assert_eq!(store.remove_refusals_beyond(4, 2).await.unwrap(), 0);
    let whole = Slice::new(Sorted::NewestFirst, None, 100);
    let left = store.audit_entries(&AuditFilter::default(), &whole).await.unwrap();
    let refused = left.iter().filter(|entry| entry.user == "mallory").count();
    assert_eq!((left.len(), refused), (6, 4), "changes stay, and the newest refusals");
}

async fn an_order_writes_its_entry_in_its_own_transaction(db: Database) {
    let store = db.store().await;
    let event = event("ann");
    store.insert_event(&event).await.unwrap();
    let new = AuditEntry {
        outcome: Some(outcome(200)),
        ..entry(AuditId::generate(), "ann", "orderTickets")
    };
    let placed = store.place_noted_order(&order(&event, 2), Some(&new)).await.unwrap();
    assert!(matches!(placed, Placed::New(_)));
    assert_eq!(store.audit_entry(new.id).await.unwrap(), Some(new));
    // An order that is not placed leaves no entry.
    let gone = super::samples::event("ann");
    let other = AuditEntry { id: AuditId::generate(), ..entry(AuditId::generate(), "ann", "x") };
    let placed = store.place_noted_order(&order(&gone, 1), Some(&other)).await.unwrap();
    assert_eq!(placed, Placed::NoSuchEvent);
    assert_eq!(store.audit_entry(other.id).await.unwrap(), None);
}
