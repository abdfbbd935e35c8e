//! Versions of records: `ETag` shows one, `If-Match` says which one a change is meant for, `If-None-Match` which one the
//! client has.
//!
//! ```text
//!   "1795000000123"          the version: every change of the record increases it
//!   "1795000000123.9f3ac1"   and a mark of what changes by itself, such as the last use of a key
//! ```
//!
//! `If-None-Match` compares the whole tag: 304 means that the answer would be the same. `If-Match` compares the version
//! alone: a key that was used meanwhile can still be changed. Handlers pass the version on to the store, which compares it
//! in the transaction that makes the change.

use std::convert::Infallible;
use std::fmt;

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use sha2::{Digest, Sha256};
use stampede_model::Timestamp;

use crate::describe::{Answer, Operation};
use crate::problem::{Code, Problem};

/// The version of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    /// Grows with every change that somebody makes.
    number: String,
    /// Marks what changes by itself; `None`: nothing does.
    mark: Option<String>,
}

impl Version {
    /// The version of a record that changes when its content does: a hash of the content.
    pub(crate) fn of_content(content: &impl Serialize) -> Self {
        Self { number: hash(content), mark: None }
    }

    /// The version of a record whose answer also shows what changes by itself.
    pub(crate) fn showing(self, answer: &impl Serialize) -> Self {
        Self { mark: Some(hash(answer)), ..self }
    }

    fn header(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.to_string()).ok()
    }
}

/// The first 64 bits of a hash: enough to tell versions of one record apart.
fn hash(content: &impl Serialize) -> String {
    let text = serde_json::to_vec(content).unwrap_or_default();
    hex::encode(&Sha256::digest(text)[..8])
}

impl From<Timestamp> for Version {
    fn from(updated_at: Timestamp) -> Self {
        Self { number: updated_at.as_millisecond().to_string(), mark: None }
    }
}

/// The revision of a template.
impl From<u32> for Version {
    fn from(revision: u32) -> Self {
        Self { number: revision.to_string(), mark: None }
    }
}

impl Version {
    /// The version of a template whose name was changed after its latest revision.
    pub(crate) fn renamed(revision: u32, updated_at: Timestamp) -> Self {
        Self { number: format!("{revision}-{}", updated_at.as_millisecond()), mark: None }
    }
}

/// As `ETag` writes it.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.mark {
            Some(mark) => write!(f, "\"{}.{mark}\"", self.number),
            None => write!(f, "\"{}\"", self.number),
        }
    }
}

/// An answer with the version of its record as `ETag`; `None`: the record has no versions.
pub(crate) struct Tagged<A>(pub(crate) Option<Version>, pub(crate) A);

impl<A> Tagged<A> {
    /// An answer with the version of its record.
    pub(crate) fn new(version: impl Into<Version>, answer: A) -> Self {
        Self(Some(version.into()), answer)
    }
}

impl<A: Answer> Answer for Tagged<A> {
    fn describe(operation: &mut Operation<'_>) {
        A::describe(operation);
        operation.answers_with_header("ETag", "The version of the record, for `If-Match`.");
    }
}

impl<A: IntoResponse> IntoResponse for Tagged<A> {
    fn into_response(self) -> Response {
        let mut response = self.1.into_response();
        if let Some(tag) = self.0.as_ref().and_then(Version::header) {
            response.headers_mut().insert(ETAG, tag);
        }
        response
    }
}

/// An answer with the version of its record, or 304 if the client has it.
pub(crate) enum Fresh<A> {
    /// The record.
    Whole(Tagged<A>),
    /// The client has this version.
    Unchanged(Version),
}

impl<A: Answer> Answer for Fresh<A> {
    fn describe(operation: &mut Operation<'_>) {
        Tagged::<A>::describe(operation);
    }
}

impl<A: IntoResponse> IntoResponse for Fresh<A> {
    fn into_response(self) -> Response {
        match self {
            Self::Whole(answer) => answer.into_response(),
            Self::Unchanged(version) => {
                Tagged(Some(version), StatusCode::NOT_MODIFIED).into_response()
            }
        }
    }
}

/// `If-Match`: the versions that may be changed.
pub(crate) struct IfMatch(Option<String>);

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(joined(parts, &IF_MATCH)))
    }
}

impl IfMatch {
    /// Refuses unless the version may be changed.
    pub(crate) fn check(&self, version: &Version) -> Result<(), Problem> {
        match &self.0 {
            Some(wanted) if !wanted.split(',').any(|tag| names(tag, version)) => {
                Err(Problem::precondition_failed(version, wanted))
            }
            _ => Ok(()),
        }
    }

    /// Refuses unless the record with this `updated_at` may be changed; returns what the store must still find. `None`: any
    /// version.
    pub(crate) fn demand(&self, updated_at: Timestamp) -> Result<Option<Timestamp>, Problem> {
        self.check(&updated_at.into())?;
        Ok(self.names_versions().then_some(updated_at))
    }

    /// Refuses to make a record, if the client wants to change one that exists.
    pub(crate) fn check_missing(&self) -> Result<(), Problem> {
        match &self.0 {
            Some(_) => {
                let detail = "there is no such record to change; leave out If-Match to make it";
                Err(Problem::new(Code::PreconditionFailed, detail))
            }
            None => Ok(()),
        }
    }

    /// Whether the change is meant for certain versions: not for any, and not for whatever exists (`*`).
    pub(crate) fn names_versions(&self) -> bool {
        self.0.as_ref().is_some_and(|wanted| !wanted.split(',').any(|tag| tag.trim() == "*"))
    }
}

/// Whether an entry of `If-Match` stands for a version. The tag of a compressed answer is weak, and names the same version
/// (`compression.rs`).
fn names(tag: &str, version: &Version) -> bool {
    let tag = tag.trim();
    let tag = tag.strip_prefix("W/").unwrap_or(tag);
    let number = tag.trim_matches('"').split('.').next().unwrap_or_default();
    tag == "*" || number == version.number
}

impl Problem {
    /// 412: the record has another version than the one that the change is meant for.
    pub(crate) fn precondition_failed(version: &Version, wanted: &str) -> Self {
        let detail = format!(
            "the record is at version {version}, not {}: read it, and send your change again with If-Match: {version}",
            crate::unknown::shown(wanted)
        );
        Self::new(Code::PreconditionFailed, detail).with("etag", version.to_string().into())
    }
}

/// `If-None-Match`: the versions that the client has.
#[derive(Default)]
pub(crate) struct IfNoneMatch(Option<String>);

impl<S: Sync> FromRequestParts<S> for IfNoneMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(joined(parts, &IF_NONE_MATCH)))
    }
}

impl IfNoneMatch {
    /// Whether the client has the version with this `ETag`.
    pub(crate) fn has(&self, etag: &str) -> bool {
        let listed = self.0.as_deref().unwrap_or_default();
        let mut tags = listed.split(',').map(str::trim);
        tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
    }

    /// The answer, or 304 if the client has this version.
    pub(crate) fn answer<A>(&self, version: impl Into<Version>, answer: A) -> Fresh<A> {
        let version = version.into();
        match self.has(&version.to_string()) {
            true => Fresh::Unchanged(version),
            false => Fresh::Whole(Tagged(Some(version), answer)),
        }
    }
}

/// All lines of a header as one list. A line that is no text stands for no version.
fn joined(parts: &Parts, name: &http::HeaderName) -> Option<String> {
    let lines: Vec<&str> =
        parts.headers.get_all(name).iter().map(|line| line.to_str().unwrap_or_default()).collect();
    (!lines.is_empty()).then(|| lines.join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn if_match_compares_versions_and_not_what_changes_by_itself() {
        let version = Version { number: "17".into(), mark: None };
        let marked = version.clone().showing(&"used today");
        for (wanted, matches) in [
            (None, true),
            (Some("\"17\""), true),
            (Some("17"), true),
            (Some("\"16\", \"17\""), true),
            (Some("\"17.0000\""), true),
            (Some("*"), true),
            (Some("\"16\""), false),
            (Some("W/\"17\""), true),
            (Some("W/\"16\""), false),
            (Some(""), false),
            (Some("\"1\""), false),
        ] {
            let header = IfMatch(wanted.map(str::to_owned));
            for version in [&version, &marked] {
                assert_eq!(header.check(version).is_ok(), matches, "{wanted:?} {version}");
            }
        }
        let told = IfMatch(Some("\"16\"".into())).check(&version).unwrap_err().to_string();
        assert!(told.contains("is at version \"17\", not \"16\""), "{told}");
    }

    /// Routes that end or remove something that nobody edits.
    const WITHOUT_VERSIONS: [&str; 5] =
        ["revokeTicketKey", "removeJob", "closeBreaker", "liftSuspect", "removeSuppression"];

    #[test]
    fn everything_that_can_be_edited_has_an_etag_and_takes_if_match() {
        let document: Value = serde_json::from_str(crate::describe::openapi()).unwrap();
        let takes = |operation: &Value, name: &str| {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            parameters.into_iter().any(|parameter| parameter["name"] == name)
        };
        let tells = |operation: &Value, status: &str| {
            operation["responses"][status]["headers"]["ETag"].is_object()
        };
        let mut edits = 0;
        for (path, methods) in document["paths"].as_object().unwrap() {
            for method in ["patch", "put", "delete"] {
                let operation = &methods[method];
                let id = operation["operationId"].as_str().unwrap_or_default();
                if id.is_empty() || WITHOUT_VERSIONS.contains(&id) {
                    continue;
                }
                assert!(takes(operation, "If-Match"), "{id} does not take If-Match");
                assert!(operation["responses"]["412"].is_object(), "{id}");
                assert!(method == "delete" || tells(operation, "200"), "{id} tells no ETag");
                let read = &methods["get"];
                assert!(takes(read, "If-None-Match") && tells(read, "200"), "GET {path} for {id}");
                assert!(read["responses"]["304"].is_object(), "GET {path}");
                edits += 1;
            }
        }
        assert!(edits >= 18, "{edits}");
    }

    #[test]
    fn only_named_versions_are_demanded_of_the_store() {
        let at = Timestamp::from_millisecond(17).unwrap();
        let demand = |wanted: Option<&str>| IfMatch(wanted.map(str::to_owned)).demand(at).unwrap();
        assert_eq!(demand(None), None);
        assert_eq!(demand(Some("*")), None);
        assert_eq!(demand(Some("\"17\"")), Some(at));
        assert!(IfMatch(Some("*".into())).check_missing().is_err());
        assert!(IfMatch(None).check_missing().is_ok());
    }

    #[test]
    fn if_none_match_compares_the_whole_tag() {
        let version = Version { number: "17".into(), mark: None };
        let (before, after) = (version.clone().showing(&"never"), version.showing(&"used today"));
        let header = IfNoneMatch(Some(format!("\"3\", W/{before}")));
        assert!(header.has(&before.to_string()) && !header.has(&after.to_string()));
        assert!(IfNoneMatch(Some("*".into())).has("\"17\"") && !IfNoneMatch(None).has("\"17\""));
    }
}
