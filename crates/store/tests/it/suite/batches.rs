//! Whole batches: large orders in chunks, lists, cancelling, trying again.

use std::io;

use async_trait::async_trait;
use stampede_model::{BatchId, Order, Ticket, TicketStatus};
use stampede_store::{
    BatchFilter, Error, MadeTickets, Placed, Slice, Sorted, Store, TicketChunks, TicketFilter,
    rules,
};

use crate::backends::Database;
use crate::suite::samples::{
    assert_no_drift, at, completion, counts, event, failure, number, order, ordered,
};

on_every_backend!(
    an_order_in_chunks_is_the_same_as_an_order_at_once,
    an_order_whose_tickets_cannot_be_read_again_leaves_nothing,
    chunks_of_a_known_key_are_not_read,
    nobody_sees_an_order_before_its_last_chunk,
    batches_are_listed_the_newest_first,
    a_cancelled_batch_keeps_what_was_made,
    a_batch_can_be_cancelled_with_all_that_was_made,
    of_a_cancelling_and_a_completion_one_comes_first,
    failed_tickets_of_a_batch_are_tried_again,
);

/// Tickets of an order, so many at a time; fails at one of the chunks.
struct Chunked {
    tickets: Vec<Ticket>,
    size: usize,
    read: usize,
    fails_at: Option<usize>,
}

impl Chunked {
    fn new(order: &mut Order, size: usize) -> Self {
        let tickets = std::mem::take(&mut order.tickets);
        Self { tickets, size, read: 0, fails_at: None }
    }
}

#[async_trait]
impl TicketChunks for Chunked {
    async fn rewind(&mut self) -> io::Result<()> {
        self.read = 0;
        Ok(())
    }

    async fn next(&mut self) -> io::Result<Vec<Ticket>> {
        if self.fails_at.is_some_and(|at| self.read >= at) {
            return Err(io::Error::other("the disk is gone"));
        }
        let chunk: Vec<Ticket> =
            self.tickets.iter().skip(self.read).take(self.size).cloned().collect();
        self.read += chunk.len();
        Ok(chunk)
    }
}

async fn an_order_in_chunks_is_the_same_as_an_order_at_once(db: Database) {
    let store = db.store().await;
    let (event, _) = ordered(&store, 3).await;
    let mut large = order(&event, 25);
    let mut expected = large.clone();
    number(&mut expected, 4);
    let mut chunks = Chunked::new(&mut large, 10);
    let placed = store.place_in_chunks(&large, &mut chunks, None).await.unwrap();
    let Placed::New(batch) = placed else { panic!("{placed:?}") };
    assert_eq!((batch.id, batch.total), (large.batch_id, 25));
    for ticket in &expected.tickets {
        assert_eq!(store.ticket(ticket.id).await.unwrap().as_ref(), Some(ticket));
    }
    assert_no_drift(&store).await;
    let mut next = order(&event, 1);
    store.place_order(&next).await.unwrap();
    number(&mut next, 29);
    assert_eq!(store.ticket(next.tickets[0].id).await.unwrap().as_ref(), Some(&next.tickets[0]));
    let mut marks = vec![store.batch_reissues(large.batch_id).await.unwrap()];
    assert_eq!(marks, [0]);
    for ticket in &expected.tickets[..2] {
        store.reissue_ticket(ticket.id, at(50)).await.unwrap();
        marks.push(store.batch_reissues(large.batch_id).await.unwrap());
        // Deleting one that was issued anew does not bring an older mark back.
        store.delete_ticket(ticket.id, at(51)).await.unwrap();
    }
    store.reissue_ticket(expected.tickets[2].id, at(52)).await.unwrap();
    marks.push(store.batch_reissues(large.batch_id).await.unwrap());
    marks.sort_unstable();
    marks.dedup();
    assert_eq!(marks.len(), 4, "each reissue has a mark of its own: {marks:?}");
}

async fn an_order_whose_tickets_cannot_be_read_again_leaves_nothing(db: Database) {
    let store = db.store().await;
    let (event, _) = ordered(&store, 3).await;
    let mut large = order(&event, 25);
    let mut chunks = Chunked { fails_at: Some(20), ..Chunked::new(&mut large, 10) };
    let error = store.place_in_chunks(&large, &mut chunks, None).await.unwrap_err();
    assert!(matches!(&error, Error::Unavailable(told) if told.contains("the disk is gone")));
    assert_eq!(store.batch(large.batch_id).await.unwrap(), None);
    let filter = TicketFilter { event: Some(event.id), ..TicketFilter::default() };
    assert_eq!(store.tickets(&filter, None, 100).await.unwrap().len(), 3);
    let mut next = order(&event, 1);
    store.place_order(&next).await.unwrap();
    number(&mut next, 4);
    assert_eq!(store.ticket(next.tickets[0].id).await.unwrap().as_ref(), Some(&next.tickets[0]));
}

async fn chunks_of_a_known_key_are_not_read(db: Database) {
    let store = db.store().await;
    let event = event("ann");
    store.insert_event(&event).await.unwrap();
    let keyed = |request: &str| {
        let mark = stampede_model::Idempotency { key: "k".into(), request: request.into() };
        Order { idempotency: Some(mark), ..order(&event, 5) }
    };
    let mut first = keyed("a");
    let mut chunks = Chunked::new(&mut first, 2);
    let Placed::New(batch) = store.place_in_chunks(&first, &mut chunks, None).await.unwrap() else {
        panic!()
    };
    for (request, expected) in [("a", Placed::Existing(batch)), ("b", Placed::OtherRequest)] {
        let mut again = keyed(request);
        let mut chunks = Chunked::new(&mut again, 2);
        assert_eq!(store.place_in_chunks(&again, &mut chunks, None).await.unwrap(), expected);
        assert_eq!(chunks.read, 0);
    }
}

/// Looks at the store of another process before every chunk.
struct Watched {
    chunks: Chunked,
    other: Store,
    batch: BatchId,
    looks: usize,
}

#[async_trait]
impl TicketChunks for Watched {
    async fn rewind(&mut self) -> io::Result<()> {
        self.chunks.rewind().await
    }

    async fn next(&mut self) -> io::Result<Vec<Ticket>> {
        assert_eq!(self.other.batch(self.batch).await.unwrap(), None);
        let filter = TicketFilter { batch: Some(self.batch), ..TicketFilter::default() };
        assert_eq!(self.other.tickets(&filter, None, 9).await.unwrap(), []);
        self.looks += 1;
        self.chunks.next().await
    }
}

async fn nobody_sees_an_order_before_its_last_chunk(db: Database) {
    let (store, other) = (db.store().await, db.store().await);
    let event = event("ann");
    store.insert_event(&event).await.unwrap();
    let mut large = order(&event, 9);
    let chunks = Chunked::new(&mut large, 3);
    let mut watched = Watched { chunks, other: other.clone(), batch: large.batch_id, looks: 0 };
    store.place_in_chunks(&large, &mut watched, None).await.unwrap();
    assert_eq!(watched.looks, 4);
    assert_eq!(counts(&other, large.batch_id).await, [9, 0, 0, 0]);
}

async fn batches_are_listed_the_newest_first(db: Database) {
    let store = db.store().await;
    let (anns, bobs) = (event("ann"), event("bob"));
    store.insert_event(&anns).await.unwrap();
    store.insert_event(&bobs).await.unwrap();
    let mut placed = Vec::new();
    for event in [&anns, &bobs, &anns] {
        let order = order(event, 1);
        store.place_order(&order).await.unwrap();
        placed.push(order.batch_id);
    }
    let listed = async |owner: Option<&str>, event, after, limit| -> Vec<BatchId> {
        let filter = BatchFilter { owner: owner.map(str::to_owned), event };
        let slice = Slice::new(Sorted::NewestFirst, after, limit);
        let found = store.batches(&filter, &slice).await.unwrap();
        found.into_iter().map(|batch| batch.id).collect()
    };
    assert_eq!(listed(None, None, None, 9).await, [placed[2], placed[1], placed[0]]);
    assert_eq!(listed(None, None, Some(placed[2]), 1).await, [placed[1]]);
    assert_eq!(listed(Some("ann"), None, None, 9).await, [placed[2], placed[0]]);
    assert_eq!(listed(Some("ann"), Some(bobs.id), None, 9).await, []);
    assert_eq!(listed(None, Some(bobs.id), None, 9).await, [placed[1]]);
    let oldest = Slice::new(Sorted::OldestFirst, Some(placed[0]), 1);
    let found = store.batches(&BatchFilter::default(), &oldest).await.unwrap();
    assert_eq!(found[0].id, placed[1]);
    let none = Slice { to: Some(at(0)), ..Slice::new(Sorted::NewestFirst, None, 9) };
    assert_eq!(store.batches(&BatchFilter::default(), &none).await.unwrap(), []);
}

/// A batch of five: made, made and pending again, failed, void, pending.
async fn mixed(store: &Store) -> Order {
    let (_, order) = ordered(store, 5).await;
    let ids: Vec<_> = order.tickets.iter().map(|ticket| ticket.id).collect();
    store.complete_tickets(&[completion(ids[0]), completion(ids[1])]).await.unwrap();
    store.mark_stale(ids[1], at(9)).await.unwrap();
    store.fail_tickets(&[failure(ids[2])]).await.unwrap();
    store.void_ticket(ids[3], at(9)).await.unwrap();
    order
}

async fn statuses(store: &Store, order: &Order) -> Vec<TicketStatus> {
    let mut found = Vec::new();
    for ticket in &order.tickets {
        found.push(store.ticket(ticket.id).await.unwrap().unwrap().status);
    }
    found
}

async fn a_cancelled_batch_keeps_what_was_made(db: Database) {
    use TicketStatus::{Completed, Pending, Void};
    let store = db.store().await;
    let order = mixed(&store).await;
    let before = store.ticket(order.tickets[4].id).await.unwrap().unwrap();
    let cancelled = store.cancel_batch(order.batch_id, MadeTickets::Keep, at(20)).await.unwrap();
    let cancelled = cancelled.unwrap();
    assert_eq!((cancelled.unmade, cancelled.made, cancelled.batch.voided), (2, 0, 3));
    assert_eq!(statuses(&store, &order).await, [Completed, Pending, Void, Void, Void]);
    let after = store.ticket(order.tickets[4].id).await.unwrap();
    assert_eq!(after, rules::cancelled(&before, MadeTickets::Keep, at(20)));
    let again = store.cancel_batch(order.batch_id, MadeTickets::Keep, at(30)).await.unwrap();
    let again = again.unwrap();
    assert_eq!((again.unmade, again.made, again.batch), (0, 0, cancelled.batch));
    assert_no_drift(&store).await;
    let unknown = store.cancel_batch(BatchId::generate(), MadeTickets::Keep, at(9)).await.unwrap();
    assert_eq!(unknown, None);
}

async fn a_batch_can_be_cancelled_with_all_that_was_made(db: Database) {
    let store = db.store().await;
    let order = mixed(&store).await;
    let cancelled = store.cancel_batch(order.batch_id, MadeTickets::Void, at(20)).await.unwrap();
    let cancelled = cancelled.unwrap();
    assert_eq!((cancelled.unmade, cancelled.made, cancelled.batch.voided), (2, 2, 5));
    assert_eq!(statuses(&store, &order).await, [TicketStatus::Void; 5]);
    assert_no_drift(&store).await;
}

async fn of_a_cancelling_and_a_completion_one_comes_first(db: Database) {
    let stores = [db.store().await, db.store().await];
    let (_, order) = ordered(&stores[0], 200).await;
    let worker = stores[1].clone();
    let ids: Vec<_> = order.tickets.iter().map(|ticket| ticket.id).collect();
    let completing = tokio::spawn(async move {
        let mut recorded = 0;
        for group in ids.chunks(5) {
            let group: Vec<_> = group.iter().map(|id| completion(*id)).collect();
            recorded += worker.complete_tickets(&group).await.unwrap().changed.len() as u64;
        }
        recorded
    });
    let cancelled = stores[0].cancel_batch(order.batch_id, MadeTickets::Keep, at(20)).await;
    let (cancelled, recorded) = (cancelled.unwrap().unwrap(), completing.await.unwrap());
    assert_eq!(cancelled.unmade + recorded, 200);
    let counted = counts(&stores[0], order.batch_id).await;
    assert_eq!(counted, [200, recorded, 0, cancelled.unmade]);
    assert_no_drift(&stores[0]).await;
}

async fn failed_tickets_of_a_batch_are_tried_again(db: Database) {
    let store = db.store().await;
    let order = mixed(&store).await;
    let before = store.ticket(order.tickets[2].id).await.unwrap().unwrap();
    let (batch, retried) = store.retry_batch(order.batch_id, at(20)).await.unwrap().unwrap();
    assert_eq!((retried, batch.failed, batch.pending()), (1, 0, 3));
    let after = store.ticket(order.tickets[2].id).await.unwrap();
    assert_eq!(after, rules::retried(&before, at(20)));
    assert_eq!(after.unwrap().error, None);
    let (same, none) = store.retry_batch(order.batch_id, at(30)).await.unwrap().unwrap();
    assert_eq!((same, none), (batch, 0));
    assert_eq!(store.retry_batch(BatchId::generate(), at(30)).await.unwrap(), None);
}
