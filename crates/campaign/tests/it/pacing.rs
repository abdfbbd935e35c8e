//! Limits, by the times at which the calls began.

use std::time::Duration;

use serde_json::json;
use stampede_campaign::CampaignEdit;
use stampede_model::campaign::{Pacing, QuietHours, Rate, Spacing};
use stampede_model::{CampaignId, Timestamp};

use crate::stage::{Stage, campaign, fast, limited, now, rows};

/// When the calls of a campaign began, in order.
async fn begun(stage: &Stage, id: CampaignId) -> Vec<Timestamp> {
    let mut times = Vec::new();
    for recipient in stage.ledger(id).await {
        let attempts = stage.store.recipient_attempts(recipient.id).await.unwrap();
        times.extend(attempts.iter().map(|attempt| attempt.at));
    }
    times.sort();
    times
}

fn assert_keeps(times: &[Timestamp], rate: Rate) {
    for pair in times.windows(rate.max as usize + 1) {
        let took = pair[rate.max as usize].duration_since(pair[0]).as_millis();
        // Times are kept in whole milliseconds.
        assert!(took + 1 >= i128::from(rate.per_ms), "{took} ms: {times:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_keep_the_limit_of_the_account_in_every_window() {
    let stage = Stage::start().await;
    let rate = Rate { max: 10, per_ms: 500 };
    let account = stage.account(json!({}), limited(rate.max, rate.per_ms)).await;
    let id = stage.campaign(&account, 60).await;
    let _workers = [stage.work(), stage.work()];
    stage.started(id).await;
    stage.completed(id).await;
    assert_keeps(&begun(&stage, id).await, rate);
    stage.assert_each_got_one(60);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_campaigns_own_limit_and_spacing_hold_and_can_be_changed_while_it_runs() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let mut new = campaign(&account);
    new.pacing =
        Pacing { spacing: Some(Spacing { min_ms: 100, max_ms: 150 }), ..limited(1, 60_000) };
    let id = stage.campaign_with(new, rows(10)).await;
    let _worker = stage.work();
    stage.started(id).await;
    stage.until(id, |contract| contract.counts.sent == 1).await;
    let spacing = Some(Spacing { min_ms: 100, max_ms: 150 });
    let pacing = Pacing { spacing, ..Pacing::default() };
    let edit = CampaignEdit { pacing: Some(pacing), ..CampaignEdit::default() };
    stage.campaigns.edit(id, None, &edit).await.unwrap();
    stage.completed(id).await;
    assert_keeps(&begun(&stage, id).await, Rate { max: 1, per_ms: 100 });
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_in_quiet_hours() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let mut new = campaign(&account);
    // All of today and tomorrow, in every zone.
    let hours = QuietHours {
        from: "00:00".parse().unwrap(),
        to: "00:00".parse().unwrap(),
        days: Some(vec![
            stampede_model::campaign::Day::Monday,
            stampede_model::campaign::Day::Tuesday,
            stampede_model::campaign::Day::Wednesday,
            stampede_model::campaign::Day::Thursday,
            stampede_model::campaign::Day::Friday,
            stampede_model::campaign::Day::Saturday,
            stampede_model::campaign::Day::Sunday,
        ]),
        time_zone: None,
    };
    new.pacing.quiet_hours = Some(hours);
    let id = stage.campaign_with(new, rows(3)).await;
    let _worker = stage.work();
    stage.started(id).await;
    let messages = stage.broker.queue("messages").await.unwrap();
    stampede_testkit::eventually(Duration::from_secs(60), || async {
        let counts = messages.counts().await.unwrap();
        if counts.delayed == 3 { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
    assert!(stage.receiver.received().is_empty());
    let edit = CampaignEdit { pacing: Some(Pacing::default()), ..CampaignEdit::default() };
    stage.campaigns.edit(id, None, &edit).await.unwrap();
    assert!(now() > stage.contract(id).await.created_at);
}
