//! Lists, gates and devices.

use stampede_model::{
    AdmissionRules, CheckInList, Gate, GateId, KeyHash, KeyId, ListId, ScanId, ScanResult,
};
use stampede_store::{NewScan, Store};

use super::{device, entry, record, result, ticket};
use crate::backends::Database;
use crate::suite::samples::{at, event, order, ordered};

on_every_backend!(
    every_event_has_a_built_in_list_that_can_be_changed,
    a_list_admits_its_tickets_at_its_times,
    gates_are_named_renamed_and_deleted,
    a_device_is_enrolled_once_and_revoked,
    a_device_scans_for_its_list_at_its_gate,
);

fn list(event: &stampede_model::Event, rules: AdmissionRules) -> CheckInList {
    CheckInList {
        id: ListId::generate(),
        event_id: event.id,
        rules,
        created_at: at(0),
        updated_at: at(0),
    }
}

async fn lists(store: &Store, event: &stampede_model::Event) -> Vec<CheckInList> {
    store.check_in_lists(event.id).await.unwrap()
}

async fn every_event_has_a_built_in_list_that_can_be_changed(db: Database) {
    let store = db.store().await;
    let event = event("ann");
    store.insert_event(&event).await.unwrap();
    let main = lists(&store, &event).await.remove(0);
    assert_eq!((main.id, &main.rules), (ListId::main_of(event.id), &AdmissionRules::main()));
    let vip = list(&event, AdmissionRules { name: "VIP".into(), ..AdmissionRules::main() });
    assert!(store.put_check_in_list(&vip, None).await.unwrap());
    assert_eq!(lists(&store, &event).await, [main.clone(), vip.clone()]);

    let rules = AdmissionRules { entries: 0, opens_at: Some(at(1)), ..main.rules.clone() };
    let changed = CheckInList { rules, updated_at: at(50), ..main.clone() };
    assert!(store.put_check_in_list(&changed, Some(main.updated_at)).await.unwrap());
    assert!(
        !store.put_check_in_list(&changed, Some(main.updated_at)).await.unwrap(),
        "changed since"
    );
    assert_eq!(lists(&store, &event).await, [changed.clone(), vip.clone()]);
    assert_eq!(store.check_in_list(changed.id).await.unwrap(), Some(changed.clone()));

    assert!(store.delete_check_in_list(vip.id).await.unwrap());
    assert!(!store.delete_check_in_list(vip.id).await.unwrap());
    assert!(!store.delete_check_in_list(main.id).await.unwrap());
    assert_eq!(lists(&store, &event).await, [changed], "the built-in list stays as it is");
    store.delete_event(event.id).await.unwrap();
    assert!(!store.put_check_in_list(&vip, None).await.unwrap());
}

async fn a_list_admits_its_tickets_at_its_times(db: Database) {
    let store = db.store().await;
    let (event, first) = ordered(&store, 2).await;
    let second = order(&event, 1);
    store.place_order(&second).await.unwrap();
    let main = AdmissionRules::main();
    let seats = AdmissionRules { seats: Some(vec!["a-*".into()]), ..main.clone() };
    let batches = AdmissionRules { batches: Some(vec![second.batch_id]), ..main.clone() };
    let later = AdmissionRules { opens_at: Some(at(11)), ..main.clone() };
    let over = AdmissionRules { closes_at: Some(at(10)), ..main };
    use ScanResult::{Expired, NotOnList, NotYet, Ok};
    let tickets = [first.tickets[0].id, first.tickets[1].id, second.tickets[0].id];
    for (name, rules, results) in [
        ("seats", seats, [NotOnList, Ok, NotOnList]),
        ("batches", batches, [NotOnList, NotOnList, Ok]),
        ("later", later, [NotYet; 3]),
        ("over", over, [Expired; 3]),
    ] {
        let list = list(&event, AdmissionRules { name: name.into(), ..rules });
        store.put_check_in_list(&list, None).await.unwrap();
        for (id, wanted) in tickets.into_iter().zip(results) {
            let sold = ticket(&store, id).await;
            let scan =
                NewScan { list: Some(list.id), ..entry(&sold, name, &sold.serial.to_string()) };
            assert_eq!(result(&store, scan).await, wanted, "{name} {}", sold.serial);
        }
    }
}

async fn gates_are_named_renamed_and_deleted(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 1).await;
    let gate = Gate {
        id: GateId::generate(),
        event_id: event.id,
        name: "Nord".into(),
        created_at: at(0),
        updated_at: at(0),
    };
    assert!(store.put_gate(&gate).await.unwrap());
    let renamed = Gate { name: "North \"1\"".into(), ..gate };
    assert!(store.put_gate(&renamed).await.unwrap());
    assert_eq!(store.gates(event.id).await.unwrap(), std::slice::from_ref(&renamed));
    let sold = ticket(&store, order.tickets[0].id).await;
    let scan = NewScan { gate: Some(renamed.id), ..entry(&sold, "ann", "1") };
    assert_eq!(record(&store, scan).await.gate, Some(renamed.clone()));
    assert!(store.delete_gate(renamed.id).await.unwrap());
    assert!(!store.delete_gate(renamed.id).await.unwrap());
    assert_eq!(store.gate(renamed.id).await.unwrap(), None);
    let refused = record(&store, entry(&sold, "ann", "2")).await;
    let (previous, gate) = refused.previous.unwrap();
    assert_eq!((previous.gate_id, gate), (Some(renamed.id), None), "scans keep its id");
}

async fn a_device_is_enrolled_once_and_revoked(db: Database) {
    let store = db.store().await;
    let event = event("ann");
    store.insert_event(&event).await.unwrap();
    let phone = device(&event, "first", "code");
    store.insert_device(&phone, at(0)).await.unwrap();
    let user = async |secret: &str| {
        store.principal(&KeyHash::of(secret), at(1)).await.unwrap().map(|found| found.user)
    };
    assert_eq!(user("first").await.as_deref(), Some("ann"));
    let enrol = async |code: &str, secret: &str, second: u64| {
        store.enrol_device(&KeyHash::of(code), &KeyHash::of(secret), at(second)).await.unwrap()
    };
    assert_eq!(enrol("wrong", "x", 1).await, None);
    assert_eq!(enrol("code", "x", 600).await, None, "too late");
    let enrolled = enrol("code", "fresh", 599).await.unwrap();
    assert_eq!((enrolled.id, enrolled.name.as_str()), (phone.key.id, "Phone 1"));
    assert_eq!(enrol("code", "again", 599).await, None, "the code is used up");
    assert_eq!((user("first").await, user("fresh").await.as_deref()), (None, Some("ann")));

    store.touch_device(phone.key.id, Some(4), at(700)).await.unwrap();
    store.touch_device(phone.key.id, None, at(701)).await.unwrap();
    let seen = store.device(phone.key.id).await.unwrap().unwrap();
    assert_eq!((seen.unsent, seen.last_seen_at), (Some(4), Some(at(701))));
    for _ in 0..2 {
        assert!(store.revoke_device(phone.key.id, at(800)).await.unwrap());
    }
    assert!(!store.revoke_device(KeyId::generate(), at(800)).await.unwrap());
    assert_eq!(user("fresh").await, None);
    let revoked = store.devices(event.id).await.unwrap().remove(0);
    assert_eq!(revoked.revoked_at, Some(at(800)));
    let late = device(&event, "late", "late code");
    store.insert_device(&late, at(0)).await.unwrap();
    store.revoke_device(late.key.id, at(1)).await.unwrap();
    assert_eq!(enrol("late code", "x", 2).await, None, "a revoked device is not enrolled");
    store.delete_event(event.id).await.unwrap();
    assert_eq!(store.device(phone.key.id).await.unwrap(), None, "devices go with their event");
}

async fn a_device_scans_for_its_list_at_its_gate(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 1).await;
    let gate = Gate {
        id: GateId::generate(),
        event_id: event.id,
        name: "N".into(),
        created_at: at(0),
        updated_at: at(0),
    };
    let list = list(&event, AdmissionRules { seats: Some(Vec::new()), ..AdmissionRules::main() });
    store.put_gate(&gate).await.unwrap();
    store.put_check_in_list(&list, None).await.unwrap();
    let mut phone = device(&event, "secret", "code");
    (phone.gate, phone.list) = (Some(gate.id), Some(list.id));
    store.insert_device(&phone, at(0)).await.unwrap();
    let sold = ticket(&store, order.tickets[0].id).await;
    let mut scan = entry(&sold, "ann", "1");
    scan.scanner.key = Some(phone.key.id);
    let answer = record(&store, scan.clone()).await;
    assert_eq!(answer.scan.result, ScanResult::NotOnList);
    assert_eq!((answer.scan.gate_id, answer.scan.list_id), (Some(gate.id), list.id));
    assert_eq!(answer.scan.device_name, "Phone 1");
    let seen = store.device(phone.key.id).await.unwrap().unwrap();
    assert_eq!(seen.last_seen_at, Some(at(10)));
    // Without its list and gate it uses the built-in list.
    store.delete_check_in_list(list.id).await.unwrap();
    store.delete_gate(gate.id).await.unwrap();
    (scan.id, scan.nonce) = (ScanId::generate(), Some("2".into()));
    let answer = record(&store, scan).await;
    assert_eq!((answer.scan.result, answer.scan.gate_id), (ScanResult::Ok, None));
}
