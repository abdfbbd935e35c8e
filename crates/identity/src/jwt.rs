//! Tokens of identity providers (JWT, RFC 7519), for people who sign in elsewhere.
//!
//! ```text
//!   token ──▶ header: algorithm, kid ──▶ the keys of this algorithm ──▶ signature ──▶ claims ──▶ Principal
//!                                            │ unknown kid: the JWKS is fetched again, at most once a minute
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `token.rs` | the three parts of a token |
//! | `public_keys.rs` | public keys from PEM and JWKS; signatures |
//! | `claims.rs` | audience, issuer, times, user, role |
//! | `jwks.rs` | the keys of an identity provider, fetched and kept |
//! | `fetch.rs` | one GET with limits |
//!
//! A key belongs to one algorithm, so that no token can choose how its signature is checked: HS256 is checked with the
//! secret and nothing else, RS256, ES256 and EdDSA with public keys of exactly that kind. `none` does not exist.

mod claims;
mod fetch;
mod jwks;
mod public_keys;
mod token;

use ring::hmac;
use stampede_model::{Principal, Timestamp};
use tokio_util::sync::CancellationToken;
use url::Url;

use self::claims::Expected;
use self::jwks::Jwks;
pub use self::public_keys::{PublicKey, parse_keys};
use self::token::{Algorithm, Token};
use crate::Error;

/// Most keys that one signature is tried with.
const MOST_CANDIDATES: usize = 10;

/// How tokens are checked.
#[derive(Clone)]
pub struct JwtConfig {
    /// The secret of HS256.
    pub secret: Option<String>,
    /// Public keys from a file.
    pub keys: Vec<PublicKey>,
    /// Where the identity provider publishes its keys.
    pub jwks_url: Option<Url>,
    /// The audience that tokens must be for.
    pub audience: String,
    /// The issuer that tokens must be of.
    pub issuer: Option<String>,
    /// The claim that names the role.
    pub role_claim: String,
}

/// Why a token is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// It is not built as a token must be, or lacks a claim.
    #[error("this token is not a valid JWT: {0}")]
    Malformed(String),
    /// Its algorithm is not one of the keys that are set up.
    #[error("tokens with the algorithm {0:?} are not accepted here")]
    Algorithm(String),
    /// No known key has its `kid`.
    #[error("no key is known that could have signed this token")]
    KeyUnknown,
    /// Its signature is wrong.
    #[error("the signature of this token is wrong")]
    Signature,
    /// It is for another audience.
    #[error("this token is for another audience")]
    Audience,
    /// It is of another issuer.
    #[error("this token is of another issuer")]
    Issuer,
    /// It has expired.
    #[error("this token has expired; sign in again")]
    Expired,
    /// It is not valid yet, or was issued in the future.
    #[error("this token is not valid yet; compare the clocks")]
    NotYet,
    /// It names no role, or one that does not exist.
    #[error("this token names no role that exists: {0}")]
    Role(String),
}

/// Checks tokens.
pub struct Jwt {
    secret: Option<hmac::Key>,
    keys: Vec<PublicKey>,
    jwks: Option<Jwks>,
    expected: Expected,
}

/// Whether a credential has the form of a token: API keys have no dots.
pub(crate) fn looks_like_one(credential: &str) -> bool {
    credential.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl Jwt {
    /// Checks tokens as the settings say. The keys of an identity provider are fetched by [`crate::Identity::run`].
    pub fn new(config: JwtConfig) -> Self {
        let secret =
            config.secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()));
        let JwtConfig { audience, issuer, role_claim, .. } = config;
        Self {
            secret,
            keys: config.keys,
            jwks: config.jwks_url.map(Jwks::new),
            expected: Expected { audience, issuer, role_claim },
        }
    }

    /// The user behind a token.
    pub(crate) async fn principal(
        &self,
        text: &str,
        now: Timestamp,
    ) -> Result<Result<Principal, TokenRefusal>, Error> {
        let token = match Token::parse(text) {
            Ok(token) => token,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if let Err(refusal) = self.check_signature(&token).await? {
            return Ok(Err(refusal));
        }
        Ok(self.expected.principal(&token.payload, now))
    }

    async fn check_signature(&self, token: &Token<'_>) -> Result<Result<(), TokenRefusal>, Error> {
        if token.algorithm == Algorithm::Hs256 {
            return Ok(self.check_secret(token));
        }
        if self.keys.is_empty() && self.jwks.is_none() {
            return Ok(Err(TokenRefusal::Algorithm(token.algorithm.to_string())));
        }
        if let Some(jwks) = &self.jwks
            && !self.knows(token)
        {
            jwks.refresh_for_unknown_key().await;
        }
        let candidates = self.candidates(token);
        match &self.jwks {
            Some(jwks) if candidates.is_empty() && jwks.keys().is_none() => {
                return Err(Error::Unavailable {
                    what: "the identity provider",
                    cause: "its keys could not be fetched yet".to_owned(),
                });
            }
            _ if candidates.is_empty() => return Ok(Err(TokenRefusal::KeyUnknown)),
            _ => {}
        }
        match candidates.iter().any(|key| key.verifies(token.signed, &token.signature)) {
            true => Ok(Ok(())),
            false => Ok(Err(TokenRefusal::Signature)),
        }
    }

    fn check_secret(&self, token: &Token<'_>) -> Result<(), TokenRefusal> {
        let Some(secret) = &self.secret else {
            return Err(TokenRefusal::Algorithm(token.algorithm.to_string()));
        };
        hmac::verify(secret, token.signed.as_bytes(), &token.signature)
            .map_err(|_| TokenRefusal::Signature)
    }

    /// Whether a key is known that the token names. A token without a `kid` may be of any key.
    fn knows(&self, token: &Token<'_>) -> bool {
        let Some(kid) = token.kid.as_deref() else { return !self.candidates(token).is_empty() };
        let fetched = self.jwks.as_ref().and_then(Jwks::keys);
        let fetched = fetched.iter().flat_map(|keys| keys.iter());
        self.keys.iter().chain(fetched).any(|key| key.kid.as_deref() == Some(kid))
    }

    /// The keys of the token's algorithm that may have signed it. A key without a `kid` may have signed any token.
    fn candidates(&self, token: &Token<'_>) -> Vec<PublicKey> {
        let fits = |key: &&PublicKey| {
            let named = match (&token.kid, &key.kid) {
                (Some(wanted), Some(kid)) => wanted == kid,
                _ => true,
            };
            key.algorithm == token.algorithm && named
        };
        let fetched = self.jwks.as_ref().and_then(Jwks::keys);
        let fetched = fetched.iter().flat_map(|keys| keys.iter());
        self.keys.iter().chain(fetched).filter(fits).take(MOST_CANDIDATES).cloned().collect()
    }

    /// Fetches the keys of the identity provider now and then, until `stop`.
    pub(crate) async fn keep_fresh(&self, stop: &CancellationToken) {
        match &self.jwks {
            Some(jwks) => jwks.keep_fresh(stop).await,
            None => stop.cancelled().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_told_from_a_key_by_its_two_dots() {
        for (text, is_one) in [("stp_00ff", false), ("a.b.c", true), ("..", true), ("a.b", false)] {
            assert_eq!(looks_like_one(text), is_one, "{text}");
        }
    }
}
