//! What people and the reconciler settle.

use std::time::Duration;

use stampede_model::RecipientId;
use stampede_model::campaign::{CampaignChange, CampaignState, RecipientState};
use stampede_store::{AttemptEffect, Settlement, Store};

use super::{assert_counts, campaign_now, claim, claimed, moved, queued, read, result, states};
use crate::backends::Database;
use crate::suite::samples::at;

on_every_backend!(
    what_is_unknown_is_settled_by_id_or_all_at_once,
    failed_recipients_are_tried_again_with_all_attempts,
    a_completed_campaign_with_recipients_to_send_to_is_paused,
    many_recipients_are_settled_in_portions,
    nothing_is_sent_again_in_a_cancelled_campaign,
    recipients_without_a_job_are_found_and_put_back,
);

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Ends an attempt for each recipient in the same way.
async fn all_end(store: &Store, count: usize, effect: AttemptEffect, code: &str) -> Ended {
    let (campaign, ids) = queued(store, count).await;
    for id in &ids {
        let run = claimed(store, &campaign, *id).await;
        let mut ended = result(*id, run, effect.clone());
        ended.attempt.code = Some(code.to_owned());
        store.record_runs(&[ended], at(6)).await.unwrap();
    }
    Ended { campaign: campaign.id, ids }
}

struct Ended {
    campaign: stampede_model::CampaignId,
    ids: Vec<RecipientId>,
}

async fn what_is_unknown_is_settled_by_id_or_all_at_once(db: Database) {
    let store = db.store().await;
    let Ended { campaign, ids } = all_end(&store, 4, AttemptEffect::Unknown, "timeout").await;
    let settle = async |settlement, ids: Option<&[RecipientId]>| {
        store.settle_recipients(campaign, settlement, ids, at(20)).await.unwrap()
    };
    let strangers = [RecipientId::generate()];
    assert_eq!(settle(Settlement::Sent, Some(&strangers)).await, 0);
    assert_eq!(settle(Settlement::Sent, Some(&ids[..1])).await, 1);
    assert_eq!(settle(Settlement::Sent, Some(&ids[..1])).await, 0, "it is settled");
    assert_eq!(settle(Settlement::Failed, Some(&ids[1..2])).await, 1);
    assert_eq!(settle(Settlement::RetryFailed, Some(&ids[2..3])).await, 0, "it has not failed");
    assert_eq!(settle(Settlement::Resend, None).await, 2);
    use RecipientState::{Failed, Pending, Sent};
    assert_eq!(states(&store, campaign).await, [Sent, Failed, Pending, Pending]);
    let sent = read(&store, ids[0]).await;
    assert_eq!((sent.sent_at, sent.code), (Some(at(20)), None));
    assert_eq!(read(&store, ids[1]).await.code.as_deref(), Some("timeout"));
    assert_eq!(campaign_now(&store, campaign).await.state, CampaignState::Running);
    let fed = store.feed_campaign(campaign, 9, at(21)).await.unwrap();
    assert_eq!(fed.queued, ids[2..]);
    assert_counts(&store).await;
}

async fn failed_recipients_are_tried_again_with_all_attempts(db: Database) {
    let store = db.store().await;
    let failed = AttemptEffect::Failed(None);
    let Ended { campaign, ids } = all_end(&store, 2, failed.clone(), "550 5.1.1").await;
    let retry = async |campaign, now| {
        store.settle_recipients(campaign, Settlement::RetryFailed, None, now).await.unwrap()
    };
    assert_eq!(retry(campaign, at(7)).await, 2);
    let found = read(&store, ids[0]).await;
    assert_eq!((found.state, found.attempts, found.code), (RecipientState::Pending, 0, None));
    let not_now = all_end(&store, 1, failed, "not_now").await.campaign;
    assert_eq!(retry(not_now, at(5) + DAY).await, 0);
    assert_eq!(retry(not_now, at(6) + DAY).await, 1);
    assert_counts(&store).await;
}

async fn a_completed_campaign_with_recipients_to_send_to_is_paused(db: Database) {
    let store = db.store().await;
    let Ended { campaign, .. } = all_end(&store, 1, AttemptEffect::Failed(None), "550").await;
    assert!(store.feed_campaign(campaign, 9, at(7)).await.unwrap().is_completed);
    let settle = async |settlement| {
        store.settle_recipients(campaign, settlement, None, at(8)).await.unwrap()
    };
    assert_eq!(settle(Settlement::Resend).await, 0);
    assert_eq!(campaign_now(&store, campaign).await.state, CampaignState::Completed);
    assert_eq!(settle(Settlement::RetryFailed).await, 1);
    let reopened = campaign_now(&store, campaign).await;
    assert_eq!((reopened.state, reopened.ended_at), (CampaignState::Paused, None));
    assert!(reopened.updated_at > at(7));
    moved(&store, campaign, CampaignChange::Start, at(9)).await;
    assert_eq!(store.feed_campaign(campaign, 9, at(9)).await.unwrap().queued.len(), 1);
}

async fn many_recipients_are_settled_in_portions(db: Database) {
    const MANY: usize = 10_001;
    let store = db.store().await;
    let (running, ids) = queued(&store, MANY).await;
    sqlx::any::install_default_drivers();
    let stranger = sqlx::AnyPool::connect(&db.url).await.unwrap();
    sqlx::query("UPDATE campaign_recipients SET state = 'failed', code = '550', attempts = 3")
        .execute(&stranger)
        .await
        .unwrap();
    assert!(store.feed_campaign(running.id, 9, at(7)).await.unwrap().is_completed);
    let settle = async |ids: Option<&[RecipientId]>| {
        let retry = Settlement::RetryFailed;
        store.settle_recipients(running.id, retry, ids, at(8)).await.unwrap()
    };
    assert_eq!(settle(Some(&ids[..5_002])).await, 5_002);
    let reopened = campaign_now(&store, running.id).await;
    assert_eq!((reopened.state, reopened.counts.pending), (CampaignState::Paused, 5_002));
    assert_eq!(settle(None).await, MANY as u64 - 5_002);
    assert_eq!(settle(None).await, 0);
    assert_eq!(campaign_now(&store, running.id).await.counts.pending, MANY as u64);
    assert_counts(&store).await;
}

async fn nothing_is_sent_again_in_a_cancelled_campaign(db: Database) {
    let store = db.store().await;
    let Ended { campaign, ids } = all_end(&store, 2, AttemptEffect::Unknown, "timeout").await;
    moved(&store, campaign, CampaignChange::Cancel, at(7)).await;
    let settle = async |settlement, ids| {
        store.settle_recipients(campaign, settlement, ids, at(8)).await.unwrap()
    };
    assert_eq!(settle(Settlement::Resend, None).await, 0);
    assert_eq!(settle(Settlement::Sent, Some(&ids[..1])).await, 1, "the truth can be told");
    assert_eq!(settle(Settlement::Failed, None).await, 1);
    assert_eq!(settle(Settlement::RetryFailed, None).await, 0);
    let nobody = stampede_model::CampaignId::generate();
    let none = store.settle_recipients(nobody, Settlement::Sent, None, at(8)).await.unwrap();
    assert_eq!(none, 0);
}

async fn recipients_without_a_job_are_found_and_put_back(db: Database) {
    let store = db.store().await;
    let (running, ids) = queued(&store, 4).await;
    let run = claimed(&store, &running, ids[1]).await;
    let ended = claimed(&store, &running, ids[3]).await;
    store.record_runs(&[super::sent(ids[3], ended, "m")], at(5)).await.unwrap();
    let in_hand =
        async |before, after, limit| store.recipients_in_hand(before, after, limit).await.unwrap();
    use RecipientState::{Pending, Queued, Sending, Unknown};
    let expected = [(ids[0], Queued), (ids[1], Sending), (ids[2], Queued)];
    assert_eq!(in_hand(at(10), None, 9).await, expected);
    assert_eq!(in_hand(at(10), Some(ids[0]), 1).await, expected[1..2]);
    assert_eq!(in_hand(at(4), None, 9).await, [expected[0], expected[2]], "since before");
    assert_eq!(store.put_back_recipients(&ids, at(11)).await.unwrap(), 3);
    assert_eq!(store.put_back_recipients(&ids, at(11)).await.unwrap(), 0);
    assert_eq!(store.put_back_recipients(&[], at(11)).await.unwrap(), 0);
    let found = states(&store, running.id).await;
    assert_eq!(found, [Pending, Unknown, Pending, RecipientState::Sent]);
    assert_eq!(read(&store, ids[1]).await.code.as_deref(), Some("lost"));
    // A run that lives all the same.
    assert_eq!(store.record_runs(&[super::sent(ids[1], run, "m")], at(12)).await.unwrap(), [true]);
    let late = store.claim_recipients(&[claim(&running, ids[0])], at(12)).await.unwrap();
    assert_eq!(late, [stampede_store::Claimed::Nothing], "its job comes late");
    assert_counts(&store).await;
}
