//! Our requests to Telegram and WhatsApp, and the updates and receipts of our tests, as other people's libraries read them:
//! aiogram and pywa, called by `interop/messengers/check.py`.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use stampede_channel::{Account, Incoming, Message, Notice, Status, WhatsappTemplate, receipts};
use stampede_model::Timestamp;
use stampede_model::campaign::{Channel, SuppressionReason};
use stampede_testkit::{Provider, hub_signature, python, whatsapp_receipts};

use crate::http::{KEY, NOWHERE, TOKEN, telegram_account, whatsapp_account};
use crate::{account, channels, message};

const BOT_SECRET: &str = "the-secret-of-this-test-0123456789";

/// What aiogram and pywa make of it. What is not in `given` is empty.
fn read(given: &Value) -> Value {
    let mut all = json!({
        "whatsapp": {
            "phoneNumberId": "1055", "version": 23.0, "more": { "app_secret": KEY, "validate_updates": true },
        },
        "sendMessage": [], "updates": [], "messages": [], "receipts": [],
    });
    all.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/messengers/check.py");
    let mut process = Command::new(python("messenger-packages"))
        .arg("-B")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(all.to_string().as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{given}\n{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Messages of every form that a channel sends, to a provider that notes them.
async fn sent(
    account: &Account,
    provider: &Provider,
    messages: &[Message],
) -> Vec<(String, Value)> {
    let (telegram, whatsapp) = match account.channel {
        Channel::Telegram => (provider.url(), NOWHERE.to_owned()),
        _ => (NOWHERE.to_owned(), provider.url()),
    };
    let channels = channels(&telegram, &whatsapp);
    for message in messages {
        let outcome = channels.send(account, message).await;
        let wanted = if message.text == "moved" { "moved" } else { "sent" };
        assert_eq!(outcome.as_str(), wanted, "{outcome:?}");
    }
    provider.asked().iter().map(|asked| (asked.path.clone(), asked.json())).collect()
}

fn texts() -> Vec<Message> {
    let text = |address: &str, text: &str| Message { text: text.to_owned(), ..message(address) };
    let markup = Some("<b>Zoë</b> &lt;3".to_owned());
    vec![
        text("4917012345", "Hello Zoë, \"doors\" open at 7 🎟\nbye"),
        text("-1001234567890", "x"),
        text("@channel", "https://example.com"),
        Message { html: markup, ..message("42") },
        // A chat that has moved.
        text("-100", "moved"),
    ]
}

#[tokio::test]
async fn aiogram_reads_our_messages_as_we_mean_them() {
    let provider = Provider::telegram().await;
    let plain = telegram_account(TOKEN);
    let credentials = json!({ "token": TOKEN });
    let mut quiet = account(Channel::Telegram, &json!({ "withoutPreviews": true }), &credentials);
    quiet.id = "quiet".parse().unwrap();
    let first = sent(&plain, &provider, &texts()).await.len();
    assert_eq!(first, texts().len());
    let all = sent(&quiet, &provider, &texts()).await;
    assert!(all.iter().all(|(path, _)| *path == format!("/bot{TOKEN}/sendMessage")), "{all:?}");
    let bodies: Vec<&Value> = all.iter().map(|(_, body)| body).collect();
    let told = read(&json!({ "sendMessage": bodies }));
    let wanted: Vec<Value> = [false, true]
        .into_iter()
        .flat_map(|without| {
            texts().into_iter().map(move |message| {
                let is_html = message.html.is_some();
                json!({
                    "chat": message.address,
                    "text": message.html.unwrap_or(message.text),
                    "mode": is_html.then_some("HTML"),
                    "withoutPreviews": without,
                })
            })
        })
        .collect();
    assert_eq!(told["sendMessage"], json!(wanted));
}

#[tokio::test]
async fn pywa_makes_the_same_requests_as_we_do() {
    let provider = Provider::whatsapp().await;
    let template = |values: &[&str]| {
        let values = values.iter().map(|text| (*text).to_owned()).collect();
        Some(WhatsappTemplate {
            name: "doors_open".to_owned(),
            language: "en_US".to_owned(),
            values,
        })
    };
    let to = || message("+4917012345");
    let messages = [
        Message { text: "Hello Zoë 🎟".to_owned(), ..to() },
        Message { whatsapp: template(&["Ann", "A-12"]), ..to() },
        Message { whatsapp: template(&[]), ..to() },
    ];
    let ours = sent(&whatsapp_account(), &provider, &messages).await;
    let asked: Vec<Value> = messages
        .iter()
        .map(|message| {
            let (to, recipient) = (message.address.trim_start_matches('+'), message.recipient);
            match &message.whatsapp {
                None => json!({ "to": to, "recipient": recipient, "text": message.text }),
                Some(template) => json!({
                    "to": to, "recipient": recipient, "template": template.name,
                    "language": template.language, "values": template.values,
                }),
            }
        })
        .collect();
    let told = read(&json!({ "messages": asked }));
    let mut theirs = told["messages"].clone();
    for message in theirs.as_array_mut().unwrap() {
        // pywa writes BODY; Meta's documentation has body, and takes both.
        if let Some(components) = message.pointer_mut("/body/template/components") {
            for component in components.as_array_mut().unwrap() {
                component["type"] = json!(component["type"].as_str().unwrap().to_lowercase());
            }
        }
    }
    let ours: Vec<Value> =
        ours.into_iter().map(|(path, body)| json!({ "path": path, "body": body })).collect();
    assert_eq!(theirs, json!(ours));
}

#[test]
fn pywa_reads_the_receipts_of_our_tests_as_we_do() {
    let account = whatsapp_account();
    let sent = message("+491");
    let id = sent.recipient.to_string();
    let body = whatsapp_receipts(
        "1055",
        &[
            (&id, "wamid.1", "sent", None),
            (&id, "wamid.1", "delivered", None),
            (&id, "wamid.1", "read", None),
            (&id, "wamid.1", "failed", Some(131_050)),
        ],
    );
    let right = hub_signature(KEY, &body);
    let forged = hub_signature("fedcba9876543210fedcba9876543210", &body);
    let told = |signature: &str| json!({ "body": body, "signature": signature });
    let theirs = read(&json!({ "receipts": [told(&right), told(&forged)] }));
    assert_eq!(
        (&theirs["receipts"][0]["isSigned"], &theirs["receipts"][1]["isSigned"]),
        (&json!(true), &json!(false))
    );

    let mut headers = http::HeaderMap::new();
    headers.insert("x-hub-signature-256", right.parse().unwrap());
    let now = Timestamp::now();
    let incoming = Incoming { headers: &headers, url: "", query: "", body: body.as_bytes(), now };
    let ours: Vec<Value> = receipts(&account, &incoming)
        .unwrap()
        .notices
        .into_iter()
        .map(|notice| match notice {
            Notice::Receipt { recipient, provider_id, status, code, at, .. } => json!({
                "id": provider_id,
                "recipient": recipient,
                "status": word(status),
                "code": code.map(|code| code.parse::<i64>().unwrap()),
                "at": at.as_second(),
            }),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(theirs["receipts"][0]["statuses"], json!(ours));
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Sent => "sent",
        Status::Delivered => "delivered",
        Status::Read => "read",
        Status::Failed => "failed",
    }
}

/// An update as Telegram sends it, with all that aiogram demands.
fn update(number: i64, what: &str, content: &Value) -> String {
    let person = json!({ "id": 42, "is_bot": false, "first_name": "Ann" });
    let chat = json!({ "id": 42, "type": "private", "first_name": "Ann" });
    let mut update =
        json!({ "message_id": 7, "date": 1_700_000_000, "from": person, "chat": chat });
    update.as_object_mut().unwrap().extend(content.as_object().unwrap().clone());
    json!({ "update_id": number, what: update }).to_string()
}

#[test]
fn aiogram_and_we_read_the_same_in_updates() {
    let said = |text: &str| update(7, "message", &json!({ "text": text }));
    let member = |status: &str| {
        let bot = json!({ "id": 1, "is_bot": true, "first_name": "B", "username": "test_bot" });
        let (old, mut new) =
            (json!({ "user": bot, "status": "member" }), json!({ "user": bot, "status": status }));
        if status == "kicked" {
            new["until_date"] = json!(0);
        }
        update(8, "my_chat_member", &json!({ "old_chat_member": old, "new_chat_member": new }))
    };
    let stop = |reason| Notice::Stop { address: "42".to_owned(), reason };
    let start = || Notice::Start { address: "42".to_owned() };
    let cases = [
        (said("/stop"), vec![stop(SuppressionReason::Stop)], json!({ "text": "/stop" })),
        (said("стоп"), vec![stop(SuppressionReason::Stop)], json!({ "text": "стоп" })),
        (said("/start"), vec![start()], json!({ "text": "/start" })),
        (said("hello"), vec![], json!({ "text": "hello" })),
        (member("kicked"), vec![stop(SuppressionReason::Blocked)], json!({ "member": "kicked" })),
        (member("member"), vec![start()], json!({ "member": "member" })),
    ];
    let credentials = json!({ "token": TOKEN, "webhookSecret": BOT_SECRET });
    let bot = account(Channel::Telegram, &json!({}), &credentials);
    let mut headers = http::HeaderMap::new();
    headers.insert("x-telegram-bot-api-secret-token", BOT_SECRET.parse().unwrap());
    let bodies: Vec<&String> = cases.iter().map(|(body, ..)| body).collect();
    let told = read(&json!({ "updates": bodies }));
    for ((body, ours, wanted), theirs) in cases.iter().zip(told["updates"].as_array().unwrap()) {
        let (now, body) = (Timestamp::now(), body.as_bytes());
        let incoming = Incoming { headers: &headers, url: "", query: "", body, now };
        let received = receipts(&bot, &incoming).unwrap();
        assert_eq!(&received.notices, ours, "{theirs}");
        assert_eq!(received.update, theirs["id"].as_i64());
        assert_eq!(theirs["chat"], 42);
        for field in ["text", "member"] {
            assert_eq!(theirs[field], wanted[field], "{theirs}");
        }
    }
}

#[test]
fn the_eyes_see_what_is_wrong() {
    let wrong = [
        (json!({ "chat_id": "7", "text": "x", "parseMode": "HTML" }), "parseMode"),
        (json!({ "text": "x" }), "chat_id"),
        (json!({ "chat_id": "7", "text": 5 }), "text"),
        (
            json!({ "chat_id": "7", "text": "x", "link_preview_options": true }),
            "link_preview_options",
        ),
    ];
    let bodies: Vec<&Value> = wrong.iter().map(|(body, _)| body).collect();
    let update = r#"{"update_id":7,"message":{"chat":{"id":42}}}"#;
    let told = read(&json!({ "sendMessage": bodies, "updates": [update] }));
    for ((body, named), told) in wrong.iter().zip(told["sendMessage"].as_array().unwrap()) {
        assert!(told["error"].as_str().unwrap().contains(named), "{body}: {told}");
    }
    assert!(told["updates"][0]["error"].as_str().unwrap().contains("message_id"), "{told}");
}
