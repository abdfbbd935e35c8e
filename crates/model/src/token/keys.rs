//! The keys of an event: one side signs its tickets, the other proves them.
//!
//! A key has a number within its event; the newest that is not revoked signs, all that are not
//! revoked prove. Seeds come from outside, for this crate makes nothing random.
//!
//! [`KeyRing`] is also the file that a scanner works with when the network is down: what
//! `GET /api/events/{id}/keys` answers can be read back as it is.

use std::fmt;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Claims, Token, message};
use crate::{EventId, Timestamp};

/// Signs the tickets of one event with one key.
pub struct Signer {
    event: EventId,
    number: u32,
    key: SigningKey,
}

impl Signer {
    /// The key that grows from a secret seed.
    pub fn new(event: EventId, number: u32, seed: &[u8; 32]) -> Self {
        Self { event, number, key: SigningKey::from_bytes(seed) }
    }

    /// The public half, as 32 bytes.
    pub fn public_bytes(&self) -> [u8; 32] {
        self.key.verifying_key().to_bytes()
    }

    /// The token of one ticket; the same ticket gets the same token every time.
    pub fn sign(&self, serial: u32, generation: u32) -> Token {
        let claims = Claims { event: self.event, key: self.number, serial, generation };
        let signature = self.key.sign(&message(&claims)).to_bytes();
        Token { claims, signature }
    }
}

impl fmt::Debug for Signer {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer(key {} of {})", self.number, self.event)
    }
}

/// The public half of one key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublicKey {
    /// Its number within the event.
    #[serde(rename = "kid")]
    pub number: u32,
    /// The key itself, 64 hexadecimal digits on the wire.
    #[serde(rename = "publicKey", with = "as_hex")]
    #[schemars(with = "String", regex(pattern = "^[0-9a-f]{64}$"))]
    key: VerifyingKey,
    /// When it was made.
    pub created_at: Timestamp,
    /// Since when it proves nothing any more.
    pub revoked_at: Option<Timestamp>,
}

impl PublicKey {
    /// Wraps the 32 bytes of a key; `None` when they are none.
    pub fn new(
        number: u32,
        bytes: &[u8; 32],
        created_at: Timestamp,
        revoked_at: Option<Timestamp>,
    ) -> Option<Self> {
        Some(Self { number, key: verifying_key(bytes)?, created_at, revoked_at })
    }

    /// The key itself, as 32 bytes.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.key.to_bytes()
    }

    /// Whether it has been withdrawn.
    pub fn is_revoked(&self) -> bool {
        self.revoked_at.is_some()
    }

    pub(super) fn signed(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        // Strict: also refuses signatures that other libraries would not agree about.
        self.key.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

/// A point on the curve that is not one of the few for which signatures prove nothing, in its one
/// spelling.
fn verifying_key(bytes: &[u8; 32]) -> Option<VerifyingKey> {
    let key = VerifyingKey::from_bytes(bytes).ok()?;
    (!key.is_weak() && key.to_edwards().compress().as_bytes() == bytes).then_some(key)
}

/// What is wrong with a file of keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyRingError {
    /// Not the JSON that the API gives out.
    #[error("not the keys of an event as GET /api/events/{{id}}/keys gives them: {0}")]
    Shape(String),
    /// Which of the two would be asked?
    #[error("it has two keys with the number {0}")]
    Twice(u32),
}

/// All public keys of one event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyRing {
    event: EventId,
    /// What the event is called, for people.
    #[serde(default)]
    pub event_name: String,
    keys: Vec<PublicKey>,
}

impl KeyRing {
    /// Brings together the keys of an event.
    pub fn new(
        event: EventId,
        event_name: String,
        mut keys: Vec<PublicKey>,
    ) -> Result<Self, KeyRingError> {
        keys.sort_by_key(|key| key.number);
        match keys.windows(2).find(|pair| pair[0].number == pair[1].number) {
            Some(pair) => Err(KeyRingError::Twice(pair[0].number)),
            None => Ok(Self { event, event_name, keys }),
        }
    }

    /// Reads what the API gave out.
    pub fn from_json(text: &str) -> Result<Self, KeyRingError> {
        let read: Self =
            serde_json::from_str(text).map_err(|error| KeyRingError::Shape(error.to_string()))?;
        Self::new(read.event, read.event_name, read.keys)
    }

    /// Whose keys these are.
    pub fn event(&self) -> EventId {
        self.event
    }

    /// All of them, by number.
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// The key of that number.
    pub fn key(&self, number: u32) -> Option<&PublicKey> {
        let at = self.keys.binary_search_by_key(&number, |key| key.number).ok()?;
        Some(&self.keys[at])
    }

    /// The key that signs new tickets.
    pub fn signing(&self) -> Option<&PublicKey> {
        self.keys.iter().rev().find(|key| !key.is_revoked())
    }
}

/// A public key as 64 hexadecimal digits.
mod as_hex {
    use ed25519_dalek::VerifyingKey;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(key: &VerifyingKey, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex::encode(key.as_bytes()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<VerifyingKey, D::Error> {
        let text = String::deserialize(from)?;
        let mut bytes = [0; 32];
        hex::decode_to_slice(&text, &mut bytes)
            .ok()
            .and_then(|()| super::verifying_key(&bytes))
            .ok_or_else(|| {
                D::Error::custom("publicKey must be an Ed25519 key, 64 hexadecimal digits")
            })
    }
}
