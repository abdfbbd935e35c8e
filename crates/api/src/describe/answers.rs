//! The types that handlers answer with: each knows its status and its content.

use std::convert::Infallible;
use std::marker::PhantomData;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use stampede_wire::cluster::Readiness;

use super::operation::Operation;
use crate::problem::Problem;

/// An answer that describes itself.
pub(crate) trait Answer {
    /// Whether it tells of a change that is in the audit log.
    const AUDITED: bool = false;

    /// Adds to the description of the operation.
    fn describe(operation: &mut Operation<'_>);
}

impl<T: JsonSchema> Answer for Json<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.answers_json::<T>(200, "Done.");
    }
}

impl<A: Answer> Answer for Result<A, Problem> {
    const AUDITED: bool = A::AUDITED;

    fn describe(operation: &mut Operation<'_>) {
        A::describe(operation);
    }
}

/// A route that always refuses.
impl Answer for Infallible {
    fn describe(_: &mut Operation<'_>) {}
}

/// 201: the record was created.
pub(crate) struct Created<T>(pub(crate) T);

impl<T: JsonSchema> Answer for Created<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.answers_json::<T>(201, "Created.");
    }
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, Json(self.0)).into_response()
    }
}

/// 202: it is being done.
pub(crate) struct Accepted<T>(pub(crate) T);

impl<T: JsonSchema> Answer for Accepted<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.answers_json::<T>(202, "Accepted: it is being done.");
    }
}

impl<T: Serialize> IntoResponse for Accepted<T> {
    fn into_response(self) -> Response {
        (StatusCode::ACCEPTED, Json(self.0)).into_response()
    }
}

/// An answer with the path of the record that it is about.
pub(crate) struct Located<A>(pub(crate) String, pub(crate) A);

impl<A: Answer> Answer for Located<A> {
    fn describe(operation: &mut Operation<'_>) {
        A::describe(operation);
        operation.answers_with_header("Location", "The path of the record.");
    }
}

impl<A: IntoResponse> IntoResponse for Located<A> {
    fn into_response(self) -> Response {
        let mut response = self.1.into_response();
        if let Ok(path) = HeaderValue::from_str(&self.0) {
            response.headers_mut().insert(LOCATION, path);
        }
        response
    }
}

/// 204: done, and there is nothing to tell.
pub(crate) struct NoContent;

impl Answer for NoContent {
    fn describe(operation: &mut Operation<'_>) {
        operation.answers(204, "Done; there is nothing to tell.", None);
    }
}

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

/// One of two answers.
pub(crate) enum Either<A, B> {
    /// The first.
    One(A),
    /// The second.
    Other(B),
}

impl<A: Answer, B: Answer> Answer for Either<A, B> {
    fn describe(operation: &mut Operation<'_>) {
        A::describe(operation);
        B::describe(operation);
    }
}

impl<A: IntoResponse, B: IntoResponse> IntoResponse for Either<A, B> {
    fn into_response(self) -> Response {
        match self {
            Self::One(answer) => answer.into_response(),
            Self::Other(answer) => answer.into_response(),
        }
    }
}

/// 200 or 503 with the state of the node.
pub(crate) struct ReadyOrNot(pub(crate) StatusCode, pub(crate) Readiness);

impl Answer for ReadyOrNot {
    fn describe(operation: &mut Operation<'_>) {
        operation.answers_json::<Readiness>(200, "The node can do its work.");
        operation.answers_json::<Readiness>(503, "The node cannot do its work.");
    }
}

impl IntoResponse for ReadyOrNot {
    fn into_response(self) -> Response {
        (self.0, Json(self.1)).into_response()
    }
}

/// A kind of answer that is no JSON.
pub(crate) trait Kind {
    /// Adds to the description of the operation.
    fn describe(operation: &mut Operation<'_>);
}

/// An answer of a kind, such as a file.
pub(crate) struct Sent<K>(Response, PhantomData<K>);

impl<K> Sent<K> {
    /// The answer, which must be of this kind.
    pub(crate) fn new(response: Response) -> Self {
        Self(response, PhantomData)
    }
}

impl<K: Kind> Answer for Sent<K> {
    fn describe(operation: &mut Operation<'_>) {
        K::describe(operation);
    }
}

impl<K> IntoResponse for Sent<K> {
    fn into_response(self) -> Response {
        self.0
    }
}
