//! Stampede's API for stickers: a text and variants → files.

use std::time::Duration;

use anyhow::anyhow;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::{Answer, Http};

/// Longest wait for an answer. Stampede answers within ten seconds.
const WITHIN: Duration = Duration::from_secs(30);
/// How often an order is repeated while Stampede has too much to do or draws the sticker later.
const ATTEMPTS: usize = 60;

/// Why a sticker was not drawn.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The text cannot be drawn; this tells the user why.
    #[error("{0}")]
    Text(String),
    /// All other reasons, which are for the log.
    #[error("Stampede: {0:#}")]
    Service(#[from] anyhow::Error),
}

/// A Stampede server.
pub(crate) struct Stampede {
    http: Http,
}

#[derive(Deserialize)]
struct Drawn {
    stickers: Vec<DrawnSticker>,
}

#[derive(Deserialize)]
struct DrawnSticker {
    status: String,
    url: String,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Variants {
    variants: Vec<Variant>,
}

#[derive(Deserialize)]
struct Variant {
    name: Option<String>,
}

impl Stampede {
    pub(crate) fn new(url: &str, key: &str) -> anyhow::Result<Self> {
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", key.parse()?);
        Ok(Self { http: Http::new(url, headers)? })
    }

    /// The names of the variants that ship.
    pub(crate) async fn variants(&self) -> Result<Vec<String>, Error> {
        let answer = self.ask(Method::GET, "/api/stickers/variants", None).await?;
        let Variants { variants } = read(&answer)?;
        Ok(variants.into_iter().filter_map(|variant| variant.name).collect())
    }

    /// Has a text drawn in several variants; answers with the paths of the stickers.
    pub(crate) async fn draw(
        &self,
        text: &str,
        variants: &[String],
        priority: &str,
    ) -> Result<Vec<String>, Error> {
        let order =
            json!({ "text": text, "variants": variants, "format": "tgs", "priority": priority });
        let answer = self.ask(Method::POST, "/api/stickers", Some(&order)).await?;
        let Drawn { stickers } = read(&answer)?;
        if let Some(failed) = stickers.iter().find(|sticker| sticker.status == "failed") {
            let reason = failed.error.as_deref().unwrap_or("it cannot be drawn");
            return Err(Error::Text(format!("Sorry: the text {reason}")));
        }
        Ok(stickers.into_iter().map(|sticker| sticker.url).collect())
    }

    /// The file of a sticker, as soon as it is drawn.
    pub(crate) async fn file(&self, path: &str) -> Result<Bytes, Error> {
        Ok(self.ask(Method::GET, path, None).await?.body)
    }

    /// Asks until the answer is final: 503 (too many stickers wait) and 409 (a worker draws it) ask for patience.
    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, Error> {
        for _ in 0..ATTEMPTS {
            let body = body.map(|body| ("application/json", Bytes::from(body.to_string())));
            let answer = self.http.send(method.clone(), path, body, WITHIN).await?;
            let not_yet = match answer.status {
                status if status.is_success() => return Ok(answer),
                StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => true,
                StatusCode::CONFLICT => problem(&answer, "code") == "not_ready",
                _ => false,
            };
            let detail = problem(&answer, "detail");
            match answer.status {
                _ if not_yet => tokio::time::sleep(answer.retry_after()).await,
                StatusCode::UNPROCESSABLE_ENTITY => {
                    return Err(Error::Text(format!("Sorry: {detail}")));
                }
                status => return Err(anyhow!("{method} {path}: {status}: {detail}").into()),
            }
        }
        Err(anyhow!("{method} {path}: not done after {ATTEMPTS} attempts").into())
    }
}

/// The key of a set of stickers: that of its first one, which is a hash of all that it is drawn of.
pub(crate) fn key(links: &[String]) -> &str {
    let first = links.first().map(String::as_str).unwrap_or_default();
    let name = first.rsplit('/').next().unwrap_or_default();
    name.split('.').next().unwrap_or_default()
}

/// A member of Stampede's description of an error.
fn problem(answer: &Answer, member: &str) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    body[member].as_str().unwrap_or_default().to_owned()
}

fn read<'a, T: Deserialize<'a>>(answer: &'a Answer) -> Result<T, Error> {
    serde_json::from_slice(&answer.body).map_err(|error| anyhow!("no answer: {error}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_in_the_path_of_the_first_sticker() {
        let links = ["/api/stickers/00ff.tgs".to_owned(), "/api/stickers/11.tgs".to_owned()];
        assert_eq!(key(&links), "00ff");
        assert_eq!(key(&[]), "");
    }
}
