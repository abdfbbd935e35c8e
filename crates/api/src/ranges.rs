//! `Range`, `If-Range` and `If-None-Match`: downloads that go on where they broke off, and those that the client has.
//!
//! One range is answered with 206. Several ranges at once are answered with the whole file, as RFC 9110 allows.

use std::convert::Infallible;
use std::ops::Range;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    ETAG, IF_RANGE, RANGE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::problem::{Code, Problem};
use crate::version::IfNoneMatch;

/// The part of a file that a request wants, and the version that it has.
pub(crate) struct Wanted {
    known: IfNoneMatch,
    range: Option<String>,
    if_range: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for Wanted {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let text = |headers: &HeaderMap, name: HeaderName| {
            headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let (range, if_range) = (text(&parts.headers, RANGE), text(&parts.headers, IF_RANGE));
        let known = IfNoneMatch::from_request_parts(parts, state).await?;
        Ok(Self { known, range, if_range })
    }
}

/// What is sent of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// A part.
    Some(Range<u64>),
    /// Nothing: the file is shorter.
    None,
}

impl Wanted {
    /// Whether the client has the version with this tag.
    pub(crate) fn is_known(&self, tag: &str) -> bool {
        self.known.has(tag)
    }

    /// Whether the request wants a part of the version with this tag. A file without a version has no parts.
    pub(crate) fn is_part(&self, tag: Option<&str>) -> bool {
        let is_same = match (&self.if_range, tag) {
            (_, None) => false,
            (None, Some(_)) => true,
            // Only strong tags are compared; a date is no tag.
            (Some(wanted), Some(tag)) => wanted.trim() == tag,
        };
        is_same && self.range.is_some()
    }

    /// The part of a file of this length, if the request wants one.
    pub(crate) fn part(&self, length: u64) -> Part {
        self.range.as_deref().map_or(Part::Whole, |range| part(range, length))
    }
}

/// Reads `bytes=0-99`, `bytes=100-` or `bytes=-100`; anything else is ignored.
fn part(range: &str, length: u64) -> Part {
    let Some((first, last)) = range.trim().strip_prefix("bytes=").and_then(|it| it.split_once('-'))
    else {
        return Part::Whole;
    };
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().unwrap_or(u64::MAX))
    };
    match (first.trim(), last.trim()) {
        ("", last) => match number(last) {
            Some(0) => Part::None,
            Some(_) if length == 0 => Part::None,
            Some(count) => Part::Some(length.saturating_sub(count)..length),
            None => Part::Whole,
        },
        (first, last) => match (number(first), number(last), last) {
            (Some(first), None, "") if first < length => Part::Some(first..length),
            (Some(first), Some(last), _) if first <= last && first < length => {
                Part::Some(first..last.saturating_add(1).min(length))
            }
            (Some(first), Some(last), _) if first > last => Part::Whole,
            (Some(_), None, "") | (Some(_), Some(_), _) => Part::None,
            _ => Part::Whole,
        },
    }
}

/// A file that is answered.
pub(crate) struct Sendable<'f> {
    /// Its media type.
    pub(crate) kind: &'static str,
    /// `inline; filename=…`.
    pub(crate) disposition: &'f str,
    /// How it may be cached.
    pub(crate) cache: &'static str,
    /// The tag of its version, with quotes.
    pub(crate) tag: Option<&'f str>,
    /// Its length, if it is known.
    pub(crate) length: Option<u64>,
}

impl Sendable<'_> {
    /// Answers with the file, a part of it, or what refuses.
    pub(crate) fn answer(
        &self,
        wanted: &Wanted,
        body: impl FnOnce(Range<u64>) -> Body,
    ) -> Response {
        if self.tag.is_some_and(|tag| wanted.is_known(tag)) {
            return self.headed(StatusCode::NOT_MODIFIED, Body::empty());
        }
        let length = self.length.filter(|_| wanted.is_part(self.tag));
        match length.map(|length| (wanted.part(length), length)) {
            Some((Part::Some(part), length)) => {
                let said = format!("bytes {}-{}/{length}", part.start, part.end - 1);
                let mut response = self.headed(StatusCode::PARTIAL_CONTENT, body(part.clone()));
                set(&mut response, CONTENT_RANGE, &said);
                set(&mut response, CONTENT_LENGTH, &(part.end - part.start).to_string());
                response
            }
            Some((Part::None, length)) => {
                let detail = format!("the file has {length} bytes");
                let problem = Problem::new(Code::RangeNotSatisfiable, detail);
                let mut response = problem.into_response();
                set(&mut response, CONTENT_RANGE, &format!("bytes */{length}"));
                response
            }
            Some((Part::Whole, _)) | None => {
                let mut response = self.headed(StatusCode::OK, body(0..u64::MAX));
                if let Some(length) = self.length {
                    set(&mut response, CONTENT_LENGTH, &length.to_string());
                }
                response
            }
        }
    }

    fn headed(&self, status: StatusCode, body: Body) -> Response {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        set(&mut response, CONTENT_TYPE, self.kind);
        set(&mut response, CONTENT_DISPOSITION, self.disposition);
        set(&mut response, CACHE_CONTROL, self.cache);
        // Without a version, a part might be of another file.
        set(&mut response, ACCEPT_RANGES, if self.tag.is_some() { "bytes" } else { "none" });
        if let Some(tag) = self.tag {
            set(&mut response, ETAG, tag);
        }
        response
    }
}

/// Sets a header to a text that headers can have.
pub(crate) fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        for (range, expected) in [
            ("bytes=0-99", Part::Some(0..100)),
            ("bytes=100-", Part::Some(100..1_000)),
            ("bytes=999-5000", Part::Some(999..1_000)),
            ("bytes=-100", Part::Some(900..1_000)),
            ("bytes=-5000", Part::Some(0..1_000)),
            ("bytes=0-18446744073709551616", Part::Some(0..1_000)),
            ("bytes=1000-", Part::None),
            ("bytes=1000-2000", Part::None),
            ("bytes=-0", Part::None),
            ("bytes=9-3", Part::Whole),
            ("bytes=a-b", Part::Whole),
            ("bytes=-", Part::Whole),
            ("bytes=0-1,5-9", Part::Whole),
            ("lines=0-9", Part::Whole),
            ("bytes=+1-9", Part::Whole),
            ("", Part::Whole),
        ] {
            assert_eq!(part(range, 1_000), expected, "{range}");
        }
        assert_eq!(part("bytes=0-", 0), Part::None);
        assert_eq!(part("bytes=-1", 0), Part::None);
    }

    #[test]
    fn a_part_of_another_version_is_not_sent() {
        let wanted = |if_range: Option<&str>| Wanted {
            known: IfNoneMatch::default(),
            range: Some("bytes=5-".to_owned()),
            if_range: if_range.map(str::to_owned),
        };
        assert!(wanted(None).is_part(Some("\"a\"")));
        assert!(wanted(Some("\"a\"")).is_part(Some("\"a\"")));
        for other in ["\"b\"", "W/\"a\"", "Wed, 18 Nov 2026 08:00:00 GMT"] {
            assert!(!wanted(Some(other)).is_part(Some("\"a\"")), "{other}");
        }
        assert!(!wanted(None).is_part(None), "a file without a version has no parts");
    }
}
