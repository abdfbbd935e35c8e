//! Limits that are lengthened or added while a campaign runs, and a Redis that loses its data meanwhile: what the ledger knows counts.

use std::time::Duration;

use serde_json::json;
use stampede_campaign::{CampaignEdit, Moved, Paused, Reconciler};
use stampede_model::campaign::{Pacing, Rate, WarmUp};
use stampede_model::{CampaignId, Timestamp};
use stampede_testkit::eventually;

use crate::pacing::{assert_keeps, begun, pace, wait};
use crate::stage::{PATIENCE, Stage, campaign, fast, limited, now, rows};

/// How long after the answer to a change a message leaves that was claimed before.
const ON_ITS_WAY: Duration = Duration::from_millis(500);

/// Panics unless every message that left after a moment, with those before it, keeps the limit.
fn assert_keeps_since(times: &[Timestamp], since: Timestamp, rate: Rate) {
    let before = times.iter().filter(|at| **at < since).count();
    let first = before.saturating_sub(rate.max as usize);
    // A window that ends before that moment was held under another limit.
    let ends: Vec<&[Timestamp]> = times[first..].windows(rate.max as usize + 1).collect();
    for window in ends.into_iter().filter(|window| window[rate.max as usize] >= since) {
        assert_keeps(window, rate);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_becomes_longer_counts_what_had_left_the_former_window() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), limited(20, 1_000)).await;
    let id = stage.campaign(&account, 62).await;
    let _workers = [stage.work(), stage.work()];
    stage.started(id).await;
    stage.receiver.has(45).await;
    let longer = Rate { max: 20, per_ms: 10_000 };
    pace(&stage, &account, limited(longer.max, longer.per_ms)).await;
    let changed = now() + ON_ITS_WAY;
    stage.completed(id).await;
    assert_keeps_since(&begun(&stage, id).await, changed, longer);
    stage.assert_each_got_one(62);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_is_added_counts_what_has_left_without_it() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), limited(30, 1_000)).await;
    let id = stage.campaign(&account, 50).await;
    let _workers = [stage.work(), stage.work()];
    stage.started(id).await;
    stage.receiver.has(35).await;
    let added = Rate { max: 8, per_ms: 4_000 };
    let pacing = limited(added.max, added.per_ms);
    let edit = CampaignEdit { pacing: Some(pacing), ..CampaignEdit::default() };
    stage.campaigns.edit(id, None, &edit).await.unwrap();
    let changed = now() + ON_ITS_WAY;
    stage.completed(id).await;
    assert_keeps_since(&begun(&stage, id).await, changed, added);
    stage.assert_each_got_one(50);
}

/// Messages that wait ask again within half a minute; those of a campaign that is resumed ask at once.
async fn ask_again(stage: &Stage, id: CampaignId) {
    if let Paused::Done(_) = stage.campaigns.pause(id).await.unwrap() {
        assert!(matches!(stage.campaigns.resume(id).await.unwrap(), Moved::Done(_)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daily_cap_that_is_added_counts_the_messages_of_the_day() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), limited(20, 1_000)).await;
    let earlier = stage.campaign(&account, 7).await;
    let _workers = [stage.work(), stage.work()];
    stage.started(earlier).await;
    stage.completed(earlier).await;
    let capped = |cap| Pacing { daily_cap: Some(cap), ..fast() };
    pace(&stage, &account, capped(10)).await;
    let id = stage.campaign(&account, 8).await;
    stage.started(id).await;
    // Three of them leave.
    stage.receiver.has(10).await;
    wait(&stage, 5).await;
    assert_eq!(stage.receiver.received().len(), 10);
    // Below what has left already.
    pace(&stage, &account, capped(4)).await;
    ask_again(&stage, id).await;
    wait(&stage, 5).await;
    assert_eq!(stage.receiver.received().len(), 10);
    pace(&stage, &account, capped(11)).await;
    ask_again(&stage, id).await;
    stage.receiver.has(11).await;
    wait(&stage, 4).await;
    assert_eq!(stage.receiver.received().len(), 11);
}

/// Looks until the campaign is as wanted, and puts back what a Redis that lost its jobs has left.
async fn reconciled(stage: &Stage, id: CampaignId, is_done: impl Fn(u64, u64) -> bool) {
    let reconciler = Reconciler::new(stage.campaigns.clone());
    let messages = stage.broker.queue("messages").await.unwrap();
    let (is_done, reconciler, messages) = (&is_done, &reconciler, &messages);
    eventually(PATIENCE, || async move {
        reconciler.pass(now() - Duration::from_secs(1)).await.unwrap();
        let counts = stage.contract(id).await.counts;
        let waiting = messages.counts().await.unwrap().delayed;
        match is_done(counts.sent + counts.unknown, waiting) {
            true => Ok(()),
            false => Err(format!("{counts:?}, {waiting} wait")),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_holds_through_the_loss_of_everything_in_redis() {
    let stage = Stage::start().await;
    let rate = Rate { max: 10, per_ms: 3_000 };
    let account = stage.account(json!({}), limited(rate.max, rate.per_ms)).await;
    let id = stage.campaign(&account, 34).await;
    let _workers = [stage.work(), stage.work()];
    stage.started(id).await;
    for lost_after in [5, 18] {
        reconciled(&stage, id, |left, _| left >= lost_after).await;
        stage.redis.cli(&["FLUSHALL"]);
    }
    reconciled(&stage, id, |left, _| left == 34).await;
    assert_keeps(&begun(&stage, id).await, rate);
    let got = stage.got();
    assert!(got.values().all(|times| *times == 1), "{got:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daily_cap_and_a_warm_up_hold_through_the_loss_of_everything_in_redis() {
    let warm_up = WarmUp { start: 3, factor: 2.0, max: 1_000 };
    for pacing in
        [Pacing { daily_cap: Some(3), ..fast() }, Pacing { warm_up: Some(warm_up), ..fast() }]
    {
        let stage = Stage::start().await;
        let account = stage.account(json!({}), pacing).await;
        let id = stage.campaign_with(campaign(&account), rows(5)).await;
        let _worker = stage.work();
        stage.started(id).await;
        stage.receiver.has(3).await;
        wait(&stage, 2).await;
        stage.redis.cli(&["FLUSHALL"]);
        // The jobs come back, ask, and wait.
        reconciled(&stage, id, |left, waiting| left == 3 && waiting == 2).await;
        assert_eq!(stage.receiver.received().len(), 3);
    }
}
