//! The addresses of the page, and how a file is answered.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName,
    IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::files::{MANIFEST, PAGE, SERVICE_WORKER};
use crate::headers::security;
use crate::site::{Sent, Site};

/// Its address changes when the file does.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// Asked for every time; the answer is 304 while it is the same.
const ASK_FIRST: &str = "no-cache";

/// The pages as a service. None of them needs a key.
pub fn router() -> Router {
    let site = Arc::new(Site::new());
    Router::new()
        .route("/gate", get(page))
        .route("/gate/sw.js", get(service_worker))
        .route("/gate/manifest.webmanifest", get(manifest))
        .route("/gate/{version}/{*path}", get(asset))
        .with_state(site)
}

async fn page(State(site): State<Arc<Site>>, headers: HeaderMap) -> Response {
    answer(site.file(PAGE), &headers, ASK_FIRST)
}

async fn service_worker(State(site): State<Arc<Site>>, headers: HeaderMap) -> Response {
    let mut response = answer(site.file(SERVICE_WORKER), &headers, ASK_FIRST);
    // Without this it could only watch over addresses below its own folder, and /gate is not one.
    let allowed = HeaderName::from_static("service-worker-allowed");
    response.headers_mut().insert(allowed, HeaderValue::from_static("/gate"));
    response
}

async fn manifest(State(site): State<Arc<Site>>, headers: HeaderMap) -> Response {
    answer(site.file(MANIFEST), &headers, ASK_FIRST)
}

async fn asset(
    State(site): State<Arc<Site>>,
    Path((version, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    // Modules of two versions must never meet in one page.
    let file = site.file(&path).filter(|_| version == site.version);
    answer(file, &headers, FOR_EVER)
}

/// Answers with a file, compressed if the browser takes that, or tells it that it has the file already.
fn answer(file: Option<&Sent>, request: &HeaderMap, caching: &'static str) -> Response {
    let Some(file) = file else {
        let text = "there is no such file; reload the page, it may be of an older version\n";
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let mut response = if names(request, IF_NONE_MATCH, &file.tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if let Some(gzip) =
        file.gzip.as_ref().filter(|_| names(request, ACCEPT_ENCODING, "gzip"))
    {
        ([(CONTENT_ENCODING, "gzip")], gzip.clone()).into_response()
    } else {
        file.body.clone().into_response()
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.kind.content_type()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&file.tag) {
        headers.insert(ETAG, tag);
    }
    headers.extend(security(file.kind));
    response
}

/// Whether a list in a header has this member. `gzip;q=0` is a refusal that no browser sends.
fn names(request: &HeaderMap, header: HeaderName, member: &str) -> bool {
    let values = request.get_all(header).into_iter().filter_map(|value| value.to_str().ok());
    let mut members = values.flat_map(|value| value.split(','));
    members.any(|given| {
        let given = given.trim();
        let given = given.strip_prefix("W/").unwrap_or(given);
        given.split(';').next() == Some(member)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(path: &str, headers: &[(HeaderName, &str)]) -> Response {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
        answer(Site::new().file(path), &headers.collect(), FOR_EVER)
    }

    #[test]
    fn a_browser_that_has_the_file_is_not_sent_it_again() {
        let first = asked(PAGE, &[]);
        assert_eq!(first.status(), StatusCode::OK);
        let tag = first.headers()[ETAG].to_str().unwrap().to_owned();
        let again = asked(PAGE, &[(IF_NONE_MATCH, &format!("\"other\", W/{tag}"))]);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(again.headers()[ETAG], tag);
    }

    #[test]
    fn a_file_is_compressed_only_for_those_who_take_it() {
        let taken = asked("js/main.js", &[(ACCEPT_ENCODING, "br, gzip;q=0.8")]);
        assert_eq!(taken.headers()[CONTENT_ENCODING], "gzip");
        assert!(
            !asked("js/main.js", &[(ACCEPT_ENCODING, "br")])
                .headers()
                .contains_key(CONTENT_ENCODING)
        );
    }

    #[test]
    fn only_the_page_may_use_the_camera_and_nothing_runs_that_is_not_ours() {
        let page = asked(PAGE, &[]);
        let camera = |response: &Response| response.headers()["permissions-policy"].clone();
        assert!(camera(&page).to_str().unwrap().starts_with("camera=(self)"));
        assert!(camera(&asked("js/main.js", &[])).to_str().unwrap().starts_with("camera=()"));
        let policy = page.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("script-src 'self';") && !policy.contains("unsafe"), "{policy}");
    }

    #[test]
    fn a_file_that_is_not_there_is_told_so() {
        assert_eq!(asked("js/other.js", &[]).status(), StatusCode::NOT_FOUND);
    }
}
