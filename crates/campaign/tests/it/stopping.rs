//! Campaigns that are paused, cancelled, scheduled and deleted.

use std::time::Duration;

use serde_json::json;
use stampede_campaign::{Deleted, Moved, Paused, Reconciler};
use stampede_model::campaign::{CampaignChange, CampaignState};
use stampede_store::Move;

use crate::stage::{Stage, fast, limited, now};

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_means_pause_and_a_resumed_campaign_repeats_nothing() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), limited(100, 1_000)).await;
    let id = stage.campaign(&account, 200).await;
    let _workers = [stage.work(), stage.work()];
    stage.started(id).await;
    stage.receiver.has(50).await;
    let Paused::Done(paused) = stage.campaigns.pause(id).await.unwrap() else { panic!("running") };
    let until_then = stage.receiver.received().len() as u64;
    let jobs = stage.broker.queue("messages").await.unwrap().counts().await.unwrap();
    assert_eq!((jobs.waiting, jobs.delayed), (0, 0), "no job waits");
    assert_eq!(paused.contract.status, CampaignState::Paused);
    // Those in flight are answered, and nobody else is sent to.
    let still = stage.until(id, |contract| contract.counts.sending == 0).await;
    assert_eq!(still.counts.queued, 0);
    let arrived = stage.receiver.received().len() as u64;
    assert!(
        arrived <= until_then + paused.in_flight,
        "{arrived} {until_then} {}",
        paused.in_flight
    );
    assert_eq!(still.counts.sent, arrived);
    assert!(matches!(stage.campaigns.resume(id).await.unwrap(), Moved::Done(_)));
    assert_eq!(stage.completed(id).await.counts.sent, 200);
    stage.assert_each_got_one(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_campaign_skips_what_is_left_and_never_starts_again() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), limited(20, 1_000)).await;
    let id = stage.campaign(&account, 100).await;
    let _worker = stage.work();
    stage.started(id).await;
    stage.receiver.has(5).await;
    let Moved::Done(_) = stage.campaigns.cancel(id).await.unwrap() else { panic!("running") };
    let done = stage.until(id, |contract| contract.counts.sending == 0).await;
    assert_eq!(done.counts.sent + done.counts.skipped, 100, "{:?}", done.counts);
    assert_eq!(done.counts.pending + done.counts.queued, 0, "{:?}", done.counts);
    let again = stage.campaigns.start(id, None, None).await.unwrap();
    assert!(matches!(again, Moved::WrongState(_)), "{again:?}");
    assert!(matches!(stage.campaigns.pause(id).await.unwrap(), Paused::WrongState(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_process_that_died_left_of_a_cancelled_campaign_is_skipped_by_the_reconciler() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let id = stage.campaign(&account, 50).await;
    let cancel = Move {
        campaign: id,
        change: CampaignChange::Cancel,
        reason: None,
        seen: None,
        start_at: None,
        now: now(),
    };
    stage.store.move_campaign(&cancel).await.unwrap();
    assert_eq!(stage.contract(id).await.counts.pending, 50);
    Reconciler::new(stage.campaigns.clone()).pass(now()).await.unwrap();
    let swept = stage.contract(id).await;
    assert_eq!((swept.counts.pending, swept.counts.skipped), (0, 50));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_starts_at_its_time_and_goes_back_to_draft_when_it_is_paused_before() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let id = stage.campaign(&account, 5).await;
    let _worker = stage.work();
    let later = Some(now() + Duration::from_secs(3_600));
    let Moved::Done(waiting) = stage.campaigns.start(id, later, None).await.unwrap() else {
        panic!("a draft can be scheduled");
    };
    assert_eq!((waiting.status, waiting.start_at), (CampaignState::Scheduled, later));
    let Paused::Done(draft) = stage.campaigns.pause(id).await.unwrap() else { panic!("scheduled") };
    assert_eq!(draft.contract.status, CampaignState::Draft);
    let soon = now() + Duration::from_millis(1_500);
    stage.campaigns.start(id, Some(soon), None).await.unwrap();
    assert_eq!(stage.completed(id).await.counts.sent, 5);
    assert!(now() >= soon);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_campaign_is_stopped_before_it_is_deleted() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), limited(10, 1_000)).await;
    let id = stage.campaign(&account, 50).await;
    stage.started(id).await;
    let worker = stage.work();
    stage.receiver.has(3).await;
    assert_eq!(stage.campaigns.delete(id, None).await.unwrap(), Deleted::Done);
    assert!(stage.campaigns.campaign(id).await.unwrap().is_none());
    worker.stop();
    let sent = stage.receiver.received().len();
    assert!(sent < 50, "{sent}");
    assert_eq!(stage.broker.queue("messages").await.unwrap().counts().await.unwrap().waiting, 0);
}
