//! CORS: pages of other origins may use the API if `CORS_ORIGINS` names them.
//!
//! Keys are sent in headers, never in cookies. So credentials in the sense of CORS are not allowed, and a page that knows no
//! key gets no further than any other stranger. Preflights are answered here, before keys and limits are looked at.

use std::time::Duration;

use http::header::{
    ACCEPT_RANGES, AUTHORIZATION, CONTENT_DISPOSITION, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MATCH,
    IF_NONE_MATCH, IF_RANGE, LINK, LOCATION, RANGE, RETRY_AFTER,
};
use http::{HeaderName, HeaderValue, Method};
use tower_http::cors::{AllowOrigin, CorsLayer};
use url::Url;

use crate::rate_limits::{RATE_LIMIT, RATE_LIMIT_POLICY};
use crate::request_ids::X_REQUEST_ID;

/// How long a browser remembers a preflight. Browsers cut it to two hours or less.
const MAX_AGE: Duration = Duration::from_secs(7_200);

/// Headers that pages may read, beside those that every page may.
const EXPOSED: [HeaderName; 14] = [
    ETAG,
    LOCATION,
    RETRY_AFTER,
    LINK,
    CONTENT_DISPOSITION,
    CONTENT_RANGE,
    ACCEPT_RANGES,
    RATE_LIMIT,
    RATE_LIMIT_POLICY,
    HeaderName::from_static("idempotency-replayed"),
    HeaderName::from_static("x-left-out"),
    HeaderName::from_static("x-next"),
    HeaderName::from_static("www-authenticate"),
    X_REQUEST_ID,
];

/// Headers that pages may send.
const ACCEPTED: [HeaderName; 10] = [
    AUTHORIZATION,
    CONTENT_TYPE,
    IF_MATCH,
    IF_NONE_MATCH,
    IF_RANGE,
    RANGE,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("last-event-id"),
    X_REQUEST_ID,
];

/// The origins whose pages may use the API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Origins {
    /// Only pages of the server itself.
    #[default]
    Own,
    /// Pages of these origins, such as `https://app.example`.
    These(Vec<String>),
    /// Pages of all origins.
    Any,
}

impl Origins {
    /// Reads origins that are separated by commas or spaces, or `*`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split([',', ' ']).filter(|part| !part.is_empty()).collect();
        match parts.as_slice() {
            [] => Ok(Self::Own),
            ["*"] => Ok(Self::Any),
            parts => {
                parts.iter().map(|part| origin(part)).collect::<Result<_, _>>().map(Self::These)
            }
        }
    }

    /// The layer that answers preflights and adds the headers; `None`: there is nothing to add.
    pub(crate) fn layer(&self) -> Option<CorsLayer> {
        let allowed = match self {
            Self::Own => return None,
            Self::Any => AllowOrigin::any(),
            Self::These(origins) => AllowOrigin::list(
                origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()),
            ),
        };
        let methods =
            [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
        let layer = CorsLayer::new().allow_origin(allowed).allow_methods(methods);
        Some(layer.allow_headers(ACCEPTED).expose_headers(EXPOSED).max_age(MAX_AGE))
    }
}

/// An origin as browsers write it: without a path, and without the port that the scheme has anyway.
fn origin(text: &str) -> Result<String, String> {
    let right = format!(
        "must be * or origins such as https://app.example, separated by commas; {text:?} is none"
    );
    let url = Url::parse(text).map_err(|_| right.clone())?;
    let is_bare = url.path() == "/" && !text.ends_with('/') && url.query().is_none();
    let fits = ["http", "https"].contains(&url.scheme()) && url.host().is_some() && is_bare;
    let has_more =
        url.fragment().is_some() || !url.username().is_empty() || url.password().is_some();
    if fits && !has_more { Ok(url.origin().ascii_serialization()) } else { Err(right) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read_as_browsers_write_them() {
        let these =
            |all: &[&str]| Ok(Origins::These(all.iter().map(|o| (*o).to_owned()).collect()));
        assert_eq!(Origins::parse(""), Ok(Origins::Own));
        assert_eq!(Origins::parse("*"), Ok(Origins::Any));
        let both = "https://App.example:443, http://localhost:5173";
        assert_eq!(Origins::parse(both), these(&["https://app.example", "http://localhost:5173"]));
        let wrong = [
            "app.example",
            "https://app.example/",
            "https://app.example/x",
            "null",
            "*, https://a.b",
        ]
        .into_iter()
        .chain(["ftp://app.example", "https://u@app.example", "file:///x"]);
        for text in wrong {
            assert!(Origins::parse(text).unwrap_err().contains("origins such as"), "{text}");
        }
    }
}
