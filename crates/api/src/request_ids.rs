//! `X-Request-Id`: every request has an id, which is in its answer, its problems, its log lines and its jobs.
//!
//! A client or proxy may choose the id. Anything but a short text of safe characters is replaced, because the id is written
//! into logs. The id proves nothing and decides nothing: two requests may have the same one.

use std::time::Instant;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue};
use stampede_broker::RequestId;
use tracing::Instrument;

/// The header, of requests and of answers.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Runs a request under its id. The span has the level of errors: a lower one would be missing in the log of warnings.
pub(crate) async fn identify(request: Request, next: Next) -> Response {
    let id = chosen(request.headers()).unwrap_or_else(RequestId::generate);
    let span = tracing::error_span!("request", request_id = %id);
    let header = HeaderValue::from_str(id.as_str());
    let mut response = id.scope(answered(request, next)).instrument(span).await;
    if let Ok(header) = header {
        response.headers_mut().insert(X_REQUEST_ID, header);
    }
    response
}

/// Runs a request; the log of debug lines tells its beginning and its end. The query is left out: it may hold a signature.
async fn answered(request: Request, next: Next) -> Response {
    tracing::debug!(method = %request.method(), path = shown(request.uri().path()), "request");
    let started = Instant::now();
    let response = next.run(request).await;
    tracing::debug!(status = response.status().as_u16(), took = ?started.elapsed(), "answer");
    response
}

/// A path as it is logged: the rest of a link is the key to what it opens.
fn shown(path: &str) -> &str {
    const LINKS: [&str; 2] = ["/api/links/", "/u/"];
    LINKS.into_iter().find(|link| path.starts_with(link)).unwrap_or(path)
}

/// The id that the client chose, if there is exactly one and it is safe.
fn chosen(headers: &HeaderMap) -> Option<RequestId> {
    let mut values = headers.get_all(X_REQUEST_ID).iter();
    let only = values.next().filter(|_| values.next().is_none())?;
    RequestId::parse(only.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_a_link_is_not_logged() {
        for (path, logged) in
            [("/api/links/abc", "/api/links/"), ("/u/abc", "/u/"), ("/api/users", "/api/users")]
        {
            assert_eq!(shown(path), logged);
        }
    }

    #[test]
    fn an_id_is_taken_over_if_it_is_the_only_one_and_safe() {
        let chosen = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(X_REQUEST_ID, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            super::chosen(&headers).map(|id| id.to_string())
        };
        assert_eq!(chosen(&["abc-1"]).as_deref(), Some("abc-1"));
        for refused in [&[][..], &[""], &["a b"], &["ä"], &["a", "a"]] {
            assert_eq!(chosen(refused), None, "{refused:?}");
        }
    }
}
