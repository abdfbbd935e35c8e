//! Operators are told when a campaign pauses by itself, or an account is blocked: once, by the process that did it.

use serde_json::{Value, json};
use stampede_model::campaign::{AutoPause, CampaignState};
use stampede_testkit::{Behaviour, eventually};

use crate::stage::{PATIENCE, Stage, campaign, fast, rows};

/// Waits until an alert was raised; returns all of them, the newest first.
async fn alerts(stage: &Stage) -> Vec<Value> {
    let decisions = stage.broker.decisions();
    eventually(PATIENCE, || async {
        let alerts = decisions.alerts::<Value>().await.unwrap();
        if alerts.is_empty() { Err("no alert") } else { Ok(alerts) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_that_pauses_by_itself_raises_one_alert() {
    let stage = Stage::start().await;
    stage.receiver.behaves(Behaviour::Answers(500, String::new()));
    let account = stage.account(json!({}), fast()).await;
    let mut new = campaign(&account);
    new.auto_pause = AutoPause { in_a_row: 5, ..AutoPause::default() };
    let id = stage.campaign_with(new, rows(100)).await;
    // Both see the failures.
    let workers = [stage.work(), stage.work()];
    stage.started(id).await;
    let paused = stage.until(id, |contract| contract.status == CampaignState::Paused).await;
    stage.until(id, |contract| contract.counts.sending == 0).await;
    let raised = alerts(&stage).await;
    for worker in workers {
        worker.stop();
    }
    assert_eq!(alerts(&stage).await, raised, "one pause, one alert");
    let [alert] = raised.as_slice() else { panic!("{raised:?}") };
    assert_eq!((&alert["kind"], &alert["subject"]), (&json!("campaign-paused"), &json!(id)));
    let message = alert["message"].as_str().unwrap();
    assert!(message.contains("\"News\" of ann"), "{message}");
    assert!(message.ends_with(&paused.status_reason.unwrap()), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_its_provider_refuses_raises_one_alert_for_all_of_its_campaigns() {
    let stage = Stage::start().await;
    stage.receiver.behaves(Behaviour::Answers(401, "no key for person-1".to_owned()));
    let account = stage.account(json!({}), fast()).await;
    let ids = [stage.campaign(&account, 50).await, stage.campaign(&account, 50).await];
    for id in ids {
        stage.started(id).await;
    }
    let workers = [stage.work(), stage.work()];
    for id in ids {
        let paused = stage.until(id, |contract| contract.status == CampaignState::Paused).await;
        assert!(paused.status_reason.unwrap().contains("the account is refused: 401"));
        stage.until(id, |contract| contract.counts.sending == 0).await;
    }
    let raised = alerts(&stage).await;
    for worker in workers {
        worker.stop();
    }
    assert_eq!(alerts(&stage).await, raised, "one account, one alert");
    let [alert] = raised.as_slice() else { panic!("{raised:?}") };
    assert_eq!((&alert["kind"], &alert["subject"]), (&json!("account-blocked"), &json!(account)));
    let message = alert["message"].as_str().unwrap();
    assert!(message.contains("(webhook) of ann"), "{message}");
    assert!(message.contains("2 campaigns are paused"), "{message}");
}
