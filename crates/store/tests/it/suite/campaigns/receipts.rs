//! What providers say about messages.

use stampede_model::campaign::{AccountId, CampaignChange, RecipientState, SuppressionReason};
use stampede_model::{RecipientId, RunId};
use stampede_store::{
    AttemptEffect, Campaign, Receipt, ReceiptEffect, ReceiptStatus, Store, SuppressionFilter,
};

use super::{assert_counts, claimed, moved, queued, read, result, sent};
use crate::backends::Database;
use crate::suite::samples::at;

on_every_backend!(
    receipts_move_a_recipient_up_in_any_order,
    a_receipt_settles_what_is_unknown,
    a_receipt_of_another_account_or_for_nobody_does_nothing,
    a_receipt_that_comes_too_late_still_suppresses_the_address,
    receipts_of_a_group_are_answered_in_their_order,
);

fn receipt(campaign: &Campaign, provider_id: &str, status: ReceiptStatus) -> Receipt {
    Receipt {
        account: campaign.account.clone(),
        recipient: None,
        provider_id: Some(provider_id.to_owned()),
        status,
        code: (status == ReceiptStatus::Failed).then(|| "131026".to_owned()),
        detail: (status == ReceiptStatus::Failed).then(|| "undeliverable".to_owned()),
        suppress: None,
        at: at(10),
    }
}

async fn apply(store: &Store, receipt: Receipt) -> ReceiptEffect {
    store.apply_receipts(&[receipt], at(11)).await.unwrap()[0]
}

/// A message that was sent under this id.
async fn sent_as(store: &Store, campaign: &Campaign, id: RecipientId, provider_id: &str) -> RunId {
    let run = claimed(store, campaign, id).await;
    store.record_runs(&[sent(id, run, provider_id)], at(6)).await.unwrap();
    run
}

async fn receipts_move_a_recipient_up_in_any_order(db: Database) {
    use ReceiptEffect::{Applied, Stale};
    use ReceiptStatus::{Delivered, Failed, Read, Sent};
    let store = db.store().await;
    let (running, ids) = queued(&store, 4).await;
    let orders: [(&[_], &[_], RecipientState); 4] = [
        (&[Sent, Delivered, Read], &[Stale, Applied, Applied], RecipientState::Read),
        (&[Read, Delivered, Sent, Failed], &[Applied, Stale, Stale, Stale], RecipientState::Read),
        (&[Failed, Sent, Delivered], &[Applied, Stale, Applied], RecipientState::Delivered),
        (&[Delivered, Delivered, Failed], &[Applied, Stale, Stale], RecipientState::Delivered),
    ];
    for (number, (statuses, effects, state)) in orders.iter().enumerate() {
        let name = format!("m{number}");
        sent_as(&store, &running, ids[number], &name).await;
        for (status, effect) in statuses.iter().zip(*effects) {
            let found = apply(&store, receipt(&running, &name, *status)).await;
            assert_eq!(found, *effect, "{number} {status:?}");
        }
        let found = read(&store, ids[number]).await;
        assert_eq!(found.state, *state, "{number}");
        assert_eq!(found.code, None, "what arrived has not failed");
        assert_eq!(found.delivered_at, Some(at(10)), "also if it comes after the reading");
        assert_eq!(found.read_at.is_some(), *state == RecipientState::Read);
    }
    assert_counts(&store).await;
}

async fn a_receipt_settles_what_is_unknown(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 2).await;
    for id in &ids {
        let run = claimed(&store, &running, *id).await;
        let unknown = result(*id, run, AttemptEffect::Unknown);
        store.record_runs(&[unknown], at(6)).await.unwrap();
    }
    let named = |id, status| Receipt { recipient: Some(id), ..receipt(&running, "m1", status) };
    let effect = apply(&store, named(ids[0], ReceiptStatus::Sent)).await;
    assert_eq!(effect, ReceiptEffect::Applied);
    let found = read(&store, ids[0]).await;
    assert_eq!((found.state, found.sent_at), (RecipientState::Sent, Some(at(10))));
    assert_eq!(found.provider_id.as_deref(), Some("m1"), "later receipts may name only this");
    let effect = apply(&store, named(ids[1], ReceiptStatus::Failed)).await;
    assert_eq!(effect, ReceiptEffect::Applied);
    let found = read(&store, ids[1]).await;
    assert_eq!((found.state, found.code.as_deref()), (RecipientState::Failed, Some("131026")));
    assert_eq!(found.detail.as_deref(), Some("undeliverable"));
}

async fn a_receipt_of_another_account_or_for_nobody_does_nothing(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 1).await;
    sent_as(&store, &running, ids[0], "m1").await;
    let forged: AccountId = "of-eve".parse().unwrap();
    for recipient in [None, Some(ids[0])] {
        let receipt = Receipt {
            account: forged.clone(),
            recipient,
            suppress: Some(SuppressionReason::Stop),
            ..receipt(&running, "m1", ReceiptStatus::Failed)
        };
        assert_eq!(apply(&store, receipt).await, ReceiptEffect::NotFound);
    }
    let unknown = receipt(&running, "m2", ReceiptStatus::Read);
    assert_eq!(apply(&store, unknown).await, ReceiptEffect::NotFound);
    let nameless = Receipt { provider_id: None, ..receipt(&running, "", ReceiptStatus::Read) };
    assert_eq!(apply(&store, nameless).await, ReceiptEffect::NotFound);
    let gone = Receipt {
        recipient: Some(RecipientId::generate()),
        provider_id: None,
        ..receipt(&running, "", ReceiptStatus::Read)
    };
    assert_eq!(apply(&store, gone).await, ReceiptEffect::NotFound);
    assert_eq!(read(&store, ids[0]).await.state, RecipientState::Sent);
    assert_eq!(store.suppressions(&SuppressionFilter::default(), None, 9).await.unwrap(), []);

    moved(&store, running.id, CampaignChange::Pause, at(12)).await;
    store.delete_campaign_as_seen(running.id, None).await.unwrap();
    let late = receipt(&running, "m1", ReceiptStatus::Read);
    assert_eq!(apply(&store, late).await, ReceiptEffect::NotFound, "its campaign is deleted");
}

async fn a_receipt_that_comes_too_late_still_suppresses_the_address(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 1).await;
    sent_as(&store, &running, ids[0], "m1").await;
    apply(&store, receipt(&running, "m1", ReceiptStatus::Read)).await;
    let complaint = Receipt {
        suppress: Some(SuppressionReason::Complaint),
        ..receipt(&running, "m1", ReceiptStatus::Failed)
    };
    assert_eq!(apply(&store, complaint.clone()).await, ReceiptEffect::Stale);
    apply(&store, complaint).await;
    let found = store.suppressions(&SuppressionFilter::default(), None, 9).await.unwrap();
    assert_eq!(found.len(), 1, "twice is once");
    assert_eq!((found[0].reason, found[0].since), (SuppressionReason::Complaint, at(10)));
}

async fn receipts_of_a_group_are_answered_in_their_order(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 2).await;
    sent_as(&store, &running, ids[0], "m1").await;
    sent_as(&store, &running, ids[1], "m2").await;
    let group = [
        receipt(&running, "m2", ReceiptStatus::Read),
        receipt(&running, "nobody's", ReceiptStatus::Read),
        receipt(&running, "m1", ReceiptStatus::Delivered),
        receipt(&running, "m2", ReceiptStatus::Delivered),
    ];
    let effects = store.apply_receipts(&group, at(12)).await.unwrap();
    use ReceiptEffect::{Applied, NotFound, Stale};
    assert_eq!(effects, [Applied, NotFound, Applied, Stale]);
    assert_eq!(store.apply_receipts(&[], at(12)).await.unwrap(), []);
    assert_counts(&store).await;
}
