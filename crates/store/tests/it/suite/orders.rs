//! Orders: all or nothing, idempotent, and in bulk.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use stampede_model::{Batch, EventId, Idempotency, Order};
use stampede_store::{Error, Placed, Store, TicketFilter};

use crate::backends::Database;
use crate::suite::samples::{assert_no_drift, at, counts, event, number, order, ordered};

on_every_backend!(
    an_order_comes_back_as_it_was_written,
    an_order_is_all_or_nothing,
    an_order_for_an_unknown_event_writes_nothing,
    the_same_key_of_the_same_owner_is_the_same_order,
    of_racing_orders_with_one_key_exactly_one_is_new,
    the_last_changed_batches_come_first,
    an_order_given_up_midway_leaves_all_or_nothing,
    ten_thousand_tickets_are_ordered_at_once,
    racing_orders_number_their_tickets_without_gap_or_overlap,
    an_order_that_is_not_new_takes_no_serial,
);

async fn an_order_comes_back_as_it_was_written(db: Database) {
    let store = db.store().await;
    let event = event("ann");
    store.insert_event(&event).await.unwrap();
    let mut order = order(&event, 3);
    order.tickets[1].price = None;
    order.tickets[2].holder.email = None;
    let expected = Batch {
        id: order.batch_id,
        event_id: event.id,
        owner: "ann".into(),
        total: 3,
        completed: 0,
        failed: 0,
        voided: 0,
        revision: 0,
        created_at: at(1),
        updated_at: at(1),
    };
    let Placed::New(batch) = store.place_order(&order).await.unwrap() else { panic!() };
    assert!(batch.revision > 0);
    assert_eq!(batch, Batch { revision: batch.revision, ..expected });
    assert_eq!(store.batch(order.batch_id).await.unwrap(), Some(batch));
    number(&mut order, 1);
    for ticket in &order.tickets {
        assert_eq!(store.ticket(ticket.id).await.unwrap().as_ref(), Some(ticket));
    }
}

async fn an_order_is_all_or_nothing(db: Database) {
    let store = db.store().await;
    let (event, first) = ordered(&store, 2).await;
    let mut clashing = order(&event, 5);
    clashing.tickets[3].id = first.tickets[0].id;
    let error = store.place_order(&clashing).await.unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error}");
    assert_eq!(store.batch(clashing.batch_id).await.unwrap(), None);
    assert_eq!(store.ticket(clashing.tickets[0].id).await.unwrap(), None);
    assert_eq!(counts(&store, first.batch_id).await, [2, 0, 0, 0]);
    assert_no_drift(&store).await;
}

async fn an_order_for_an_unknown_event_writes_nothing(db: Database) {
    let store = db.store().await;
    let mut event = event("ann");
    event.id = EventId::generate();
    let order = order(&event, 1);
    assert_eq!(store.place_order(&order).await.unwrap(), Placed::NoSuchEvent);
    assert_eq!(store.batch(order.batch_id).await.unwrap(), None);
}

fn keyed(order: Order, key: &str) -> Order {
    let request = format!("{} of {}", order.tickets.len(), order.event_id);
    Order { idempotency: Some(Idempotency { key: key.into(), request }), ..order }
}

async fn the_same_key_of_the_same_owner_is_the_same_order(db: Database) {
    let store = db.store().await;
    let (anns, bobs) = (event("ann"), event("bob"));
    store.insert_event(&anns).await.unwrap();
    store.insert_event(&bobs).await.unwrap();
    let first = keyed(order(&anns, 2), "k");
    let again = keyed(order(&anns, 2), "k");
    let Placed::New(batch) = store.place_order(&first).await.unwrap() else { panic!() };
    assert_eq!(store.place_order(&again).await.unwrap(), Placed::Existing(batch));
    let mistake = keyed(order(&anns, 7), "k");
    assert_eq!(store.place_order(&mistake).await.unwrap(), Placed::OtherRequest);
    for nothing in [again.batch_id, mistake.batch_id] {
        assert_eq!(store.batch(nothing).await.unwrap(), None);
        assert_eq!(store.batch_ticket_ids(nothing).await.unwrap(), []);
    }
    for other in [keyed(order(&bobs, 1), "k"), keyed(order(&anns, 1), "K"), order(&anns, 1)] {
        assert!(matches!(store.place_order(&other).await.unwrap(), Placed::New(_)));
    }
}

async fn of_racing_orders_with_one_key_exactly_one_is_new(db: Database) {
    let stores = [db.store().await, db.store().await];
    let event = event("ann");
    stores[0].insert_event(&event).await.unwrap();
    let racers: Vec<_> = (0..8)
        .map(|number| {
            let store = stores[number % 2].clone();
            let order = keyed(order(&event, 50), "k");
            tokio::spawn(async move { store.place_order(&order).await.unwrap() })
        })
        .collect();
    let mut new = Vec::new();
    let mut existing = Vec::new();
    for racer in racers {
        match racer.await.unwrap() {
            Placed::New(batch) => new.push(batch),
            Placed::Existing(batch) => existing.push(batch),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(new.len(), 1);
    assert_eq!(existing, vec![new[0].clone(); 7]);
    assert_eq!(counts(&stores[0], new[0].id).await, [50, 0, 0, 0]);
}

async fn the_last_changed_batches_come_first(db: Database) {
    let store = db.store().await;
    let mut batches = Vec::new();
    for _ in 0..4 {
        batches.push(ordered(&store, 2).await.1);
    }
    for (number, second) in [(2, 30), (0, 20), (3, 10)] {
        store.void_ticket(batches[number].tickets[0].id, at(second)).await.unwrap();
    }
    for (since, limit, expected) in
        [(at(0), 9, vec![2, 0, 3, 1]), (at(0), 2, vec![2, 0]), (at(20), 9, vec![2, 0])]
    {
        let found = store.batches_changed_since(since, limit).await.unwrap();
        let ids: Vec<_> = found.iter().map(|batch| batch.id).collect();
        let expected: Vec<_> = expected.into_iter().map(|n: usize| batches[n].batch_id).collect();
        assert_eq!(ids, expected);
    }
}

/// Drops the future after so many polls, as a server does when its client hangs up.
async fn given_up_after<F: Future>(polls: usize, work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    let mut left = polls;
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

async fn an_order_given_up_midway_leaves_all_or_nothing(db: Database) {
    let store = db.store().await;
    let event = event("ann");
    store.insert_event(&event).await.unwrap();
    let mut finished = 0;
    for polls in 0..40 {
        let order = order(&event, 30);
        if given_up_after(polls, store.place_order(&order)).await.is_some() {
            finished += 1;
        }
        // The next writer gets its turn, on whichever connection.
        let next = self::order(&event, 1);
        assert!(matches!(store.place_order(&next).await.unwrap(), Placed::New(_)));
        let left = store.batch_ticket_ids(order.batch_id).await.unwrap().len();
        assert!([0, 30].contains(&left), "{left}");
    }
    assert!((1..40).contains(&finished), "{finished} of 40 were not given up");
    assert_no_drift(&store).await;
}

async fn ten_thousand_tickets_are_ordered_at_once(db: Database) {
    let store = db.store().await;
    let event = event("ann");
    store.insert_event(&event).await.unwrap();
    let order = order(&event, 10_000);
    let start = Instant::now();
    store.place_order(&order).await.unwrap();
    let took = start.elapsed();
    println!("10,000 tickets ordered in {took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(counts(&store, order.batch_id).await, [10_000, 0, 0, 0]);
    let ids: Vec<_> = order.tickets.iter().map(|ticket| ticket.id).collect();
    assert_eq!(store.batch_ticket_ids(order.batch_id).await.unwrap(), ids);
    assert_no_drift(&store).await;
}

/// The serials of an order, in the order of its tickets.
async fn serials(store: &Store, order: &Order) -> Vec<u32> {
    let filter = TicketFilter { batch: Some(order.batch_id), ..TicketFilter::default() };
    let tickets = store.tickets(&filter, None, 1_000).await.unwrap();
    tickets.iter().map(|ticket| ticket.serial).collect()
}

async fn racing_orders_number_their_tickets_without_gap_or_overlap(db: Database) {
    let store = db.store().await;
    let event = event("ann");
    store.insert_event(&event).await.unwrap();
    let orders: Vec<Order> = (0..12).map(|n| order(&event, 1 + n % 5)).collect();
    let mut buyers = Vec::new();
    for (n, order) in orders.iter().cloned().enumerate() {
        // Some share a handle, some are other processes.
        let store = if n % 3 == 0 { db.handle().await } else { store.clone() };
        buyers.push(tokio::spawn(async move { store.place_order(&order).await.unwrap() }));
    }
    for buyer in buyers {
        assert!(matches!(buyer.await.unwrap(), Placed::New(_)));
    }
    let mut all = Vec::new();
    for order in &orders {
        let own = serials(&store, order).await;
        assert!(own.windows(2).all(|pair| pair[1] == pair[0] + 1), "{own:?}");
        all.extend(own);
    }
    all.sort_unstable();
    let total: usize = orders.iter().map(|order| order.tickets.len()).sum();
    assert_eq!(all, (1..=total as u32).collect::<Vec<_>>());
}

async fn an_order_that_is_not_new_takes_no_serial(db: Database) {
    let store = db.store().await;
    let (event, first) = ordered(&store, 2).await;
    let mut clashing = order(&event, 5);
    clashing.tickets[3].id = first.tickets[0].id;
    store.place_order(&clashing).await.unwrap_err();
    let again = keyed(order(&event, 3), "click");
    assert!(matches!(store.place_order(&again).await.unwrap(), Placed::New(_)));
    let repeated = keyed(order(&event, 3), "click");
    assert!(matches!(store.place_order(&repeated).await.unwrap(), Placed::Existing(_)));
    store.delete_ticket(again.tickets[2].id, at(5)).await.unwrap();
    let last = order(&event, 1);
    store.place_order(&last).await.unwrap();
    assert_eq!(serials(&store, &again).await, [3, 4]);
    assert_eq!(
        serials(&store, &last).await,
        [6],
        "a deleted ticket's number is not given out again"
    );
}
