//! The table of answers, and updates.

use super::*;
use crate::answers::answer;
use crate::message::tests::message;
use stampede_model::Timestamp;

fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Moved(chat, _) => format!("moved to {chat}"),
        Outcome::Never(_, Some(reason)) => format!("never {}", reason.as_str()),
        Outcome::Bounced(_, Some(reason)) => format!("bounced {}", reason.as_str()),
        Outcome::SlowDown(pause, _) => format!("slow_down {}", pause.as_secs()),
        Outcome::Sent { provider_id, .. } => format!("sent {provider_id:?}"),
        outcome => outcome.as_str().to_owned(),
    }
}

#[test]
fn every_answer_has_its_outcome() {
    let refused = |description: &str, parameters: &str| {
        format!(
            r#"{{"ok":false,"error_code":1,"description":"{description}","parameters":{parameters}}}"#
        )
    };
    let plain = |description: &str| refused(description, "{}");
    for (status, body, wanted) in [
        (200, r#"{"ok":true,"result":{"message_id":42}}"#.to_owned(), r#"sent Some("42")"#),
        (200, r#"{"ok":true}"#.to_owned(), "sent None"),
        (429, refused("Too Many Requests: retry after 7", r#"{"retry_after":7}"#), "slow_down 7"),
        (429, plain("Too Many Requests"), "slow_down 60"),
        (
            400,
            refused("group chat was upgraded", r#"{"migrate_to_chat_id":-1001}"#),
            "moved to -1001",
        ),
        (400, refused("group chat was upgraded", r#"{"migrate_to_chat_id":-100}"#), "temporary"),
        (400, plain("Bad Request: chat not found"), "bounced"),
        (400, plain("Bad Request: user not found"), "bounced"),
        (400, plain("Bad Request: PEER_ID_INVALID"), "bounced"),
        (403, plain("Forbidden: bot can't initiate conversation with a user"), "never"),
        (403, plain("Forbidden: bot was blocked by the user"), "never blocked"),
        (403, plain("Forbidden: user is deactivated"), "bounced blocked"),
        (403, plain("Forbidden: bot was kicked from the group chat"), "never blocked"),
        (400, plain("Bad Request: can't parse entities: bad tag"), "content"),
        (400, plain("Bad Request: message is too long"), "content"),
        (400, plain("Bad Request: message text is empty"), "content"),
        (413, plain("Request Entity Too Large"), "content"),
        (401, plain("Unauthorized"), "account"),
        (404, plain("Not Found"), "account"),
        (500, plain("Internal Server Error"), "temporary"),
        (502, plain("Bad Gateway"), "temporary"),
        (400, plain("Bad Request: something else"), "never"),
        (502, "<html>".to_owned(), "unknown"),
        (504, String::new(), "unknown"),
        (200, "<html>".to_owned(), "unknown"),
    ] {
        assert_eq!(word(&outcome(&answer(status, &[], &body), "-100")), wanted, "{status} {body}");
    }
    let mut cut = answer(200, &[], r#"{"ok":true}"#);
    cut.is_whole = false;
    assert_eq!(word(&outcome(&cut, "-100")), "unknown", "a body that is not whole proves nothing");
}

#[test]
fn html_is_marked_as_html() {
    let settings = Settings { without_previews: false, stop_words: StopWords::default() };
    let mut message = Message { address: "7".to_owned(), ..message() };
    assert_eq!(body(&settings, &message), r#"{"chat_id":"7","text":"Hello Ann"}"#);
    message.html = Some("<b>Ann</b>".to_owned());
    let settings = Settings { without_previews: true, ..settings };
    assert_eq!(
        body(&settings, &message),
        r#"{"chat_id":"7","text":"<b>Ann</b>","parse_mode":"HTML","link_preview_options":{"is_disabled":true}}"#
    );
}

fn credentials(secrets: &[&str]) -> Credentials {
    let webhook_secret = secrets.iter().map(|secret| (*secret).to_owned()).collect();
    Credentials { token: "1:x".to_owned(), webhook_secret }
}

fn told(secrets: &[&str], given: &[&'static str], body: &str) -> Result<Vec<Notice>, Refused> {
    let mut headers = HeaderMap::new();
    for secret in given {
        headers.append(SECRET_HEADER, HeaderValue::from_static(secret));
    }
    let now = Timestamp::UNIX_EPOCH;
    let incoming = Incoming { headers: &headers, url: "", query: "", body: body.as_bytes(), now };
    let settings = Settings { without_previews: false, stop_words: StopWords::default() };
    let found = receipts(&settings, &credentials(secrets), &incoming)?;
    assert_eq!(found.update, Some(7));
    Ok(found.notices)
}

#[test]
fn an_update_counts_only_with_the_secret() {
    let body = r#"{"update_id":7,"message":{"chat":{"id":42},"text":"/stop"}}"#;
    let stop = Notice::Stop { address: "42".to_owned(), reason: SuppressionReason::Stop };
    assert_eq!(told(&["present", "former"], &["present"], body), Ok(vec![stop.clone()]));
    assert_eq!(told(&["present", "former"], &["former"], body), Ok(vec![stop]));
    assert_eq!(told(&["present"], &["presen"], body), Err(Refused::WrongSignature));
    assert_eq!(told(&["present"], &[""], body), Err(Refused::WrongSignature));
    assert_eq!(told(&["present"], &["present", "present"], body), Err(Refused::WrongSignature));
    assert_eq!(told(&["present"], &[], body), Err(Refused::NoSignature));
    assert_eq!(told(&[], &["present"], body), Err(Refused::NotOffered));
    assert!(matches!(told(&["present"], &["present"], "{"), Err(Refused::Malformed(_))));
}

#[test]
fn updates_tell_who_wants_no_more() {
    let stop = |reason| vec![Notice::Stop { address: "42".to_owned(), reason }];
    let start = || vec![Notice::Start { address: "42".to_owned() }];
    let said = |text: &str| {
        format!(r#"{{"update_id":7,"message":{{"chat":{{"id":42}},"text":"{text}"}}}}"#)
    };
    let member = |status: &str| {
        format!(
            r#"{{"update_id":7,"my_chat_member":{{"chat":{{"id":42}},"new_chat_member":{{"status":"{status}"}}}}}}"#
        )
    };
    for (body, wanted) in [
        (said("/stop"), stop(SuppressionReason::Stop)),
        (said("/stop@test_bot now"), stop(SuppressionReason::Stop)),
        (said("СТОП"), stop(SuppressionReason::Stop)),
        (said("/start payload"), start()),
        (said("/help"), vec![]),
        (said("please stop it"), vec![]),
        (member("kicked"), stop(SuppressionReason::Blocked)),
        (member("left"), stop(SuppressionReason::Blocked)),
        (member("member"), start()),
        (member("restricted"), vec![]),
        (r#"{"update_id":7,"edited_message":{}}"#.to_owned(), vec![]),
    ] {
        assert_eq!(told(&["present"], &["present"], &body), Ok(wanted), "{body}");
    }
}
