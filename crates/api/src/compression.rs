//! Compression of answers, if the client accepts it.
//!
//! Left as they are: short answers, PDFs, ZIPs and pictures (they are compressed already), event streams (an event must not
//! wait in a buffer), parts of files (`Content-Range`), and answers that are encoded already.
//!
//! An entity tag names bytes, and compressed bytes are others. So the tag of a compressed answer is weak (RFC 9110, 8.8.3):
//! `W/"3"`. `If-None-Match` and our `If-Match` take both spellings for the same version of the record.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue, StatusCode};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};

/// Shorter answers gain nothing: they fit into one packet anyway.
const SHORTEST: u16 = 1_024;

/// Kinds of content that compression does not make smaller, or must not hold back.
const LEFT: [&str; 8] = [
    "application/pdf",
    "application/zip",
    "application/gzip",
    "application/octet-stream",
    "audio/",
    "font/woff",
    "text/event-stream",
    "video/",
];

/// The layer.
pub(crate) fn layer() -> CompressionLayer<impl Predicate + Send + Sync + 'static> {
    let is_wanted = |status: StatusCode, _, headers: &HeaderMap, _: &_| {
        status != StatusCode::SWITCHING_PROTOCOLS && is_compressible(headers)
    };
    CompressionLayer::new().compress_when(SizeAbove::new(SHORTEST).and(is_wanted))
}

fn is_compressible(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_picture = kind.starts_with("image/") && !kind.starts_with("image/svg");
    !is_picture && !LEFT.iter().any(|left| kind.starts_with(left))
}

/// Makes the entity tag of a compressed answer weak.
pub(crate) fn weaken_tag(headers: &mut HeaderMap) {
    if headers.contains_key(CONTENT_ENCODING)
        && let Some(weak) = headers.get(ETAG).and_then(weak)
    {
        headers.insert(ETAG, weak);
    }
}

/// The weak form of a strong tag.
fn weak(tag: &HeaderValue) -> Option<HeaderValue> {
    let tag = tag.to_str().ok().filter(|tag| !tag.starts_with("W/"))?;
    HeaderValue::from_str(&format!("W/{tag}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_already_or_must_not_wait_is_left_as_it_is() {
        let is_compressible = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            super::is_compressible(&headers)
        };
        for kind in [
            "application/json",
            "application/problem+json",
            "text/csv; charset=utf-8",
            "image/svg+xml",
        ] {
            assert!(is_compressible(kind), "{kind}");
        }
        for kind in
            ["application/pdf", "application/zip", "image/png", "text/event-stream", "font/woff2"]
        {
            assert!(!is_compressible(kind), "{kind}");
        }
    }

    #[test]
    fn strong_tags_become_weak() {
        let weak = |tag| super::weak(&HeaderValue::from_static(tag));
        assert_eq!(weak("\"3\""), Some(HeaderValue::from_static("W/\"3\"")));
        assert_eq!(weak("W/\"3\""), None);
    }
}
