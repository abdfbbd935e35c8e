//! `GET /api/openapi.json` and `GET /api/docs`: the API's description of itself.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use schemars::json_schema;

use crate::app::App;
use crate::auth::Anyone;
use crate::describe::{Document, Kind, Operation, Sent};

/// The OpenAPI document.
pub(crate) struct OpenApi;

impl Kind for OpenApi {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({ "type": "object" });
        let about = "An OpenAPI 3.1 document.";
        operation.answers(200, about, Some(("application/json", schema)));
    }
}

/// A page for people.
pub(crate) struct Html;

impl Kind for Html {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({ "type": "string" });
        operation.answers(200, "A page without scripts.", Some(("text/html", schema)));
    }
}

/// The OpenAPI document of this server.
pub(crate) async fn openapi(_: State<App>, _: Anyone) -> Sent<OpenApi> {
    Sent::new(answer("application/json", "default-src 'none'", &Document::get().json))
}

/// The document as a page. It loads nothing: no script, no picture, no font.
pub(crate) async fn page(_: State<App>, _: Anyone) -> Sent<Html> {
    let document = Document::get();
    Sent::new(answer("text/html; charset=utf-8", &document.policy, &document.page))
}

fn answer(kind: &str, policy: &str, text: &'static str) -> Response {
    Response::builder()
        .header(CONTENT_TYPE, kind)
        .header(CONTENT_SECURITY_POLICY, policy)
        .header(X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(CACHE_CONTROL, "no-cache")
        .body(Body::from(text))
        .unwrap_or_else(|_| Response::new(Body::empty()))
}
