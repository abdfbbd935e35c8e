//! Webhooks and their deliveries.

mod fan_out;

use std::time::Duration;

use stampede_model::{DeliveryId, EventId, FeedEventId, Timestamp, WebhookId};
use stampede_store::{
    AttemptResult, DeliveryFilter, DeliveryState, Disabled, DisabledReason, NewDelivery,
    Redelivered, Slice, Sorted, Store, Webhook, WebhookAttempt, WebhookDelivery, WebhookFilter,
    WebhookWritten,
};

use super::samples::at;
use crate::backends::Database;

on_every_backend!(
    an_endpoint_keeps_its_fields_and_counts_its_changes,
    a_user_has_no_more_endpoints_than_allowed_also_when_two_are_made_at_once,
    messages_are_signed_with_both_secrets_until_the_former_one_ends,
    an_attempt_is_recorded_with_its_effect,
    a_disabled_or_deleted_endpoint_cancels_what_is_pending,
    a_long_backlog_is_cancelled_in_portions,
    an_endpoint_that_fails_for_days_or_is_gone_is_disabled,
    a_delivery_can_be_asked_for_again,
    pending_deliveries_are_found_until_they_are_queued,
    old_deliveries_are_removed_in_portions,
    a_lost_ticket_secret_disables_all_endpoints,
);

/// The newest records of a list.
fn newest<I>(limit: u32) -> Slice<I> {
    Slice::new(Sorted::NewestFirst, None, limit)
}

const GIVE_UP: Duration = Duration::from_secs(5 * 24 * 3_600);

fn endpoint(owner: &str) -> Webhook {
    Webhook {
        id: WebhookId::generate(),
        owner: owner.to_owned(),
        url: "https://example.com/hook".to_owned(),
        description: "Zoë's \"box\"".to_owned(),
        kinds: Some(vec!["batch.completed".to_owned()]),
        event: None,
        disabled: None,
        former_until: None,
        version: 1,
        failing_since: None,
        last_success_at: None,
        created_at: at(0),
        updated_at: at(0),
    }
}

async fn made(store: &Store, owner: &str) -> Webhook {
    let webhook = endpoint(owner);
    let written = store.insert_webhook(&webhook, b"first secret", 50).await.unwrap();
    assert_eq!(written, WebhookWritten::Done);
    webhook
}

async fn delivery(store: &Store, webhook: &Webhook, now: Timestamp) -> DeliveryId {
    let delivery = NewDelivery {
        id: DeliveryId::generate(),
        webhook: webhook.id,
        message: FeedEventId::generate(),
        kind: "webhook.test".to_owned(),
        happened_at: now,
        data: "{}".to_owned(),
    };
    assert!(store.insert_delivery(&delivery, now).await.unwrap());
    delivery.id
}

fn attempt(at: Timestamp, status: Option<u16>) -> WebhookAttempt {
    WebhookAttempt {
        at,
        duration: Duration::from_millis(12),
        status,
        error: (status != Some(200)).then(|| "did not work".to_owned()),
        answer: "body\n\u{fffd}".to_owned(),
    }
}

fn again(at: Timestamp) -> AttemptResult {
    AttemptResult::Retry { at: at + Duration::from_secs(5), give_up_before: at - GIVE_UP }
}

async fn read(store: &Store, webhook: &Webhook, id: DeliveryId) -> WebhookDelivery {
    store.delivery(webhook.id, id).await.unwrap().unwrap()
}

async fn an_endpoint_keeps_its_fields_and_counts_its_changes(db: Database) {
    let store = db.store().await;
    let mut webhook = endpoint("ann");
    webhook.event = Some(EventId::generate());
    store.insert_webhook(&webhook, b"secret", 50).await.unwrap();
    assert_eq!(store.webhook(webhook.id).await.unwrap().unwrap(), webhook);
    webhook.kinds = None;
    webhook.url = "https://example.org".to_owned();
    webhook.updated_at = at(5);
    assert!(store.update_webhook(&webhook, 1).await.unwrap());
    assert!(!store.update_webhook(&webhook, 1).await.unwrap(), "somebody was faster");
    webhook.version = 2;
    assert_eq!(store.webhook(webhook.id).await.unwrap().unwrap(), webhook);

    let other = made(&store, "bob").await;
    let listed = async |filter: WebhookFilter, after| -> Vec<WebhookId> {
        let found =
            store.webhooks(&filter, &Slice::new(Sorted::NewestFirst, after, 10)).await.unwrap();
        found.into_iter().map(|webhook| webhook.id).collect()
    };
    assert_eq!(listed(WebhookFilter::default(), None).await, [other.id, webhook.id]);
    assert_eq!(listed(WebhookFilter::default(), Some(other.id)).await, [webhook.id]);
    let oldest = Slice::new(Sorted::OldestFirst, None, 1);
    let found = store.webhooks(&WebhookFilter::default(), &oldest).await.unwrap();
    assert_eq!(found[0].id, webhook.id);
    let of_bob = WebhookFilter { owner: Some("bob".to_owned()), ..WebhookFilter::default() };
    assert_eq!(listed(of_bob, None).await, [other.id]);
    let of_event = WebhookFilter { event: webhook.event, ..WebhookFilter::default() };
    assert_eq!(listed(of_event, None).await, [webhook.id]);
    let disabled = WebhookFilter { is_active: Some(false), ..WebhookFilter::default() };
    assert_eq!(listed(disabled, None).await, []);
    assert!(store.delete_webhook(other.id, at(9)).await.unwrap());
    assert!(!store.delete_webhook(other.id, at(9)).await.unwrap());
    assert_eq!(store.webhook(other.id).await.unwrap(), None);
    assert_eq!(listed(WebhookFilter::default(), None).await, [webhook.id]);
}

async fn a_user_has_no_more_endpoints_than_allowed_also_when_two_are_made_at_once(db: Database) {
    let store = db.store().await;
    made(&store, "ann").await;
    let others = db.handle().await;
    let (one, two) = (endpoint("ann"), endpoint("ann"));
    let both =
        tokio::join!(store.insert_webhook(&one, b"s", 2), others.insert_webhook(&two, b"s", 2));
    let mut both = [both.0.unwrap(), both.1.unwrap()];
    both.sort_by_key(|written| *written == WebhookWritten::TooMany);
    assert_eq!(both, [WebhookWritten::Done, WebhookWritten::TooMany]);
    made(&store, "bob").await;
    let deleted = store.webhooks(&WebhookFilter::default(), &newest(10)).await.unwrap();
    let of_ann = deleted.iter().find(|webhook| webhook.owner == "ann").unwrap();
    store.delete_webhook(of_ann.id, at(1)).await.unwrap();
    let third = store.insert_webhook(&endpoint("ann"), b"s", 2).await.unwrap();
    assert_eq!(third, WebhookWritten::Done, "a deleted endpoint does not count");
}

async fn messages_are_signed_with_both_secrets_until_the_former_one_ends(db: Database) {
    let store = db.store().await;
    let webhook = made(&store, "ann").await;
    let id = delivery(&store, &webhook, at(1)).await;
    let secrets = async |now| store.outgoing_delivery(id, now).await.unwrap().unwrap().secrets;
    assert_eq!(secrets(at(1)).await, [b"first secret"]);
    assert!(store.rotate_webhook(webhook.id, b"second", Some(at(10)), at(2)).await.unwrap());
    assert_eq!(secrets(at(3)).await, [b"second".as_slice(), b"first secret"]);
    assert_eq!(secrets(at(10)).await, [b"second"], "its end has come");
    assert!(store.rotate_webhook(webhook.id, b"third", None, at(4)).await.unwrap());
    assert_eq!(secrets(at(5)).await, [b"third"], "at once");
    assert_eq!(store.webhook(webhook.id).await.unwrap().unwrap().version, 3);
    assert!(!store.rotate_webhook(WebhookId::generate(), b"x", None, at(5)).await.unwrap());
    assert!(db.reader().await.outgoing_delivery(id, at(5)).await.is_err(), "without the secret");
}

async fn an_attempt_is_recorded_with_its_effect(db: Database) {
    let store = db.store().await;
    let webhook = made(&store, "ann").await;
    let id = delivery(&store, &webhook, at(1)).await;
    let failed = attempt(at(2), None);
    assert_eq!(store.record_attempt(id, &failed, again(at(2))).await.unwrap(), None);
    let found = read(&store, &webhook, id).await;
    assert_eq!((found.state, found.attempts, found.tries), (DeliveryState::Pending, 1, 1));
    assert_eq!((found.next_at, found.last_error.as_deref()), (Some(at(7)), Some("did not work")));
    let since = store.webhook(webhook.id).await.unwrap().unwrap().failing_since;
    assert_eq!(since, Some(at(2) + failed.duration));
    assert_eq!(store.record_attempt(id, &failed, again(at(2))).await.unwrap(), None);
    let done = attempt(at(9), Some(200));
    store.record_attempt(id, &done, AttemptResult::Delivered).await.unwrap();
    let found = read(&store, &webhook, id).await;
    assert_eq!(
        (found.state, found.attempts, found.last_status),
        (DeliveryState::Delivered, 3, Some(200))
    );
    assert_eq!((found.next_at, found.ended_at), (None, Some(at(9) + done.duration)));
    let seen = store.webhook(webhook.id).await.unwrap().unwrap();
    assert_eq!((seen.failing_since, seen.last_success_at), (None, found.ended_at));
    assert_eq!(seen.version, 1, "attempts are no changes of people");
    let attempts = store.delivery_attempts(id).await.unwrap();
    assert_eq!(attempts, [failed.clone(), failed, done]);
    assert!(store.sealed_delivery(id).await.unwrap().is_none(), "it is not to be sent");

    let listed = async |state: Option<DeliveryState>, kind: Option<&str>| {
        let filter = DeliveryFilter { state, kind: kind.map(str::to_owned) };
        store.deliveries(webhook.id, &filter, &newest(10)).await.unwrap().len()
    };
    assert_eq!(listed(None, None).await, 1);
    assert_eq!(listed(Some(DeliveryState::Delivered), Some("webhook.test")).await, 1);
    assert_eq!(listed(Some(DeliveryState::Pending), None).await, 0);
    assert_eq!(listed(None, Some("batch.created")).await, 0);
    let unknown = DeliveryId::generate();
    let disabled = store.record_attempt(unknown, &attempt(at(2), None), again(at(2))).await;
    assert_eq!(disabled.unwrap(), None);

    for _ in 0..60 {
        store.record_attempt(id, &attempt(at(20), None), again(at(20))).await.unwrap();
    }
    assert_eq!(store.delivery_attempts(id).await.unwrap().len(), 50, "the last ones");
}

async fn a_disabled_or_deleted_endpoint_cancels_what_is_pending(db: Database) {
    let store = db.store().await;
    let mut webhook = made(&store, "ann").await;
    let other = made(&store, "ann").await;
    let (id, of_other) =
        (delivery(&store, &webhook, at(1)).await, delivery(&store, &other, at(1)).await);
    webhook.disabled = Some(Disabled { reason: DisabledReason::ByHand, at: at(3) });
    webhook.updated_at = at(3);
    assert!(store.update_webhook(&webhook, 1).await.unwrap());
    let found = read(&store, &webhook, id).await;
    assert_eq!((found.state, found.ended_at), (DeliveryState::Cancelled, Some(at(3))));
    assert_eq!(read(&store, &other, of_other).await.state, DeliveryState::Pending);
    let new = NewDelivery {
        id: DeliveryId::generate(),
        webhook: webhook.id,
        message: FeedEventId::generate(),
        kind: "webhook.test".to_owned(),
        happened_at: at(4),
        data: "{}".to_owned(),
    };
    assert!(!store.insert_delivery(&new, at(4)).await.unwrap(), "it gets nothing");
    // An attempt that was under way is recorded; the endpoint did accept the message.
    store.record_attempt(id, &attempt(at(4), None), again(at(4))).await.unwrap();
    assert_eq!(read(&store, &webhook, id).await.state, DeliveryState::Cancelled);
    store.record_attempt(id, &attempt(at(4), Some(200)), AttemptResult::Delivered).await.unwrap();
    assert_eq!(read(&store, &webhook, id).await.state, DeliveryState::Delivered);

    webhook.disabled = None;
    assert!(store.update_webhook(&webhook, 2).await.unwrap());
    assert!(store.insert_delivery(&new, at(5)).await.unwrap());
    store.delete_webhook(other.id, at(6)).await.unwrap();
    assert_eq!(read(&store, &other, of_other).await.state, DeliveryState::Cancelled);
    assert!(store.sealed_delivery(of_other).await.unwrap().is_none());
}

async fn a_long_backlog_is_cancelled_in_portions(db: Database) {
    let store = db.store().await;
    let mut webhook = made(&store, "ann").await;
    for _ in 0..1_100 {
        delivery(&store, &webhook, at(1)).await;
    }
    assert_eq!(store.inactive_with_pending().await.unwrap(), None);
    assert_eq!(store.cancel_pending(webhook.id, at(2)).await.unwrap(), 0, "it is active");
    webhook.disabled = Some(Disabled { reason: DisabledReason::ByHand, at: at(3) });
    webhook.updated_at = at(3);
    assert!(store.update_webhook(&webhook, 1).await.unwrap());
    assert_eq!(store.pending_deliveries(None, 2_000).await.unwrap().len(), 600);
    assert_eq!(store.inactive_with_pending().await.unwrap(), Some(webhook.id));
    assert_eq!(store.cancel_pending(webhook.id, at(4)).await.unwrap(), 500);
    assert_eq!(store.cancel_pending(webhook.id, at(4)).await.unwrap(), 100);
    assert_eq!(store.cancel_pending(webhook.id, at(4)).await.unwrap(), 0);
    assert_eq!(store.inactive_with_pending().await.unwrap(), None);
}

async fn an_endpoint_that_fails_for_days_or_is_gone_is_disabled(db: Database) {
    let store = db.store().await;
    let webhook = made(&store, "ann").await;
    let (first, second) =
        (delivery(&store, &webhook, at(1)).await, delivery(&store, &webhook, at(1)).await);
    store.record_attempt(first, &attempt(at(2), None), again(at(2))).await.unwrap();
    let later = at(2) + GIVE_UP;
    let nearly = attempt(later - Duration::from_secs(60), Some(500));
    let result = AttemptResult::Failed { give_up_before: nearly.at - GIVE_UP };
    assert_eq!(store.record_attempt(first, &nearly, result).await.unwrap(), None);
    assert_eq!(read(&store, &webhook, first).await.state, DeliveryState::Failed);
    let late = later + Duration::from_secs(60);
    let disabled = store.record_attempt(second, &attempt(late, Some(500)), again(late)).await;
    assert_eq!(disabled.unwrap(), Some(DisabledReason::Failing));
    assert_eq!(read(&store, &webhook, second).await.state, DeliveryState::Cancelled);
    let mut found = store.webhook(webhook.id).await.unwrap().unwrap();
    assert_eq!(found.disabled.as_ref().unwrap().reason, DisabledReason::Failing);
    let (seen, since) = (found.version, found.failing_since);
    assert!(seen == 2 && since.is_some());
    found.disabled = None;
    assert!(store.update_webhook(&found, seen).await.unwrap());
    let found = store.webhook(webhook.id).await.unwrap().unwrap();
    assert_eq!((found.disabled, found.failing_since), (None, None), "it has five days again");

    let other = made(&store, "ann").await;
    let id = delivery(&store, &other, at(1)).await;
    let gone = store.record_attempt(id, &attempt(at(2), Some(410)), AttemptResult::Gone).await;
    assert_eq!(gone.unwrap(), Some(DisabledReason::Gone));
    assert_eq!(read(&store, &other, id).await.state, DeliveryState::Failed);
}

async fn a_delivery_can_be_asked_for_again(db: Database) {
    let store = db.store().await;
    let mut webhook = made(&store, "ann").await;
    let ids = [
        delivery(&store, &webhook, at(1)).await,
        delivery(&store, &webhook, at(1)).await,
        delivery(&store, &webhook, at(1)).await,
    ];
    let failed = |second| AttemptResult::Failed { give_up_before: at(second) - GIVE_UP };
    for (id, second) in ids.iter().zip([10, 20, 30]) {
        store.record_attempt(*id, &attempt(at(second), None), failed(second)).await.unwrap();
    }
    assert_eq!(store.redeliver(webhook.id, ids[0]).await.unwrap(), Redelivered::Done);
    let found = read(&store, &webhook, ids[0]).await;
    assert_eq!((found.state, found.attempts, found.tries), (DeliveryState::Pending, 1, 0));
    assert_eq!(found.ended_at, None);
    assert_eq!(store.redeliver_all(webhook.id, at(25)).await.unwrap(), 1);
    assert_eq!(read(&store, &webhook, ids[1]).await.state, DeliveryState::Failed);
    assert_eq!(read(&store, &webhook, ids[2]).await.state, DeliveryState::Pending);
    assert_eq!(store.redeliver_all(webhook.id, at(0)).await.unwrap(), 1);
    let other = made(&store, "ann").await;
    assert_eq!(store.redeliver(other.id, ids[0]).await.unwrap(), Redelivered::NotFound);
    webhook.disabled = Some(Disabled { reason: DisabledReason::ByHand, at: at(40) });
    store.update_webhook(&webhook, 1).await.unwrap();
    assert_eq!(store.redeliver(webhook.id, ids[0]).await.unwrap(), Redelivered::Disabled);
    assert_eq!(store.redeliver_all(webhook.id, at(0)).await.unwrap(), 0);
    webhook.disabled = None;
    store.update_webhook(&webhook, 2).await.unwrap();
    assert_eq!(store.redeliver_all(webhook.id, at(0)).await.unwrap(), 3, "the cancelled ones, too");
}

async fn pending_deliveries_are_found_until_they_are_queued(db: Database) {
    let store = db.store().await;
    let webhook = made(&store, "ann").await;
    let first = delivery(&store, &webhook, at(1)).await;
    let second = delivery(&store, &webhook, at(2)).await;
    store.deliveries_wait().await;
    let unqueued = async || -> Vec<DeliveryId> {
        store.unqueued_deliveries(10).await.unwrap().iter().map(|delivery| delivery.id).collect()
    };
    assert_eq!(unqueued().await, [first, second]);
    store.mark_queued(&[first]).await.unwrap();
    assert_eq!(unqueued().await, [second]);
    store.mark_queued(&[second]).await.unwrap();
    store.record_attempt(first, &attempt(at(3), None), again(at(3))).await.unwrap();
    let pending = store.pending_deliveries(None, 10).await.unwrap();
    assert_eq!(pending.iter().map(|one| one.id).collect::<Vec<_>>(), [first, second]);
    assert_eq!(pending[0].next_at, Some(at(8)));
    assert_eq!(store.pending_deliveries(Some(first), 10).await.unwrap().len(), 1);
    store.fail_delivery(second, "its worker died", at(9)).await.unwrap();
    let found = read(&store, &webhook, second).await;
    assert_eq!(found.state, DeliveryState::Failed);
    assert_eq!(found.last_error.as_deref(), Some("its worker died"));
    store.redeliver(webhook.id, second).await.unwrap();
    assert_eq!(unqueued().await, [second], "it needs a job again");
}

async fn old_deliveries_are_removed_in_portions(db: Database) {
    let store = db.store().await;
    let webhook = made(&store, "ann").await;
    for second in [10, 20, 30] {
        let id = delivery(&store, &webhook, at(1)).await;
        let done = attempt(at(second), Some(200));
        store.record_attempt(id, &done, AttemptResult::Delivered).await.unwrap();
    }
    let pending = delivery(&store, &webhook, at(1)).await;
    assert_eq!(store.forget_deliveries(at(25), 1).await.unwrap(), 1);
    assert_eq!(store.forget_deliveries(at(25), 1).await.unwrap(), 1);
    assert_eq!(store.forget_deliveries(at(25), 1).await.unwrap(), 0);
    let left = store.deliveries(webhook.id, &DeliveryFilter::default(), &newest(10)).await.unwrap();
    assert_eq!(left.len(), 2);
    assert_eq!(left[0].id, pending, "what is pending stays, however old");
    store.delete_webhook(webhook.id, at(40)).await.unwrap();
    assert_eq!(store.forget_deliveries(at(0), 1).await.unwrap(), 1);
    assert_eq!(store.forget_deliveries(at(0), 1).await.unwrap(), 1);
    assert_eq!(store.forget_deliveries(at(0), 1).await.unwrap(), 0);
    assert!(store.delivery(webhook.id, pending).await.unwrap().is_none());
}

async fn a_lost_ticket_secret_disables_all_endpoints(db: Database) {
    let store = db.store().await;
    let webhook = made(&store, "ann").await;
    let id = delivery(&store, &webhook, at(1)).await;
    let mut asleep = made(&store, "ann").await;
    asleep.disabled = Some(Disabled { reason: DisabledReason::ByHand, at: at(2) });
    assert!(store.update_webhook(&asleep, 1).await.unwrap());
    let other = stampede_store::TicketSecret::new("another secret");
    let renewed = db.reader().await.with_ticket_secret(&other);
    renewed.renew_ticket_secret(at(5)).await.unwrap();
    let found = renewed.webhook(webhook.id).await.unwrap().unwrap();
    assert_eq!(found.disabled.unwrap().reason, DisabledReason::SecretLost);
    let marked = renewed.webhook(asleep.id).await.unwrap().unwrap().disabled.unwrap();
    let since = (marked.reason, marked.at);
    assert_eq!(
        since,
        (DisabledReason::SecretLost, at(2)),
        "it was disabled before, and needs a new secret, too"
    );
    assert_eq!(read(&renewed, &webhook, id).await.state, DeliveryState::Cancelled);
    assert!(renewed.rotate_webhook(webhook.id, b"new", Some(at(99)), at(6)).await.unwrap());
    let mut found = renewed.webhook(webhook.id).await.unwrap().unwrap();
    assert_eq!(found.disabled.unwrap().reason, DisabledReason::ByHand);
    found.disabled = None;
    assert!(renewed.update_webhook(&found, found.version).await.unwrap());
    let id = delivery(&renewed, &webhook, at(7)).await;
    let outgoing = renewed.outgoing_delivery(id, at(7)).await.unwrap().unwrap();
    assert_eq!(outgoing.secrets, [b"new"], "the lost one signs nothing");
}
