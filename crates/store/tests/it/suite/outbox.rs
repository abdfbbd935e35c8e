//! The outbox: every change that outsiders are told of is in it, in order, if and only if it was committed.

use std::collections::BTreeSet;

use stampede_model::campaign::CampaignChange;
use stampede_model::feed::{Change, Kind};
use stampede_model::{ScanId, ScanKind, TicketId};
use stampede_store::{
    Campaign, Completion, MadeTickets, NewScan, OutboxRow, Recorded, Scanner, Shown, Store,
    TicketEdit,
};

use crate::backends::Database;
use crate::suite::campaigns;
use crate::suite::samples::{
    at, completion, completion_of_current, event, failure, order, ordered,
};

on_every_backend!(
    every_stored_kind_is_written_with_its_data,
    a_change_that_changes_nothing_tells_nothing,
    a_large_group_is_told_in_parts_and_one_progress,
    of_one_batch_the_last_row_is_its_end_however_many_writers_race,
    settled_rows_are_gone_and_numbers_are_not_used_again,
    writers_wake_the_reader_of_the_outbox,
);

async fn kinds(store: &Store) -> Vec<String> {
    store.outbox(1_000).await.unwrap().into_iter().map(|row| row.kind).collect()
}

async fn settle_all(store: &Store) -> Vec<OutboxRow> {
    let rows = store.outbox(10_000).await.unwrap();
    store.settle_outbox(&rows).await.unwrap();
    rows
}

fn scan_of(ticket: TicketId, event: stampede_model::EventId) -> NewScan {
    NewScan {
        id: ScanId::generate(),
        event_id: event,
        list: None,
        gate: None,
        scanner: Scanner { key: None, user: "door".into() },
        nonce: Some("n1".into()),
        shown: Shown::Ticket(ticket),
        asked: ticket.to_string(),
        kind: ScanKind::Entry,
        at: at(10),
        device_at: None,
        offline: None,
    }
}

async fn every_stored_kind_is_written_with_its_data(db: Database) {
    let store = db.store().await;
    let (mine, placed) = ordered(&store, 4).await;
    let ids: Vec<TicketId> = placed.tickets.iter().map(|ticket| ticket.id).collect();
    assert!(store.update_event(&mine, at(0)).await.unwrap());
    store.complete_tickets(&[completion(ids[0])]).await.unwrap();
    store.fail_tickets(&[failure(ids[1])]).await.unwrap();
    let scan = scan_of(ids[0], mine.id);
    let recorded = store.record_scans(std::slice::from_ref(&scan), at(10)).await.unwrap();
    assert!(matches!(&recorded[0], Recorded::Decided(answer) if answer.scan.counted));
    store.undo_scan(scan.id, None, at(11)).await.unwrap();
    store.block_ticket(mine.id, ids[0], Some("lost"), at(12)).await.unwrap();
    assert!(store.unblock_ticket(mine.id, ids[0]).await.unwrap());
    let seen = store.ticket(ids[0]).await.unwrap().unwrap();
    let edit = TicketEdit { holder: seen.holder, price: None };
    store.edit_ticket(ids[0], &edit, seen.updated_at, at(13)).await.unwrap();
    store.reissue_ticket(ids[0], at(14)).await.unwrap();
    store.void_ticket(ids[0], at(15)).await.unwrap();
    store.delete_ticket(ids[2], at(16)).await.unwrap();
    let last = completion_of_current(&store, ids[3]).await;
    store.complete_tickets(&[last]).await.unwrap();
    let cancelled = order(&mine, 2);
    store.place_order(&cancelled).await.unwrap();
    store.cancel_batch(cancelled.batch_id, MadeTickets::Keep, at(17)).await.unwrap();
    store.cancel_batch(cancelled.batch_id, MadeTickets::Keep, at(18)).await.unwrap();
    store.delete_event_with_tickets(mine.id).await.unwrap();
    let news = Campaign { name: "News".into(), event: Some(mine.id), ..campaigns::campaign("ann") };
    store.insert_campaign(&news).await.unwrap();
    campaigns::import(&store, news.id, &campaigns::recipients(1)).await;
    assert_eq!(store.tell_campaigns(9, at(19)).await.unwrap(), 1);
    campaigns::moved(&store, news.id, CampaignChange::Cancel, at(20)).await;
    store.delete_campaign_as_seen(news.id, None).await.unwrap();

    let rows = store.outbox(1_000).await.unwrap();
    let written: BTreeSet<Kind> = rows.iter().map(|row| row.kind.parse().unwrap()).collect();
    let wanted: BTreeSet<Kind> =
        Kind::ALL.iter().copied().filter(|kind| kind.is_stored()).collect();
    assert_eq!(written, wanted);
    assert!(rows.is_sorted_by_key(|row| row.seq));
    for row in &rows {
        let change = Change::parse(row.kind.parse().unwrap(), &row.data).unwrap();
        assert_eq!((row.owner.as_str(), row.event_id), ("ann", Some(mine.id)), "{change:?}");
        let is_of_order = !matches!(
            change,
            Change::EventCreated(_)
                | Change::EventChanged(_)
                | Change::EventDeleted(_)
                | Change::CampaignCreated(_)
                | Change::CampaignChanged(_)
                | Change::CampaignProgressed(_)
                | Change::CampaignDeleted(_)
        );
        assert_eq!(row.batch_id.is_some(), is_of_order, "{change:?}");
        assert_eq!(row.at.as_millisecond(), row.id.made_at_ms());
        // No names and addresses of guests.
        assert!(!row.data.contains("Zoë") && !row.data.contains("zoe@"), "{}", row.data);
    }
    assert_eq!(rows.iter().filter(|row| row.kind == "batch.cancelled").count(), 1);
    let size = store.outbox_size().await.unwrap();
    assert_eq!((size.rows, size.oldest), (rows.len() as u64, Some(rows[0].at)));
}

async fn a_change_that_changes_nothing_tells_nothing(db: Database) {
    let store = db.store().await;
    let (mine, placed) = ordered(&store, 2).await;
    let id = placed.tickets[0].id;
    store.complete_tickets(&[completion(id)]).await.unwrap();
    store.void_ticket(id, at(9)).await.unwrap();
    settle_all(&store).await;

    let again = completion_of_current(&store, id).await;
    store.complete_tickets(&[again]).await.unwrap();
    store.fail_tickets(&[failure(id)]).await.unwrap();
    store.void_ticket(id, at(10)).await.unwrap();
    store.reissue_ticket(id, at(10)).await.unwrap();
    store.mark_stale(id, at(10)).await.unwrap();
    store.delete_ticket(TicketId::generate(), at(10)).await.unwrap();
    assert!(!store.update_event(&mine, at(99)).await.unwrap());
    assert!(!store.unblock_ticket(mine.id, id).await.unwrap());
    store.place_order(&order(&event("nobody"), 1)).await.unwrap();
    store.insert_event(&mine).await.unwrap_err();
    assert_eq!(kinds(&store).await, Vec::<String>::new());
}

async fn a_large_group_is_told_in_parts_and_one_progress(db: Database) {
    let store = db.store().await;
    let (_, placed) = ordered(&store, 251).await;
    settle_all(&store).await;
    let group: Vec<Completion> =
        placed.tickets[..250].iter().map(|ticket| completion(ticket.id)).collect();
    store.complete_tickets(&group).await.unwrap();
    let rows = store.outbox(1_000).await.unwrap();
    let mut told = Vec::new();
    let mut parts = Vec::new();
    for row in &rows {
        match Change::parse(row.kind.parse().unwrap(), &row.data).unwrap() {
            Change::TicketsCompleted(made) => {
                assert_eq!((made.completed, made.total), (250, 251));
                parts.push(made.tickets.len());
                told.extend(made.tickets.iter().map(|ticket| (ticket.id, ticket.number)));
            }
            Change::BatchProgressed(progress) => {
                assert_eq!((progress.completed, progress.pending), (250, 1));
                parts.push(0);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(parts, [100, 100, 50, 0]);
    let wanted: Vec<(TicketId, u32)> =
        placed.tickets[..250].iter().map(|ticket| (ticket.id, ticket.serial)).collect();
    told.sort_unstable();
    assert_eq!(told, wanted);
}

async fn of_one_batch_the_last_row_is_its_end_however_many_writers_race(db: Database) {
    let store = db.store().await;
    let (_, placed) = ordered(&store, 60).await;
    settle_all(&store).await;
    let mut writers = Vec::new();
    for part in placed.tickets.chunks(5) {
        let group: Vec<Completion> = part.iter().map(|ticket| completion(ticket.id)).collect();
        let store = db.handle().await;
        writers.push(tokio::spawn(async move { store.complete_tickets(&group).await.unwrap() }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let rows = store.outbox(1_000).await.unwrap();
    assert_eq!(rows.len(), 24);
    let revisions: Vec<u64> = rows
        .iter()
        .filter_map(|row| match Change::parse(row.kind.parse().unwrap(), &row.data).unwrap() {
            Change::BatchProgressed(progress) | Change::BatchCompleted(progress) => {
                Some(progress.revision)
            }
            _ => None,
        })
        .collect();
    assert!(revisions.is_sorted(), "{revisions:?}");
    let ends = rows.iter().filter(|row| row.kind == "batch.completed").count();
    assert_eq!((rows.last().unwrap().kind.as_str(), ends), ("batch.completed", 1));
}

async fn settled_rows_are_gone_and_numbers_are_not_used_again(db: Database) {
    let store = db.store().await;
    ordered(&store, 1).await;
    let first = store.outbox(1).await.unwrap();
    assert_eq!(first.len(), 1);
    store.settle_outbox(&first).await.unwrap();
    store.settle_outbox(&first).await.unwrap();
    store.settle_outbox(&[]).await.unwrap();
    let second = settle_all(&store).await;
    assert!(second.iter().all(|row| row.seq > first[0].seq));
    assert_eq!(store.outbox_size().await.unwrap().rows, 0);
    // A relay that was suspended must not delete rows that it has not read.
    ordered(&store, 1).await;
    store.settle_outbox(&first).await.unwrap();
    store.settle_outbox(&second).await.unwrap();
    assert_eq!(kinds(&store).await, ["event.created", "batch.created"]);
}

async fn writers_wake_the_reader_of_the_outbox(db: Database) {
    let store = db.store().await;
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move { store.written().await })
    };
    ordered(&store, 1).await;
    let woken = tokio::time::timeout(std::time::Duration::from_secs(10), waiting).await;
    woken.unwrap().unwrap();
}
