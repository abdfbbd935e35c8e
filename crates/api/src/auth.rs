//! Who is asking: every route takes a [`Caller`], so that none is open by mistake.

use axum::extract::FromRequestParts;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use stampede_model::{KeyHash, Principal, Role};
use stampede_store::Store;

use crate::app::App;
use crate::problem::Problem;

/// A request with a valid key.
pub(crate) struct Caller(pub(crate) Principal);

impl Caller {
    /// Refuses unless the caller may read records of `owner`.
    pub(crate) fn must_read(&self, owner: &str) -> Result<(), Problem> {
        if self.0.may_read(owner) { Ok(()) } else { Err(Problem::forbidden()) }
    }

    /// Refuses unless the caller may change records of `owner`.
    pub(crate) fn must_change(&self, owner: &str) -> Result<(), Problem> {
        self.must_write()?;
        self.must_read(owner)
    }

    /// Refuses all but administrators.
    pub(crate) fn must_administer(&self) -> Result<(), Problem> {
        if self.0.role == Role::Admin { Ok(()) } else { Err(Problem::forbidden()) }
    }

    /// Refuses callers who may only look.
    pub(crate) fn must_write(&self) -> Result<(), Problem> {
        if self.0.may_write() { Ok(()) } else { Err(Problem::forbidden()) }
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let principal = principal(&app.store, &parts.headers).await?;
        principal.map(Self).ok_or_else(|| {
            unauthorized("an API key is needed: send it as \"Authorization: Bearer <key>\"")
        })
    }
}

/// Who is asking, if there is a key; one that is not valid is refused.
pub(crate) async fn principal(
    store: &Store,
    headers: &HeaderMap,
) -> Result<Option<Principal>, Problem> {
    let Some(key) = presented_key(headers) else { return Ok(None) };
    let principal = store.principal(&KeyHash::of(key)).await?;
    principal.map(Some).ok_or_else(|| unauthorized("this API key is not valid"))
}

fn unauthorized(detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, detail)
}

/// `Authorization: Bearer <key>` or `X-API-Key: <key>`.
fn presented_key(headers: &HeaderMap) -> Option<&str> {
    if let Some(key) = headers.get("x-api-key") {
        return key.to_str().ok();
    }
    let (scheme, key) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
}
