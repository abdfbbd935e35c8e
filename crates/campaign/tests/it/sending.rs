//! Messages that are sent, refused, repeated.

use std::time::Duration;

use serde_json::json;
use stampede_campaign::{Moved, NewSuppressions, Settled, Suppressed, Which};
use stampede_model::campaign::{
    AutoPause, CampaignState, Channel, RecipientState, SkipReason, SuppressionReason,
};
use stampede_testkit::Behaviour;

use crate::stage::{Stage, campaign, fast, now, rows};

#[tokio::test(flavor = "multi_thread")]
async fn everybody_gets_one_message_over_several_workers_and_the_campaign_completes() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let id = stage.campaign(&account, 200).await;
    let started = stage.started(id).await;
    assert_eq!((started.status, started.counts.total), (CampaignState::Running, 200));
    assert!(started.eta_at.is_some());
    let workers = [stage.work(), stage.work()];
    let done = stage.completed(id).await;
    assert_eq!((done.counts.sent, done.progress, done.eta_at), (200, 100, None));
    stage.assert_each_got_one(200);
    let first = &stage.ledger(id).await[0];
    let log = stage.campaigns.recipient(id, first.id).await.unwrap().unwrap();
    assert_eq!((log.log.len(), log.log[0].outcome.as_str(), log.log[0].number), (1, "sent", 1));
    let report = stage.campaigns.report(id).await.unwrap().unwrap();
    assert_eq!(report.minutes.iter().map(|minute| minute.sent).sum::<u64>(), 200);
    let mut csv = stage.campaigns.report_csv(id).await.unwrap().unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = csv.next().await {
        bytes.extend(piece.unwrap());
    }
    assert_eq!(String::from_utf8(bytes).unwrap().lines().count(), 201);
    for worker in workers {
        worker.stop();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_failure_is_tried_again_later_and_the_last_attempt_fails() {
    let stage = Stage::start().await;
    stage.receiver.behaves(Behaviour::Answers(500, String::new()));
    let account = stage.account(json!({}), fast()).await;
    let again = stage.campaign(&account, 1).await;
    let mut once = campaign(&account);
    once.max_attempts = 1;
    let once = stage.campaign_with(once, rows(1)).await;
    let _worker = stage.work();
    stage.started(again).await;
    stage.started(once).await;
    let failed = stage.completed(once).await;
    assert_eq!(failed.counts.failed, 1);
    assert!(stage.ledger(once).await[0].code.is_some());
    stage.until(again, |contract| contract.counts.pending == 1).await;
    let recipient = &stage.ledger(again).await[0];
    assert_eq!((recipient.state, recipient.attempts), (RecipientState::Pending, 1));
    assert!(recipient.next_at.unwrap() > now() + Duration::from_secs(10), "half a minute or more");
    assert_eq!(stage.contract(again).await.status, CampaignState::Running);
    // A person does not want to wait: failed ones are sent again at once.
    stage.receiver.behaves(Behaviour::Answers(200, String::new()));
    let settled = stage.campaigns.retry_failed(once, &Which::All).await.unwrap();
    let Settled::Done { recipients: 1, contract } = settled else { panic!("{settled:?}") };
    assert_eq!(contract.status, CampaignState::Paused);
    assert!(matches!(stage.campaigns.resume(once).await.unwrap(), Moved::Done(_)));
    assert_eq!(stage.completed(once).await.counts.sent, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_is_refused_pauses_the_campaign_at_once() {
    let stage = Stage::start().await;
    let told = json!({ "ok": false, "error_code": 400, "description": "Bad Request: can't parse entities" });
    stage.receiver.behaves(Behaviour::Answers(400, told.to_string()));
    let token = json!({ "token": "123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" });
    let account = stage.account_of(Channel::Telegram, json!({}), token, fast()).await;
    let mut many = rows(30);
    for (number, row) in many.iter_mut().enumerate() {
        row.address = format!("{}", 1_000 + number);
    }
    let id = stage.campaign_with(campaign(&account), many).await;
    let _worker = stage.work();
    stage.started(id).await;
    let paused = stage.until(id, |contract| contract.status == CampaignState::Paused).await;
    assert!(paused.status_reason.unwrap().contains("content"));
    let still = stage.until(id, |contract| contract.counts.pending == 30).await;
    assert_eq!(still.counts.failed, 0);
    assert!(stage.receiver.received().len() < 30, "most were never sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_refused_pauses_all_its_campaigns_until_it_is_changed() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let (first, second) = (stage.campaign(&account, 20).await, stage.campaign(&account, 20).await);
    stage.receiver.behaves(Behaviour::Answers(401, String::new()));
    stage.started(second).await;
    stage.started(first).await;
    let _worker = stage.work();
    for id in [first, second] {
        stage.until(id, |contract| contract.status == CampaignState::Paused).await;
    }
    let shown = stage.campaigns.account(&account).await.unwrap().unwrap();
    assert!(shown.blocked_reason.unwrap().contains("401"));
    let refused = stage.campaigns.resume(first).await.unwrap();
    let Moved::NotReady(reasons) = refused else { panic!("{refused:?}") };
    assert!(reasons[0].contains("may not send"), "{reasons:?}");
    stage.receiver.behaves(Behaviour::Answers(200, String::new()));
    let change = stampede_campaign::AccountChange {
        settings: Some(shown.settings.clone()),
        ..stampede_campaign::AccountChange::default()
    };
    stage.campaigns.change_account(&account, None, &change).await.unwrap();
    assert!(matches!(stage.campaigns.resume(first).await.unwrap(), Moved::Done(_)));
    assert_eq!(stage.completed(first).await.counts.sent, 20);
    assert_eq!(stage.contract(second).await.status, CampaignState::Paused, "only people resume");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_down_holds_the_account_and_costs_no_attempt() {
    let stage = Stage::start().await;
    stage.receiver.behaves(Behaviour::AnswersWith(429, "Retry-After", "2".to_owned()));
    let account = stage.account(json!({}), fast()).await;
    let id = stage.campaign(&account, 20).await;
    let _worker = stage.work();
    stage.started(id).await;
    stage.receiver.has(1).await;
    stage.receiver.behaves(Behaviour::Answers(200, String::new()));
    let done = stage.completed(id).await;
    assert_eq!((done.counts.sent, done.counts.failed), (20, 0));
    assert!(stage.ledger(id).await.iter().all(|recipient| recipient.attempts == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_in_a_row_pause_the_campaign_by_itself() {
    let stage = Stage::start().await;
    stage.receiver.behaves(Behaviour::Answers(500, String::new()));
    let account = stage.account(json!({}), fast()).await;
    let mut new = campaign(&account);
    new.auto_pause = AutoPause { in_a_row: 5, ..AutoPause::default() };
    let id = stage.campaign_with(new, rows(200)).await;
    let _worker = stage.work();
    stage.started(id).await;
    let paused = stage.until(id, |contract| contract.status == CampaignState::Paused).await;
    assert!(paused.status_reason.unwrap().contains("in a row"));
    assert!(stage.receiver.received().len() < 150, "most were never sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_said_stop_gets_nothing() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let id = stage.campaign(&account, 3).await;
    let new = NewSuppressions {
        owner: "ann".to_owned(),
        account: None,
        addresses: vec!["person-2".to_owned()],
        reason: SuppressionReason::Manual,
        by: "ann".to_owned(),
        country: None,
    };
    // After the import: found when it is claimed.
    assert_eq!(stage.campaigns.suppress(new).await.unwrap(), Suppressed::Done(1));
    let _worker = stage.work();
    stage.started(id).await;
    let done = stage.completed(id).await;
    assert_eq!((done.counts.sent, done.counts.skipped), (2, 1));
    assert_eq!(stage.ledger(id).await[1].skipped, Some(SkipReason::OptedOut));
    assert!(!stage.got().contains_key("person-2"));
}
