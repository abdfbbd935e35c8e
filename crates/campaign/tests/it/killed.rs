//! Workers that are killed between any two steps.

use std::time::Duration;

use serde_json::json;
use stampede_campaign::{Moved, Reconciler, Settled, UnknownAction, Which};
use stampede_model::campaign::CampaignState;
use stampede_testkit::{Behaviour, eventually};

use crate::stage::{PATIENCE, Stage, fast, limited, now};

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_during_the_call_leaves_unknown_and_nobody_gets_it_twice() {
    let stage = Stage::start().await;
    stage.receiver.behaves(Behaviour::Hangs);
    let account = stage.account(json!({}), fast()).await;
    let id = stage.campaign(&account, 20).await;
    let doomed = stage.work();
    stage.started(id).await;
    // The messages have arrived, and nobody has learnt that.
    let hanging = stage.receiver.has(8).await.len() as u64;
    doomed.kill();
    stage.receiver.behaves(Behaviour::Answers(200, String::new()));
    let _worker = stage.work();
    let done = stage.completed(id).await;
    assert!(done.counts.unknown >= hanging, "{:?}", done.counts);
    assert_eq!(done.counts.unknown + done.counts.sent, 20);
    stage.assert_each_got_one(20);
    // A person decides.
    let all = Which::All;
    let settled = stage.campaigns.settle_unknown(id, UnknownAction::Resend, &all).await.unwrap();
    let Settled::Done { recipients, contract } = settled else { panic!("{settled:?}") };
    assert_eq!((recipients, contract.status), (done.counts.unknown, CampaignState::Paused));
    assert!(matches!(stage.campaigns.resume(id).await.unwrap(), Moved::Done(_)));
    assert_eq!(stage.completed(id).await.counts.sent, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotent_channel_sends_again_with_the_same_key() {
    let stage = Stage::start().await;
    stage.receiver.behaves(Behaviour::Hangs);
    let account = stage.account(json!({ "idempotent": true }), fast()).await;
    let id = stage.campaign(&account, 10).await;
    let doomed = stage.work();
    stage.started(id).await;
    stage.receiver.has(5).await;
    doomed.kill();
    stage.receiver.behaves(Behaviour::Answers(200, String::new()));
    let _worker = stage.work();
    let done = stage.completed(id).await;
    assert_eq!((done.counts.sent, done.counts.unknown), (10, 0));
    let received = stage.receiver.received();
    let mut ids: Vec<&str> = received.iter().map(|request| request.id()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 10, "a message has one key, however often it is sent");
    assert!(received.len() > 10, "some were sent again");
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_that_are_killed_again_and_again_send_nothing_twice() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), limited(100, 1_000)).await;
    let id = stage.campaign(&account, 300).await;
    stage.started(id).await;
    for kills in 1..=5 {
        let doomed = stage.work();
        stage.receiver.has(40 * kills).await;
        doomed.kill();
    }
    let _worker = stage.work();
    let reconciler = Reconciler::new(stage.campaigns.clone());
    let done = eventually(PATIENCE, || async {
        // As it does every half minute, without waiting for it: locks of the dead have expired by then.
        reconciler.pass(now() - Duration::from_secs(4)).await.unwrap();
        let contract = stage.contract(id).await;
        match contract.status == CampaignState::Completed {
            true => Ok(contract),
            false => Err(format!("{:?}", contract.counts)),
        }
    })
    .await;
    let counts = done.counts;
    assert_eq!(counts.sent + counts.unknown, 300, "{counts:?}");
    let got = stage.got();
    assert!(got.values().all(|times| *times == 1), "{got:?}");
    for recipient in stage.ledger(id).await {
        let has_it = got.contains_key(&recipient.address);
        assert!(has_it || recipient.state.as_str() == "unknown", "{recipient:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_forgot_everything_loses_no_recipient() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let id = stage.campaign(&account, 100).await;
    stage.started(id).await;
    {
        let worker = stage.work();
        stage.receiver.has(20).await;
        worker.kill();
    }
    stage.redis.cli(&["FLUSHALL"]);
    let reconciler = Reconciler::new(stage.campaigns.clone());
    let put_right = reconciler.pass(now() + Duration::from_secs(1)).await.unwrap();
    assert_eq!(put_right.feeders, 1);
    let _worker = stage.work();
    let done = stage.completed(id).await;
    assert_eq!(done.counts.sent + done.counts.unknown, 100, "{:?}", done.counts);
    assert!(stage.got().values().all(|times| *times == 1));
}
