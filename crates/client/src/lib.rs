//! A typed client of the HTTP API, for the command line, benchmarks and tests.
//!
//! | file | rooms |
//! |---|---|
//! | `ticketing.rs` | events, orders, tickets, batches, templates |
//! | `checkin.rs` | devices of the check-in |
//! | `identity.rs` | API keys |
//! | `webhooks.rs` | webhooks and their deliveries |
//! | `campaigns.rs` | campaigns, recipients, accounts, suppressed addresses |
//! | `stickers.rs` | stickers |
//! | `audit.rs` | the audit log |
//! | `live.rs` | live streams |
//! | `queues.rs` | queues, jobs, dead letters, schedules, limits, breakers |
//! | `cluster.rs` | nodes, the cluster, scaling history, health |
//! | `uploads.rs` | files of guests, ZIPs of batches |
//! | `sample.rs` | an event and guests for demonstrations |
//!
//! Answers are structs of `stampede_wire`; a refusal is an [`Error`] with the server's problem. This crate must never
//! know how the server does its work.

mod audit;
mod campaigns;
mod checkin;
mod cluster;
mod error;
mod identity;
mod live;
mod queues;
pub mod sample;
mod stickers;
mod ticketing;
mod uploads;
mod webhooks;

use std::time::Duration;

use reqwest::{Method, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::form_urlencoded::byte_serialize;

pub use audit::AuditQuery;
pub use campaigns::{NewAccount, NewContract, RecipientFile, RecipientQuery};
pub use error::Error;
pub use identity::{KeyQuery, NewKey};
pub use live::{Message, Stream};
pub use queues::{JobQuery, LetterQuery, Page};
pub use stickers::{BatchSticker, DrawnSticker, NewSticker};
pub use ticketing::{
    AnyTemplate, Guest, NewEvent, NewOrder, NewTemplate, TemplateChoice, TemplateUpdate,
};
pub use uploads::{GuestFile, Pieces};
pub use webhooks::{DeliveryQuery, NewWebhook};

/// Longest time for one request; orders of 100,000 tickets take seconds.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The result of a request.
pub type Result<T> = std::result::Result<T, Error>;

/// Sends requests to one server with one key.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    key: String,
}

impl Client {
    /// A client of the server at `base`, with an API key.
    pub fn new(base: &str, key: &str) -> Result<Self> {
        let http = reqwest::Client::builder().timeout(TIMEOUT).build().map_err(Error::Setup)?;
        Ok(Self { http, base: base.trim_end_matches('/').to_owned(), key: key.to_owned() })
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.read(path, self.send(Method::GET, path, None::<&()>).await?).await
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T> {
        self.read(path, self.send(Method::POST, path, Some(body)).await?).await
    }

    async fn put<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T> {
        self.read(path, self.send(Method::PUT, path, Some(body)).await?).await
    }

    async fn patch<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T> {
        self.read(path, self.send(Method::PATCH, path, Some(body)).await?).await
    }

    /// DELETE; the answer has a body only if the server has a note.
    async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>> {
        let response = self.send(Method::DELETE, path, None::<&()>).await?;
        if response.status() == reqwest::StatusCode::NO_CONTENT {
            return Ok(None);
        }
        self.read(path, response).await.map(Some)
    }

    async fn bytes(&self, path: &str) -> Result<Vec<u8>> {
        let response = self.send(Method::GET, path, None::<&()>).await?;
        Ok(response.bytes().await.map_err(|source| self.no_answer(source))?.to_vec())
    }

    async fn read<T: DeserializeOwned>(&self, path: &str, response: Response) -> Result<T> {
        let bytes = response.bytes().await.map_err(|source| self.no_answer(source))?;
        serde_json::from_slice(&bytes)
            .map_err(|source| Error::Unreadable { path: path.to_owned(), source })
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<Response> {
        let mut request =
            self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.key);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(|source| self.no_answer(source))?;
        Self::accepted(path, response).await
    }

    /// The answer, unless it refuses.
    async fn accepted(path: &str, response: Response) -> Result<Response> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        Err(match response.json().await {
            Ok(problem) => Error::Refused { status: status.as_u16(), problem: Box::new(problem) },
            Err(_) => Error::Unexplained { path: path.to_owned(), status: status.to_string() },
        })
    }

    fn no_answer(&self, source: reqwest::Error) -> Error {
        Error::NoAnswer { base: self.base.clone(), source }
    }
}

/// A name as one segment of a path. Spaces do not become plus signs there.
fn segment(name: &str) -> String {
    byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
}

/// A path with a query; parameters without a value are left out.
fn with_query(path: &str, query: &[(&str, Option<&str>)]) -> String {
    let mut url = path.to_owned();
    for (name, value) in query {
        if let Some(value) = value {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.extend([name, "="]);
            url.extend(byte_serialize(value.as_bytes()));
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_in_paths_and_queries() {
        assert_eq!(segment("queue:a b/c"), "queue%3Aa%20b%2Fc");
        let query = [("skip", Some("5")), ("state", None), ("search", Some("a&b c"))];
        assert_eq!(with_query("/api/x", &query), "/api/x?skip=5&search=a%26b+c");
        assert_eq!(with_query("/api/x", &[("state", None)]), "/api/x");
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_named_with_what_to_do() {
        let client = Client::new("http://127.0.0.1:1/", "stp_x").unwrap();
        let error = client.nodes().await.unwrap_err();
        assert!(matches!(error, Error::NoAnswer { .. }));
        let text = error.to_string();
        assert!(text.contains("http://127.0.0.1:1.") && text.contains("make run"), "{text}");
        assert_eq!(client.readiness().await, Err(None));
    }
}
