//! HTTP requests to a product whose nodes die and whose connections break: each is repeated until it is answered.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use stampede_testkit::ADMIN_KEY;

use super::ledger::Site;

/// How long one try may take. A frozen node answers nothing.
const TRY: Duration = Duration::from_secs(12);
/// The pause after a try without an answer.
const PAUSE: Duration = Duration::from_millis(250);

/// An answer that is no outage.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
    /// Whether an earlier try may have been carried out without an answer.
    pub(super) was_unknown: bool,
}

/// Sends requests as the administrator, to any node.
#[derive(Clone)]
pub(super) struct Caller {
    http: reqwest::Client,
    site: Site,
}

impl Caller {
    pub(super) fn new(site: &Site) -> Self {
        let http = reqwest::Client::builder().timeout(TRY).build();
        Self {
            http: http.unwrap_or_else(|error| panic!("no HTTP client: {error}")),
            site: site.clone(),
        }
    }

    /// Repeats a request until a node answers with something else than an outage.
    pub(super) async fn until_answered(
        &self,
        method: Method,
        path: &str,
        build: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Answer {
        let mut was_unknown = false;
        loop {
            let node = &self.site.nodes[fastrand::usize(..self.site.nodes.len())];
            let request =
                self.http.request(method.clone(), format!("{node}{path}")).bearer_auth(ADMIN_KEY);
            match answer(build(request)).await {
                Ok((status, body)) if !is_outage(status) => {
                    self.site.answers.count(status.to_string());
                    return Answer { status, body, was_unknown };
                }
                Ok((status, _)) => {
                    self.site.answers.count(status.to_string());
                    // An internal error is a mistake of ours, even if the next try succeeds.
                    if status == 500 {
                        self.site
                            .answers
                            .count(format!("of which for {method} {}", without_ids(path)));
                    }
                    was_unknown = true;
                }
                Err(()) => {
                    self.site.answers.count("no answer");
                    was_unknown = true;
                }
            }
            tokio::time::sleep(PAUSE.mul_f64(0.5 + fastrand::f64())).await;
        }
    }

    /// GET without a proxy, once; `Err` says what came instead of 200.
    pub(super) async fn get(&self, path: &str) -> Result<Value, String> {
        let request = self.http.get(format!("{}{path}", self.site.direct)).bearer_auth(ADMIN_KEY);
        match answer(request).await {
            Ok((200, body)) => Ok(body),
            Ok((status, body)) => Err(format!("{path}: {status} {body}")),
            Err(()) => Err(format!("{path}: no answer")),
        }
    }

    /// GET of a file without a proxy, once.
    pub(super) async fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        let request = self.http.get(format!("{}{path}", self.site.direct)).bearer_auth(ADMIN_KEY);
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let (status, bytes) =
            (answer.status(), answer.bytes().await.map_err(|error| error.to_string())?);
        if status == 200 {
            Ok(bytes.to_vec())
        } else {
            Err(format!("{status} {}", String::from_utf8_lossy(&bytes)))
        }
    }
}

/// A path such as `/api/tickets/…`, the same for all records.
fn without_ids(path: &str) -> String {
    let word = |word: &str| if word.len() == 36 { "…".to_owned() } else { word.to_owned() };
    path.split('/').map(word).collect::<Vec<_>>().join("/")
}

/// The server says itself that it could not do it now.
fn is_outage(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..)
}

async fn answer(request: RequestBuilder) -> Result<(u16, Value), ()> {
    let response = request.send().await.map_err(drop)?;
    let status = response.status().as_u16();
    let bytes = response.bytes().await.map_err(drop)?;
    Ok((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
}
