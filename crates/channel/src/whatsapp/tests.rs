//! The table of codes, requests, and receipts.

use std::time::Duration;

use ring::hmac;
use stampede_model::campaign::SuppressionReason;
use stampede_model::{RecipientId, Timestamp};

use super::*;
use crate::answers::answer;
use crate::message::WhatsappTemplate;
use crate::message::tests::message;
use crate::notice::{Incoming, Notice, Refused, Status};

fn outcome_of(status: u16, code: i64) -> Outcome {
    let body = json!({ "error": { "code": code, "message": "m", "error_data": { "details": "d" }, "fbtrace_id": "T" } });
    let answer = answer(status, &[], &body.to_string());
    outcome(&answer, &message(), &State::default(), Instant::now())
}

#[test]
fn every_code_has_its_outcome() {
    for (codes, wanted) in [
        (&[130_429][..], "slow_down 1"),
        (&[4, 80_007], "slow_down 60"),
        (&[131_057], "slow_down 60"),
        (&[131_056], "wait 1"),
        (&[131_000, 131_016, 135_000], "temporary"),
        (&[131_026], "bounced"),
        (&[131_021, 131_030, 130_472, 131_047, 131_053, 130_497], "never"),
        (&[131_050], "never stop"),
        (&[131_049], "never not_now"),
        (
            &[
                33, 100, 131_008, 131_009, 131_051, 131_063, 132_000, 132_001, 132_005, 132_007,
                132_008, 132_012, 132_015, 132_016, 132_068, 132_069,
            ],
            "content",
        ),
        (
            &[
                0, 3, 10, 190, 200, 201, 250, 298, 299, 368, 131_005, 131_031, 131_042, 131_045,
                131_048, 131_064, 133_010,
            ],
            "account",
        ),
        (&[5, 199, 300, 131_001, 999_999, -1], "never"),
    ] {
        for code in codes {
            let outcome = outcome_of(400, *code);
            let found = match &outcome {
                Outcome::SlowDown(pause, _) => format!("slow_down {}", pause.as_secs()),
                Outcome::WaitForRecipient(pause, _) => format!("wait {}", pause.as_secs()),
                Outcome::Never(_, Some(reason)) => format!("never {}", reason.as_str()),
                Outcome::Never(failure, None) if failure.code == "not_now" => {
                    "never not_now".to_owned()
                }
                outcome => outcome.as_str().to_owned(),
            };
            assert_eq!(found, wanted, "{code}");
            if *code != 131_049 {
                let failure = outcome.failure().unwrap();
                assert_eq!(
                    (failure.code.as_str(), failure.text.as_str()),
                    (code.to_string().as_str(), "d (fbtrace_id T)")
                );
            }
        }
    }
    for code in [1, 2] {
        assert_eq!(outcome_of(500, code).as_str(), "temporary");
        assert_eq!(outcome_of(503, code).as_str(), "temporary");
        assert_eq!(outcome_of(400, code).as_str(), "never", "not in the table");
    }
}

#[test]
fn pauses_grow_until_a_message_is_accepted() {
    let (state, message, now) = (State::default(), message(), Instant::now());
    let at = |code: i64, seconds: u64| {
        let answer = answer(400, &[], &json!({ "error": { "code": code } }).to_string());
        match outcome(&answer, &message, &state, now + Duration::from_secs(seconds)) {
            Outcome::SlowDown(pause, _) | Outcome::WaitForRecipient(pause, _) => pause.as_secs(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([at(130_429, 0), at(130_429, 2), at(130_429, 5)], [1, 2, 4]);
    assert_eq!([at(80_007, 0), at(4, 61), at(80_007, 200), at(80_007, 500)], [60, 120, 240, 480]);
    assert_eq!([at(80_007, 1_000), at(80_007, 3_000), at(80_007, 9_000)], [960, 1_920, 3_600]);
    assert_eq!([at(131_056, 0), at(131_056, 0), at(131_056, 0)], [1, 4, 16]);
    let accepted = answer(200, &[], r#"{"messages":[{"id":"wamid.1"}]}"#);
    let sent = outcome(&accepted, &message, &state, now + Duration::from_secs(99_999));
    assert_eq!(sent, Outcome::Sent { provider_id: Some("wamid.1".to_owned()), moved_to: None });
    assert_eq!([at(130_429, 100_000), at(80_007, 100_000), at(131_056, 0)], [1, 60, 1]);
}

#[test]
fn an_answer_of_somebody_else_is_not_believed() {
    for (status, body, wanted) in [
        (200, "<html>", "unknown"),
        (200, "{}", "unknown"),
        (502, "<html>", "unknown"),
        (504, "", "unknown"),
        (503, "", "temporary"),
        (429, "", "slow_down"),
        (404, "<html>", "account"),
        (302, "", "account"),
    ] {
        let found =
            outcome(&answer(status, &[], body), &message(), &State::default(), Instant::now());
        assert_eq!(found.as_str(), wanted, "{status} {body}");
    }
}

#[test]
fn a_body_is_a_template_or_a_text() {
    let mut message = message();
    let id = message.recipient;
    assert_eq!(
        body(&message),
        json!({
            "messaging_product": "whatsapp", "recipient_type": "individual", "to": "491701234567", "type": "text",
            "text": { "body": "Hello Ann", "preview_url": false }, "biz_opaque_callback_data": id,
        })
    );
    let (name, language) = ("hello".to_owned(), "en_US".to_owned());
    message.whatsapp =
        Some(WhatsappTemplate { name, language, values: vec!["Ann".to_owned(), "7".to_owned()] });
    assert_eq!(
        body(&message),
        json!({
            "messaging_product": "whatsapp", "recipient_type": "individual", "to": "491701234567", "type": "template",
            "template": { "name": "hello", "language": { "code": "en_US" }, "components": [
                { "type": "body", "parameters": [{ "type": "text", "text": "Ann" }, { "type": "text", "text": "7" }] },
            ] },
            "biz_opaque_callback_data": id,
        })
    );
}

fn settings() -> Settings {
    Settings {
        phone_number_id: "1055".to_owned(),
        api_version: version(),
        also_in_app: false,
        stop_words: StopWords::default(),
    }
}

fn credentials(secrets: &[&str]) -> Credentials {
    let all = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Credentials {
        access_token: "t".to_owned(),
        app_secret: all(secrets),
        verify_token: all(&["right", "former"]),
    }
}

fn signed(secret: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    format!("sha256={}", hex::encode(hmac::sign(&key, body.as_bytes())))
}

fn told(secrets: &[&str], signatures: &[String], body: &str) -> Result<Vec<Notice>, Refused> {
    let mut headers = HeaderMap::new();
    for signature in signatures {
        headers.append("x-hub-signature-256", signature.parse().unwrap());
    }
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let incoming = Incoming { headers: &headers, url: "", query: "", body: body.as_bytes(), now };
    super::receipts(&settings(), &credentials(secrets), &incoming)
}

/// One value of a change, as Meta wraps it.
fn wrapped(values: &[Value]) -> String {
    let changes: Vec<Value> =
        values.iter().map(|value| json!({ "field": "messages", "value": value })).collect();
    json!({ "object": "whatsapp_business_account", "entry": [{ "id": "1", "changes": changes }] })
        .to_string()
}

fn statuses(number: &str, statuses: Value) -> Value {
    json!({ "metadata": { "phone_number_id": number }, "statuses": statuses })
}

#[test]
fn a_receipt_counts_only_with_a_signature_over_its_very_bytes() {
    let body = wrapped(&[statuses("1055", json!([{ "id": "wamid.1", "status": "sent" }]))]);
    let right = signed("present", &body);
    assert_eq!(told(&["present"], std::slice::from_ref(&right), &body).unwrap().len(), 1);
    assert_eq!(told(&["new", "present"], std::slice::from_ref(&right), &body).unwrap().len(), 1);
    let upper = right.to_uppercase().replace("SHA256", "sha256");
    assert!(told(&["present"], &[upper], &body).is_ok());
    for forged in [
        signed("other", &body),
        signed("present", &format!("{body} ")),
        right.replace("sha256=", "sha1="),
        right.replace("sha256=", ""),
        right[..right.len() - 2].to_owned(),
        "sha256=".to_owned(),
        String::new(),
    ] {
        assert_eq!(
            told(&["present"], std::slice::from_ref(&forged), &body),
            Err(Refused::WrongSignature),
            "{forged}"
        );
    }
    assert_eq!(told(&["present"], &[], &body), Err(Refused::NoSignature));
    assert_eq!(
        told(&["present"], &[right.clone(), right.clone()], &body),
        Err(Refused::WrongSignature)
    );
    assert_eq!(told(&[], &[right], &body), Err(Refused::NotOffered));
    assert!(matches!(
        told(&["present"], &[signed("present", "[")], "["),
        Err(Refused::Malformed(_))
    ));
}

#[test]
fn receipts_come_in_any_order_and_only_for_our_number() {
    let id = RecipientId::from_bytes([7; 16]);
    let ours = statuses(
        "1055",
        json!([
            { "id": "wamid.1", "status": "read", "timestamp": "1700000009", "biz_opaque_callback_data": id },
            { "id": "wamid.1", "status": "delivered", "timestamp": "1700000001", "biz_opaque_callback_data": id },
            { "id": "wamid.2", "status": "failed", "recipient_id": "5491123456789", "errors": [{ "code": 131_050, "title": "no", "error_data": { "details": "opted out" } }] },
            { "id": "wamid.3", "status": "failed", "errors": [{ "code": 131_049, "message": "m" }] },
            { "id": "wamid.7", "status": "failed", "errors": [{ "code": 131_026, "message": "m" }] },
            { "id": "wamid.4", "status": "warning" },
            { "id": "wamid.5", "status": "sent", "timestamp": "x", "biz_opaque_callback_data": "forged" },
        ]),
    );
    let other = statuses("9999", json!([{ "id": "wamid.6", "status": "read" }]));
    let said = json!({ "metadata": { "phone_number_id": "1055" }, "messages": [
        { "from": "491", "type": "text", "text": { "body": "Stop." } },
        { "from": "492", "type": "button", "button": { "text": "СТОП" } },
        { "from": "493", "type": "image" },
        { "from": "5491123456789", "type": "text", "text": { "body": "stop" } },
    ] });
    let body = wrapped(&[ours, other, said, json!({})]);
    let notices = told(&["s"], &[signed("s", &body)], &body).unwrap();
    let receipt = |provider_id: &str, recipient, status, at: i64| Notice::Receipt {
        recipient,
        provider_id: Some(provider_id.to_owned()),
        status,
        code: None,
        detail: None,
        is_bounce: false,
        suppress: None,
        addresses: Vec::new(),
        at: Timestamp::from_second(at).unwrap(),
    };
    let failed = |provider_id: &str, code: &str, detail: &str, suppress| Notice::Receipt {
        recipient: None,
        provider_id: Some(provider_id.to_owned()),
        status: Status::Failed,
        code: Some(code.to_owned()),
        detail: Some(detail.to_owned()),
        is_bounce: code == "131026",
        suppress,
        addresses: match suppress {
            Some(_) => ["+5491123456789", "+541123456789"].map(str::to_owned).to_vec(),
            None => Vec::new(),
        },
        at: Timestamp::from_second(1_800_000_000).unwrap(),
    };
    let stop = |address: &str| Notice::Stop {
        address: address.to_owned(),
        reason: SuppressionReason::Stop,
    };
    assert_eq!(
        notices,
        [
            receipt("wamid.1", Some(id), Status::Read, 1_700_000_009),
            receipt("wamid.1", Some(id), Status::Delivered, 1_700_000_001),
            failed("wamid.2", "131050", "opted out", Some(SuppressionReason::Stop)),
            failed("wamid.3", "not_now", "131049: m", None),
            failed("wamid.7", "131026", "m", None),
            receipt("wamid.5", None, Status::Sent, 1_800_000_000),
            stop("+491"),
            stop("+492"),
            stop("+5491123456789"),
            stop("+541123456789"),
        ]
    );
}

#[test]
fn a_number_is_told_in_all_spellings_that_the_ledger_may_have() {
    for (wa_id, wanted) in [
        ("491701234567", &["+491701234567"][..]),
        ("5215512345678", &["+5215512345678", "+525512345678"]),
        ("525512345678", &["+525512345678"]),
        ("5491123456789", &["+5491123456789", "+541123456789"]),
        ("551187654321", &["+551187654321", "+5511987654321"]),
        ("551134567890", &["+551134567890"]),
        ("5511987654321", &["+5511987654321"]),
        ("55", &["+55"]),
        ("", &["+"]),
        ("55ä1876543218", &["+55ä1876543218"]),
    ] {
        assert_eq!(super::receipts::spellings(wa_id), wanted, "{wa_id}");
    }
}

#[test]
fn a_challenge_is_answered_only_with_the_token() {
    let credentials = credentials(&[]);
    let asked = |query: &str| super::challenge(&credentials, query);
    let with =
        |token: &str| format!("hub.mode=subscribe&hub.verify_token={token}&hub.challenge=12345");
    assert_eq!(asked(&with("right")).as_deref(), Some("12345"));
    assert_eq!(asked(&with("former")).as_deref(), Some("12345"));
    for query in [
        with("wrong"),
        with(""),
        String::new(),
        "hub.mode=subscribe&hub.challenge=12345".to_owned(),
        with("right").replace("subscribe", "unsubscribe"),
        with("right").replace("12345", "%3Cscript%3E"),
    ] {
        assert_eq!(asked(&query), None, "{query}");
    }
}

#[test]
fn an_id_that_no_database_takes_is_not_kept() {
    let (message, state) = (message(), State::default());
    for id in ["x".repeat(3_000), "a\u{0}b".to_owned()] {
        let accepted = answer(200, &[], &json!({ "messages": [{ "id": id }] }).to_string());
        let sent = outcome(&accepted, &message, &state, Instant::now());
        assert_eq!(sent, Outcome::Sent { provider_id: None, moved_to: None });
        let told_of =
            json!([{ "id": id, "status": "read", "biz_opaque_callback_data": message.recipient }]);
        let body = wrapped(&[statuses("1055", told_of)]);
        let notices = told(&["s"], &[signed("s", &body)], &body).unwrap();
        let [Notice::Receipt { provider_id: None, .. }] = &notices[..] else {
            panic!("{notices:?}")
        };
    }
}
