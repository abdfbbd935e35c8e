//! Slots of workers are shared among accounts, and the end of a campaign is told by its speed.

use std::time::{Duration, Instant};

use serde_json::json;
use stampede_campaign::RecipientRow;
use stampede_model::CampaignId;
use stampede_model::campaign::{AccountId, Channel, Pacing};

use crate::stage::{Stage, campaign, fast, now};

/// Messages of an account of the console take so long.
async fn console(stage: &Stage, ms: u64, pacing: Pacing) -> AccountId {
    stage.account_of(Channel::Console, json!({ "ms": ms }), json!({}), pacing).await
}

async fn running(stage: &Stage, account: &AccountId, name: &str, recipients: usize) -> CampaignId {
    let row = |number: usize| RecipientRow {
        address: format!("{name}-{number}"),
        message: Some("Hello".to_owned()),
        ..RecipientRow::default()
    };
    let rows = (1..=recipients).map(row).collect();
    let id = stage.campaign_with(campaign(account), rows).await;
    stage.started(id).await;
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_campaign_leaves_slots_to_other_accounts() {
    let stage = Stage::start().await;
    let slow = console(&stage, 4_000, fast()).await;
    let _worker = stage.work();
    let large = running(&stage, &slow, "slow", 996).await;
    // All slots are taken, and hundreds of jobs wait behind them.
    stage.until(large, |it| it.counts.sending == 8 && it.counts.queued > 500).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let other = console(&stage, 0, Pacing::default()).await;
    let begun = Instant::now();
    let small = running(&stage, &other, "other", 1).await;
    stage.until(small, |it| it.counts.sent == 1).await;
    // The messages in the slots take four seconds; 988 others would take eight minutes.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    // Alone again, the slow one has all slots.
    stage.until(large, |it| it.counts.sending == 8).await;
    // A message that comes later finds a free slot at once.
    let more = running(&stage, &other, "more", 40).await;
    stage.until(more, |it| it.counts.sent >= 1).await;
    let begun = Instant::now();
    let third = console(&stage, 0, Pacing::default()).await;
    let third = running(&stage, &third, "third", 1).await;
    stage.until(third, |it| it.counts.sent == 1).await;
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    for id in [large, more] {
        stage.campaigns.cancel(id).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_campaign_is_told_by_the_speed_of_its_provider() {
    let stage = Stage::start().await;
    let slow = console(&stage, 500, fast()).await;
    let _worker = stage.work();
    let id = running(&stage, &slow, "slow", 400).await;
    let begun = stage.until(id, |it| it.counts.sent >= 32 && it.counts.sending > 0).await;
    // Eight at a time, half a second each; the limit would let all leave at once.
    let left = begun.counts.total - begun.counts.sent;
    let told = begun.eta_at.unwrap().duration_since(now()).as_secs();
    let (least, most) = (left as i64 / 16 / 2, left as i64);
    assert!((least..most).contains(&told), "{told} s for {left}");
    stage.campaigns.cancel(id).await.unwrap();
}
