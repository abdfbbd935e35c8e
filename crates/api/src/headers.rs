//! Headers of requests, as types.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::request::Parts;

use crate::problem::{Code, Problem};

/// Longest `Idempotency-Key`.
pub(crate) const MAX_KEY: usize = 200;

/// `Idempotency-Key`: 1 to 200 visible characters.
pub(crate) struct IdempotencyKey(pub(crate) Option<String>);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get("idempotency-key") else { return Ok(Self(None)) };
        match value.to_str() {
            Ok(key) if (1..=MAX_KEY).contains(&key.len()) => Ok(Self(Some(key.to_owned()))),
            _ => Err(Problem::new(
                Code::InvalidHeader,
                format!("Idempotency-Key must be 1 to {MAX_KEY} visible characters"),
            )),
        }
    }
}

/// `If-Match`: the versions that may be changed.
pub(crate) struct IfMatch(Option<String>);

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let value = parts.headers.get(IF_MATCH);
        // A text that is none matches nothing.
        Ok(Self(value.map(|value| value.to_str().unwrap_or_default().to_owned())))
    }
}

impl IfMatch {
    /// Refuses unless the version may be changed.
    pub(crate) fn check(&self, version: u32) -> Result<(), Problem> {
        let Some(wanted) = &self.0 else { return Ok(()) };
        let is_it =
            |tag: &str| tag.trim() == "*" || tag.trim().trim_matches('"') == version.to_string();
        if wanted.split(',').any(is_it) {
            return Ok(());
        }
        let detail = format!(
            "the latest revision is {version}, not {wanted}: read it, and send your change again with \
             If-Match: \"{version}\""
        );
        let problem = Problem::new(Code::PreconditionFailed, detail);
        Err(problem.with("revision", version.into()))
    }
}

/// `If-None-Match`: the versions that the client has.
pub(crate) struct IfNoneMatch(Option<String>);

impl<S: Sync> FromRequestParts<S> for IfNoneMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let value = parts.headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        Ok(Self(value.map(str::to_owned)))
    }
}

impl IfNoneMatch {
    /// Whether the client has the version with this `ETag`.
    pub(crate) fn has(&self, etag: &str) -> bool {
        let listed = self.0.as_deref().unwrap_or_default();
        let mut tags = listed.split(',').map(str::trim);
        tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
    }
}
