//! Reading an answer: its status, the pause it asks for, and the beginning of its body as text.

use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use http::{HeaderMap, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use stampede_model::Printable;
use tokio::time::{Instant, timeout_at};

/// Most bytes that are read of a body.
const MOST_READ: usize = 64 << 10;
/// Bytes of a body that are kept.
const KEPT: usize = 4 << 10;
/// Longest time for a body, of which only the beginning is kept.
const BODY: Duration = Duration::from_secs(5);

/// The answer of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The pause that `Retry-After` asks for.
    pub(crate) retry_after: Option<Duration>,
    /// The beginning of the body, without control characters.
    pub(crate) text: String,
}

impl Answer {
    /// Reads an answer whose head has come. The status counts, even if the body breaks off, is too long or has no end.
    pub(super) async fn read(response: Response<Incoming>, until: Instant) -> Self {
        // Before `until`: an answer that has a status must not be lost because its body has no end.
        let until = until - Duration::from_millis(200);
        let until = until.min(Instant::now() + BODY);
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let (mut body, mut kept, mut read) = (response.into_body(), Vec::new(), 0);
        while read < MOST_READ
            && let Ok(Some(Ok(frame))) = timeout_at(until, body.frame()).await
        {
            let Some(data) = frame.data_ref() else { continue };
            read += data.len();
            kept.extend_from_slice(&data[..data.len().min(KEPT - kept.len())]);
        }
        let text = Printable::lines(String::from_utf8_lossy(&kept)).to_string();
        Self { status, retry_after, text: cut(text) }
    }
}

/// Escapes make a text longer: it is cut again.
fn cut(mut text: String) -> String {
    let mut end = KEPT.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

/// Seconds, or a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    httpdate::parse_http_date(value).ok()?.duration_since(now).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_pause_is_told_in_seconds_or_as_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (value, pause) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", None),
            ("soon", None),
            ("-1", None),
            ("99999999999999999999999", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(value));
            assert_eq!(retry_after(&headers, now), pause.map(Duration::from_secs), "{value}");
        }
    }

    #[test]
    fn a_text_is_cut_between_letters() {
        assert_eq!(cut("é".repeat(KEPT)).len(), KEPT);
        assert_eq!(cut(format!("x{}", "é".repeat(KEPT))).len(), KEPT - 1);
    }
}
