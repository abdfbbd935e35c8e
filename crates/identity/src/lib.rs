//! Identity: who is asking, and which keys they may make, see and end.
//!
//! ```text
//!   credential ──▶ two dots? ──▶ jwt: signature, audience, times, role ──▶ Principal
//!                     └── no ──▶ store: the key with this hash ──────────▶ Principal ──▶ uses (noted in the background)
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `keys.rs` | the verbs: make, list, read, change, rotate, revoke |
//! | `rights.rs` | which keys a caller may make and manage: pure functions |
//! | `uses.rs` | when keys were last used, written in groups |
//! | `answers.rs` | keys as the API tells them |
//! | `jwt.rs`, `jwt/` | tokens of identity providers |
//!
//! [`Identity`] is the one type that callers hold. This crate must never name routes or statuses.

mod answers;
mod error;
mod jwt;
mod keys;
mod rights;
mod uses;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

pub use error::{Error, NotKnown};
pub use jwt::{Jwt, JwtConfig, PublicKey, TokenRefusal, parse_keys};
pub use keys::{
    KeyChange, KeyRequest, LONGEST_GRACE, Listing, MOST_KEYS, Refused, is_guessable, new_secret,
};
pub use rights::latest_end;
use stampede_model::{KeyHash, Principal, Timestamp};
use stampede_store::Store;
use tokio_util::sync::CancellationToken;

use uses::Uses;

/// Between two looks at which uses of keys are to be written.
const USES_INTERVAL: Duration = Duration::from_secs(5);

/// Who is asking. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Identity {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    uses: Uses,
    jwt: Option<Jwt>,
}

impl Identity {
    /// Knows the keys of the store, and tokens if `jwt` says how they are checked.
    pub fn new(store: Store, jwt: Option<Jwt>) -> Self {
        Self { shared: Arc::new(Shared { store, uses: Uses::default(), jwt }) }
    }

    /// The user behind a key or a token, who sent it from an address. The use of a key is noted.
    pub async fn principal(
        &self,
        credential: &str,
        from: Option<IpAddr>,
    ) -> Result<Result<Principal, NotKnown>, Error> {
        let now = now();
        if let Some(jwt) = &self.shared.jwt
            && jwt::looks_like_one(credential)
        {
            return Ok(jwt.principal(credential, now).await?.map_err(NotKnown::Token));
        }
        let found = self.shared.store.principal(&KeyHash::of(credential), now).await?;
        let Some(principal) = found else { return Ok(Err(NotKnown::Key)) };
        if let Some(key) = principal.key {
            self.shared.uses.note(key, now, from);
        }
        Ok(Ok(principal))
    }

    /// Writes uses of keys and fetches the keys of the identity provider, until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let provider = async {
            match &self.shared.jwt {
                Some(jwt) => jwt.keep_fresh(&stop).await,
                None => stop.cancelled().await,
            }
        };
        tokio::join!(provider, self.write_uses(&stop));
    }

    async fn write_uses(&self, stop: &CancellationToken) {
        loop {
            let stopped = tokio::select! {
                () = tokio::time::sleep(USES_INTERVAL) => false,
                () = stop.cancelled() => true,
            };
            let uses = &self.shared.uses;
            let due = if stopped { uses.all() } else { uses.due() };
            if let Err(error) = self.shared.store.note_key_uses(&due).await {
                tracing::debug!(%error, "the last uses of keys were not written");
                uses.put_back(due);
            }
            if stopped {
                return;
            }
        }
    }
}

/// The present, as precise as the store keeps it.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}
