//! Rate limits of requests: for each address before its key is looked at, for each key, and for failed attempts to sign in.
//!
//! ```text
//!   address ──▶ route ──▶ guard: guessing? ──▶ key or token ──▶ limit of the key ──▶ handler
//!     429                      429               401 (or 429)         429
//! ```
//!
//! | limit | counts | setting |
//! |---|---|---|
//! | `address` | requests of an IPv4 address, or of an IPv6 network of 64 bits | `RATE_LIMIT_ADDRESS` |
//! | `key` | requests with a key; of a token, with its user | `RATE_LIMIT_KEY` |
//! | `failures` | keys and tokens of an address that are not valid | `RATE_LIMIT_FAILURES` |
//!
//! They are counted over all nodes in windows of a minute (`broker/src/quota.rs`). `/health` and `/ready` are free for requests
//! without a key.
//!
//! An address with too many failures is still let in with a valid key: behind one proxy, a stranger must not lock others
//! out. Random keys of ours and signed tokens cannot be guessed, so they are checked, and a wrong one is answered with 429.
//! Only a credential of another form may be guessed (`ADMIN_KEY` may be any text). It is not checked while the address has
//! too many failures, unless it has proved to be right on this node before.

mod headers;

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hashlink::LruCache;
use http::header::AUTHORIZATION;
use http::request::Parts;
use parking_lot::Mutex;
use stampede_broker::{Broker, Quota, Standing};
use stampede_identity::{NotKnown, TokenRefusal, is_guessable};
use stampede_model::Principal;

pub(crate) use self::headers::{RATE_LIMIT, RATE_LIMIT_POLICY};
use crate::client_address::noted;
use crate::problem::{Code, Problem};

/// The window of all limits.
const WINDOW: Duration = Duration::from_secs(60);
/// Credentials that may be guessed and have proved to be right; there is one `ADMIN_KEY`.
const PROVED: usize = 100;

/// Requests a minute; 0: as many as they like.
#[derive(Debug, Clone, Copy)]
pub struct RateLimitConfig {
    /// With one key.
    pub key: u64,
    /// Of one address.
    pub address: u64,
    /// Of one address with a key or token that is not valid.
    pub failures: u64,
}

/// A limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    Address,
    Key,
    Failures,
}

impl Limit {
    pub(crate) const ALL: [Self; 3] = [Self::Address, Self::Key, Self::Failures];

    /// The name on the wire and in Redis.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Key => "key",
            Self::Failures => "failures",
        }
    }

    /// What there was too much of.
    fn told(self) -> &'static str {
        match self {
            Self::Address => "requests from this address",
            Self::Key => "requests with this key",
            Self::Failures => "wrong keys from this address",
        }
    }
}

/// All rate limits of the API. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub struct RateLimits {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    address: Option<Quota>,
    key: Option<Quota>,
    failures: Option<Quota>,
    proved: Mutex<Option<LruCache<u64, ()>>>,
    hasher: RandomState,
}

/// How the request stands, for the headers of its answer. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Standings(Arc<Mutex<[Option<Standing>; 3]>>);

impl Standings {
    fn note(&self, limit: Limit, standing: Standing) {
        self.0.lock()[limit as usize] = Some(standing);
    }
}

impl RateLimits {
    /// Limits that are counted in this Redis.
    pub fn new(broker: &Broker, config: RateLimitConfig) -> Self {
        let quota = |limit: Limit, most: u64| {
            (most > 0).then(|| Quota::new(broker.clone(), limit.name(), most, WINDOW))
        };
        let shared = Shared {
            address: quota(Limit::Address, config.address),
            key: quota(Limit::Key, config.key),
            failures: quota(Limit::Failures, config.failures),
            ..Shared::default()
        };
        Self { shared: Arc::new(shared) }
    }

    fn quota(&self, limit: Limit) -> Option<&Quota> {
        let Shared { address, key, failures, .. } = &*self.shared;
        match limit {
            Limit::Address => address.as_ref(),
            Limit::Key => key.as_ref(),
            Limit::Failures => failures.as_ref(),
        }
    }

    /// Takes a permit; `None`: there is no such limit.
    async fn take(&self, limit: Limit, subject: &str) -> Option<Standing> {
        match self.quota(limit) {
            Some(quota) => Some(quota.take(subject).await),
            None => None,
        }
    }

    /// 429 if a permit was not granted.
    fn check(&self, limit: Limit, standing: Option<Standing>) -> Result<(), Problem> {
        let (Some(standing), Some(quota)) = (standing, self.quota(limit)) else { return Ok(()) };
        if standing.granted {
            return Ok(());
        }
        let seconds = headers::seconds(standing.resets_in);
        let detail = format!(
            "too many {}: {} a minute are allowed; try again in {seconds} s",
            limit.told(),
            quota.most(),
        );
        let problem = Problem::new(Code::RateLimited, detail).with("limit", limit.name().into());
        Err(problem.retry_after(seconds))
    }

    /// Counts a request with the key of a user who was found.
    pub(crate) async fn count_key(&self, parts: &Parts, who: &Principal) -> Result<(), Problem> {
        if self.shared.key.is_none() {
            return Ok(());
        }
        let subject = match who.key {
            Some(key) => key.to_string(),
            None => format!("user:{}", who.user),
        };
        let standing = self.take(Limit::Key, &subject).await;
        if let (Some(standing), Some(standings)) = (standing, parts.extensions.get::<Standings>()) {
            standings.note(Limit::Key, standing);
        }
        self.check(Limit::Key, standing)
    }

    /// 429 if a credential may be a guess of an address that has guessed too often.
    pub(crate) fn refuse_guess(
        &self,
        credential: &str,
        from: Option<IpAddr>,
    ) -> Result<(), Problem> {
        let (Some(quota), Some(from)) = (&self.shared.failures, from) else { return Ok(()) };
        let Some(standing) = quota.exhausted(&subject(from)) else { return Ok(()) };
        if !is_guessable(credential) || self.has_proved(credential) {
            return Ok(());
        }
        self.check(Limit::Failures, Some(standing))
    }

    /// Remembers a credential that may be guessed, and was right.
    pub(crate) fn note_proved(&self, credential: &str) {
        if self.shared.failures.is_some() && is_guessable(credential) {
            let mut proved = self.shared.proved.lock();
            let proved = proved.get_or_insert_with(|| LruCache::new(PROVED));
            proved.insert(self.shared.hasher.hash_one(credential), ());
        }
    }

    fn has_proved(&self, credential: &str) -> bool {
        let hash = self.shared.hasher.hash_one(credential);
        self.shared.proved.lock().as_mut().is_some_and(|proved| proved.get(&hash).is_some())
    }

    /// The answer to a credential that is not valid. It is counted, and one too many is 429.
    pub(crate) async fn count_failure(
        &self,
        credential: &str,
        from: Option<IpAddr>,
        reason: NotKnown,
    ) -> Problem {
        if let Some(proved) = &mut *self.shared.proved.lock() {
            proved.remove(&self.shared.hasher.hash_one(credential));
        }
        let Some(from) = from.filter(|_| may_be_a_guess(&reason)) else { return reason.into() };
        let standing = self.take(Limit::Failures, &subject(from)).await;
        self.check(Limit::Failures, standing).err().unwrap_or_else(|| reason.into())
    }
}

/// Whether the credential may have been made up. A token that was signed by the right key was not.
fn may_be_a_guess(reason: &NotKnown) -> bool {
    use TokenRefusal as T;
    match reason {
        NotKnown::Key => true,
        NotKnown::Token(refusal) => match refusal {
            T::Malformed(_) | T::Algorithm(_) | T::KeyUnknown | T::Signature => true,
            T::Audience | T::Issuer | T::Expired | T::NotYet | T::Role(_) => false,
        },
    }
}

/// Whose requests are counted together: an IPv4 address, or an IPv6 network of 64 bits, of which one client has all addresses.
fn subject(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            format!("{}/64", Ipv6Addr::from_bits(network))
        }
    }
}

/// Whether a path is free of limits: balancers ask it all the time.
pub(crate) fn is_free(path: &str) -> bool {
    matches!(path, "/health" | "/ready")
}

/// Counts a request for its address, and tells in the answer how it stands.
pub(crate) async fn limit(limits: &RateLimits, mut request: Request, next: Next) -> Response {
    // A request with a key costs a look into the database.
    let has_key =
        [AUTHORIZATION.as_str(), "x-api-key"].map(|name| request.headers().contains_key(name));
    if is_free(request.uri().path()) && has_key == [false, false] {
        return next.run(request).await;
    }
    let standings = Standings::default();
    let standing = match noted(request.extensions()) {
        Some(address) => limits.take(Limit::Address, &subject(address)).await,
        None => None,
    };
    if let Some(standing) = standing {
        standings.note(Limit::Address, standing);
    }
    let mut response = match limits.check(Limit::Address, standing) {
        Ok(()) => {
            request.extensions_mut().insert(standings.clone());
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    let standings = *standings.0.lock();
    headers::write(response.headers_mut(), limits, standings);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_ipv6_network_are_counted_together() {
        let subject = |text: &str| super::subject(text.parse().unwrap());
        assert_eq!(subject("203.0.113.9"), "203.0.113.9");
        assert_eq!(subject("::ffff:203.0.113.9"), "203.0.113.9");
        assert_eq!(subject("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
        assert_eq!(subject("2001:db8:1:2::1"), subject("2001:db8:1:2:ffff::1"));
        assert_ne!(subject("2001:db8:1:2::1"), subject("2001:db8:1:3::1"));
    }

    #[test]
    fn tokens_that_were_rightly_signed_are_no_guesses() {
        assert!(may_be_a_guess(&NotKnown::Key));
        assert!(may_be_a_guess(&NotKnown::Token(TokenRefusal::Signature)));
        assert!(!may_be_a_guess(&NotKnown::Token(TokenRefusal::Expired)));
    }
}
