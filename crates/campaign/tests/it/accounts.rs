//! The account of a campaign: it stays, and one that may not send stops its campaigns.

use std::time::Duration;

use serde_json::json;
use stampede_campaign::{CampaignEdit, Edited, Error, Moved};
use stampede_model::campaign::{AccountId, CampaignState, Channel};

use crate::stage::{Stage, campaign, fast, now, rows};

async fn choose(stage: &Stage, id: stampede_model::CampaignId, account: &AccountId) -> Edited {
    let edit = CampaignEdit { account: Some(account.clone()), ..CampaignEdit::default() };
    stage.campaigns.edit(id, None, &edit).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_that_has_started_keeps_its_account() {
    let stage = Stage::start().await;
    let (one, two) =
        (stage.account(json!({}), fast()).await, stage.account(json!({}), fast()).await);
    let id = stage.campaign(&one, 3).await;
    assert!(matches!(choose(&stage, id, &two).await, Edited::Done(_)), "a draft");
    stage.started(id).await;
    stage.campaigns.pause(id).await.unwrap();
    let refused = choose(&stage, id, &one).await;
    assert!(matches!(refused, Edited::HasStarted(_)), "{refused:?}");
    assert!(matches!(choose(&stage, id, &two).await, Edited::Done(_)), "the same account");
    assert_eq!(stage.contract(id).await.account_id, two);
}

#[tokio::test(flavor = "multi_thread")]
async fn recipients_are_not_handed_to_an_account_with_other_addresses() {
    let stage = Stage::start().await;
    let webhook = stage.account(json!({}), fast()).await;
    let token = json!({ "token": "123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" });
    let telegram = stage.account_of(Channel::Telegram, json!({}), token, fast()).await;
    // Any address: two rows. A chat of Telegram: one.
    let mut news = rows(2);
    for (row, address) in news.iter_mut().zip(["@News", "@news"]) {
        row.address = address.to_owned();
    }
    let id = stage.campaign_with(campaign(&webhook), news).await;
    assert_eq!(stage.contract(id).await.counts.pending, 2);
    let refused = choose(&stage, id, &telegram).await;
    let Edited::Invalid(mistakes) = refused else { panic!("{refused:?}") };
    assert_eq!(mistakes[0].field, "accountId");
    assert!(mistakes[0].message.contains("chats of Telegram"), "{mistakes:?}");
    let empty = stage.campaign(&webhook, 0).await;
    assert!(matches!(choose(&stage, empty, &telegram).await, Edited::Done(_)));
    assert!(matches!(choose(&stage, id, &AccountId::console()).await, Edited::Done(_)));
    // Also if the account is gone meanwhile.
    let gone = stage.campaign(&webhook, 1).await;
    stage.campaigns.delete_account(&webhook, None).await.unwrap();
    let refused = choose(&stage, gone, &telegram).await;
    assert!(matches!(refused, Edited::Invalid(_)), "{refused:?}");
    assert!(matches!(choose(&stage, gone, &AccountId::console()).await, Edited::Done(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_campaign_whose_account_was_blocked_does_not_start_and_says_why() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let id = stage.campaign(&account, 3).await;
    let soon = now() + Duration::from_millis(1_500);
    let scheduled = stage.campaigns.start(id, Some(soon), None).await.unwrap();
    assert!(matches!(scheduled, Moved::Done(_)), "{scheduled:?}");
    stage.store.block_account(&account, "401 no", None, now()).await.unwrap();
    let _worker = stage.work();
    let stopped = stage.until(id, |contract| contract.status == CampaignState::Draft).await;
    assert_eq!(stopped.status_reason.as_deref(), Some("401 no"));
    assert!(stage.receiver.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_committed_is_answered_without_redis() {
    let mut stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let id = stage.campaign(&account, 1).await;
    stage.redis.stop().await;
    let started: Result<Moved, Error> = stage.campaigns.start(id, None, None).await;
    assert!(matches!(started, Ok(Moved::Done(_))), "{started:?}");
    assert_eq!(stage.contract(id).await.status, CampaignState::Running);
}
