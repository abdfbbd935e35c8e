//! Ids from paths. A text that is no id is answered with 404, like an unknown id.

use axum::extract::{FromRequestParts, Path};
use http::StatusCode;
use http::request::Parts;
use std::str::FromStr;

use crate::app::App;
use crate::problem::Problem;
use crate::unknown;

/// An id from the path. A text that is no id is answered with 404, like an unknown id.
pub(crate) struct Id<T>(pub(crate) T);

impl<T: FromStr + Send> FromRequestParts<App> for Id<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, app).await {
            Ok(Path(text)) => parsed(&text).map(Self),
            Err(_) => Err(Problem::new(StatusCode::NOT_FOUND, "not found")),
        }
    }
}

/// Two ids from the path, each read like [`Id`].
pub(crate) struct Ids<A, B>(pub(crate) A, pub(crate) B);

impl<A: FromStr + Send, B: FromStr + Send> FromRequestParts<App> for Ids<A, B> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        match Path::<(String, String)>::from_request_parts(parts, app).await {
            Ok(Path((a, b))) => Ok(Self(parsed(&a)?, parsed(&b)?)),
            Err(_) => Err(Problem::new(StatusCode::NOT_FOUND, "not found")),
        }
    }
}

fn parsed<T: FromStr>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| {
        let detail = format!("not found: {:?} is not an id", unknown::shown(text));
        Problem::new(StatusCode::NOT_FOUND, detail)
    })
}
