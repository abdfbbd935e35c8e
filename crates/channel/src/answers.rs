//! Which outcome follows if nobody answers, or somebody else than the provider: a proxy, a page of a network. And what of an
//! answer is kept.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use stampede_model::campaign::{Failure, Outcome};
use stampede_outbound::{Answer, Error, Stage};

/// The pause if a provider asks for fewer messages and names none.
pub(crate) const PAUSE: Duration = Duration::from_secs(60);
/// Longest pause that is kept to.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 3_600);

/// Most bytes of a provider's id that are kept: the database has an index over it, whose entries are limited.
const LONGEST_ID: usize = 256;
/// Most letters of a provider's code that are kept.
pub(crate) const LONGEST_CODE: usize = 64;

/// A message that the caller did not let leave.
pub(crate) fn not_allowed() -> Outcome {
    let stage = Stage::NotAllowed.as_str();
    Outcome::NotSent(Failure::new(stage, "the caller does not let it leave now"))
}

/// A request without an answer.
pub(crate) fn unanswered(error: &Error) -> Outcome {
    match error {
        // All messages of the account would fail.
        Error::NotSent { stage: stage @ (Stage::Address | Stage::Request), reason } => {
            Outcome::Account(Failure::new(stage.as_str(), reason))
        }
        Error::NotSent { stage, reason } => Outcome::NotSent(Failure::new(stage.as_str(), reason)),
        Error::Unanswered { reason } => Outcome::Unknown(Failure::new("no_answer", reason)),
    }
}

/// The body of an answer as JSON, if it is whole.
pub(crate) fn json<T: DeserializeOwned>(answer: &Answer) -> Option<T> {
    if !answer.is_whole {
        return None;
    }
    serde_json::from_slice(&answer.body).ok()
}

/// The pause that an answer asks for.
pub(crate) fn pause(answer: &Answer) -> Option<Duration> {
    answer.retry_after().map(|pause| pause.min(LONGEST_PAUSE))
}

/// A text or a number.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A provider's id of a message, if it can be kept: the database refuses others, and nobody would know of the message.
pub(crate) fn provider_id(id: &str) -> Option<String> {
    let is_fit = !id.is_empty() && id.len() <= LONGEST_ID && !id.chars().any(char::is_control);
    is_fit.then(|| id.to_owned())
}

/// A provider's code, as it is kept: short, without control characters.
pub(crate) fn code(code: &str) -> String {
    code.chars().filter(|letter| !letter.is_control()).take(LONGEST_CODE).collect()
}

/// Whether a status means that somebody in between got no whole answer from the provider, who may have carried out the request:
/// 502 and 504, Cloudflare's 520 (the answer broke off), 522 and 524 (none came in time) and 527, and 598 and 599 of other
/// proxies. Cloudflare's 521, 523, 525 and 526 mean that the provider never got it.
pub(crate) fn is_lost(status: u16) -> bool {
    matches!(status, 502 | 504 | 520 | 522 | 524 | 527 | 598 | 599)
}

/// An answer that is not the provider's own. Whether the message arrived is known only if somebody refused it before.
pub(crate) fn foreign(answer: &Answer) -> Outcome {
    by_status(answer, failure(answer))
}

/// What the status of an answer means, whose failure is told otherwise.
pub(crate) fn by_status(answer: &Answer, failure: Failure) -> Outcome {
    match answer.status {
        200..=299 => Outcome::Unknown(failure),
        status if is_lost(status) => Outcome::Unknown(failure),
        300..=399 => redirected(answer),
        401 | 403 | 404 | 405 | 407 => Outcome::Account(failure),
        413 => Outcome::Content(failure),
        429 => Outcome::SlowDown(pause(answer).unwrap_or(PAUSE), failure),
        503 => match pause(answer) {
            Some(pause) => Outcome::SlowDown(pause, failure),
            None => Outcome::Temporary(failure),
        },
        408 | 500.. => Outcome::Temporary(failure),
        _ => Outcome::Never(failure, None),
    }
}

/// A redirect: the URL is wrong for all messages.
pub(crate) fn redirected(answer: &Answer) -> Outcome {
    let text = "redirects are not followed: the URL must be the final one";
    Outcome::Account(Failure::new(answer.status.to_string(), text))
}

/// The failure that an answer's status and text tell.
pub(crate) fn failure(answer: &Answer) -> Failure {
    Failure::new(answer.status.to_string(), &answer.text(Failure::LONGEST))
}

#[cfg(test)]
pub(crate) fn answer(status: u16, headers: &[(&'static str, &str)], body: &str) -> Answer {
    let mut all = http::HeaderMap::new();
    for (name, value) in headers {
        all.insert(*name, http::HeaderValue::from_str(value).unwrap());
    }
    Answer { status, headers: all, body: body.to_owned().into(), is_whole: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_an_answer_is_not_sent_or_unknown() {
        let not_sent = |stage| Error::NotSent { stage, reason: "why".to_owned() };
        for (error, word, code) in [
            (not_sent(Stage::Name), "not_sent", "name"),
            (not_sent(Stage::Connect), "not_sent", "connect"),
            (not_sent(Stage::Tls), "not_sent", "tls"),
            (not_sent(Stage::Write), "not_sent", "write"),
            (not_sent(Stage::Address), "account", "address"),
            (not_sent(Stage::Request), "account", "request"),
            (Error::Unanswered { reason: "why".to_owned() }, "unknown", "no_answer"),
        ] {
            let outcome = unanswered(&error);
            assert_eq!((outcome.as_str(), outcome.failure().unwrap().code.as_str()), (word, code));
        }
    }

    #[test]
    fn a_page_of_somebody_else_is_no_success() {
        for (status, word) in [
            (200, "unknown"),
            (302, "account"),
            (400, "never"),
            (401, "account"),
            (403, "account"),
            (404, "account"),
            (408, "temporary"),
            (413, "content"),
            (429, "slow_down"),
            (500, "temporary"),
            (502, "unknown"),
            (503, "temporary"),
            (504, "unknown"),
            (520, "unknown"),
            (521, "temporary"),
            (522, "unknown"),
            (523, "temporary"),
            (524, "unknown"),
            (525, "temporary"),
            (530, "temporary"),
            (598, "unknown"),
        ] {
            let outcome = foreign(&answer(status, &[], "<html>"));
            assert_eq!(outcome.as_str(), word, "{status}");
        }
        let asked = foreign(&answer(503, &[("retry-after", "7")], ""));
        assert!(matches!(asked, Outcome::SlowDown(pause, _) if pause.as_secs() == 7));
        let much = foreign(&answer(429, &[("retry-after", "99999999")], ""));
        assert!(matches!(much, Outcome::SlowDown(pause, _) if pause == LONGEST_PAUSE));
    }

    #[test]
    fn an_id_or_a_code_that_no_database_takes_is_not_kept() {
        assert_eq!(provider_id("wamid.HBg=").as_deref(), Some("wamid.HBg="));
        for wrong in ["", "a\u{0}b", "a\nb", &"x".repeat(257)] {
            assert_eq!(provider_id(wrong), None, "{wrong:?}");
        }
        assert_eq!(code("30\u{0}003"), "30003");
        assert_eq!(code(&"é".repeat(1_000)), "é".repeat(64));
        assert_eq!(scalar(&serde_json::json!(7)).as_deref(), Some("7"));
        assert_eq!(scalar(&serde_json::json!([7])), None);
    }
}
