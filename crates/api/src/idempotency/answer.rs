//! An answer as it is kept: a line of JSON with status and headers, then the body.

use axum::body::{Body, HttpBody, to_bytes};
use axum::response::Response;
use http::header::{CONTENT_TYPE, ETAG, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};

use crate::problem::Problem;

/// Longest body that is kept.
const LONGEST: u64 = 256 << 10;
/// Headers that belong to the answer; all others are made for each request.
const HEADERS: [HeaderName; 3] = [CONTENT_TYPE, LOCATION, ETAG];
/// Says that an answer is that of an earlier request.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The first line.
#[derive(Serialize, Deserialize)]
struct Head {
    status: u16,
    headers: Vec<(String, String)>,
}

/// An answer that was kept.
pub(super) struct KeptAnswer {
    head: Head,
    body: Vec<u8>,
}

impl KeptAnswer {
    /// The answer as bytes to keep, and the answer itself. `None`: it is too long, or a stream.
    pub(super) async fn of(response: Response) -> (Response, Option<Vec<u8>>) {
        let (parts, body) = response.into_parts();
        if body.size_hint().exact().is_none_or(|length| length > LONGEST) {
            return (Response::from_parts(parts, body), None);
        }
        let bytes = match to_bytes(body, LONGEST as usize).await {
            Ok(bytes) => bytes,
            Err(error) => {
                let problem = Problem::internal(&error);
                return (axum::response::IntoResponse::into_response(problem), None);
            }
        };
        let head = Head { status: parts.status.as_u16(), headers: listed(&parts.headers) };
        // Numbers and texts always serialise.
        let mut kept = serde_json::to_vec(&head).unwrap_or_default();
        kept.push(b'\n');
        kept.extend_from_slice(&bytes);
        (Response::from_parts(parts, Body::from(bytes)), Some(kept))
    }

    /// Reads an answer that was kept; `None`: no version of this program has written it.
    pub(super) fn read(kept: &[u8]) -> Option<Self> {
        let end = kept.iter().position(|byte| *byte == b'\n')?;
        let head = serde_json::from_slice(&kept[..end]).ok()?;
        Some(Self { head, body: kept[end + 1..].to_vec() })
    }

    /// The answer once more.
    pub(super) fn replayed(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = StatusCode::from_u16(self.head.status).unwrap_or(StatusCode::OK);
        let headers = response.headers_mut();
        for (name, value) in &self.head.headers {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::from_str(value))
            {
                headers.insert(name, value);
            }
        }
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
        response
    }
}

fn listed(headers: &HeaderMap) -> Vec<(String, String)> {
    let found = HEADERS.iter().filter_map(|name| {
        let value = headers.get(name)?.to_str().ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_comes_out_as_it_went_in() {
        let body = b"{\"a\":\n1}".to_vec();
        let response = Response::builder()
            .status(201)
            .header(CONTENT_TYPE, "application/json")
            .header(LOCATION, "/api/keys/1")
            .header("x-request-id", "r1")
            .body(Body::from(body.clone()))
            .unwrap();
        let (sent, kept) = KeptAnswer::of(response).await;
        assert_eq!(sent.headers()["x-request-id"], "r1");
        let again = KeptAnswer::read(&kept.unwrap()).unwrap().replayed();
        assert_eq!(
            (again.status().as_u16(), &again.headers()[LOCATION]),
            (201, &"/api/keys/1".parse().unwrap())
        );
        assert_eq!(again.headers()[REPLAYED], "true");
        assert!(!again.headers().contains_key("x-request-id"), "it has its own");
        assert_eq!(to_bytes(again.into_body(), 100).await.unwrap(), body);
        assert!(KeptAnswer::read(b"no line").is_none() && KeptAnswer::read(b"x\n").is_none());
    }

    #[tokio::test]
    async fn a_long_answer_is_sent_and_not_kept() {
        let long = vec![b'x'; LONGEST as usize + 1];
        let (sent, kept) = KeptAnswer::of(Response::new(Body::from(long.clone()))).await;
        assert!(kept.is_none());
        assert_eq!(to_bytes(sent.into_body(), long.len()).await.unwrap(), long);
    }
}
