//! Telegram, WhatsApp, Twilio and webhooks, over HTTP.

use serde_json::json;
use stampede_channel::{Incoming, Notice, Status, receipts};
use stampede_model::Timestamp;
use stampede_model::campaign::{Channel, Outcome};
use stampede_testkit::{Provider, Reply, TELEGRAM, hub_signature, whatsapp_receipts};

use crate::{account, channels, message, word};

pub(crate) const TOKEN: &str = "123456:ABCdefGHIjklMNOpqrsTUVwxyz";
pub(crate) const NOWHERE: &str = "http://127.0.0.1:1999";
pub(crate) const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
const SID: &str = "AC0123456789abcdef0123456789abcdef";
pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef";

pub(crate) fn telegram_account(token: &str) -> stampede_channel::Account {
    account(Channel::Telegram, &json!({}), &json!({ "token": token }))
}

#[tokio::test]
async fn telegram_refuses_in_every_way() {
    let provider = Provider::telegram().await;
    let (channels, account) = (channels(&provider.url(), NOWHERE), telegram_account(TOKEN));
    let wanted = [
        "slow_down 7",
        "bounced",
        "bounced",
        "bounced",
        "never",
        "never blocked",
        "bounced blocked",
        "never blocked",
        "content",
        "content",
        "content",
        "content",
        "account",
        "temporary",
    ];
    for ((chat, status, description), wanted) in TELEGRAM.into_iter().zip(wanted) {
        let outcome = channels.send(&account, &message(chat)).await;
        assert_eq!(word(&outcome), wanted, "{description}");
        let failure = outcome.failure().unwrap();
        assert_eq!(
            (failure.code.as_str(), failure.text.as_str()),
            (status.to_string().as_str(), description)
        );
    }
    let sent = channels.send(&account, &message("42")).await;
    assert_eq!(sent, Outcome::Sent { provider_id: Some("77".to_owned()), moved_to: None });
    let before = provider.asked().len();
    let moved = channels.send(&account, &message("-100")).await;
    assert!(matches!(&moved, Outcome::Moved(chat, _) if chat == "-200"), "{moved:?}");
    let asked = provider.asked();
    let chats: Vec<_> =
        asked[before..].iter().map(|asked| asked.json()["chat_id"].clone()).collect();
    assert_eq!(chats, ["-100"], "somebody in the other chat may have said stop");
    let mut wrong_token = telegram_account("404:ABCdefGHIjklMNOpqrsTUVwxyz");
    wrong_token.version = Timestamp::from_second(1).unwrap();
    assert_eq!(word(&channels.send(&wrong_token, &message("42")).await), "account");
    assert!(channels.check(&wrong_token).await.is_err());
    assert_eq!(channels.check(&account).await.unwrap().text, "the bot @test_bot");
}

#[tokio::test]
async fn a_provider_that_hangs_closes_lies_or_answers_html_is_not_believed() {
    let (telegram, whatsapp) = (Provider::telegram().await, Provider::whatsapp().await);
    let twilio = Provider::twilio().await;
    let channels = channels(&telegram.url(), &whatsapp.url());
    for (account, prefix) in [
        (telegram_account(TOKEN), ""),
        (whatsapp_account(), "+49"),
        (twilio_account(&twilio.url()), "+49"),
    ] {
        for (address, told) in
            [("0001", "no_answer"), ("0002", "502"), ("0003", "no_answer"), ("0004", "20")]
        {
            let outcome = channels.send(&account, &message(&format!("{prefix}70{address}"))).await;
            assert_eq!(word(&outcome), "unknown", "{:?} {address} {outcome:?}", account.channel);
            assert!(outcome.failure().unwrap().code.starts_with(told), "{outcome:?}");
        }
    }
    // Silence, and not a byte more than once.
    let hung = telegram.asked().iter().filter(|asked| asked.body.contains("700001")).count();
    assert_eq!(hung, 1);
}

#[tokio::test]
async fn a_provider_that_is_not_there_gets_nothing_and_no_secret_is_told() {
    let channels = channels(NOWHERE, NOWHERE);
    for account in [telegram_account(TOKEN), whatsapp_account(), twilio_account(NOWHERE)] {
        let outcome = channels.send(&account, &message("+4970")).await;
        assert_eq!(word(&outcome), "not_sent");
        let failure = channels.check(&account).await.unwrap_err();
        let told = format!("{outcome:?} {failure:?} {account:?}");
        assert_eq!(failure.code, "connect");
        for secret in [TOKEN, "ABCdef", KEY, "EAAG"] {
            assert!(!told.replace(SID, "").contains(secret), "{told}");
        }
    }
}

#[tokio::test]
async fn a_provider_that_says_a_secret_back_is_not_quoted() {
    let provider = Provider::start(|asked| {
        let text =
            format!("Forbidden: you asked {} with {}", asked.path, asked.header("authorization"));
        Reply::Json(
            403,
            json!({ "ok": false, "description": text, "error": { "code": 5, "message": text } }),
        )
    })
    .await;
    let channels = channels(&provider.url(), &provider.url());
    for account in [telegram_account(TOKEN), whatsapp_account()] {
        let outcome = channels.send(&account, &message("7")).await;
        let text = &outcome.failure().unwrap().text;
        assert!(text.contains("***") && !text.contains(TOKEN) && !text.contains("EAAG"), "{text}");
    }
}

pub(crate) fn whatsapp_account() -> stampede_channel::Account {
    let credentials =
        json!({ "accessToken": "EAAG0123456789abcdefghij", "appSecret": KEY, "verifyToken": "v" });
    account(Channel::Whatsapp, &json!({ "phoneNumberId": "1055" }), &credentials)
}

#[tokio::test]
async fn a_message_of_whatsapp_is_accepted_and_its_receipts_name_the_recipient() {
    let provider = Provider::whatsapp().await;
    let (channels, account) = (channels(NOWHERE, &provider.url()), whatsapp_account());
    let sent = message("+4917012345");
    let outcome = channels.send(&account, &sent).await;
    let provider_id = Some("wamid.4917012345".to_owned());
    assert_eq!(outcome, Outcome::Sent { provider_id, moved_to: None });
    let asked = provider.asked();
    let asked = asked.last().unwrap();
    assert_eq!(asked.path, "/v23.0/1055/messages");
    assert_eq!(asked.header("authorization"), "Bearer EAAG0123456789abcdefghij");
    let id = asked.json()["biz_opaque_callback_data"].as_str().unwrap().to_owned();
    assert_eq!(id, sent.recipient.to_string());
    let body = whatsapp_receipts(
        "1055",
        &[
            (&id, "wamid.1", "read", None),
            (&id, "wamid.1", "delivered", None),
            (&id, "wamid.1", "failed", Some(131_050)),
        ],
    );
    let mut headers = http::HeaderMap::new();
    headers.insert("x-hub-signature-256", hub_signature(KEY, &body).parse().unwrap());
    let now = Timestamp::now();
    let incoming = Incoming { headers: &headers, url: "", query: "", body: body.as_bytes(), now };
    let told = receipts(&account, &incoming).unwrap();
    let statuses: Vec<_> = told
        .notices
        .iter()
        .map(|notice| match notice {
            Notice::Receipt { recipient, status, .. } => (*recipient, *status),
            other => panic!("{other:?}"),
        })
        .collect();
    let of = Some(sent.recipient);
    assert_eq!(statuses, [(of, Status::Read), (of, Status::Delivered), (of, Status::Failed)]);
    assert_eq!(channels.check(&account).await.unwrap().text, "the number +49 1 of Ann");
}

fn twilio_account(api: &str) -> stampede_channel::Account {
    let settings =
        json!({ "profile": "twilio", "accountSid": SID, "from": "+4930", "apiUrl": api });
    account(Channel::Sms, &settings, &json!({ "authToken": KEY }))
}

#[tokio::test]
async fn twilio_refuses_in_every_way() {
    let provider = Provider::twilio().await;
    let (channels, account) = (channels(NOWHERE, NOWHERE), twilio_account(&provider.url()));
    for (code, wanted) in [
        (21_610, "never stop"),
        (21_211, "bounced"),
        (21_614, "bounced"),
        (20_429, "slow_down 60"),
        (20_003, "account"),
        (30_001, "never"),
    ] {
        assert_eq!(
            word(&channels.send(&account, &message(&format!("+1999{code}"))).await),
            wanted,
            "{code}"
        );
    }
    let outcome = channels.send(&account, &message("+4917099")).await;
    assert_eq!(
        outcome,
        Outcome::Sent { provider_id: Some("SM4917099".to_owned()), moved_to: None }
    );
    assert_eq!(channels.check(&account).await.unwrap().text, "the account Ann (active)");
}

#[tokio::test]
async fn a_webhook_gets_each_attempt_under_one_id_and_may_not_lead_inside() {
    let provider = Provider::start(|asked| match asked.json()["attempt"].as_u64() {
        Some(1) => Reply::With(503, "Retry-After", "3".to_owned(), json!({})),
        _ => Reply::Json(200, json!({ "id": "m-1" })),
    })
    .await;
    let url = format!("{}/hook", provider.url());
    let settings = json!({ "url": url, "idempotent": true });
    let account = account(Channel::Webhook, &settings, &json!({ "secret": SECRET }));
    let channels = channels(NOWHERE, NOWHERE);
    let mut message = message("anybody");
    assert_eq!(word(&channels.send(&account, &message).await), "slow_down 3");
    message.attempt = 2;
    let sent = channels.send(&account, &message).await;
    assert_eq!(sent, Outcome::Sent { provider_id: Some("m-1".to_owned()), moved_to: None });
    let asked = provider.asked();
    assert_eq!(asked[0].header("idempotency-key"), asked[1].header("idempotency-key"));
    assert!(channels.check(&account).await.unwrap().text.contains("200"));
    assert_eq!(provider.asked().last().unwrap().method, "HEAD");
    let mut inside = account.clone();
    inside.id = "inside".parse().unwrap();
    inside.settings = account.settings.replace("127.0.0.1", "127.0.0.2");
    let outcome = channels.send(&inside, &message).await;
    assert_eq!(
        (word(&outcome).as_str(), outcome.failure().unwrap().code.as_str()),
        ("account", "address")
    );
}

#[tokio::test]
async fn a_new_version_of_an_account_is_used_at_once() {
    let (old, new) = (Provider::telegram().await, Provider::telegram().await);
    let settings = |provider: &Provider| json!({ "url": format!("{}/x", provider.url()) });
    let credentials = json!({ "secret": SECRET });
    let first = account(Channel::Webhook, &settings(&old), &credentials);
    let mut second = account(Channel::Webhook, &settings(&new), &credentials);
    let channels = channels(NOWHERE, NOWHERE);
    channels.send(&first, &message("a")).await;
    channels.send(&second, &message("b")).await;
    assert_eq!((old.asked().len(), new.asked().len()), (2, 0), "the version says what is new");
    second.version = Timestamp::from_second(1).unwrap();
    channels.send(&second, &message("c")).await;
    assert_eq!((old.asked().len(), new.asked().len()), (2, 1));
}

#[tokio::test]
async fn an_account_that_cannot_be_read_is_the_accounts_fault() {
    let mut broken = telegram_account(TOKEN);
    broken.credentials = br#"{"token":"#.to_vec();
    let outcome = channels(NOWHERE, NOWHERE).send(&broken, &message("a")).await;
    assert_eq!(outcome.failure().unwrap().code, "credentials");
    assert_eq!(word(&outcome), "account");
}
