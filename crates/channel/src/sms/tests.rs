//! Requests and answers of a provider of which only the form is known.

use serde_json::{Value, json};
use stampede_model::campaign::Channel;
use stampede_outbound::Answer;

use super::*;
use crate::answers::answer;
use crate::message::tests::message;
use crate::settings::read_settings;

pub(super) fn opened(settings: &Value, credentials: &Value) -> (Settings, Credentials) {
    let (settings, credentials) = read_settings(Channel::Sms, settings, credentials).unwrap();
    (serde_json::from_str(&settings).unwrap(), serde_json::from_slice(&credentials).unwrap())
}

fn custom(change: &Value) -> Custom {
    let mut settings = json!({
        "url": "https://sms.example/send?x=1", "headers": { "Content-Type": "application/json" },
        "body": r#"{"to":"{{ toDigits }}","text":"{{ text }}","id":"{{ recipient }}"}"#,
        "idPointer": "/message/id", "codePointer": "/error/code",
        "codes": {
            "7": "stop", "8": "slow_down", "0": "sent", "402": "account", "9": "refused", "5": "bounced",
        },
    });
    for (name, value) in change.as_object().unwrap() {
        settings[name] = value.clone();
    }
    let credentials = json!({ "headers": { "X-Key": "secret" }, "secret": { "key": "s p&c" } });
    let (settings, credentials) = opened(&settings, &credentials);
    match Sender::open(settings, credentials).unwrap_or_else(|failure| panic!("{failure:?}")) {
        Sender::Http(custom) => custom,
        Sender::Twilio(_) => panic!("Twilio"),
    }
}

#[test]
fn a_request_of_any_provider_is_made_of_its_settings() {
    let mut message = message();
    message.text = "\"Hi\"".to_owned();
    let request = custom(&json!({})).request(&message);
    let id = message.recipient;
    let body = format!(r#"{{"to":"491701234567","text":"\"Hi\"","id":"{id}"}}"#);
    assert_eq!(request.body, body.as_bytes());
    assert_eq!(
        (request.method.as_str(), request.url.as_str()),
        ("POST", "https://sms.example/send?x=1")
    );
    assert_eq!(request.headers["x-key"], "secret");
    assert!(request.headers["x-key"].is_sensitive());
    let get = custom(&json!({ "method": "get", "body": "to={{ to }}&text={{ text }}" }))
        .request(&message);
    assert_eq!(get.url.as_str(), "https://sms.example/send?x=1&to=%2B491701234567&text=%22Hi%22");
    assert!(get.body.is_empty());
}

#[test]
fn a_secret_of_the_credentials_goes_into_the_body_or_the_query() {
    let asked = |change: Value| custom(&change).request(&message());
    let form = json!({ "headers": {}, "body": "apikey={{ secret.key }}&to={{ to }}" });
    assert_eq!(asked(form).body, "apikey=s+p%26c&to=%2B491701234567");
    let get = asked(json!({ "method": "get", "body": "apikey={{secret.key}}" }));
    assert_eq!(get.url.query(), Some("x=1&apikey=s+p%26c"));
}

#[test]
fn a_code_is_looked_up_before_the_status() {
    let custom = custom(&json!({}));
    for (status, body, wanted) in [
        (200, r#"{"message":{"id":"m1"}}"#, "sent Some(\"m1\")"),
        (200, r#"{"message":{"id":5},"error":{"code":0}}"#, "sent Some(\"5\")"),
        (200, r#"{"error":{"code":7}}"#, "never stop"),
        (200, r#"{"error":{"code":"8"}}"#, "slow_down"),
        (400, r#"{"error":{"code":9}}"#, "refused"),
        (400, r#"{"error":{"code":5}}"#, "bounced"),
        (402, r#"{"error":{"code":1}}"#, "account"),
        (402, "", "account"),
        (200, r#"{"error":{"code":1}}"#, "unknown"),
        (200, "OK", "unknown"),
        (400, "", "never"),
        (401, "", "account"),
        (429, "", "slow_down"),
        (500, "", "temporary"),
        (502, "", "unknown"),
        (504, "", "unknown"),
    ] {
        let found = match custom.outcome(&answer(status, &[], body)) {
            Outcome::Sent { provider_id, .. } => format!("sent {provider_id:?}"),
            Outcome::Never(_, Some(reason)) => format!("never {}", reason.as_str()),
            outcome => outcome.as_str().to_owned(),
        };
        assert_eq!(found, wanted, "{status} {body}");
    }
    let code = custom.outcome(&answer(200, &[], r#"{"error":{"code":7}}"#));
    assert_eq!(code.failure().unwrap().code, "7");
}

#[test]
fn only_a_code_that_means_sent_is_a_success_if_the_table_has_one() {
    let outcome = |codes: Value, pointers: [Option<&str>; 2], body: &str, is_whole| {
        let change =
            json!({ "codes": codes, "idPointer": pointers[0], "codePointer": pointers[1] });
        let answer = Answer { is_whole, ..answer(200, &[], body) };
        custom(&change).outcome(&answer).as_str()
    };
    let code = [None, Some("/code")];
    let both = [Some("/id"), Some("/code")];
    let success = json!({ "0": "sent", "true": "sent", "101": "never" });
    for (pointers, body, wanted) in [
        (code, r#"{"code":0}"#, "sent"),
        (code, r#"{"code":true}"#, "sent"),
        (code, r#"{"code":101}"#, "never"),
        (code, r#"{"code":500,"error":"no credit"}"#, "unknown"),
        (code, r#"{"code":false}"#, "unknown"),
        (code, r#"{"code":["500"]}"#, "unknown"),
        (code, r#"{"code":null}"#, "unknown"),
        (code, "OK", "unknown"),
        (both, r#"{"code":500,"id":"m1"}"#, "unknown"),
        (both, r#"{"code":null,"id":"m1"}"#, "sent"),
        (both, r#"{"id":"m1"}"#, "sent"),
        ([Some("/id"), None], r#"{"code":500,"id":"m1"}"#, "sent"),
    ] {
        assert_eq!(outcome(success.clone(), pointers, body, true), wanted, "{body}");
    }
    let failures = json!({ "101": "never" });
    for (body, wanted) in
        [(r#"{"code":500}"#, "sent"), ("OK", "sent"), (r#"{"code":101}"#, "never")]
    {
        assert_eq!(outcome(failures.clone(), code, body, true), wanted, "{body}");
    }
    // A status in the table counts, unless the body has a code that is not.
    let status = json!({ "200": "sent", "101": "never" });
    for (body, wanted) in
        [("OK", "sent"), (r#"{"code":500}"#, "unknown"), (r#"{"code":101}"#, "never")]
    {
        assert_eq!(outcome(status.clone(), code, body, true), wanted, "{body}");
    }
    for codes in [success, failures, status] {
        assert_eq!(outcome(codes, code, r#"{"code":0"#, false), "unknown", "it broke off");
    }
    assert_eq!(outcome(json!({}), code, r#"{"code":0"#, false), "sent", "nothing is expected");
}

#[test]
fn an_id_or_a_code_that_no_database_takes_is_not_kept() {
    let (long, custom) = ("x".repeat(3_000), custom(&json!({})));
    let sent = |answer: &Outcome| matches!(answer, Outcome::Sent { provider_id: None, .. });
    for id in [&long, "a\u{0}b"] {
        let body = json!({ "message": { "id": id } }).to_string();
        let custom = custom.outcome(&answer(200, &[], &body));
        assert!(sent(&custom), "{custom:?}");
    }
    let body = json!({ "error": { "code": format!("a\u{0}{long}") } }).to_string();
    let code = custom.outcome(&answer(400, &[], &body)).failure().unwrap().code.clone();
    assert_eq!(code, format!("a{}", "x".repeat(63)));
}
