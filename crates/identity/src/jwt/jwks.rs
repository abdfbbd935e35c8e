//! The keys of an identity provider: fetched at the start and every ten minutes, and when a token names a key that is not
//! known. The last good answer is kept while the provider is away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::fetch::Fetcher;
use super::public_keys::{PublicKey, parse_jwks};

/// Between two fetches, so that a key that the provider withdrew is forgotten.
const PERIOD: Duration = Duration::from_secs(600);
/// Between two tries before the first answer.
const FIRST_PERIOD: Duration = Duration::from_secs(5);
/// Between two fetches for keys that are not known: anybody can make up a `kid`.
const UNKNOWN_PERIOD: Duration = Duration::from_secs(60);

/// The keys of an identity provider.
pub(super) struct Jwks {
    fetcher: Fetcher,
    keys: RwLock<Option<Arc<Vec<PublicKey>>>>,
    /// When a key that is not known was last asked for. Held while it is asked for, so that one request does it for all.
    asked: Mutex<Option<Instant>>,
}

impl Jwks {
    pub(super) fn new(url: Url) -> Self {
        Self { fetcher: Fetcher::new(url), keys: RwLock::default(), asked: Mutex::default() }
    }

    /// The keys of the last good answer; `None`: there was none yet.
    pub(super) fn keys(&self) -> Option<Arc<Vec<PublicKey>>> {
        self.keys.read().clone()
    }

    /// Fetches the keys for a token that names an unknown one, at most once a minute.
    pub(super) async fn refresh_for_unknown_key(&self) {
        if self.keys().is_none() {
            // The first fetch is under way or fails; it is repeated by `keep_fresh`.
            return;
        }
        let mut asked = self.asked.lock().await;
        if asked.is_none_or(|asked| asked.elapsed() >= UNKNOWN_PERIOD) {
            *asked = Some(Instant::now());
            self.refresh().await;
        }
    }

    /// Fetches the keys now and then, until `stop`.
    pub(super) async fn keep_fresh(&self, stop: &CancellationToken) {
        loop {
            self.refresh().await;
            let pause = if self.keys().is_some() { PERIOD } else { FIRST_PERIOD };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    async fn refresh(&self) {
        let fetched = self.fetcher.fetch().await.and_then(|body| parse_jwks(&body));
        match fetched {
            Ok(keys) => {
                if keys.is_empty() {
                    tracing::warn!(provider = %self.fetcher.host(), "the JWKS has no usable key; no token is accepted");
                }
                *self.keys.write() = Some(Arc::new(keys));
            }
            Err(reason) => {
                let known = self.keys().map_or(0, |keys| keys.len());
                tracing::warn!(provider = %self.fetcher.host(), reason, known, "the keys of the identity provider were not fetched");
            }
        }
    }
}
