//! Reading an answer up to a limit. The status counts, whatever the body does.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use stampede_model::Printable;
use tokio::time::{Instant, timeout_at};

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, or its beginning.
    pub body: Bytes,
    /// Whether the body is whole: it did not break off, was not too long and came in time.
    pub is_whole: bool,
}

impl Answer {
    /// Reads an answer whose head has come.
    pub(crate) async fn read(response: Response<Incoming>, until: Instant, most: usize) -> Self {
        let (head, mut body) = response.into_parts();
        let (mut kept, mut is_whole) = (Vec::new(), false);
        while let Ok(frame) = timeout_at(until, body.frame()).await {
            let Some(frame) = frame else {
                is_whole = true;
                break;
            };
            let Ok(frame) = frame else { break };
            let Some(data) = frame.data_ref() else { continue };
            let room = most - kept.len();
            kept.extend_from_slice(&data[..data.len().min(room)]);
            if data.len() > room {
                break;
            }
        }
        let (status, headers) = (head.status.as_u16(), head.headers);
        Self { status, headers, body: kept.into(), is_whole }
    }

    /// The pause that `Retry-After` asks for.
    pub fn retry_after(&self) -> Option<Duration> {
        retry_after(&self.headers, SystemTime::now())
    }

    /// The beginning of the body as text without control characters, up to so many bytes.
    pub fn text(&self, most: usize) -> String {
        let begin = &self.body[..self.body.len().min(most)];
        cut(Printable::lines(String::from_utf8_lossy(begin)).to_string(), most)
    }
}

/// Escapes make a text longer: it is cut again.
fn cut(mut text: String, most: usize) -> String {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

/// The pause that `Retry-After` asks for: seconds, or a date.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
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
        assert_eq!(cut("é".repeat(4_096), 4_096).len(), 4_096);
        assert_eq!(cut(format!("x{}", "é".repeat(4_096)), 4_096).len(), 4_095);
    }
}
