//! Authorisation as types: the guard a handler takes says who may call its route.
//!
//! | guard | the request needs |
//! |---|---|
//! | [`Anyone`], [`MaybeCaller`] | nothing: the route is open |
//! | [`Caller`] | any valid key but a scanner's; the handler checks the record's owner (`must_read`) |
//! | [`Writer`] | a key that may change things, not a viewer's; the handler checks the owner (`must_change`) |
//! | [`Door`] | a key that may let guests in; the handler's room checks the event |
//! | [`Admin`] | an administrator's key |
//!
//! A request without a valid key is answered with 401, one without the right with 403. A route whose handler has no
//! guard does not compile (`room.rs`).

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use stampede_model::{KeyHash, Principal, Role};
use stampede_store::Store;

use crate::app::{App, now};
use crate::describe::Operation;
use crate::problem::{Code, Problem};

/// The right that a route demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// None: the route is open.
    Nothing,
    /// Any valid key but a scanner's; the handler checks the owner of the record.
    Call,
    /// A key that may change things.
    Write,
    /// A key that may let guests in: an administrator's, an organiser's or a scanner's.
    Admit,
    /// An administrator's key.
    Administer,
}

/// An extractor that refuses requests without a right.
pub(crate) trait Guard {
    /// The right it demands.
    const RIGHT: Right;

    /// Adds to the description of the operation what does not follow from the right.
    fn describe(_: &mut Operation<'_>) {}
}

impl Guard for Anyone {
    const RIGHT: Right = Right::Nothing;
}

impl Guard for MaybeCaller {
    const RIGHT: Right = Right::Nothing;

    fn describe(operation: &mut Operation<'_>) {
        operation.takes_a_key();
    }
}

impl Guard for Caller {
    const RIGHT: Right = Right::Call;
}

impl Guard for Writer {
    const RIGHT: Right = Right::Write;
}

impl Guard for Door {
    const RIGHT: Right = Right::Admit;
}

impl Guard for Admin {
    const RIGHT: Right = Right::Administer;
}

/// Any request: the route is open.
pub(crate) struct Anyone;

impl<S: Sync> FromRequestParts<S> for Anyone {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self)
    }
}

/// Any request: the route is open, and looks at the key itself, if there is one ([`principal`]).
pub(crate) struct MaybeCaller(pub(crate) HeaderMap);

impl<S: Sync> FromRequestParts<S> for MaybeCaller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.headers.clone()))
    }
}

/// A request with a valid key.
pub(crate) struct Caller(pub(crate) Principal);

/// A request with a key that may change things.
pub(crate) struct Writer(pub(crate) Principal);

/// A request with a key that may let guests in at some event.
pub(crate) struct Door(pub(crate) Principal);

/// A request with an administrator's key.
pub(crate) struct Admin(pub(crate) Principal);

impl Caller {
    /// Refuses unless the caller may read records of `owner`.
    pub(crate) fn must_read(&self, owner: &str) -> Result<(), Problem> {
        if self.0.may_read(owner) { Ok(()) } else { Err(Problem::not_yours()) }
    }
}

impl Writer {
    /// Refuses unless the caller may read records of `owner`.
    pub(crate) fn must_read(&self, owner: &str) -> Result<(), Problem> {
        if self.0.may_read(owner) { Ok(()) } else { Err(Problem::not_yours()) }
    }

    /// Refuses unless the caller may change records of `owner`.
    pub(crate) fn must_change(&self, owner: &str) -> Result<(), Problem> {
        self.must_read(owner)
    }
}

/// The user of a request, which must have a valid key.
async fn signed_in(parts: &mut Parts, app: &App) -> Result<Principal, Problem> {
    let principal = principal(&app.store, &parts.headers).await?.ok_or_else(|| {
        unauthorized("an API key is needed: send it as \"Authorization: Bearer <key>\"")
    })?;
    // The memory of the request's body is counted for its user (`body.rs`).
    parts.extensions.insert(principal.clone());
    Ok(principal)
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    /// A scanner's key opens doors only: who finds a lost phone must not read the lists of guests.
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let principal = signed_in(parts, app).await?;
        if principal.role != Role::Scanner {
            return Ok(Self(principal));
        }
        Err(Problem::forbidden("this", &[Role::Viewer, Role::Organiser, Role::Admin]))
    }
}

impl FromRequestParts<App> for Writer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let principal = signed_in(parts, app).await?;
        if principal.may_write() {
            return Ok(Self(principal));
        }
        Err(Problem::forbidden("this", &[Role::Organiser, Role::Admin]))
    }
}

impl FromRequestParts<App> for Door {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let principal = signed_in(parts, app).await?;
        if principal.role != Role::Viewer {
            return Ok(Self(principal));
        }
        Err(Problem::forbidden("this", &[Role::Scanner, Role::Organiser, Role::Admin]))
    }
}

impl FromRequestParts<App> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let principal = signed_in(parts, app).await?;
        if principal.role == Role::Admin {
            return Ok(Self(principal));
        }
        Err(Problem::forbidden("this", &[Role::Admin]))
    }
}

/// The user of a request's key, if it has one; an invalid key is refused.
pub(crate) async fn principal(
    store: &Store,
    headers: &HeaderMap,
) -> Result<Option<Principal>, Problem> {
    let Some(key) = presented_key(headers)? else { return Ok(None) };
    let principal = store.principal(&KeyHash::of(key), now()).await?;
    principal.map(Some).ok_or_else(|| unauthorized("this API key is not valid"))
}

fn unauthorized(detail: &str) -> Problem {
    Problem::new(Code::Unauthorized, detail)
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
