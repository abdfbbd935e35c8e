//! Reading requests: ids from paths, JSON from bodies, every mistake named with its field.

use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value};
use stampede_model::{Currency, Limit, Money, check_email, check_text};
use std::str::FromStr;
use std::time::Duration;

use crate::app::App;
use crate::problem::{FieldError, Problem};
use crate::unknown;

/// Unknown fields named in one answer.
const MAX_UNKNOWN: usize = 20;

/// A body has to arrive within this time.
const BODY_PATIENCE: Duration = Duration::from_secs(30);

/// An id from the path. A text that is no id is answered with 404, like an unknown id.
pub(crate) struct Id<T>(pub(crate) T);

impl<T: FromStr + Send> FromRequestParts<App> for Id<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let text = Path::<String>::from_request_parts(parts, app).await;
        text.ok()
            .and_then(|Path(text)| text.parse().ok())
            .map(Id)
            .ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "not found"))
    }
}

/// Two ids from the path, each read like [`Id`].
pub(crate) struct Ids<A, B>(pub(crate) A, pub(crate) B);

impl<A: FromStr + Send, B: FromStr + Send> FromRequestParts<App> for Ids<A, B> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let texts = Path::<(String, String)>::from_request_parts(parts, app).await;
        texts
            .ok()
            .and_then(|Path((a, b))| Some(Self(a.parse().ok()?, b.parse().ok()?)))
            .ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "not found"))
    }
}

/// A JSON object from the body.
pub(crate) struct Body(pub(crate) Map<String, Value>);

impl FromRequest<App> for Body {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the body must be JSON with \"Content-Type: application/json\"",
            ));
        }
        let limit = app.limits.body_bytes;
        let reading = axum::body::to_bytes(request.into_body(), limit);
        let bytes = match tokio::time::timeout(BODY_PATIENCE, reading).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) if is_too_long(&error) => {
                let detail = format!("the body may have at most {limit} bytes");
                return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
            }
            Ok(Err(error)) => {
                let detail = format!("the body cannot be read: {error}");
                return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
            }
            Err(_) => {
                let detail = format!("the body did not arrive within {BODY_PATIENCE:?}");
                return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, detail));
            }
        };
        parse(&bytes).map(Self)
    }
}

/// A JSON object from the body of a request that needs none: no body is an empty object.
pub(crate) struct MaybeBody(pub(crate) Map<String, Value>);

impl FromRequest<App> for MaybeBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        // A body without a content type must not be taken for none: a limit in it would be ignored.
        if !request.headers().contains_key(CONTENT_TYPE) && request.body().is_end_stream() {
            return Ok(Self(Map::new()));
        }
        Body::from_request(request, app).await.map(|Body(object)| Self(object))
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    std::error::Error::source(error)
        .is_some_and(|cause| cause.is::<http_body_util::LengthLimitError>())
}

fn is_json(headers: &HeaderMap) -> bool {
    let essence = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"))
}

fn parse(bytes: &Bytes) -> Result<Map<String, Value>, Problem> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => {
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "the body must be a JSON object"))
        }
        Err(error) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            format!("the body is not valid JSON: {error}"),
        )),
    }
}

/// Collects the mistakes in the fields of one object, so that a client learns all of them at once.
pub(crate) struct Fields<'a> {
    object: &'a Map<String, Value>,
    path: String,
    errors: Vec<FieldError>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(object: &'a Map<String, Value>) -> Self {
        Self { object, path: String::new(), errors: Vec::new() }
    }

    /// Fields of an object inside another one; `path` ends in a dot.
    pub(crate) fn nested(object: &'a Map<String, Value>, path: String) -> Self {
        Self { object, path, errors: Vec::new() }
    }

    /// The value of a field; absent and `null` are the same.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// Notes a mistake.
    pub(crate) fn wrong(&mut self, name: &str, message: impl std::fmt::Display) {
        self.errors.push(FieldError {
            field: format!("{}{name}", self.path),
            message: message.to_string(),
        });
    }

    /// Whether a field is given as `null`: to be cleared.
    pub(crate) fn is_cleared(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(Value::is_null)
    }

    /// Refuses fields that this request does not know: most likely typos.
    pub(crate) fn only(&mut self, known: &[&str]) {
        self.only_or_fixed(known, &[]);
    }

    /// Refuses unknown fields, and fields of the record that cannot be changed (in a record that was read and sent back).
    pub(crate) fn only_or_fixed(&mut self, known: &[&str], fixed: &[&str]) {
        for name in self.unknown(known) {
            let message = match fixed.contains(&name) {
                true => "cannot be changed".to_owned(),
                false => unknown::remark(name, known),
            };
            self.wrong(&unknown::shown(name), message);
        }
    }

    /// The first fields that are not among those known.
    pub(crate) fn unknown(&self, known: &[&str]) -> Vec<&'a str> {
        let names = self.object.keys().map(String::as_str);
        names.filter(|name| !known.contains(name)).take(MAX_UNKNOWN).collect()
    }

    /// Refuses a request that names none of the fields that could be changed: most likely a typo.
    pub(crate) fn must_name_one_of(&mut self, names: &[&str]) {
        // A typo that was found already explains it.
        if self.errors.is_empty() && !names.iter().any(|name| self.object.contains_key(*name)) {
            let list = names.join(", ");
            self.errors.push(FieldError {
                field: "body".to_owned(),
                message: format!("changes nothing; fields that can be changed: {list}"),
            });
        }
    }

    /// A boolean; absent is false.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let read = |value: &Value| value.as_bool().ok_or("must be true or false");
        self.read(name, read).unwrap_or(false)
    }

    /// Reads a field with a function; notes its mistake. An absent field is no mistake.
    pub(crate) fn read<T, E: std::fmt::Display>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value) -> Result<T, E>,
    ) -> Option<T> {
        match read(self.get(name)?) {
            Ok(value) => Some(value),
            Err(message) => {
                self.wrong(name, message);
                None
            }
        }
    }

    /// A line of text that can be printed on a ticket.
    pub(crate) fn text(&mut self, name: &str, limit: Limit) -> Option<String> {
        self.read(name, |value| check_text(as_text(value)?, limit).map_err(|e| e.to_string()))
    }

    /// A line of text that must be given.
    pub(crate) fn required_text(&mut self, name: &str, limit: Limit) -> Option<String> {
        if self.get(name).is_none() {
            self.wrong(name, "is missing");
        }
        self.text(name, limit)
    }

    pub(crate) fn email(&mut self, name: &str) -> Option<String> {
        self.read(name, |value| check_email(as_text(value)?).map_err(|e| e.to_string()))
    }

    /// An amount, as a number or as text.
    pub(crate) fn money(&mut self, name: &str, currency: Currency) -> Option<Money> {
        self.read(name, |value| {
            let amount = match value {
                Value::Number(number) => number.to_string(),
                Value::String(text) => text.clone(),
                _ => return Err("must be a decimal number such as 49.90".to_owned()),
            };
            Money::parse(&amount, currency).map_err(|e| e.to_string())
        })
    }

    /// Takes over the mistakes found elsewhere.
    pub(crate) fn absorb(&mut self, other: Fields<'_>) {
        self.errors.extend(other.errors);
    }

    /// The number of mistakes so far.
    pub(crate) fn mistakes(&self) -> usize {
        self.errors.len()
    }

    /// The value, or 422 with all mistakes.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, Problem> {
        match value {
            Some(value) if self.errors.is_empty() => Ok(value),
            _ => Err(Problem::invalid(self.errors)),
        }
    }
}

/// The text of a JSON string.
pub(crate) fn as_text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "must be a text".to_owned())
}
