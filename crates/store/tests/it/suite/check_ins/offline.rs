//! Scans that a device decided without the server.

use stampede_model::{Gate, GateId, ListId, ScanId, ScanResult};
use stampede_store::{NewScan, Recorded, Store};

use super::{entry, exit, offline, record, result, ticket};
use crate::backends::Database;
use crate::suite::samples::{at, ordered};

on_every_backend!(
    a_guest_let_in_twice_is_a_conflict_on_both_sides_in_any_order,
    an_offline_entry_that_meets_an_online_one_is_a_conflict,
    a_guest_who_was_sent_away_is_only_logged,
    a_refusal_that_did_not_arrive_becomes_a_conflict,
    an_exit_may_arrive_before_its_entry,
    a_guest_let_in_with_a_void_ticket_is_a_conflict_without_another_scan,
    a_list_or_gate_that_is_gone_forgets_no_guest,
);

async fn open_conflicts(store: &Store, event: stampede_model::EventId) -> usize {
    store.scan_conflicts(event, 10).await.unwrap().len()
}

/// The scans that were told since the last call, in order: id, and whether it is a conflict.
async fn told(store: &Store) -> Vec<(ScanId, bool)> {
    let rows = store.outbox(1_000).await.unwrap();
    store.settle_outbox(&rows).await.unwrap();
    let scans = rows.iter().filter(|row| row.kind == "scan.recorded");
    scans
        .map(|row| {
            let data: stampede_model::feed::ScanData = serde_json::from_str(&row.data).unwrap();
            (data.scan_id, data.conflict)
        })
        .collect()
}

async fn a_guest_let_in_twice_is_a_conflict_on_both_sides_in_any_order(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 3).await;
    for (index, together) in [(0, false), (1, false), (2, true)] {
        let sold = ticket(&store, order.tickets[index].id).await;
        let early = offline(entry(&sold, "north", &format!("{index}")), 5, ScanResult::Ok);
        let late = offline(entry(&sold, "south", &format!("{index}")), 9, ScanResult::Ok);
        let uploads = if index == 0 { [early, late] } else { [late, early] };
        let ids = [uploads[0].id, uploads[1].id];
        told(&store).await;
        if together {
            let answers = store.record_scans(&uploads, at(20)).await.unwrap();
            for answer in answers {
                let Recorded::Decided(answer) = answer else { panic!("{answer:?}") };
                assert!(answer.scan.conflict, "{answer:?}");
            }
        } else {
            let first = record(&store, uploads[0].clone()).await;
            assert_eq!((first.scan.result, first.scan.conflict), (ScanResult::Ok, false));
            let second = record(&store, uploads[1].clone()).await;
            assert_eq!(second.scan.result, ScanResult::AlreadyRedeemed);
            assert!(second.scan.conflict && second.scan.counted);
            assert_eq!(second.scan.entries, Some(2), "the guest is inside, whatever is found");
        }
        let first = if together { vec![] } else { vec![(ids[0], false)] };
        let both = match together {
            true => vec![(ids[0], true), (ids[1], true)],
            // The scan that was told already is told again.
            false => vec![(ids[1], true), (ids[0], true)],
        };
        assert_eq!(told(&store).await, [first, both].concat());
        let [one, two] = ids.map(|id| store.scan(id));
        let (one, two) = (one.await.unwrap().unwrap(), two.await.unwrap().unwrap());
        assert_eq!((one.conflicts_with, two.conflicts_with), (Some(two.id), Some(one.id)));
        assert!(one.conflict && two.conflict);
        assert_eq!(open_conflicts(&store, event.id).await, index + 1);
        // The same upload again changes nothing.
        let again = record(&store, uploads[1].clone()).await;
        assert!(again.replayed);
        assert_eq!(open_conflicts(&store, event.id).await, index + 1);
    }
    let (scan, other) = store.scan_conflicts(event.id, 10).await.unwrap().remove(0);
    assert_eq!(scan.conflicts_with, other.map(|other| other.id));
    store.undo_scan(scan.id, None, at(30)).await.unwrap();
    assert_eq!(open_conflicts(&store, event.id).await, 2);
}

async fn an_offline_entry_that_meets_an_online_one_is_a_conflict(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 1).await;
    let sold = ticket(&store, order.tickets[0].id).await;
    let online = record(&store, entry(&sold, "north", "1")).await.scan;
    let late = offline(entry(&sold, "south", "1"), 5, ScanResult::Ok);
    let late = record(&store, late).await;
    assert_eq!(late.previous.unwrap().0.id, online.id);
    let online = store.scan(online.id).await.unwrap().unwrap();
    assert_eq!((online.result, online.conflicts_with), (ScanResult::Ok, Some(late.scan.id)));
    let figures = store.check_in_figures(event.id, at(0)).await.unwrap();
    assert_eq!((figures.conflicts, figures.inside), (1, 2));
}

async fn a_guest_who_was_sent_away_is_only_logged(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 1).await;
    let sold = ticket(&store, order.tickets[0].id).await;
    let refused = offline(entry(&sold, "north", "1"), 5, ScanResult::NotOnList);
    let answer = record(&store, refused).await;
    assert_eq!((answer.scan.result, answer.scan.conflict), (ScanResult::NotOnList, false));
    assert_eq!((answer.scan.counted, answer.scan.at), (false, at(5)));
    assert_eq!(result(&store, entry(&sold, "north", "2")).await, ScanResult::Ok);
}

async fn a_refusal_that_did_not_arrive_becomes_a_conflict(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 1).await;
    let sold = ticket(&store, order.tickets[0].id).await;
    let first = record(&store, entry(&sold, "north", "1")).await.scan;
    let refused = entry(&sold, "south", "1");
    let stored = record(&store, refused.clone()).await.scan;
    // The device did not get this answer, decided by itself, and sends the same scan later.
    let sent = NewScan { id: stampede_model::ScanId::generate(), ..refused };
    told(&store).await;
    let amended = record(&store, offline(sent.clone(), 9, ScanResult::Ok)).await;
    assert!(amended.replayed && amended.scan.conflict && amended.scan.counted);
    assert_eq!((amended.scan.id, amended.scan.conflicts_with), (stored.id, Some(first.id)));
    assert_eq!(store.scan(stored.id).await.unwrap(), Some(amended.scan));
    assert_eq!(told(&store).await, [(stored.id, true), (first.id, true)]);
    let again = record(&store, offline(sent, 9, ScanResult::Ok)).await;
    let figures = store.check_in_figures(event.id, at(0)).await.unwrap();
    assert_eq!((figures.conflicts, figures.inside), (1, 2), "{again:?}");
}

async fn an_exit_may_arrive_before_its_entry(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 1).await;
    let sold = ticket(&store, order.tickets[0].id).await;
    let left = record(&store, offline(exit(&sold, "south", "1"), 9, ScanResult::Ok)).await;
    assert_eq!((left.scan.result, left.scan.inside), (ScanResult::NotInside, Some(false)));
    let came = record(&store, offline(entry(&sold, "north", "1"), 5, ScanResult::Ok)).await;
    assert_eq!((came.scan.result, came.scan.inside), (ScanResult::Ok, Some(false)));
    let figures = store.check_in_figures(event.id, at(0)).await.unwrap();
    assert_eq!(figures.inside, 0);
}

async fn a_guest_let_in_with_a_void_ticket_is_a_conflict_without_another_scan(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 1).await;
    let sold = ticket(&store, order.tickets[0].id).await;
    store.void_ticket(sold.id, at(4)).await.unwrap();
    let scan = offline(entry(&sold, "north", "1"), 5, ScanResult::Ok);
    let scan = record(&store, scan).await.scan;
    assert_eq!((scan.result, scan.conflict, scan.counted), (ScanResult::Void, true, true));
    let conflicts = store.scan_conflicts(event.id, 10).await.unwrap();
    assert_eq!(conflicts, [(scan, None)]);
}

async fn a_list_or_gate_that_is_gone_forgets_no_guest(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 2).await;
    let sold = ticket(&store, order.tickets[0].id).await;
    // Both were deleted while the phone was offline.
    let (list, gate) = (Some(ListId::generate()), Some(GateId::generate()));
    let online = NewScan { list, gate, ..entry(&sold, "north", "1") };
    let refused = store.record_scans(std::slice::from_ref(&online), at(1)).await.unwrap();
    assert!(matches!(refused[0], Recorded::NoSuchList), "{refused:?}");
    let told = record(&store, offline(online, 5, ScanResult::Ok)).await;
    assert!(told.scan.counted && !told.replayed, "{told:?}");
    assert_eq!(told.scan.list_id, ListId::main_of(event.id));
    assert_eq!(result(&store, entry(&sold, "south", "2")).await, ScanResult::AlreadyRedeemed);
    // An answered scan gets its answer, also when the gate is gone since.
    let gate = Gate {
        id: GateId::generate(),
        event_id: event.id,
        name: "North".into(),
        created_at: at(0),
        updated_at: at(0),
    };
    assert!(store.put_gate(&gate).await.unwrap());
    let second = ticket(&store, order.tickets[1].id).await;
    let scan = NewScan { gate: Some(gate.id), ..entry(&second, "north", "3") };
    assert_eq!(result(&store, scan.clone()).await, ScanResult::Ok);
    assert!(store.delete_gate(gate.id).await.unwrap());
    assert!(record(&store, scan).await.replayed);
}
