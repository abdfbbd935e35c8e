//! The ticket token: what the QR code of a ticket says, and the proof that we said it.
//!
//! ```text
//!   byte  0        1 … 16      17 … 20   21 … 24   25 … 28      29 … 92
//!         version  event (id)  key       serial    generation   Ed25519 signature
//!         0x01     16 bytes    u32, big-endian each              64 bytes
//! ```
//!
//! The 93 bytes are written in base32 (RFC 4648, upper case, no padding): 149 characters of the QR
//! code's alphanumeric set, which fit version 6 at level M, 41 × 41 modules. Base45 would be 140
//! characters and the same version, but with spaces, `$` and `*`, which a shell or a form mangles;
//! base64 (byte mode) and hexadecimal need version 8, 49 × 49. `tests/it/symbol.rs` proves these.
//!
//! The signature is over [`DOMAIN`] and the first 29 bytes, so nothing else that the key might sign
//! one day can pass for a ticket. It is deterministic: the same ticket has the same token, and so the
//! same PDF, on every machine.
//!
//! There is one spelling of a token. Lower case, white space, padding, leftover bits, trailing
//! characters and signatures that are not canonical are refused.
//!
//! A [`Token`] has been read but not believed: it only tells which keys to ask for. What it claims
//! comes out of [`Token::verify`] and [`Token::signed_by`] and nowhere else. This file knows no database: whether the ticket
//! was withdrawn or replaced by a newer generation is the store's to say.

mod base32;
mod keys;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::EventId;

pub use keys::{KeyRing, KeyRingError, PublicKey, Signer};

/// The only version there is.
const VERSION: u8 = 1;
/// Signed before the claims; no other protocol of ours may use the same words.
const DOMAIN: &[u8; 26] = b"stampede ticket token v1\0\0";
/// Bytes that are signed.
const CLAIMS: usize = 29;
/// Bytes of a whole token.
const LENGTH: usize = CLAIMS + 64;

/// What a token says of a ticket; from a token, only after its signature was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Claims {
    /// The event it admits to.
    pub event: EventId,
    /// Number of the event's key that signed it.
    #[serde(rename = "kid")]
    pub key: u32,
    /// Number of the ticket within its event, from 1.
    pub serial: u32,
    /// Counts how often the ticket was issued anew; only the latest admits.
    pub generation: u32,
}

/// What a token with a right signature says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signed {
    /// The claims.
    pub claims: Claims,
    /// Whether the key that signed it was revoked when the key ring was read.
    pub key_is_revoked: bool,
}

/// Why a token is not accepted. The words are part of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not a token at all: wrong length, alphabet or spelling.
    #[error("this is not a ticket token, or not all of it")]
    Malformed,
    /// Made by a newer Stampede.
    #[error("the token is of a version that this program does not know")]
    UnknownVersion,
    /// Its event is not the one whose keys were asked.
    #[error("the ticket is for another event")]
    ForeignEvent,
    /// There is no event of that id here.
    #[error("no event here has such tickets")]
    UnknownEvent,
    /// The event has no key of that number.
    #[error("the event has no such key")]
    UnknownKey,
    /// The signature is not that key's: invented or altered.
    #[error("the signature is wrong: the ticket was forged or altered")]
    Forged,
    /// Rightly signed, by a key that is not trusted any more.
    #[error("the key that signed the ticket was revoked")]
    RevokedKey,
    /// Genuine, but there is no such ticket (any more).
    #[error("the ticket was deleted")]
    UnknownTicket,
    /// Genuine, but a newer one was issued in its place.
    #[error("the ticket was replaced by a newer one")]
    Superseded,
    /// Genuine, but withdrawn.
    #[error("the ticket is void")]
    Void,
    /// Genuine, but the organiser blocked it for the time being.
    #[error("the organiser blocked the ticket")]
    Blocked,
}

impl Refusal {
    /// The word for machines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownVersion => "unknown_version",
            Self::ForeignEvent => "foreign_event",
            Self::UnknownEvent => "unknown_event",
            Self::UnknownKey => "unknown_key",
            Self::Forged => "forged",
            Self::RevokedKey => "revoked_key",
            Self::UnknownTicket => "unknown_ticket",
            Self::Superseded => "superseded",
            Self::Void => "void",
            Self::Blocked => "blocked",
        }
    }

    /// Whether the token itself is ours all the same.
    pub fn is_of_genuine_token(self) -> bool {
        matches!(self, Self::UnknownTicket | Self::Superseded | Self::Void | Self::Blocked)
    }
}

/// A token that has the right shape; nothing it says is believed yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    claims: Claims,
    signature: [u8; 64],
}

impl Token {
    /// The event whose keys can prove it, if it is genuine.
    pub fn event(&self) -> EventId {
        self.claims.event
    }

    /// What it says, provided that one of these keys signed exactly that and is still trusted.
    pub fn verify(&self, ring: &KeyRing) -> Result<Claims, Refusal> {
        let signed = self.signed_by(ring)?;
        if signed.key_is_revoked { Err(Refusal::RevokedKey) } else { Ok(signed.claims) }
    }

    /// What it says, provided that one of these keys signed exactly that, even if the key is not trusted any
    /// more. For callers who look up by themselves which keys are revoked.
    pub fn signed_by(&self, ring: &KeyRing) -> Result<Signed, Refusal> {
        if self.claims.event != ring.event() {
            return Err(Refusal::ForeignEvent);
        }
        let key = ring.key(self.claims.key).ok_or(Refusal::UnknownKey)?;
        if !key.signed(&message(&self.claims), &self.signature) {
            return Err(Refusal::Forged);
        }
        Ok(Signed { claims: self.claims, key_is_revoked: key.is_revoked() })
    }

    fn from_bytes(bytes: &[u8; LENGTH]) -> Result<Self, Refusal> {
        if bytes[0] != VERSION {
            return Err(Refusal::UnknownVersion);
        }
        // The pieces are as long as the fields they become.
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let claims = Claims {
            event: EventId::from_bytes(bytes[1..17].try_into().expect("16 bytes")),
            key: number(17),
            serial: number(21),
            generation: number(25),
        };
        Ok(Self { claims, signature: bytes[CLAIMS..].try_into().expect("64 bytes") })
    }
}

impl FromStr for Token {
    type Err = Refusal;

    /// Reads the one spelling of a token, of whatever length and content the text is.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        Self::from_bytes(&base32::decode(text.as_bytes()).ok_or(Refusal::Malformed)?)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; LENGTH];
        bytes[..CLAIMS].copy_from_slice(&claimed(&self.claims));
        bytes[CLAIMS..].copy_from_slice(&self.signature);
        f.write_str(&base32::encode(&bytes))
    }
}

impl fmt::Debug for Token {
    /// Without the signature: who has that can enter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("claims", &self.claims).finish_non_exhaustive()
    }
}

/// The claims as they stand in a token.
fn claimed(claims: &Claims) -> [u8; CLAIMS] {
    let mut bytes = [VERSION; CLAIMS];
    bytes[1..17].copy_from_slice(&claims.event.to_bytes());
    bytes[17..21].copy_from_slice(&claims.key.to_be_bytes());
    bytes[21..25].copy_from_slice(&claims.serial.to_be_bytes());
    bytes[25..].copy_from_slice(&claims.generation.to_be_bytes());
    bytes
}

/// What is signed.
fn message(claims: &Claims) -> [u8; DOMAIN.len() + CLAIMS] {
    let mut bytes = [0; DOMAIN.len() + CLAIMS];
    bytes[..DOMAIN.len()].copy_from_slice(DOMAIN);
    bytes[DOMAIN.len()..].copy_from_slice(&claimed(claims));
    bytes
}
