//! One POST to an endpoint: see the crate `outbound`, which guards addresses and keeps the limits.

use std::time::Duration;

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use stampede_outbound::{AllowedAddresses, Limits, Request};
use url::Url;

/// Most bytes that are read of a body.
const MOST_READ: usize = 64 << 10;
/// Bytes of a body that are kept.
const KEPT: usize = 4 << 10;

/// The answer of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The pause that `Retry-After` asks for.
    pub(crate) retry_after: Option<Duration>,
    /// The beginning of the body, without control characters.
    pub(crate) text: String,
}

/// Sends messages.
pub(crate) struct Client {
    outbound: stampede_outbound::Client,
}

impl Client {
    pub(crate) fn new(allowed: AllowedAddresses) -> Self {
        // Messages to one endpoint are rare: each has a connection of its own.
        let limits = Limits { most_body: MOST_READ, idle: 0, ..Limits::default() };
        Self { outbound: stampede_outbound::Client::new(allowed, limits) }
    }

    /// The addresses that may be reached besides public ones.
    pub(crate) fn allowed(&self) -> &AllowedAddresses {
        self.outbound.allowed()
    }

    /// Sends one message; the error says why there is no answer. It is for the endpoint's owner, so it names no address.
    pub(crate) async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: String,
    ) -> Result<Answer, String> {
        let request =
            Request { method: Method::POST, url: url.clone(), headers, body: body.into() };
        let answer = self.outbound.send(request).await.map_err(|error| error.to_string())?;
        let (retry_after, text) = (answer.retry_after(), answer.text(KEPT));
        Ok(Answer { status: answer.status, retry_after, text })
    }
}

/// The headers of all messages.
pub(crate) fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let agent = concat!("Stampede-Webhooks/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    headers
}
