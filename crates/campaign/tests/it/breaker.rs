//! A provider that is not there: the breaker of its account opens, and messages wait without an attempt.

use serde_json::json;
use stampede_campaign::AccountChange;
use stampede_model::campaign::{AutoPause, CampaignState, RecipientState};
use stampede_testkit::{eventually, free_port};

use crate::stage::{PATIENCE, Stage, campaign, fast, rows};

const RECIPIENTS: usize = 60;
/// Failures that open a breaker, and the messages that one worker has on their way meanwhile.
const MOST_ATTEMPTED: usize = 5 + 8;

#[tokio::test(flavor = "multi_thread")]
async fn an_open_breaker_is_no_pause_and_messages_wait_without_an_attempt() {
    let stage = Stage::start().await;
    let nowhere = format!("http://127.0.0.1:{}/messages", free_port());
    let account = stage.account(json!({ "url": nowhere }), fast()).await;
    let mut new = campaign(&account);
    // The usual rules: ten temporary failures in a row would pause it.
    new.auto_pause = AutoPause::default();
    let id = stage.campaign_with(new, rows(RECIPIENTS)).await;
    let _worker = stage.work();
    stage.started(id).await;

    let breaker = format!("campaign:{account}");
    eventually(PATIENCE, || async {
        let open = stage.broker.open_breakers().await.unwrap();
        let states: Vec<_> = open.iter().map(|it| (it.name.as_str(), it.state.as_str())).collect();
        if states == [(breaker.as_str(), "open")] { Ok(()) } else { Err(format!("{states:?}")) }
    })
    .await;
    // Those that were on their way have ended, and all others have asked for a call.
    let messages = stage.broker.queue("messages").await.unwrap();
    eventually(PATIENCE, || async {
        let (queue, counts) = (messages.counts().await.unwrap(), stage.contract(id).await.counts);
        let asked = queue.delayed + counts.pending;
        let is_quiet = counts.sending == 0 && queue.active == 0 && asked >= RECIPIENTS as u64;
        if is_quiet { Ok(()) } else { Err(format!("{queue:?} {counts:?}")) }
    })
    .await;
    let contract = stage.contract(id).await;
    assert_eq!(contract.status, CampaignState::Running, "{:?}", contract.status_reason);
    let ledger = stage.ledger(id).await;
    let attempted = ledger.iter().filter(|row| row.attempts > 0).count();
    assert!((5..=MOST_ATTEMPTED).contains(&attempted), "{attempted} were attempted");
    for row in &ledger {
        let wanted = match row.attempts {
            0 => RecipientState::Queued,
            1 => RecipientState::Pending,
            _ => panic!("{row:?}"),
        };
        assert_eq!(row.state, wanted, "{row:?}");
    }
    assert!(stage.receiver.received().is_empty());

    // The provider is back, and an operator does not want to wait for the probe.
    let settings = Some(json!({ "url": stage.receiver.url("/messages") }));
    let change = AccountChange { settings, ..AccountChange::default() };
    stage.campaigns.change_account(&account, None, &change).await.unwrap();
    stage.broker.close_breaker(&breaker).await.unwrap();
    assert_eq!(stage.completed(id).await.counts.sent, RECIPIENTS as u64);
    stage.assert_each_got_one(RECIPIENTS);
}
