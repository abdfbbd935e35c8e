//! Headers of requests, as types.

use axum::extract::FromRequestParts;
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
