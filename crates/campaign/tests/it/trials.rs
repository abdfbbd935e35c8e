//! What is known before the start, and what then becomes of it.

use serde_json::json;
use stampede_campaign::{Moved, Previewed, RecipientRow};
use stampede_model::CampaignId;
use stampede_model::campaign::{AccountId, AutoPause, Channel, Content, RecipientState, Template};
use stampede_testkit::Behaviour;

use crate::stage::{Stage, campaign, fast, now, rows};

const TOKEN: &str = "123456:ABCDEFGHIJKLMNOPQRSTUVWXYZ";

fn row(address: &str, message: Option<String>) -> RecipientRow {
    let address = address.to_owned();
    RecipientRow { address, message, ..RecipientRow::default() }
}

async fn telegram(stage: &Stage) -> AccountId {
    let credentials = json!({ "token": TOKEN });
    stage.account_of(Channel::Telegram, json!({}), credentials, fast()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_cannot_be_made_are_told_before_the_start_and_use_no_attempt() {
    let stage = Stage::start().await;
    let account = telegram(&stage).await;
    let mut new = campaign(&account);
    new.auto_pause = AutoPause::default();
    let long = Some("x".repeat(4_097));
    // More than the automatic pause allows of messages that were sent.
    let mut people: Vec<_> = (1..=60).map(|n| row(&n.to_string(), long.clone())).collect();
    people.push(row("61", None));
    people.push(row("62", Some("\u{200b}".to_owned())));
    let id = stage.campaign_with(new, people).await;
    let told = stage.campaigns.validate(id).await.unwrap().unwrap();
    assert_eq!((told.ok, told.to_send, told.will_fail), (true, 0, 62), "{told:?}");
    assert_eq!(told.too_long.unwrap().recipients, 60);
    assert_eq!(told.no_message.unwrap().positions, [61]);
    let _worker = stage.work();
    stage.started(id).await;
    let done = stage.completed(id).await;
    assert_eq!((done.counts.failed, done.status_reason), (62, None));
    for recipient in stage.ledger(id).await {
        assert_eq!((recipient.state, recipient.attempts), (RecipientState::Failed, 0));
    }
    let report = stage.campaigns.report(id).await.unwrap().unwrap();
    assert_eq!(report.minutes, [], "nothing was tried");
    assert!(stage.receiver.received().is_empty());
}

async fn with_template(
    stage: &Stage,
    account: &AccountId,
    template: Template,
    people: usize,
) -> CampaignId {
    let mut new = campaign(account);
    new.content = Content::Template(template);
    let people = rows(people).into_iter().enumerate().map(|(number, row)| RecipientRow {
        address: format!("p{number}@example.com"),
        message: None,
        ..row
    });
    stage.campaign_with(new, people.collect()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn tickets_are_not_sent_to_recipients_who_have_none() {
    let stage = Stage::start().await;
    let settings = json!({ "url": "smtp://127.0.0.1:1?tls=none", "from": "ann@example.com" });
    let mail = stage.account_of(Channel::Smtp, settings, json!({}), fast()).await;
    let web = stage.account(json!({}), fast()).await;
    let text = |text: &str| Template {
        subject: Some("Ticket".to_owned()),
        text: Some(text.to_owned()),
        ..Template::default()
    };
    let attached = Template { attach_ticket: true, ..text("Here it is") };
    for (account, template) in [(&mail, attached), (&web, text("Get it at {{ ticketUrl }}"))] {
        let id = with_template(&stage, account, template, 3).await;
        let told = stage.campaigns.validate(id).await.unwrap().unwrap();
        assert!(
            !told.ok && told.problems[0].starts_with("3 recipients have no ticket"),
            "{told:?}"
        );
        let started = stage.campaigns.start(id, None, None).await.unwrap();
        let Moved::NotReady(problems) = started else { panic!("{started:?}") };
        assert_eq!(problems, told.problems);
    }
    let asks = text("{% if ticketUrl %}{{ ticketUrl }}{% else %}See you at the door{% endif %}");
    let id = with_template(&stage, &web, asks, 3).await;
    assert!(stage.campaigns.validate(id).await.unwrap().unwrap().ok, "it is meant for both");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_shows_the_template_of_whatsapp_with_its_values() {
    let stage = Stage::start().await;
    let settings = json!({ "phoneNumberId": "12345" });
    let credentials = json!({ "accessToken": "EAAG0123456789abcdefghij", "appSecret": "0123456789abcdef0123456789abcdef", "verifyToken": "verify-me" });
    let account = stage.account_of(Channel::Whatsapp, settings, credentials, fast()).await;
    let mut new = campaign(&account);
    new.content = Content::Template(Template {
        whatsapp_template: Some("doors".to_owned()),
        whatsapp_language: Some("en_US".to_owned()),
        whatsapp_values: vec!["{{ address }}".to_owned()],
        ..Template::default()
    });
    let id = stage.campaign_with(new, vec![row("+4915100000001", None)]).await;
    let Previewed::Done(told) = stage.campaigns.preview(id, 1).await.unwrap() else {
        panic!("it has no mistakes");
    };
    let template = (told.whatsapp_template.as_deref(), told.whatsapp_language.as_deref());
    assert_eq!(template, (Some("doors"), Some("en_US")));
    assert_eq!(told.whatsapp_values, ["+4915100000001"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_cannot_verify_an_account_does_not_lift_its_block() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    stage.store.block_account(&account, "401 who are you?", now()).await.unwrap();
    for status in [405, 404, 501] {
        stage.receiver.behaves(Behaviour::Answers(status, String::new()));
        let checked = stage.campaigns.check_account(&account).await.unwrap().unwrap();
        assert_eq!((checked.ok, checked.verified), (true, false), "{checked:?}");
        assert!(checked.message.starts_with("reachable, cannot be verified"), "{checked:?}");
        let blocked = stage.campaigns.account(&account).await.unwrap().unwrap().blocked_reason;
        assert!(blocked.is_some(), "{status}");
    }
    stage.receiver.behaves(Behaviour::Answers(204, String::new()));
    let checked = stage.campaigns.check_account(&account).await.unwrap().unwrap();
    assert!(checked.ok && checked.verified, "{checked:?}");
    assert_eq!(stage.campaigns.account(&account).await.unwrap().unwrap().blocked_reason, None);
}
