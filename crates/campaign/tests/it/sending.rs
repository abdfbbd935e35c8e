//! Messages that are sent, refused, repeated.

use std::time::Duration;

use serde_json::json;
use stampede_campaign::{
    AccountChange, AccountChanged, Moved, NewSuppressions, Settled, Suppressed, Which,
};
use stampede_model::CampaignId;
use stampede_model::campaign::{
    AccountId, AutoPause, CampaignState, Channel, RecipientState, SkipReason, SuppressionReason,
};
use stampede_store::SuppressionFilter;
use stampede_testkit::{Behaviour, MailServer, eventually};

use crate::stage::{PATIENCE, Stage, campaign, fast, now, rows};

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
    let change =
        AccountChange { settings: Some(shown.settings.clone()), ..AccountChange::default() };
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
        account: Some(account),
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

/// An account of a mail server.
async fn mail_account(stage: &Stage, server: &MailServer) -> AccountId {
    let url = format!("smtp://127.0.0.1:{}?tls=none", server.port());
    let settings = json!({ "url": url, "from": "ann@example.com" });
    stage.account_of(Channel::Smtp, settings, json!({}), fast()).await
}

/// A campaign with one recipient.
async fn campaign_to(stage: &Stage, account: &AccountId, address: &str) -> CampaignId {
    let mut one = rows(1);
    one[0].address = address.to_owned();
    let id = stage.campaign_with(campaign(account), one).await;
    stage.started(id).await;
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_server_that_names_a_pause_is_asked_again_after_it() {
    let (stage, server) = (Stage::start().await, MailServer::start().await);
    let account = mail_account(&stage, &server).await;
    let begun = now();
    let id = campaign_to(&stage, &account, "greylist@example.net").await;
    let _worker = stage.work();
    let tried = || async { stage.ledger(id).await[0].next_at.ok_or("it was not tried") };
    let next = eventually(PATIENCE, tried).await;
    // "in 300 seconds", and ten more; the usual pause is 300 seconds.
    assert!(next >= begun + Duration::from_secs(310), "{next} {begun}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_that_is_full_for_the_third_time_gets_nothing_any_more() {
    let (stage, server) = (Stage::start().await, MailServer::start().await);
    let account = mail_account(&stage, &server).await;
    let _worker = stage.work();
    for suppressed in [0, 0, 1] {
        let id = campaign_to(&stage, &account, "full@example.net").await;
        assert_eq!(stage.completed(id).await.counts.failed, 1);
        let found = stage.store.suppressions(&SuppressionFilter::default(), None, 9).await.unwrap();
        assert_eq!(found.len(), suppressed, "{found:?}");
        assert!(found.iter().all(|one| one.reason == SuppressionReason::Bounce
            && one.account.as_ref() == Some(&account)
            && one.address == "full@example.net"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_one_setting_keeps_the_others_and_the_credentials() {
    let stage = Stage::start().await;
    let account = stage.account(json!({ "idempotent": true }), fast()).await;
    let before = stage.store.account_credentials(&account).await.unwrap();
    let change = async |settings, credentials| {
        let change = AccountChange { settings, credentials, ..AccountChange::default() };
        stage.campaigns.change_account(&account, None, &change).await.unwrap()
    };
    let url = json!({ "url": stage.receiver.url("/other") });
    let AccountChanged::Done(changed) = change(Some(url.clone()), None).await else {
        panic!("a URL can be changed");
    };
    let wanted = json!({ "url": url["url"], "idempotent": true });
    assert_eq!(changed.settings, wanted);
    assert_eq!(stage.store.account_credentials(&account).await.unwrap(), before);
    // What would be left is read as a whole: the channel names what is wrong with it.
    let refused = change(Some(json!({ "url": null, "speed": 1 })), Some(json!({ "secret": null })));
    let AccountChanged::Invalid(mistakes) = refused.await else { panic!("nothing is left") };
    let fields: Vec<&str> = mistakes.iter().map(|mistake| mistake.field.as_str()).collect();
    for field in ["settings.url", "settings.speed", "credentials.secret"] {
        assert!(fields.contains(&field), "{fields:?}");
    }
    let kept = stage.campaigns.account(&account).await.unwrap().unwrap();
    assert_eq!(kept.settings, wanted);
}
