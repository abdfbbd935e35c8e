//! Authorisation as types: the guard a handler takes says who may call its route.
//!
//! | guard | the request needs |
//! |---|---|
//! | [`Caller`] | any valid key; the handler checks the record's owner (`must_read`) |
//! | [`Writer`] | a key that may change things, not a viewer's; the handler checks the owner (`must_change`) |
//! | [`Admin`] | an administrator's key |
//!
//! A request without a valid key is answered with 401, one without the right with 403. A route whose handler has no
//! guard does not compile (`room.rs`).

use axum::extract::FromRequestParts;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use stampede_model::{KeyHash, Principal, Role};
use stampede_store::Store;

use crate::app::App;
use crate::problem::Problem;

/// The right that a route demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// None: the route is open.
    Nothing,
    /// Any valid key; the handler checks the owner of the record.
    Call,
    /// A key that may change things.
    Write,
    /// An administrator's key.
    Administer,
}

/// An extractor that refuses requests without a right.
pub(crate) trait Guard {
    /// The right it demands.
    const RIGHT: Right;
}

impl Guard for Caller {
    const RIGHT: Right = Right::Call;
}

impl Guard for Writer {
    const RIGHT: Right = Right::Write;
}

impl Guard for Admin {
    const RIGHT: Right = Right::Administer;
}

/// A request with a valid key.
pub(crate) struct Caller(pub(crate) Principal);

/// A request with a key that may change things.
pub(crate) struct Writer(pub(crate) Principal);

/// A request with an administrator's key.
pub(crate) struct Admin(pub(crate) Principal);

impl Caller {
    /// Refuses unless the caller may read records of `owner`.
    pub(crate) fn must_read(&self, owner: &str) -> Result<(), Problem> {
        if self.0.may_read(owner) { Ok(()) } else { Err(Problem::forbidden()) }
    }
}

impl Writer {
    /// Refuses unless the caller may read records of `owner`.
    pub(crate) fn must_read(&self, owner: &str) -> Result<(), Problem> {
        if self.0.may_read(owner) { Ok(()) } else { Err(Problem::forbidden()) }
    }

    /// Refuses unless the caller may change records of `owner`.
    pub(crate) fn must_change(&self, owner: &str) -> Result<(), Problem> {
        self.must_read(owner)
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let principal = principal(&app.store, &parts.headers).await?.ok_or_else(|| {
            unauthorized("an API key is needed: send it as \"Authorization: Bearer <key>\"")
        })?;
        // The memory of the request's body is counted for its user (`body.rs`).
        parts.extensions.insert(principal.clone());
        Ok(Self(principal))
    }
}

impl FromRequestParts<App> for Writer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        if caller.0.may_write() { Ok(Self(caller.0)) } else { Err(Problem::forbidden()) }
    }
}

impl FromRequestParts<App> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        if caller.0.role == Role::Admin { Ok(Self(caller.0)) } else { Err(Problem::forbidden()) }
    }
}

/// The user of a request's key, if it has one; an invalid key is refused.
pub(crate) async fn principal(
    store: &Store,
    headers: &HeaderMap,
) -> Result<Option<Principal>, Problem> {
    let Some(key) = presented_key(headers)? else { return Ok(None) };
    let principal = store.principal(&KeyHash::of(key)).await?;
    principal.map(Some).ok_or_else(|| unauthorized("this API key is not valid"))
}

fn unauthorized(detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, detail)
}

/// `Authorization: Bearer <key>` or `X-API-Key: <key>`.
fn presented_key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    if let Some(key) = headers.get("x-api-key") {
        return text_of(key).map(Some);
    }
    let Some(value) = headers.get(AUTHORIZATION) else { return Ok(None) };
    let Some((scheme, key)) = text_of(value)?.split_once(' ') else { return Ok(None) };
    Ok(scheme.eq_ignore_ascii_case("bearer").then_some(key.trim()))
}

/// A header's text. A key copied from a document may still have its "…" in it.
fn text_of(value: &HeaderValue) -> Result<&str, Problem> {
    value.to_str().map_err(|_| {
        unauthorized(
            "the API key has characters that no key has, such as \"…\"; is it a placeholder?",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presented(name: &'static str, value: &str) -> Result<Option<String>, String> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        let key = presented_key(&headers).map_err(Problem::into_detail)?;
        Ok(key.map(str::to_owned))
    }

    #[test]
    fn keys_are_read_from_both_headers() {
        for (name, value, key) in [
            ("authorization", "Bearer stp_x", Some("stp_x")),
            ("authorization", "bearer  stp_x ", Some("stp_x")),
            ("authorization", "Basic abc", None),
            ("authorization", "stp_x", None),
            ("x-api-key", "stp_x", Some("stp_x")),
        ] {
            assert_eq!(presented(name, value), Ok(key.map(str::to_owned)), "{value}");
        }
        for (name, value) in [("authorization", "Bearer stp_…"), ("x-api-key", "stp_…")] {
            let told = presented(name, value).unwrap_err();
            assert!(told.contains("characters that no key has"), "{told}");
        }
    }
}
