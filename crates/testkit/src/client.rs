//! A client for raw HTTP; a failed expectation shows the answer. Typed requests: `stampede_client`.

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

/// Sends requests to one server with one key.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    key: Option<String>,
}

/// The answer of a server.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: reqwest::header::HeaderMap,
    /// The body as bytes.
    pub bytes: Vec<u8>,
    /// The body as JSON; `null` if it is not.
    pub body: Value,
}

impl Answer {
    /// The body; panics if the status is another.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.bytes));
        self.body
    }
}

impl Client {
    /// A client for the server at `base`.
    pub fn new(base: String, key: Option<&str>) -> Self {
        Self { http: reqwest::Client::new(), base, key: key.map(str::to_owned) }
    }

    /// The same client with connections of its own.
    pub fn separate(&self) -> Self {
        Self { http: reqwest::Client::new(), ..self.clone() }
    }

    /// Starts a request that the test builds by itself.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        send(self.request(Method::GET, path)).await
    }

    /// GET of a server that may be away.
    pub async fn try_get(&self, path: &str) -> Result<Answer, String> {
        try_send(self.request(Method::GET, path)).await
    }

    /// POST of JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        send(self.request(Method::POST, path).json(body)).await
    }

    /// PUT of JSON.
    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        send(self.request(Method::PUT, path).json(body)).await
    }

    /// PATCH of JSON.
    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        send(self.request(Method::PATCH, path).json(body)).await
    }

    /// DELETE.
    pub async fn delete(&self, path: &str) -> Answer {
        send(self.request(Method::DELETE, path)).await
    }
}

/// Sends a request that the test built by itself.
pub async fn send(request: RequestBuilder) -> Answer {
    try_send(request).await.unwrap_or_else(|error| panic!("no answer: {error}"))
}

async fn try_send(request: RequestBuilder) -> Result<Answer, String> {
    let response = request.send().await.map_err(|error| format!("{error:?}"))?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let bytes = response.bytes().await.map_err(|error| error.to_string())?.to_vec();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    Ok(Answer { status, headers, bytes, body })
}
