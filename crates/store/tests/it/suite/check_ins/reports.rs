//! Snapshots for scanners, and figures for organisers.

use std::collections::BTreeMap;

use stampede_model::{
    Admission, AdmissionRules, CheckInList, EventId, Gate, GateId, ListId, ScanKind, ScanResult,
    TicketId,
};
use stampede_store::{NewScan, Snapshot, Store};

use super::{entry, exit, record, ticket};
use crate::backends::Database;
use crate::suite::samples::{Dice, at, order, ordered};

on_every_backend!(
    a_snapshot_names_what_is_void_reissued_deleted_and_inside,
    changes_on_top_of_a_snapshot_are_the_next_snapshot,
    every_change_that_scanners_must_know_has_a_number,
    figures_count_what_happened,
);

async fn snapshot(store: &Store, event: EventId, since: Option<u64>) -> Snapshot {
    store.check_in_snapshot(event, since).await.unwrap().unwrap()
}

async fn a_snapshot_names_what_is_void_reissued_deleted_and_inside(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 9).await;
    let ids: Vec<TicketId> = order.tickets.iter().map(|ticket| ticket.id).collect();
    store.void_ticket(ids[1], at(5)).await.unwrap();
    store.reissue_ticket(ids[2], at(5)).await.unwrap();
    for deleted in [0, 4, 5, 8] {
        store.delete_ticket(ids[deleted], at(5)).await.unwrap();
    }
    record(&store, entry(&ticket(&store, ids[3]).await, "north", "1")).await;
    let all = snapshot(&store, event.id, None).await;
    assert!(all.full && all.seats.is_empty());
    assert_eq!((all.last_serial, all.keys.len(), all.lists.len()), (9, 1, 1));
    let marks: Vec<(u32, Option<u32>)> =
        all.tickets.iter().map(|mark| (mark.serial, mark.generation)).collect();
    let wanted = [(1, None), (2, None), (3, Some(2)), (5, None), (6, None), (9, None)];
    assert_eq!(marks, wanted);
    let [inside] = all.admissions.as_slice() else { panic!("{all:?}") };
    assert_eq!((inside.serial, inside.state), (4, Admission { entered: 1, exited: 0 }));

    assert!(snapshot(&store, event.id, Some(all.seq + 1)).await.full, "a number of the future");
    let some = AdmissionRules { seats: Some(vec!["A*".into()]), ..AdmissionRules::main() };
    let list = CheckInList {
        id: ListId::generate(),
        event_id: event.id,
        rules: some,
        created_at: at(0),
        updated_at: at(0),
    };
    store.put_check_in_list(&list, None).await.unwrap();
    let after = snapshot(&store, event.id, Some(all.seq)).await;
    assert!(after.full, "a list has changed");
    assert_eq!(after.seats.len(), 5);
}

/// What a scanner knows: generations of tickets (`None`: void) and states on lists.
#[derive(Debug, Default, PartialEq)]
struct Known {
    seq: u64,
    tickets: BTreeMap<u32, Option<u32>>,
    states: BTreeMap<(ListId, u32), Admission>,
}

impl Known {
    fn learn(&mut self, news: &Snapshot) {
        if news.full {
            *self = Self::default();
        }
        self.seq = news.seq;
        self.tickets.extend(news.tickets.iter().map(|mark| (mark.serial, mark.generation)));
        let states = news.admissions.iter().map(|mark| ((mark.list, mark.serial), mark.state));
        self.states.extend(states);
    }

    /// What it decides about: a deleted ticket has no state, and one that nobody used has an empty one.
    fn decisive(mut self) -> Self {
        let void = |serial: &u32| self.tickets.get(serial) == Some(&None);
        self.states.retain(|(_, serial), state| !void(serial) && *state != Admission::default());
        self
    }
}

async fn changes_on_top_of_a_snapshot_are_the_next_snapshot(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 12).await;
    let mut dice = Dice(7);
    let mut known = Known::default();
    known.learn(&snapshot(&store, event.id, None).await);
    let mut scans = Vec::new();
    for step in 0..60 {
        let id = order.tickets[dice.below(12)].id;
        match dice.below(10) {
            0 => drop(store.void_ticket(id, at(step)).await.unwrap()),
            1 => drop(store.reissue_ticket(id, at(step)).await.unwrap()),
            2 if step % 3 == 0 => drop(store.delete_ticket(id, at(step)).await.unwrap()),
            3 if !scans.is_empty() => {
                let scan = scans[dice.below(scans.len())];
                store.undo_scan(scan, None, at(step)).await.unwrap();
            }
            way => {
                let Some(sold) = store.ticket(id).await.unwrap() else { continue };
                let nonce = step.to_string();
                let scan = match way {
                    4 | 5 => exit(&sold, "north", &nonce),
                    _ => entry(&sold, "north", &nonce),
                };
                scans.push(record(&store, scan).await.scan.id);
            }
        }
        if dice.below(4) == 0 {
            known.learn(&snapshot(&store, event.id, Some(known.seq)).await);
            let mut fresh = Known::default();
            fresh.learn(&snapshot(&store, event.id, None).await);
            let before = std::mem::take(&mut known);
            assert_eq!(before.decisive(), fresh.decisive(), "step {step}");
            known.learn(&snapshot(&store, event.id, None).await);
        }
    }
}

async fn every_change_that_scanners_must_know_has_a_number(db: Database) {
    let store = db.store().await;
    let (event, first) = ordered(&store, 3).await;
    let ids: Vec<TicketId> = first.tickets.iter().map(|ticket| ticket.id).collect();
    let mut last = super::seq(&store, event.id).await;
    let mut moved = async |what: &str, by: u64| {
        let seq = super::seq(&store, event.id).await;
        assert_eq!(seq, last + by, "{what}");
        last = seq;
    };
    store.place_order(&order(&event, 2)).await.unwrap();
    moved("an order is nothing that refuses a ticket", 0).await;
    store.void_ticket(ids[0], at(5)).await.unwrap();
    moved("void", 1).await;
    store.void_ticket(ids[0], at(6)).await.unwrap();
    moved("void again", 0).await;
    store.reissue_ticket(ids[1], at(5)).await.unwrap();
    moved("reissue", 1).await;
    let completion = crate::suite::samples::completion_of_current(&store, ids[2]).await;
    store.complete_tickets(&[completion]).await.unwrap();
    moved("a PDF is made", 0).await;
    store.delete_ticket(ids[2], at(7)).await.unwrap();
    moved("delete", 1).await;
    store.rotate_ticket_key(event.id, at(8)).await.unwrap();
    moved("a new key", 1).await;
    store.revoke_ticket_key(event.id, 1, at(9)).await.unwrap();
    moved("a revoked key", 1).await;
    let gate = Gate {
        id: GateId::generate(),
        event_id: event.id,
        name: "N".into(),
        created_at: at(0),
        updated_at: at(0),
    };
    store.put_gate(&gate).await.unwrap();
    moved("a gate", 1).await;
}

async fn figures_count_what_happened(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 4).await;
    let gate = Gate {
        id: GateId::generate(),
        event_id: event.id,
        name: "N".into(),
        created_at: at(0),
        updated_at: at(0),
    };
    store.put_gate(&gate).await.unwrap();
    let mut tickets = Vec::new();
    for sold in &order.tickets {
        tickets.push(ticket(&store, sold.id).await);
    }
    store.void_ticket(tickets[3].id, at(1)).await.unwrap();
    let at_gate = |scan: NewScan| NewScan { gate: Some(gate.id), ..scan };
    let scans = [
        entry(&tickets[0], "a", "1"),
        at_gate(entry(&tickets[1], "a", "2")),
        at_gate(entry(&tickets[1], "a", "3")),
        at_gate(exit(&tickets[1], "a", "4")),
        at_gate(entry(&tickets[3], "a", "5")),
        entry(&tickets[2], "a", "6"),
    ];
    store.record_scans(&scans, at(10)).await.unwrap();
    store.undo_scan(scans[5].id, None, at(11)).await.unwrap();
    let figures = store.check_in_figures(event.id, at(0)).await.unwrap();
    assert_eq!((figures.sold, figures.inside, figures.conflicts), (3, 1, 0));
    assert_eq!(
        figures.results,
        [
            (ScanKind::Entry, ScanResult::AlreadyRedeemed, false, 1),
            (ScanKind::Entry, ScanResult::Ok, true, 2),
            (ScanKind::Entry, ScanResult::Void, false, 1),
            (ScanKind::Exit, ScanResult::Ok, true, 1),
        ]
    );
    let at_gate = figures.gates.iter().find(|row| row.gate == Some(gate.id)).unwrap();
    assert_eq!((at_gate.entries, at_gate.exits, at_gate.refused), (1, 1, 2));
    assert_eq!(at_gate.last_scan_at, Some(at(10)));
    let minutes: (u64, u64) =
        figures.minutes.iter().fold((0, 0), |sum, row| (sum.0 + row.entries, sum.1 + row.exits));
    assert_eq!((minutes, figures.minutes.len()), ((2, 1), 2));
    assert!(store.check_in_figures(event.id, at(120)).await.unwrap().minutes.is_empty());
}
