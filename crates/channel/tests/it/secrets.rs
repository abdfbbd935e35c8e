//! Secrets that a provider says back, and secrets that go where a provider wants them.

use serde_json::{Value, json};
use stampede_channel::Account;
use stampede_model::campaign::{Channel, Failure};
use stampede_testkit::{Provider, Reply};

use crate::{account, channels, message, word};

const NOWHERE: &str = "http://127.0.0.1:1999";
const SID: &str = "AC0123456789abcdef0123456789abcdef";
const TOKEN: &str = "fedcba9876543210fedcba9876543210";

fn sms(provider: &Provider, settings: &Value, credentials: &Value) -> Account {
    let mut all = json!({ "url": provider.url(), "codePointer": "/code" });
    for (name, value) in settings.as_object().unwrap() {
        all[name] = value.clone();
    }
    account(Channel::Sms, &all, credentials)
}

#[tokio::test]
async fn what_follows_bearer_is_masked_in_codes_and_texts() {
    let provider = Provider::start(|asked| {
        let token = asked.header("authorization").trim_start_matches("Bearer ").to_owned();
        Reply::Json(400, json!({ "code": token, "error": format!("invalid token {token}") }))
    })
    .await;
    let credentials = json!({ "headers": { "Authorization": "Bearer hunter2-abcdef" } });
    let account = sms(&provider, &json!({ "body": "to={{ to }}" }), &credentials);
    let outcome = channels(NOWHERE, NOWHERE).send(&account, &message("+4970")).await;
    let failure = outcome.failure().unwrap();
    assert_eq!((word(&outcome).as_str(), failure.code.as_str()), ("never", "***"));
    assert!(failure.text.contains("invalid token ***"), "{failure:?}");
    assert!(!format!("{outcome:?}").contains("hunter2"), "{outcome:?}");
}

#[tokio::test]
async fn a_secret_is_sent_in_the_query_and_told_by_nobody() {
    let provider =
        Provider::start(|asked| Reply::Json(500, json!({ "error": asked.path.clone() }))).await;
    let settings = json!({ "method": "GET", "body": "apikey={{ secret.key }}&to={{ to }}" });
    let account = sms(&provider, &settings, &json!({ "secret": { "key": "hunter2 & co" } }));
    assert!(!format!("{account:?}").contains("hunter2"), "{account:?}");
    let outcome = channels(NOWHERE, NOWHERE).send(&account, &message("+4970")).await;
    assert_eq!(provider.asked()[0].path, "/?apikey=hunter2+%26+co&to=%2B4970");
    let text = &outcome.failure().unwrap().text;
    assert!(text.contains("apikey=***&to") && !text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn the_text_of_a_check_has_an_end_and_no_secret() {
    let provider = Provider::start(|asked| {
        let name = format!("{} {TOKEN} {}", asked.header("authorization"), "x".repeat(10_000));
        Reply::Json(200, json!({ "friendly_name": name, "status": "active" }))
    })
    .await;
    let settings = json!({ "profile": "twilio", "accountSid": SID, "from": "+4930", "apiUrl": provider.url() });
    let account = account(Channel::Sms, &settings, &json!({ "authToken": TOKEN }));
    let told = channels(NOWHERE, NOWHERE).check(&account).await.unwrap().text;
    assert!(told.starts_with("the account Basic *** *** xxx"), "{told}");
    assert!(told.len() <= Failure::LONGEST, "{}", told.len());
}
