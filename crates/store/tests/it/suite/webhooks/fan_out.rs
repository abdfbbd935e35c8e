//! From the outbox to deliveries.

use stampede_model::{EventId, FeedEventId};
use stampede_store::{DeliveryFilter, Disabled, DisabledReason, OutboxRow, Store, Webhook};

use super::{at, endpoint, made, newest};
use crate::backends::Database;
use crate::suite::samples::event;

on_every_backend!(
    a_settled_message_has_one_delivery_to_each_endpoint_that_chose_it,
    two_relays_that_settle_at_once_make_no_delivery_twice,
    an_endpoint_that_is_disabled_meanwhile_has_nothing_pending,
);

/// The kinds of the messages that an endpoint gets, the oldest first.
async fn kinds(store: &Store, webhook: &Webhook) -> Vec<String> {
    let found =
        store.deliveries(webhook.id, &DeliveryFilter::default(), &newest(100)).await.unwrap();
    found.into_iter().rev().map(|delivery| delivery.kind).collect()
}

async fn chosen(store: &Store, kinds: Option<&[&str]>, event: Option<EventId>) -> Webhook {
    let kinds = kinds.map(|kinds| kinds.iter().map(|&kind| kind.to_owned()).collect());
    let webhook = Webhook { kinds, event, ..endpoint("ann") };
    store.insert_webhook(&webhook, b"secret", 50).await.unwrap();
    webhook
}

async fn a_settled_message_has_one_delivery_to_each_endpoint_that_chose_it(db: Database) {
    let store = db.store().await;
    let (first, second) = (event("ann"), event("ann"));
    let all = chosen(&store, None, None).await;
    let deleted = chosen(&store, Some(&["event.deleted"]), None).await;
    let of_first = chosen(&store, None, Some(first.id)).await;
    let strange = made(&store, "bob").await;
    store.insert_event(&first).await.unwrap();
    store.insert_event(&second).await.unwrap();
    store.delete_event(second.id).await.unwrap();
    let rows = store.outbox(100).await.unwrap();
    assert_eq!(rows.len(), 3);
    store.settle_outbox(&rows).await.unwrap();
    assert!(store.outbox(100).await.unwrap().is_empty());
    assert_eq!(kinds(&store, &all).await, ["event.created", "event.created", "event.deleted"]);
    assert_eq!(kinds(&store, &deleted).await, ["event.deleted"]);
    assert_eq!(kinds(&store, &of_first).await, ["event.created"]);
    assert!(kinds(&store, &strange).await.is_empty(), "they are ann's");
    let found =
        store.deliveries(of_first.id, &DeliveryFilter::default(), &newest(9)).await.unwrap();
    let (delivery, row) = (&found[0], &rows[0]);
    assert_eq!((delivery.message, &delivery.data), (row.id, &row.data));
    assert_eq!((delivery.event, delivery.happened_at), (Some(first.id), row.at));
    store.deliveries_wait().await;

    // A relay that does not know that the rows are settled.
    let late = chosen(&store, None, None).await;
    store.settle_outbox(&rows).await.unwrap();
    assert_eq!(kinds(&store, &all).await.len(), 3);
    assert!(kinds(&store, &late).await.is_empty(), "it was made after the messages");
}

async fn two_relays_that_settle_at_once_make_no_delivery_twice(db: Database) {
    let (store, other) = (db.store().await, db.handle().await);
    let all = chosen(&store, None, None).await;
    for _ in 0..10 {
        store.insert_event(&event("ann")).await.unwrap();
        let rows = store.outbox(100).await.unwrap();
        let (one, two) = tokio::join!(store.settle_outbox(&rows), other.settle_outbox(&rows));
        one.unwrap();
        two.unwrap();
    }
    assert_eq!(kinds(&store, &all).await.len(), 10);
}

async fn an_endpoint_that_is_disabled_meanwhile_has_nothing_pending(db: Database) {
    let (store, other) = (db.store().await, db.handle().await);
    for round in 0..10 {
        let mut webhook = chosen(&store, None, None).await;
        let row = OutboxRow { id: FeedEventId::generate(), ..written(&store).await };
        webhook.disabled = Some(Disabled { reason: DisabledReason::ByHand, at: at(round) });
        let rows = [row];
        let (settled, disabled) =
            tokio::join!(store.settle_outbox(&rows), other.update_webhook(&webhook, 1));
        settled.unwrap();
        assert!(disabled.unwrap());
        let pending = store.pending_deliveries(None, 100).await.unwrap();
        assert!(pending.is_empty(), "{pending:?}");
    }
}

/// The row of a new event.
async fn written(store: &Store) -> OutboxRow {
    store.insert_event(&event("ann")).await.unwrap();
    store.outbox(1).await.unwrap().remove(0)
}
