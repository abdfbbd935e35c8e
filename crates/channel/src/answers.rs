//! Which outcome follows if nobody answers, or somebody else than the provider: a proxy, a page of a network.

use std::time::Duration;

use serde::de::DeserializeOwned;
use stampede_model::campaign::{Failure, Outcome};
use stampede_outbound::{Answer, Error, Stage};

/// The pause if a provider asks for fewer messages and names none.
pub(crate) const PAUSE: Duration = Duration::from_secs(60);
/// Longest pause that is kept to.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 3_600);

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

/// An answer that is not the provider's own. Whether the message arrived is known only if somebody refused it before.
pub(crate) fn foreign(answer: &Answer) -> Outcome {
    let failure = failure(answer);
    match answer.status {
        200..=299 | 502 | 504 => Outcome::Unknown(failure),
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
        ] {
            let outcome = foreign(&answer(status, &[], "<html>"));
            assert_eq!(outcome.as_str(), word, "{status}");
        }
        let asked = foreign(&answer(503, &[("retry-after", "7")], ""));
        assert!(matches!(asked, Outcome::SlowDown(pause, _) if pause.as_secs() == 7));
        let much = foreign(&answer(429, &[("retry-after", "99999999")], ""));
        assert!(matches!(much, Outcome::SlowDown(pause, _) if pause == LONGEST_PAUSE));
    }
}
