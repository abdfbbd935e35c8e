//! Scans that the server decides.

use stampede_model::{AdmissionRules, CheckInList, ListId, ScanId, ScanResult, TicketId};
use stampede_store::{NewScan, Recorded, ScanFilter, Shown, Undo};

use super::{entry, exit, record, result, ticket};
use crate::backends::Database;
use crate::suite::samples::{at, event, order, ordered};

on_every_backend!(
    a_ticket_is_let_in_once,
    a_nonce_gets_its_first_answer_for_ever,
    of_racing_scans_of_one_ticket_exactly_one_is_let_in,
    scans_race_with_changes_of_tickets_keys_and_lists,
    what_is_not_valid_is_refused_with_its_reason,
    a_question_changes_nothing,
    undoing_gives_the_entry_back,
    an_exit_gives_the_entry_back_only_with_re_entry,
    a_group_is_decided_in_order,
    the_log_has_every_attempt,
);

async fn a_ticket_is_let_in_once(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 2).await;
    let one = ticket(&store, order.tickets[0].id).await;
    let first = record(&store, entry(&one, "north", "1")).await;
    assert_eq!(first.scan.result, ScanResult::Ok);
    assert_eq!((first.scan.entries, first.scan.inside), (Some(1), Some(true)));
    assert_eq!(first.list.unwrap().id, ListId::main_of(event.id));
    let shown = first.scan.ticket.clone().unwrap();
    assert_eq!((shown.id, shown.serial, shown.name), (one.id, 1, one.holder.name.clone()));

    let second = record(&store, entry(&one, "south", "1")).await;
    assert_eq!(second.scan.result, ScanResult::AlreadyRedeemed);
    assert_eq!(second.previous.unwrap().0.id, first.scan.id);
    assert!(second.scan.seq > first.scan.seq);
    let by_id = NewScan { shown: Shown::Ticket(one.id), ..entry(&one, "south", "2") };
    assert_eq!(result(&store, by_id).await, ScanResult::AlreadyRedeemed);
    let other = ticket(&store, order.tickets[1].id).await;
    let by_id = NewScan { shown: Shown::Ticket(other.id), ..entry(&other, "south", "3") };
    assert_eq!(result(&store, by_id).await, ScanResult::Ok);
}

async fn a_nonce_gets_its_first_answer_for_ever(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 2).await;
    let one = ticket(&store, order.tickets[0].id).await;
    let two = ticket(&store, order.tickets[1].id).await;
    let first = record(&store, entry(&one, "north", "n")).await;
    store.void_ticket(one.id, at(11)).await.unwrap();
    let again = record(&store, entry(&one, "north", "n")).await;
    assert!(again.replayed && !first.replayed);
    assert_eq!(again.scan, first.scan);
    assert_eq!(result(&store, entry(&one, "north", "m")).await, ScanResult::Void);
    // Another ticket or direction with the same nonce is a mistake; another scanner has its own nonces.
    for wrong in [entry(&two, "north", "n"), exit(&one, "north", "n")] {
        assert_eq!(store.record_scans(&[wrong], at(12)).await.unwrap(), [Recorded::NonceUsed]);
    }
    assert_eq!(result(&store, entry(&two, "south", "n")).await, ScanResult::Ok);
    store.delete_ticket(one.id, at(13)).await.unwrap();
    assert!(record(&store, entry(&one, "north", "n")).await.replayed);
}

async fn of_racing_scans_of_one_ticket_exactly_one_is_let_in(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 4).await;
    for sold in &order.tickets {
        let sold = ticket(&store, sold.id).await;
        let mut racing = Vec::new();
        for number in 0..12 {
            let store = if number % 3 == 0 { db.handle().await } else { store.clone() };
            let scan = entry(&sold, &format!("gate {number}"), &sold.serial.to_string());
            racing.push(tokio::spawn(async move { result(&store, scan).await }));
        }
        let mut let_in = 0;
        for scan in racing {
            match scan.await.unwrap() {
                ScanResult::Ok => let_in += 1,
                other => assert_eq!(other, ScanResult::AlreadyRedeemed),
            }
        }
        assert_eq!(let_in, 1);
    }
}

/// Nobody waits for others in a circle, and nobody is let in with a ticket that was void before.
async fn scans_race_with_changes_of_tickets_keys_and_lists(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 8).await;
    for round in 0..6u32 {
        let (door, office, buyer) = (db.handle().await, db.handle().await, db.handle().await);
        let mut scans = Vec::new();
        for sold in &order.tickets {
            let sold = ticket(&store, sold.id).await;
            scans.push(entry(&sold, "north", &format!("{round}-{}", sold.serial)));
        }
        let scanning = async {
            for group in scans.chunks(3) {
                door.record_scans(group, at(10)).await.unwrap();
            }
        };
        let changing = async {
            let id = order.tickets[round as usize].id;
            office.reissue_ticket(id, at(10)).await.unwrap();
            office.void_ticket(id, at(11)).await.unwrap();
            office.revoke_ticket_key(event.id, round + 1, at(11)).await.unwrap();
            let list = office.check_in_list(ListId::main_of(event.id)).await.unwrap().unwrap();
            let seen = Some(list.updated_at);
            let list = CheckInList { updated_at: at(20 + u64::from(round)), ..list };
            office.put_check_in_list(&list, seen).await.unwrap();
        };
        let more = crate::suite::samples::order(&event, 2);
        let buying = async { drop(buyer.place_order(&more).await.unwrap()) };
        tokio::join!(scanning, changing, buying);
        let void = ticket(&store, order.tickets[round as usize].id).await;
        let late = entry(&void, "south", &format!("late-{round}"));
        assert_eq!(result(&store, late).await, ScanResult::Void);
    }
    let log = store.scans(event.id, &ScanFilter::default(), None, 1_000).await.unwrap();
    assert_eq!(log.len(), 6 * 9);
    let mut numbers: Vec<u64> = log.iter().map(|scan| scan.seq).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), log.len(), "each scan has a number of its own");
}

async fn what_is_not_valid_is_refused_with_its_reason(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 5).await;
    let mut tickets = Vec::new();
    for sold in &order.tickets {
        tickets.push(ticket(&store, sold.id).await);
    }
    store.void_ticket(tickets[0].id, at(5)).await.unwrap();
    store.reissue_ticket(tickets[1].id, at(5)).await.unwrap();
    store.delete_ticket(tickets[2].id, at(5)).await.unwrap();
    let wanted = [ScanResult::Void, ScanResult::Superseded, ScanResult::Unknown, ScanResult::Ok];
    for (ticket, wanted) in tickets.iter().zip(wanted) {
        assert_eq!(result(&store, entry(ticket, "north", &ticket.id.to_string())).await, wanted);
    }
    store.revoke_ticket_key(event.id, 1, at(6)).await.unwrap();
    assert_eq!(result(&store, entry(&tickets[4], "north", "r")).await, ScanResult::RevokedKey);
    let forged =
        NewScan { shown: Shown::Refused(ScanResult::Forged), ..entry(&tickets[4], "north", "f") };
    let answer = record(&store, forged).await;
    assert_eq!((answer.scan.result, answer.scan.ticket), (ScanResult::Forged, None));

    // A ticket of another event, a list of another event, an event that is gone.
    let other = crate::suite::samples::event("ann");
    store.insert_event(&other).await.unwrap();
    let foreign = NewScan { event_id: other.id, ..entry(&tickets[3], "north", "x") };
    assert_eq!(result(&store, foreign).await, ScanResult::Unknown);
    let list =
        NewScan { list: Some(ListId::main_of(other.id)), ..entry(&tickets[3], "north", "y") };
    assert_eq!(store.record_scans(&[list], at(9)).await.unwrap(), [Recorded::NoSuchList]);
    store.delete_event(other.id).await.unwrap();
    let gone = NewScan { event_id: other.id, ..entry(&tickets[3], "north", "z") };
    assert_eq!(store.record_scans(&[gone], at(9)).await.unwrap(), [Recorded::NoSuchEvent]);
}

async fn a_question_changes_nothing(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 1).await;
    let one = ticket(&store, order.tickets[0].id).await;
    let before = super::seq(&store, event.id).await;
    for _ in 0..2 {
        let question = NewScan { nonce: None, ..entry(&one, "north", "") };
        let answer = record(&store, question).await;
        assert!(answer.simulated && answer.scan.result == ScanResult::Ok);
    }
    assert_eq!(super::seq(&store, event.id).await, before);
    let log = store.scans(event.id, &ScanFilter::default(), None, 10).await.unwrap();
    assert_eq!(log, []);
}

async fn undoing_gives_the_entry_back(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 1).await;
    let one = ticket(&store, order.tickets[0].id).await;
    let first = record(&store, entry(&one, "north", "1")).await.scan;
    let refused = record(&store, entry(&one, "north", "2")).await.scan;
    let left = record(&store, exit(&one, "north", "3")).await.scan;
    let undo = async |id: ScanId| store.undo_scan(id, Some("wrong ticket"), at(20)).await.unwrap();
    assert_eq!(undo(refused.id).await, Undo::Refused);
    assert_eq!(undo(first.id).await, Undo::ExitFollows);
    assert_eq!(undo(ScanId::generate()).await, Undo::NotFound);
    assert!(matches!(undo(left.id).await, Undo::Done(_)));
    let before = super::seq(&store, event.id).await;
    let Undo::Done(undone) = undo(first.id).await else { panic!("not undone") };
    assert_eq!((undone.undone_at, undone.note.as_deref()), (Some(at(20)), Some("wrong ticket")));
    assert_eq!(super::seq(&store, event.id).await, before + 1);
    let again = store.undo_scan(first.id, None, at(30)).await.unwrap();
    assert_eq!(again, Undo::Done(undone), "the first time counts");
    assert_eq!(super::seq(&store, event.id).await, before + 1);

    let back = record(&store, entry(&one, "south", "4")).await;
    assert_eq!((back.scan.result, back.scan.entries), (ScanResult::Ok, Some(1)));
    let refused = record(&store, entry(&one, "south", "5")).await;
    assert_eq!(refused.previous.unwrap().0.id, back.scan.id);
}

async fn an_exit_gives_the_entry_back_only_with_re_entry(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 1).await;
    let one = ticket(&store, order.tickets[0].id).await;
    let rules = AdmissionRules { reentry: true, name: "Again".into(), ..AdmissionRules::main() };
    let again = CheckInList {
        id: ListId::generate(),
        event_id: event.id,
        rules,
        created_at: at(0),
        updated_at: at(0),
    };
    assert!(store.put_check_in_list(&again, None).await.unwrap());
    use ScanResult::{AlreadyRedeemed, NotInside, Ok};
    for (list, results) in [
        (None, [NotInside, Ok, AlreadyRedeemed, Ok, NotInside, AlreadyRedeemed]),
        (Some(again.id), [NotInside, Ok, AlreadyRedeemed, Ok, NotInside, Ok]),
    ] {
        let scans = [exit, entry, entry, exit, exit, entry];
        for (step, (scan, wanted)) in scans.into_iter().zip(results).enumerate() {
            let scan = NewScan { list, ..scan(&one, &format!("{list:?}"), &step.to_string()) };
            assert_eq!(result(&store, scan).await, wanted, "{list:?} {step}");
        }
    }
}

async fn a_group_is_decided_in_order(db: Database) {
    let store = db.store().await;
    let (_, first) = ordered(&store, 1).await;
    let other = event("bob");
    store.insert_event(&other).await.unwrap();
    let second = order(&other, 1);
    store.place_order(&second).await.unwrap();
    let one = ticket(&store, first.tickets[0].id).await;
    let two = ticket(&store, second.tickets[0].id).await;
    let wrong_gate =
        NewScan { gate: Some(stampede_model::GateId::generate()), ..entry(&one, "north", "g") };
    let group = [
        entry(&one, "north", "1"),
        entry(&two, "north", "1"),
        entry(&one, "north", "1"),
        wrong_gate,
        entry(&one, "south", "1"),
        exit(&one, "south", "2"),
        exit(&one, "south", "3"),
    ];
    let answers = store.record_scans(&group, at(10)).await.unwrap();
    let told: Vec<String> = answers
        .iter()
        .map(|answer| match answer {
            Recorded::Decided(a) => {
                format!("{}{}", a.scan.result, if a.replayed { "!" } else { "" })
            }
            other => format!("{other:?}"),
        })
        .collect();
    let wanted = ["ok", "ok", "ok!", "NoSuchGate", "already_redeemed", "ok", "not_inside"];
    assert_eq!(told, wanted);
}

async fn the_log_has_every_attempt(db: Database) {
    let store = db.store().await;
    let (event, order) = ordered(&store, 2).await;
    let one = ticket(&store, order.tickets[0].id).await;
    for nonce in 0..5 {
        record(&store, entry(&one, "north", &nonce.to_string())).await;
    }
    let all = store.scans(event.id, &ScanFilter::default(), None, 10).await.unwrap();
    assert_eq!(all.len(), 5);
    assert!(all.is_sorted_by_key(|scan| std::cmp::Reverse(scan.seq)));
    assert_eq!((all[4].result, all[4].counted), (ScanResult::Ok, true));
    let page = store.scans(event.id, &ScanFilter::default(), Some(all[1].seq), 2).await.unwrap();
    assert_eq!(page, all[2..4]);
    let refused = ScanFilter { result: Some(ScanResult::AlreadyRedeemed), ..ScanFilter::default() };
    assert_eq!(store.scans(event.id, &refused, None, 10).await.unwrap(), all[..4]);
    let nobody = ScanFilter { ticket: Some(TicketId::generate()), ..ScanFilter::default() };
    assert_eq!(store.scans(event.id, &nobody, None, 10).await.unwrap(), []);
    let found = store.scan_of_nonce(&all[0].actor, &all[0].nonce).await.unwrap();
    assert_eq!(found.as_ref(), Some(&all[0]));
    // Deleting the event deletes its log, its lists and the state of its tickets.
    store.delete_event_with_tickets(event.id).await.unwrap();
    assert_eq!(store.scan(all[0].id).await.unwrap(), None);
    assert_eq!(store.check_in_lists(event.id).await.unwrap(), []);
    assert_eq!(store.check_in_snapshot(event.id, None).await.unwrap(), None);
}
