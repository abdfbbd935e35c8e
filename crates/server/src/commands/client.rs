//! A client of our own API, for commands that talk to a running server.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use reqwest::{Method, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Talks to one server with one key.
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    key: String,
}

impl Client {
    pub(crate) fn new(base: &str, key: &str) -> Result<Self> {
        let http = reqwest::Client::builder().timeout(Duration::from_secs(120)).build()?;
        Ok(Self { http, base: base.trim_end_matches('/').to_owned(), key: key.to_owned() })
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        Ok(self.send(Method::GET, path, None).await?.json().await?)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        Ok(self.send(Method::POST, path, Some(body)).await?.json().await?)
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Result<Value> {
        Ok(self.send(Method::PUT, path, Some(body)).await?.json().await?)
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Result<Value> {
        Ok(self.send(Method::PATCH, path, Some(body)).await?.json().await?)
    }

    /// Deletes; the server may have something to say about it.
    pub(crate) async fn delete(&self, path: &str) -> Result<Option<Value>> {
        Ok(self.send(Method::DELETE, path, None).await?.json().await.ok())
    }

    pub(crate) async fn bytes(&self, path: &str) -> Result<Vec<u8>> {
        Ok(self.send(Method::GET, path, None).await?.bytes().await?.to_vec())
    }

    /// Checks that the server is ready. The error is the answer of a server that is not ready, or `None`
    /// without an answer.
    pub(crate) async fn readiness(&self) -> std::result::Result<(), Option<Value>> {
        match self.http.get(format!("{}/ready", self.base)).send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(answer.json().await.ok()),
            Err(_) => Err(None),
        }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Response> {
        let url = format!("{}{path}", self.base);
        let mut request = self.http.request(method, &url).bearer_auth(&self.key);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.with_context(|| {
            format!(
                "no answer from {}. Is the server running there? Start it with: make run",
                self.base
            )
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let problem: Value = response.json().await.unwrap_or_default();
        match (problem["error"].as_str(), status.as_u16()) {
            (Some(error), 401 | 403) => {
                bail!("{error}; is it the key of somebody who may do this?")
            }
            (Some(error), _) => bail!("{error}"),
            (None, _) => bail!("{path}: {status}, and no explanation"),
        }
    }
}
