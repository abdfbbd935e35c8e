//! Ids and names from paths. A text that is no id is answered with 404, like an unknown id.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;

use crate::app::App;
use crate::problem::{Code, Problem};
use crate::unknown;

/// An id or a name from the path.
pub(crate) struct Id<T>(pub(crate) T);

impl<T: FromStr + Send> FromRequestParts<App> for Id<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, app).await {
            Ok(Path(text)) => parsed(&text).map(Self),
            Err(_) => Err(not_found()),
        }
    }
}

/// Two ids or names from the path, each read like [`Id`].
pub(crate) struct Ids<A, B>(pub(crate) A, pub(crate) B);

impl<A: FromStr + Send, B: FromStr + Send> FromRequestParts<App> for Ids<A, B> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        match Path::<(String, String)>::from_request_parts(parts, app).await {
            Ok(Path((a, b))) => Ok(Self(parsed(&a)?, parsed(&b)?)),
            Err(_) => Err(not_found()),
        }
    }
}

/// Three names from the path.
pub(crate) struct Names(pub(crate) [String; 3]);

impl FromRequestParts<App> for Names {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        match Path::<(String, String, String)>::from_request_parts(parts, app).await {
            Ok(Path((a, b, c))) => Ok(Self([a, b, c])),
            Err(_) => Err(not_found()),
        }
    }
}

/// 404 for a path that is no text.
fn not_found() -> Problem {
    Problem::new(Code::NotFound, "not found")
}

fn parsed<T: FromStr>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| {
        let detail = format!("not found: {:?} is not an id", unknown::shown(text));
        Problem::new(Code::NotFound, detail)
    })
}
