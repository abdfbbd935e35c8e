//! Group commits: idempotent, and free of deadlocks.

use std::time::Instant;

use stampede_model::{Pdf, TicketId, TicketStatus};
use stampede_store::{Completion, GroupCommit, TicketEdit};

use crate::backends::Database;
use crate::suite::samples::{
    assert_no_drift, at, completion, completion_of_current, counts, failure, ordered,
};

on_every_backend!(
    completing_twice_counts_once,
    another_pdf_replaces_the_former_without_counting,
    a_failed_ticket_can_still_be_completed,
    a_ticket_changed_since_it_was_read_is_not_completed,
    only_a_pending_ticket_can_fail,
    one_commit_may_span_batches_and_strangers,
    racing_group_commits_with_overlapping_tickets_count_each_once,
    a_hundred_tickets_are_one_quick_commit,
);

async fn completing_twice_counts_once(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 3).await;
    let id = order.tickets[1].id;
    let first = store.complete_tickets(&[completion(id), completion(id)]).await.unwrap();
    assert_eq!(first.changed, [id]);
    assert_eq!([first.batches[0].total, first.batches[0].completed], [3, 1]);
    let ticket = store.ticket(id).await.unwrap().unwrap();
    assert_eq!(ticket.status, TicketStatus::Completed);
    assert_eq!(ticket.pdf, Some(completion(id).pdf));
    assert_eq!(ticket.processed_by.as_deref(), Some("w1"));
    assert_eq!(ticket.processed_at, Some(at(5)));

    let current = completion_of_current(&store, id).await;
    let later = Completion { worker: "w2".into(), at: at(9), ..current };
    let second = store.complete_tickets(&[later]).await.unwrap();
    assert_eq!(second, GroupCommit { changed: vec![], ..first });
    assert_eq!(store.ticket(id).await.unwrap(), Some(ticket));
}

async fn another_pdf_replaces_the_former_without_counting(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 1).await;
    let id = order.tickets[0].id;
    let first = store.complete_tickets(&[completion(id)]).await.unwrap();
    // Another template, and the same size with other bytes.
    for pdf in [Pdf::of("f2".into(), b"%PDF"), Pdf::of("f2".into(), b"%FDP")] {
        let current = completion_of_current(&store, id).await;
        let anew = Completion { pdf: pdf.clone(), at: at(9), ..current };
        let second = store.complete_tickets(&[anew]).await.unwrap();
        assert_eq!(second.changed, [id]);
        assert_eq!(second.batches, first.batches);
        assert_eq!(store.ticket(id).await.unwrap().unwrap().pdf, Some(pdf));
    }
}

async fn a_failed_ticket_can_still_be_completed(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 1).await;
    let id = order.tickets[0].id;
    let failed = store.fail_tickets(&[failure(id)]).await.unwrap();
    assert_eq!(failed.changed, [id]);
    assert_eq!(failed.batches[0].failed, 1);
    let ticket = store.ticket(id).await.unwrap().unwrap();
    assert_eq!(ticket.status, TicketStatus::Failed);
    assert_eq!(ticket.error, Some(failure(id).reason));

    let current = completion_of_current(&store, id).await;
    let completed = store.complete_tickets(&[current]).await.unwrap();
    assert_eq!([completed.batches[0].failed, completed.batches[0].completed], [0, 1]);
    assert!(completed.batches[0].revision > failed.batches[0].revision);
    assert_eq!(store.ticket(id).await.unwrap().unwrap().error, None);
}

async fn a_ticket_changed_since_it_was_read_is_not_completed(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 1).await;
    let read = store.ticket(order.tickets[0].id).await.unwrap().unwrap();
    let edit = TicketEdit { holder: read.holder.clone(), price: None };
    store.edit_ticket(read.id, &edit, read.updated_at, at(3)).await.unwrap();
    let late = Completion { seen: read.updated_at, ..completion(read.id) };
    assert_eq!(store.complete_tickets(&[late]).await.unwrap().changed, []);
    assert_eq!(store.ticket(read.id).await.unwrap().unwrap().status, TicketStatus::Pending);
    // A clock that runs ahead does not replace having read the change.
    let ahead = Completion { seen: at(4), at: at(4), ..completion(read.id) };
    assert_eq!(store.complete_tickets(&[ahead]).await.unwrap().changed, []);
    let current = Completion { seen: at(3), ..completion(read.id) };
    assert_eq!(store.complete_tickets(&[current]).await.unwrap().changed, [read.id]);
}

async fn only_a_pending_ticket_can_fail(db: Database) {
    let store = db.store().await;
    let (_, order) = ordered(&store, 1).await;
    let id = order.tickets[0].id;
    let completed = store.complete_tickets(&[completion(id)]).await.unwrap();
    let failed = store.fail_tickets(&[failure(id)]).await.unwrap();
    assert_eq!(failed, GroupCommit { changed: vec![], ..completed });
}

async fn one_commit_may_span_batches_and_strangers(db: Database) {
    let store = db.store().await;
    let (_, one) = ordered(&store, 3).await;
    let (_, two) = ordered(&store, 2).await;
    store.void_ticket(one.tickets[1].id, at(2)).await.unwrap();
    store.delete_ticket(two.tickets[0].id, at(2)).await.unwrap();
    let mut group: Vec<Completion> = [one.tickets.as_slice(), two.tickets.as_slice()]
        .concat()
        .iter()
        .map(|ticket| completion(ticket.id))
        .collect();
    group.push(completion(TicketId::generate()));
    group.reverse();
    let done = store.complete_tickets(&group).await.unwrap();
    assert_eq!(done.changed, [one.tickets[0].id, one.tickets[2].id, two.tickets[1].id]);
    let ids: Vec<_> = done.batches.iter().map(|batch| batch.id).collect();
    assert_eq!(ids, [one.batch_id, two.batch_id]);
    assert_eq!(counts(&store, one.batch_id).await, [3, 2, 0, 1]);
    assert_eq!(counts(&store, two.batch_id).await, [1, 1, 0, 0]);
    assert_eq!(store.complete_tickets(&[]).await.unwrap(), GroupCommit::default());
    assert_no_drift(&store).await;
}

async fn racing_group_commits_with_overlapping_tickets_count_each_once(db: Database) {
    let store = db.store().await;
    let handles = [db.handle().await, db.handle().await];
    let (_, one) = ordered(&store, 60).await;
    let (_, two) = ordered(&store, 60).await;
    // Taken from both batches in turn, so that every group touches both.
    let tickets: Vec<TicketId> = one
        .tickets
        .iter()
        .zip(&two.tickets)
        .flat_map(|(left, right)| [left.id, right.id])
        .collect();
    let workers: Vec<_> = (0..8)
        .map(|worker: usize| {
            let store = handles[worker % 2].clone();
            let mut tickets = tickets.clone();
            tickets.rotate_left(worker * 13);
            if worker % 2 == 1 {
                tickets.reverse();
            }
            tokio::spawn(async move {
                let mut changed = 0;
                for group in tickets.chunks(20) {
                    let group: Vec<_> = group.iter().copied().map(completion).collect();
                    changed += store.complete_tickets(&group).await.unwrap().changed.len();
                }
                changed
            })
        })
        .collect();
    let mut changed = 0;
    for worker in workers {
        changed += worker.await.unwrap();
    }
    assert_eq!(changed, 120, "each ticket was completed by exactly one of them");
    assert_eq!(counts(&store, one.batch_id).await, [60, 60, 0, 0]);
    assert_eq!(counts(&store, two.batch_id).await, [60, 60, 0, 0]);
    assert_no_drift(&store).await;
}

async fn a_hundred_tickets_are_one_quick_commit(db: Database) {
    let store = db.store().await;
    let worker = db.handle().await;
    let (_, order) = ordered(&store, 2_000).await;
    let groups: Vec<Vec<Completion>> = order
        .tickets
        .chunks(100)
        .map(|tickets| tickets.iter().map(|ticket| completion(ticket.id)).collect())
        .collect();
    let start = Instant::now();
    for group in &groups {
        assert_eq!(worker.complete_tickets(group).await.unwrap().changed.len(), 100);
    }
    println!("100 tickets completed in {:?}", start.elapsed() / groups.len() as u32);
    assert_eq!(counts(&store, order.batch_id).await, [2_000, 2_000, 0, 0]);
}
