//! The table of answers, the request, and receipts.

use std::time::Duration;

use stampede_model::RecipientId;

use super::*;
use crate::answers::answer;
use crate::message::tests::message;

const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
const FORMER: &str = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4";

fn credentials() -> Credentials {
    Credentials { secret: vec![SECRET.to_owned(), FORMER.to_owned()] }
}

#[test]
fn every_status_has_its_outcome() {
    for (status, plain, idempotent) in [
        (200, "sent", "sent"),
        (202, "sent", "sent"),
        (204, "sent", "sent"),
        (301, "account", "account"),
        (307, "account", "account"),
        (400, "never", "never"),
        (401, "account", "account"),
        (403, "account", "account"),
        (404, "never", "never"),
        (408, "never", "temporary"),
        (409, "never", "never"),
        (410, "account", "account"),
        (422, "never", "never"),
        (425, "never", "temporary"),
        (429, "slow_down", "slow_down"),
        (500, "temporary", "temporary"),
        (501, "temporary", "temporary"),
        (502, "unknown", "temporary"),
        (503, "temporary", "temporary"),
        (504, "unknown", "temporary"),
        (520, "unknown", "temporary"),
        (521, "temporary", "temporary"),
        (522, "unknown", "temporary"),
        (524, "unknown", "temporary"),
    ] {
        let answer = answer(status, &[], "why");
        assert_eq!(outcome(&answer, false).as_str(), plain, "{status}");
        assert_eq!(outcome(&answer, true).as_str(), idempotent, "{status}, idempotent");
        if let Some(failure) = outcome(&answer, false).failure() {
            assert_eq!(failure.code, status.to_string());
        }
    }
}

#[test]
fn a_pause_is_that_of_the_answer() {
    let pause =
        |status, value: &str| match outcome(&answer(status, &[("retry-after", value)], ""), true) {
            Outcome::SlowDown(pause, _) => Some(pause),
            _ => None,
        };
    assert_eq!(pause(429, "7"), Some(Duration::from_secs(7)));
    assert_eq!(pause(503, "7"), Some(Duration::from_secs(7)));
    assert_eq!(pause(429, "soon"), Some(Duration::from_secs(60)));
    assert_eq!(pause(503, "soon"), None);
    assert_eq!(pause(500, "7"), None);
    // The year 9999: a pause, but no longer than a day.
    assert_eq!(pause(429, "Fri, 31 Dec 9999 23:59:59 GMT"), Some(Duration::from_secs(86_400)));
}

#[test]
fn the_id_of_an_answer_is_kept_if_it_is_one() {
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(257));
    for (body, id) in [
        (r#"{"id":"m-1"}"#, Some("m-1")),
        (r#"{"id":42,"more":[]}"#, Some("42")),
        (r#"{"id":""}"#, None),
        (r#"{"id":"a\nb"}"#, None),
        (r#"{"id":{}}"#, None),
        (r"{}", None),
        ("ok", None),
        ("", None),
        (&long, None),
    ] {
        let provider_id = id.map(str::to_owned);
        let sent = Outcome::Sent { provider_id, moved_to: None };
        assert_eq!(outcome(&answer(200, &[], body), false), sent, "{body}");
    }
}

#[test]
fn a_request_is_signed_and_has_one_id_in_all_attempts() {
    let url: Url = "https://a.example/x".parse().unwrap();
    let settings = Settings { url, idempotent: true };
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    let mut message = message();
    message.subject = Some("S".to_owned());
    for attempt in [1, 2] {
        message.attempt = attempt;
        let request = request(&settings, &credentials(), &message, now);
        let id = message.recipient.to_string();
        assert_eq!(request.headers["idempotency-key"], id.as_str());
        assert_eq!(
            signature::verify(&keys(&[FORMER.to_owned()]), &request.headers, &request.body, now),
            Ok(id.as_str())
        );
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        let wanted = serde_json::json!({
            "id": id, "campaign": message.campaign, "attempt": attempt,
            "recipient": { "address": "+491701234567", "fields": { "name": "Ann" } },
            "message": { "subject": "S", "text": "Hello Ann" },
        });
        assert_eq!(body, wanted);
    }
}

fn told(
    secret: &str,
    at: i64,
    body: &str,
    forge: impl Fn(&mut HeaderMap),
) -> Result<Vec<Notice>, Refused> {
    let time = Timestamp::from_second(at).unwrap();
    let signed = signature::signatures(&keys(&[secret.to_owned()]), "r1", time, body);
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", HeaderValue::from_static("r1"));
    headers.insert("webhook-timestamp", at.to_string().parse().unwrap());
    headers.insert("webhook-signature", signed.parse().unwrap());
    forge(&mut headers);
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    let incoming = Incoming { headers: &headers, url: "", query: "", body: body.as_bytes(), now };
    receipts(&credentials(), &incoming)
}

#[test]
fn a_receipt_is_read_only_if_it_is_signed() {
    let id = RecipientId::from_bytes([1; 16]);
    let at = 1_700_000_000;
    for (word, status) in [
        ("sent", Status::Sent),
        ("delivered", Status::Delivered),
        ("read", Status::Read),
        ("failed", Status::Failed),
    ] {
        let body = format!(r#"{{"id":"{id}","status":"{word}","code":"7","detail":"no\nway"}}"#);
        for secret in [SECRET, FORMER] {
            let notices = told(secret, at, &body, |_| {}).unwrap();
            let [Notice::Receipt { recipient, status: found, code, detail, is_bounce, .. }] =
                &notices[..]
            else {
                panic!("{notices:?}");
            };
            assert!(!is_bounce);
            assert_eq!((*recipient, *found), (Some(id), status));
            assert_eq!((code.as_deref(), detail.as_deref()), (Some("7"), Some("no way")));
        }
        let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        assert_eq!(told(other, at, &body, |_| {}), Err(Refused::WrongSignature));
        assert_eq!(told(SECRET, at - 301, &body, |_| {}), Err(Refused::WrongSignature));
        let unsigned = told(SECRET, at, &body, |headers| drop(headers.remove("webhook-signature")));
        assert_eq!(unsigned, Err(Refused::NoSignature));
        let twice = told(SECRET, at, &body, |headers| {
            let signature = headers["webhook-signature"].clone();
            headers.append("webhook-signature", signature);
        });
        assert_eq!(twice, Err(Refused::WrongSignature));
    }
    let body = format!(r#"{{"id":"{id}","status":"failed","code":"bounce"}}"#);
    let notices = told(SECRET, at, &body, |_| {}).unwrap();
    assert!(matches!(notices[..], [Notice::Receipt { is_bounce: true, .. }]), "{notices:?}");
    for body in
        ["", "{}", r#"{"id":"x","status":"sent"}"#, &format!(r#"{{"id":"{id}","status":"lost"}}"#)]
    {
        assert!(matches!(told(SECRET, at, body, |_| {}), Err(Refused::Malformed(_))), "{body}");
    }
}

#[test]
fn a_code_of_a_receipt_is_kept_short_and_without_control_characters() {
    let id = RecipientId::from_bytes([1; 16]);
    let body = serde_json::json!({ "id": id, "status": "failed", "code": "7\u{0}".repeat(100) });
    let notices = told(SECRET, 1_700_000_000, &body.to_string(), |_| {}).unwrap();
    let [Notice::Receipt { code, .. }] = &notices[..] else { panic!("{notices:?}") };
    assert_eq!(code.as_deref(), Some("7".repeat(64).as_str()));
}
