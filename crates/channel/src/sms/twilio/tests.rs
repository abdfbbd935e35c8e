//! The table of Twilio's codes, its requests, and its receipts.

use http::{HeaderMap, HeaderValue};
use ring::hmac;
use serde_json::{Value, json};
use stampede_model::campaign::{Outcome, SuppressionReason};
use stampede_model::{RecipientId, Timestamp};
use url::Url;

use crate::answers::answer;
use crate::message::tests::message;
use crate::notice::{Incoming, Notice, Refused, Status};
use crate::sms::tests::opened;
use crate::sms::{Credentials, Sender, Settings, receipts, twilio};

const SID: &str = "AC0123456789abcdef0123456789abcdef";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn twilio() -> (Settings, Credentials) {
    let settings = json!({ "profile": "twilio", "accountSid": SID, "from": "+4930" });
    opened(&settings, &json!({ "authToken": [TOKEN, "formerformerformer"] }))
}

#[test]
fn every_code_of_twilio_has_its_outcome() {
    for (status, code, wanted) in [
        (400, 21_610, "never stop"),
        (400, 21_211, "bounced"),
        (400, 21_614, "bounced"),
        (429, 20_429, "slow_down"),
        (401, 20_003, "account"),
        (429, 20_001, "slow_down"),
        (403, 20_002, "account"),
        (400, 21_602, "never"),
        (500, 20_500, "temporary"),
        (503, 20_503, "temporary"),
    ] {
        let body = json!({ "code": code, "message": "m", "status": status }).to_string();
        let found = match twilio::outcome(&answer(status, &[], &body)) {
            Outcome::Never(_, Some(reason)) => format!("never {}", reason.as_str()),
            outcome => outcome.as_str().to_owned(),
        };
        assert_eq!(found, wanted, "{code}");
    }
    let sent = twilio::outcome(&answer(201, &[], r#"{"sid":"SM1"}"#));
    assert_eq!(sent, Outcome::Sent { provider_id: Some("SM1".to_owned()), moved_to: None });
    for sid in ["x".repeat(3_000), "a\u{0}b".to_owned()] {
        let sent = twilio::outcome(&answer(201, &[], &json!({ "sid": sid }).to_string()));
        assert_eq!(
            sent,
            Outcome::Sent { provider_id: None, moved_to: None },
            "no database takes it"
        );
    }
    for (status, body, wanted) in [
        (201, "<html>", "unknown"),
        (502, "<html>", "unknown"),
        (504, "", "unknown"),
        (503, "", "temporary"),
        (520, "", "unknown"),
        (524, "<html>", "unknown"),
    ] {
        assert_eq!(twilio::outcome(&answer(status, &[], body)).as_str(), wanted);
    }
    let asked = twilio::outcome(&answer(429, &[("retry-after", "9")], r#"{"code":20429}"#));
    assert!(matches!(asked, Outcome::SlowDown(pause, _) if pause.as_secs() == 9));
}

#[test]
fn twilio_is_told_where_receipts_go() {
    let (settings, credentials) = twilio();
    let Ok(Sender::Twilio(sender)) = Sender::open(settings, credentials) else {
        panic!("no Twilio")
    };
    let base: Url = "https://me.example/base/".parse().unwrap();
    let message = message();
    let request = sender.request(Some(&base), &"acc".parse().unwrap(), &message);
    assert_eq!(
        request.url.as_str(),
        format!("https://api.twilio.com/2010-04-01/Accounts/{SID}/Messages.json")
    );
    let id = message.recipient;
    let wanted = format!(
        "To=%2B491701234567&Body=Hello+Ann&From=%2B4930\
         &StatusCallback=https%3A%2F%2Fme.example%2Fbase%2Fhooks%2Fsms%2Facc%3Frecipient%3D{id}"
    );
    assert_eq!(request.body, wanted.as_bytes());
    assert!(request.headers["authorization"].is_sensitive());
}

/// Twilio's signature over a URL and parameters.
fn signature(token: &str, url: &str, form: &[(&str, &str)]) -> String {
    let mut form = form.to_vec();
    form.sort_unstable();
    let signed = form.iter().fold(url.to_owned(), |signed, (name, value)| signed + name + value);
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, token.as_bytes());
    base64::Engine::encode(
        &base64::engine::general_purpose::STANDARD,
        hmac::sign(&key, signed.as_bytes()),
    )
}

fn told(url: &str, form: &[(&str, &str)], signatures: &[String]) -> Result<Vec<Notice>, Refused> {
    told_to(&twilio(), url, form, signatures)
}

fn told_to(
    (settings, credentials): &(Settings, Credentials),
    url: &str,
    form: &[(&str, &str)],
    signatures: &[String],
) -> Result<Vec<Notice>, Refused> {
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    let body = body.extend_pairs(form).finish();
    let mut headers = HeaderMap::new();
    for signature in signatures {
        headers.append("x-twilio-signature", signature.parse().unwrap());
    }
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let now = Timestamp::UNIX_EPOCH;
    receipts(
        settings,
        credentials,
        &Incoming { headers: &headers, url, query, body: body.as_bytes(), now },
    )
}

#[test]
fn the_signature_is_that_of_twilios_own_example() {
    // https://www.twilio.com/docs/usage/security
    let form = [
        ("CallSid", "CA1234567890ABCDE"),
        ("Caller", "+14158675309"),
        ("Digits", "1234"),
        ("From", "+14158675309"),
        ("To", "+18005551212"),
    ];
    let url = "https://mycompany.com/myapp.php?foo=1&bar=2";
    let form = form.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut headers = HeaderMap::new();
    headers.insert("x-twilio-signature", HeaderValue::from_static("RSOYDt4T1cUTdK1PDd93/VVr8B8="));
    let now = Timestamp::UNIX_EPOCH;
    let incoming = Incoming { headers: &headers, url, query: "", body: b"", now };
    assert_eq!(twilio::verify(&["12345".to_owned()], &incoming, &form), Ok(()));
    assert_eq!(
        twilio::verify(&["12346".to_owned()], &incoming, &form),
        Err(Refused::WrongSignature)
    );
}

#[test]
fn a_receipt_of_twilio_settles_the_recipient_of_its_url() {
    let id = RecipientId::from_bytes([3; 16]);
    let url = format!("https://me.example/hooks/sms/acc?recipient={id}");
    for (status, code, wanted, suppress) in [
        ("sent", "", Some(Status::Sent), None),
        ("delivered", "", Some(Status::Delivered), None),
        ("read", "", Some(Status::Read), None),
        ("undelivered", "30003", Some(Status::Failed), None),
        ("failed", "21610", Some(Status::Failed), Some(SuppressionReason::Stop)),
        ("undelivered", "30005", Some(Status::Failed), None),
        ("queued", "", None, None),
        ("sending", "", None, None),
    ] {
        let form = [
            ("AccountSid", SID),
            ("MessageSid", "SM1"),
            ("MessageStatus", status),
            ("ErrorCode", code),
            ("To", "+491"),
        ];
        let notices = told(&url, &form, &[signature(TOKEN, &url, &form)]).unwrap();
        let wanted = wanted.map(|status| Notice::Receipt {
            recipient: Some(id),
            provider_id: Some("SM1".to_owned()),
            status,
            code: Some(code.to_owned()).filter(|code| !code.is_empty()),
            detail: None,
            is_bounce: code == "30005",
            suppress,
            addresses: vec!["+491".to_owned()],
            at: Timestamp::UNIX_EPOCH,
        });
        assert_eq!(notices, Vec::from_iter(wanted), "{status}");
    }
}

#[test]
fn a_forged_receipt_of_twilio_is_refused() {
    let url = "https://me.example/hooks/sms/acc?recipient=x";
    let form = [("AccountSid", SID), ("MessageSid", "SM1"), ("MessageStatus", "delivered")];
    let right = signature(TOKEN, url, &form);
    assert!(told(url, &form, std::slice::from_ref(&right)).is_ok());
    assert!(told(url, &form, &[signature("formerformerformer", url, &form)]).is_ok());
    let elsewhere = "https://me.example/hooks/sms/acc?recipient=y";
    let read = [("AccountSid", SID), ("MessageSid", "SM1"), ("MessageStatus", "read")];
    for (url, form, signature) in [
        (elsewhere, form, right.clone()),
        (url, read, right.clone()),
        (url, form, signature("other", url, &form)),
        (url, form, String::new()),
    ] {
        assert_eq!(told(url, &form, &[signature]), Err(Refused::WrongSignature));
    }
    assert_eq!(told(url, &form, &[]), Err(Refused::NoSignature));
    assert_eq!(told(url, &form, &[right.clone(), right]), Err(Refused::WrongSignature));
    let other = [("AccountSid", "AC9"), ("MessageSid", "SM1"), ("MessageStatus", "delivered")];
    let refused = told(url, &other, &[signature(TOKEN, url, &other)]);
    assert!(matches!(refused, Err(Refused::Malformed(_))), "a receipt of another account");
}

#[test]
fn a_receipt_of_twilio_has_at_most_a_thousand_fields() {
    let url = "https://me.example/hooks/sms/acc";
    let form = vec![("a", "b"); 1_001];
    let refused = told(url, &form, &[signature(TOKEN, url, &form)]);
    assert!(matches!(refused, Err(Refused::Malformed(_))), "{refused:?}");
}

#[test]
fn a_person_says_stop_by_sms() {
    let url = "https://me.example/hooks/sms/acc";
    let said = |stop_words: &Value, body: &str, opt_out: Option<&str>| {
        let mut form = vec![("AccountSid", SID), ("From", "+491"), ("Body", body)];
        form.extend(opt_out.map(|word| ("OptOutType", word)));
        let settings = json!({ "profile": "twilio", "accountSid": SID, "from": "+4930", "stopWords": stop_words });
        let account = opened(&settings, &json!({ "authToken": TOKEN }));
        told_to(&account, url, &form, &[signature(TOKEN, url, &form)]).unwrap()
    };
    let address = || "+491".to_owned();
    let stop = || vec![Notice::Stop { address: address(), reason: SuppressionReason::Stop }];
    let usual = json!(null);
    assert_eq!(said(&usual, "Stop", None), stop());
    assert_eq!(said(&usual, "hello", None), []);
    assert_eq!(said(&usual, "help", Some("HELP")), []);
    // What Twilio has carried out itself holds, whatever words the account has.
    for words in [usual, json!(["halt"]), json!([])] {
        assert_eq!(said(&words, "arrêt", Some("STOP")), stop(), "{words}");
        assert_eq!(
            said(&words, "oui", Some("START")),
            [Notice::Start { address: address() }],
            "{words}"
        );
    }
    let own = json!(["halt"]);
    assert_eq!((said(&own, "halt", None), said(&own, "stop", None)), (stop(), Vec::new()));
}
