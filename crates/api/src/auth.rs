//! Authorisation as types: the guard a handler takes says who may call its route.
//!
//! | guard | the request needs |
//! |---|---|
//! | [`Anyone`], [`MaybeCaller`] | nothing: the route is open |
//! | [`Caller`] | any valid key but a scanner's; the handler checks the record's owner (`must_read`) |
//! | [`Writer`] | a key that may change things, not a viewer's; the handler checks the owner (`must_change`) |
//! | [`Watcher`] | any valid key; the stream shows what the key may see (`live.rs`) |
//! | [`Door`] | a key that may let guests in; the handler's room checks the event |
//! | [`Overseer`] | a key that reads everything: an administrator's, or a viewer's of the user `*` |
//! | [`Admin`] | an administrator's key |
//!
//! A request without a valid key is answered with 401, one without the right with 403. A route whose handler has no
//! guard does not compile (`room.rs`). Keys that are limited to an event or to queues are checked here, too (`scope.rs`).

use std::convert::Infallible;
use std::net::IpAddr;

use axum::extract::FromRequestParts;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use serde::Serialize;
use stampede_audit::Subject;
use stampede_identity::Identity;
use stampede_model::{Principal, Role};

use crate::app::App;
use crate::client_address::client_address;
use crate::describe::Operation;
use crate::problem::{Code, Problem};
use crate::rate_limits::RateLimits;
use crate::scope;
use crate::trace::{Change, Trace, json};

/// The right that a route demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// None: the route is open.
    Nothing,
    /// Any valid key but a scanner's; the handler checks the owner of the record.
    Call,
    /// A key that may change things.
    Write,
    /// Any valid key, a scanner's too; the handler shows what the key may see.
    Watch,
    /// A key that may let guests in: an administrator's, an organiser's or a scanner's.
    Admit,
    /// A key that reads everything: an administrator's, or a viewer's of the user `*`.
    Oversee,
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

impl Guard for Watcher {
    const RIGHT: Right = Right::Watch;
}

impl Guard for Door {
    const RIGHT: Right = Right::Admit;
}

impl Guard for Overseer {
    const RIGHT: Right = Right::Oversee;
}

impl Guard for Admin {
    const RIGHT: Right = Right::Administer;
}

/// Any request: the route is open.
pub(crate) struct Anyone(pub(crate) Trace);

impl<S: Sync> FromRequestParts<S> for Anyone {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(trace(parts)))
    }
}

/// Any request: the route is open, and looks at the key itself, if there is one ([`principal`]).
pub(crate) struct MaybeCaller(pub(crate) HeaderMap, pub(crate) Option<IpAddr>);

impl<S: Sync> FromRequestParts<S> for MaybeCaller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.headers.clone(), client_address(parts)))
    }
}

/// A request with a valid key.
pub(crate) struct Caller(pub(crate) Principal);

/// A request with a key that may change things.
pub(crate) struct Writer(pub(crate) Principal, Trace);

/// A request with a valid key, whatever its role.
pub(crate) struct Watcher(pub(crate) Principal);

/// A request with a key that may let guests in at some event.
pub(crate) struct Door(pub(crate) Principal);

/// A request with a key that reads everything.
pub(crate) struct Overseer(pub(crate) Principal);

/// A request with an administrator's key.
pub(crate) struct Admin(pub(crate) Principal, Trace);

/// The part of the audit log that the request will be.
fn trace(parts: &Parts) -> Trace {
    parts.extensions.get::<Trace>().cloned().unwrap_or_default()
}

/// Guards of routes that change something.
macro_rules! changes_records {
    ($($guard:ident),*) => { $(
        impl $guard {
            /// Notes in the audit log that a record is about to be changed, which is like this now.
            pub(crate) async fn begin(
                &self,
                app: &App,
                subject: Subject,
                before: &impl Serialize,
            ) -> Result<Change, Problem> {
                self.1.begin(app, subject, json(before)).await
            }

            /// Notes in the audit log that something is about to be made or done.
            pub(crate) async fn begin_new(
                &self,
                app: &App,
                subject: Subject,
            ) -> Result<Change, Problem> {
                self.1.begin(app, subject, None).await
            }
        }
    )* };
}

changes_records!(Writer, Admin);

impl Caller {
    /// Refuses unless the caller may read records of `owner`.
    pub(crate) fn must_read(&self, owner: &str) -> Result<(), Problem> {
        if self.0.may_read(owner) { Ok(()) } else { Err(Problem::not_yours()) }
    }
}

impl Writer {
    /// The request's part of the audit log.
    pub(crate) fn trace(&self) -> &Trace {
        &self.1
    }

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
    let from = client_address(parts);
    let principal = principal(&app.identity, &app.rates, &parts.headers, from).await?;
    let principal = principal.ok_or_else(no_key)?;
    app.rates.count_key(parts, &principal).await?;
    // The memory of the request's body is counted for its user (`body.rs`).
    parts.extensions.insert(principal.clone());
    // Also those who are refused next are in the audit log.
    trace(parts).known(&principal);
    Ok(principal)
}

/// The user whom a guard let in, so that a second one need not ask again.
#[derive(Clone)]
struct LetIn(Right, Principal);

/// The user of a request whose key has the right, and reaches what the request is about.
pub(crate) async fn let_in(
    parts: &mut Parts,
    app: &App,
    right: Right,
) -> Result<Principal, Problem> {
    if let Some(LetIn(known, principal)) = parts.extensions.get::<LetIn>()
        && *known == right
    {
        return Ok(principal.clone());
    }
    let principal = signed_in(parts, app).await?;
    right.check(&principal)?;
    scope::check(parts, app, &principal).await?;
    Ok(principal)
}

/// Lets a request in before its handler's guard does.
pub(crate) async fn let_in_early(
    parts: &mut Parts,
    app: &App,
    right: Right,
) -> Result<Principal, Problem> {
    let principal = let_in(parts, app, right).await?;
    parts.extensions.insert(LetIn(right, principal.clone()));
    Ok(principal)
}

impl Right {
    /// Refuses a user who does not have the right.
    fn check(self, principal: &Principal) -> Result<(), Problem> {
        let roles = self.roles();
        match self {
            Self::Oversee if principal.reads_everything() => Ok(()),
            Self::Oversee => {
                Err(Problem::forbidden("without a viewer's key of user *, this", roles))
            }
            _ if roles.contains(&principal.role) => Ok(()),
            _ => Err(Problem::forbidden("this", roles)),
        }
    }

    /// The roles that have the right. A scanner's key opens doors only: who finds a lost phone must not read the lists
    /// of guests.
    fn roles(self) -> &'static [Role] {
        match self {
            Self::Nothing | Self::Watch => &Role::ALL,
            Self::Call => &[Role::Viewer, Role::Organiser, Role::Admin],
            Self::Write => &[Role::Organiser, Role::Admin],
            Self::Admit => &[Role::Scanner, Role::Organiser, Role::Admin],
            // Of viewers, only those of everybody have it, too.
            Self::Oversee | Self::Administer => &[Role::Admin],
        }
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let_in(parts, app, Self::RIGHT).await.map(Self)
    }
}

impl FromRequestParts<App> for Writer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let principal = let_in(parts, app, Self::RIGHT).await?;
        Ok(Self(principal, trace(parts)))
    }
}

impl FromRequestParts<App> for Watcher {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let_in(parts, app, Self::RIGHT).await.map(Self)
    }
}

impl FromRequestParts<App> for Door {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let_in(parts, app, Self::RIGHT).await.map(Self)
    }
}

impl FromRequestParts<App> for Overseer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let_in(parts, app, Self::RIGHT).await.map(Self)
    }
}

impl FromRequestParts<App> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let principal = let_in(parts, app, Self::RIGHT).await?;
        Ok(Self(principal, trace(parts)))
    }
}

/// The user of a request's key or token, if it has one; an invalid one is refused, and counted for its address.
pub(crate) async fn principal(
    identity: &Identity,
    rates: &RateLimits,
    headers: &HeaderMap,
    from: Option<IpAddr>,
) -> Result<Option<Principal>, Problem> {
    let Some(credential) = presented_key(headers)? else { return Ok(None) };
    known(identity, rates, credential, from).await.map(Some)
}

/// The user of a key or token; an invalid one is refused, and counted for its address.
pub(crate) async fn known(
    identity: &Identity,
    rates: &RateLimits,
    credential: &str,
    from: Option<IpAddr>,
) -> Result<Principal, Problem> {
    rates.refuse_guess(credential, from)?;
    match identity.principal(credential, from).await? {
        Ok(principal) => {
            rates.note_proved(credential);
            Ok(principal)
        }
        Err(reason) => Err(rates.count_failure(credential, from, reason).await),
    }
}

/// The answer to a request without a key.
pub(crate) fn no_key() -> Problem {
    unauthorized("an API key is needed: send it as \"Authorization: Bearer <key>\"")
}

fn unauthorized(detail: &str) -> Problem {
    Problem::new(Code::Unauthorized, detail)
}

/// `Authorization: Bearer <key>` or `X-API-Key: <key>`.
pub(crate) fn presented_key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
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
