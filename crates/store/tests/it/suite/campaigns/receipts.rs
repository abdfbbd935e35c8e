//! What providers say about messages.

use stampede_model::campaign::{AccountId, CampaignChange, RecipientState, SuppressionReason};
use stampede_model::{RecipientId, RunId, Timestamp};
use stampede_store::{
    AttemptEffect, BOUNCED_LATER, Campaign, Claimed, FAILED_LATER, Receipt, ReceiptEffect,
    ReceiptStatus, Settlement, Store, SuppressionFilter,
};

use super::accounts::account;
use super::{
    assert_counts, campaign, claim, claimed, import, moved, queued, read, recipients, result, sent,
    states,
};
use crate::backends::Database;
use crate::suite::samples::at;

on_every_backend!(
    receipts_move_a_recipient_up_in_any_order,
    a_recipient_whose_attempt_failed_and_that_has_it_has_no_error,
    a_receipt_settles_what_is_unknown,
    a_message_that_arrived_after_all_is_not_sent_again,
    a_receipt_for_a_message_that_was_never_sent_does_nothing,
    a_receipt_of_another_account_or_for_nobody_does_nothing,
    a_receipt_that_comes_too_late_still_suppresses_the_address,
    a_receipt_for_a_deleted_campaign_still_suppresses_the_address,
    of_messages_with_the_same_id_the_newest_of_the_account_is_meant,
    many_receipts_are_applied_in_portions_and_answered_in_their_order,
    receipts_of_a_group_are_answered_in_their_order,
    a_receipt_by_which_a_recipient_fails_is_logged_and_counts,
);

fn receipt(campaign: &Campaign, provider_id: &str, status: ReceiptStatus) -> Receipt {
    Receipt {
        account: campaign.account.clone(),
        recipient: None,
        provider_id: Some(provider_id.to_owned()),
        status,
        code: (status == ReceiptStatus::Failed).then(|| "131026".to_owned()),
        detail: (status == ReceiptStatus::Failed).then(|| "undeliverable".to_owned()),
        is_bounce: false,
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
    use ReceiptEffect::Stale;
    use ReceiptStatus::{Delivered, Failed, Read, Sent};
    let store = db.store().await;
    let (running, ids) = queued(&store, 4).await;
    let applied = ReceiptEffect::Applied(running.id);
    let orders: [(&[_], &[_], RecipientState); 4] = [
        (&[Sent, Delivered, Read], &[Stale, applied, applied], RecipientState::Read),
        (&[Read, Delivered, Sent, Failed], &[applied, Stale, Stale, Stale], RecipientState::Read),
        (&[Failed, Sent, Delivered], &[applied, Stale, applied], RecipientState::Delivered),
        (&[Delivered, Delivered, Failed], &[applied, Stale, Stale], RecipientState::Delivered),
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
        assert_eq!((found.code, found.detail), (None, None), "what arrived has not failed");
        assert_eq!(found.delivered_at, Some(at(10)), "also if it comes after the reading");
        assert_eq!(found.read_at.is_some(), *state == RecipientState::Read);
    }
    assert_counts(&store).await;
}

async fn a_recipient_whose_attempt_failed_and_that_has_it_has_no_error(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 3).await;
    for (id, status) in ids.into_iter().zip([ReceiptStatus::Delivered, ReceiptStatus::Read]) {
        let run = claimed(&store, &running, id).await;
        let failed = result(id, run, AttemptEffect::Failed(None));
        store.record_runs(&[failed], at(6)).await.unwrap();
        assert_eq!(read(&store, id).await.code.as_deref(), Some("451 4.7.1"));
        let named = Receipt { recipient: Some(id), ..receipt(&running, "m1", status) };
        assert_eq!(apply(&store, named).await, ReceiptEffect::Applied(running.id));
        let found = read(&store, id).await;
        assert_eq!((found.code, found.detail), (None, None), "{status:?}");
    }
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
    assert_eq!(effect, ReceiptEffect::Applied(running.id));
    let found = read(&store, ids[0]).await;
    assert_eq!((found.state, found.sent_at), (RecipientState::Sent, Some(at(10))));
    assert_eq!(found.provider_id.as_deref(), Some("m1"), "later receipts may name only this");
    let effect = apply(&store, named(ids[1], ReceiptStatus::Failed)).await;
    assert_eq!(effect, ReceiptEffect::Applied(running.id));
    let found = read(&store, ids[1]).await;
    assert_eq!((found.state, found.code.as_deref()), (RecipientState::Failed, Some("131026")));
    assert_eq!(found.detail.as_deref(), Some("undeliverable"));
}

async fn a_message_that_arrived_after_all_is_not_sent_again(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 5).await;
    let named = |id, status| Receipt {
        recipient: Some(id),
        provider_id: None,
        ..receipt(&running, "", status)
    };
    // Ids 0 to 2 are tried again later, as after an answer 500.
    for id in &ids[..3] {
        let run = claimed(&store, &running, *id).await;
        let again = result(*id, run, AttemptEffect::Retry(at(40)));
        store.record_runs(&[again], at(6)).await.unwrap();
    }
    // A person sends to ids 3 and 4 again. Nobody logged how their attempts ended, and id 4 counted as failed.
    for id in &ids[3..] {
        claimed(&store, &running, *id).await;
    }
    store.put_back_recipients(&ids[3..], at(6)).await.unwrap();
    let settle = async |settlement, ids| {
        store.settle_recipients(running.id, settlement, Some(ids), at(7)).await.unwrap()
    };
    assert_eq!(settle(Settlement::Resend, &ids[3..4]).await, 1);
    assert_eq!(settle(Settlement::Failed, &ids[4..]).await, 1);
    assert_eq!(settle(Settlement::RetryFailed, &ids[4..]).await, 1);
    // Id 2 has its job already.
    let applied = ReceiptEffect::Applied(running.id);
    assert_eq!(apply(&store, named(ids[0], ReceiptStatus::Delivered)).await, applied);
    assert_eq!(apply(&store, named(ids[1], ReceiptStatus::Read)).await, applied);
    assert_eq!(apply(&store, named(ids[3], ReceiptStatus::Delivered)).await, applied);
    let fed = store.feed_campaign(running.id, 9, at(40)).await.unwrap();
    assert_eq!(fed.queued, [ids[2], ids[4]]);
    assert_eq!(apply(&store, named(ids[2], ReceiptStatus::Sent)).await, applied);
    assert_eq!(apply(&store, named(ids[4], ReceiptStatus::Delivered)).await, applied);
    let claims: Vec<_> = ids.iter().map(|id| claim(&running, *id)).collect();
    let answers = store.claim_recipients(&claims, at(41)).await.unwrap();
    assert_eq!(answers, vec![Claimed::Nothing; 5], "nobody is sent to again");
    use RecipientState::{Delivered, Read, Sent};
    assert_eq!(states(&store, running.id).await, [Delivered, Read, Sent, Delivered, Delivered]);
    let found = read(&store, ids[0]).await;
    assert_eq!((found.next_at, found.code, found.sent_at), (None, None, Some(at(10))));
    assert!(store.feed_campaign(running.id, 9, at(42)).await.unwrap().is_completed);
    assert_counts(&store).await;
}

async fn a_receipt_for_a_message_that_was_never_sent_does_nothing(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 2).await;
    // The run of id 1 ended before it called the provider.
    let run = claimed(&store, &running, ids[1]).await;
    store.record_runs(&[result(ids[1], run, AttemptEffect::Released)], at(6)).await.unwrap();
    for id in ids {
        let before = read(&store, id).await;
        for status in [ReceiptStatus::Sent, ReceiptStatus::Delivered, ReceiptStatus::Read] {
            let named = Receipt { recipient: Some(id), ..receipt(&running, "m", status) };
            assert_eq!(apply(&store, named).await, ReceiptEffect::Stale);
        }
        assert_eq!(read(&store, id).await, before);
    }
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

async fn a_receipt_for_a_deleted_campaign_still_suppresses_the_address(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 1).await;
    sent_as(&store, &running, ids[0], "m1").await;
    let address = read(&store, ids[0]).await.address;
    moved(&store, running.id, CampaignChange::Pause, at(7)).await;
    store.delete_campaign_as_seen(running.id, None).await.unwrap();
    let stop = Receipt {
        recipient: Some(ids[0]),
        suppress: Some(SuppressionReason::Stop),
        ..receipt(&running, "m1", ReceiptStatus::Failed)
    };
    assert_eq!(apply(&store, stop).await, ReceiptEffect::NotFound);
    let found = store.suppressions(&SuppressionFilter::default(), None, 9).await.unwrap();
    assert_eq!(found.iter().map(|it| it.address.as_str()).collect::<Vec<_>>(), [address]);
}

async fn of_messages_with_the_same_id_the_newest_of_the_account_is_meant(db: Database) {
    let store = db.store().await;
    let (mine, ids) = queued(&store, 3).await;
    for id in &ids {
        sent_as(&store, &mine, *id, "x").await;
    }
    // Newer ones: of another account, and of a deleted campaign.
    let eve = Campaign { account: "of-eve".parse().unwrap(), ..campaign("eve") };
    let account = account("of-eve", Some("eve"));
    store.insert_account(&account, b"", 9).await.unwrap();
    store.insert_campaign(&eve).await.unwrap();
    import(&store, eve.id, &recipients(1)).await;
    let eve = moved(&store, eve.id, CampaignChange::Start, at(2)).await;
    let of_eve = store.feed_campaign(eve.id, 9, at(3)).await.unwrap().queued;
    sent_as(&store, &eve, of_eve[0], "x").await;
    let (gone, of_gone) = queued(&store, 1).await;
    sent_as(&store, &gone, of_gone[0], "x").await;
    moved(&store, gone.id, CampaignChange::Pause, at(7)).await;
    store.delete_campaign_as_seen(gone.id, None).await.unwrap();

    let applied = ReceiptEffect::Applied(mine.id);
    assert_eq!(apply(&store, receipt(&mine, "x", ReceiptStatus::Read)).await, applied);
    use RecipientState::{Read, Sent};
    let mut newest = ids.clone();
    newest.sort_unstable();
    for id in &ids {
        let wanted = if Some(id) == newest.last() { Read } else { Sent };
        assert_eq!(read(&store, *id).await.state, wanted);
    }
    assert_eq!(read(&store, of_eve[0]).await.state, Sent);
    // A receipt that names its recipient is for no other, whatever else it names.
    let nobody = RecipientId::generate();
    let named = |id| Receipt { recipient: Some(id), ..receipt(&mine, "x", ReceiptStatus::Read) };
    assert_eq!(apply(&store, named(nobody)).await, ReceiptEffect::NotFound);
    assert_eq!(apply(&store, named(of_eve[0])).await, ReceiptEffect::NotFound);
    assert_eq!(apply(&store, named(newest[0])).await, applied);
}

async fn many_receipts_are_applied_in_portions_and_answered_in_their_order(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 2).await;
    sent_as(&store, &running, ids[0], "first").await;
    sent_as(&store, &running, ids[1], "last").await;
    let mut many = vec![receipt(&running, "nobody's", ReceiptStatus::Read); 2_500];
    many[0] = receipt(&running, "first", ReceiptStatus::Delivered);
    many[2_499] = receipt(&running, "last", ReceiptStatus::Delivered);
    let effects = store.apply_receipts(&many, at(12)).await.unwrap();
    assert_eq!(effects.len(), 2_500);
    let applied = ReceiptEffect::Applied(running.id);
    let places: Vec<usize> = (0..2_500).filter(|place| effects[*place] == applied).collect();
    assert_eq!(places, [0, 2_499]);
    assert_counts(&store).await;
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
    let applied = Applied(running.id);
    assert_eq!(effects, [applied, NotFound, applied, Stale]);
    assert_eq!(store.apply_receipts(&[], at(12)).await.unwrap(), []);
    assert_counts(&store).await;
}

/// The words of the last outcomes since a moment, sorted.
async fn words(store: &Store, campaign: &Campaign, since: Timestamp) -> Vec<String> {
    let found = store.last_outcomes(campaign.id, since, 99).await.unwrap();
    let mut words: Vec<String> = found.into_iter().map(|(word, _)| word).collect();
    words.sort_unstable();
    words
}

async fn a_receipt_by_which_a_recipient_fails_is_logged_and_counts(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 4).await;
    for (number, id) in ids[..3].iter().enumerate() {
        sent_as(&store, &running, *id, &format!("m{number}")).await;
    }
    let run = claimed(&store, &running, ids[3]).await;
    let unknown = result(ids[3], run, AttemptEffect::Unknown);
    store.record_runs(&[unknown], at(6)).await.unwrap();
    let failed = |name: &str| receipt(&running, name, ReceiptStatus::Failed);
    let bounce = Receipt { is_bounce: true, ..failed("m0") };
    let of_unknown = Receipt { recipient: Some(ids[3]), ..failed("m3") };
    let read_it = receipt(&running, "m2", ReceiptStatus::Read);
    for one in [bounce.clone(), failed("m1"), of_unknown, read_it] {
        assert_eq!(apply(&store, one).await, ReceiptEffect::Applied(running.id));
    }
    assert_eq!(apply(&store, bounce).await, ReceiptEffect::Stale, "twice is once");

    let all = words(&store, &running, Timestamp::UNIX_EPOCH).await;
    let expected = [BOUNCED_LATER, FAILED_LATER, "sent", "sent", "sent", "unknown"];
    assert_eq!(all, expected, "an attempt of which nobody knew has failed already");
    assert_eq!(words(&store, &running, at(5)).await, expected);
    let none: [&str; 0] = [];
    assert_eq!(words(&store, &running, at(6)).await, none, "of messages that were sent before");

    let log = store.recipient_attempts(ids[0]).await.unwrap();
    let told: Vec<_> = log.iter().map(|it| (it.number, it.outcome.as_str())).collect();
    assert_eq!(told, [(1, "sent"), (2, BOUNCED_LATER)]);
    assert_eq!((log[1].at, log[1].at - log[1].took), (at(11), at(5) + log[0].took));
    assert_eq!(
        (log[1].code.as_deref(), log[1].answer.as_deref()),
        (Some("131026"), Some("undeliverable"))
    );
    let minutes = store.campaign_minutes(running.id, 60_000).await.unwrap();
    let told: Vec<_> = minutes.iter().map(|it| (it.sent, it.failed_attempts, it.unknown)).collect();
    assert_eq!(told, [(3, 0, 1)], "a receipt is no attempt");
    let address = read(&store, ids[0]).await.address;
    let to = store.last_outcomes_to(&running.account, &address, 9).await.unwrap();
    assert_eq!(to, [("sent".to_owned(), None)]);
    assert_counts(&store).await;
}
