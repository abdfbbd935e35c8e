//! Encryption of private keys: the database holds them only encrypted, with a secret from the settings
//! that the database does not hold.
//!
//! XChaCha20-Poly1305 with a random nonce for each seed. Event and number of the key are part of what
//! is authenticated: a seed that was copied to another record does not open there.
//!
//! Opened keys are remembered, because opening one takes a read from the database.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};
use stampede_model::{EventId, Signer};

use crate::{Error, Result};

/// Separates this encryption key from any other use of the same secret.
const KEY_DOMAIN: &[u8] = b"stampede ticket keys v1\0";
/// The plain text of the check.
const CHECK: &[u8] = b"the secret is right";
/// Bytes of a nonce.
const NONCE: usize = 24;
/// Most opened keys to remember; a worker rarely works on that many events at a time.
const REMEMBERED: usize = 1_024;

/// The secret that private keys are encrypted with; holds a hash of its text.
#[derive(Clone)]
pub struct TicketSecret([u8; 32]);

impl TicketSecret {
    /// Derives the secret from a text of at least 128 random bits; for such a text a fast hash is enough.
    pub fn new(text: &str) -> Self {
        Self(Sha256::new().chain_update(KEY_DOMAIN).chain_update(text).finalize().into())
    }
}

impl fmt::Debug for TicketSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketSecret(…)")
    }
}

/// A key of an event as a backend stores it.
#[derive(Debug, Clone)]
pub struct SealedKey {
    /// The public half, as hexadecimal text.
    pub public: String,
    /// The seed of the private half, encrypted.
    pub seed: String,
}

/// Encrypts and decrypts the private keys of events, for backends. Code outside this crate cannot make
/// one; it gives a [`TicketSecret`] to `Store::with_ticket_secret`.
pub struct Vault {
    cipher: XChaCha20Poly1305,
    opened: Mutex<HashMap<(EventId, u32), Arc<Signer>>>,
}

impl Vault {
    pub(crate) fn new(secret: &TicketSecret) -> Self {
        let cipher = XChaCha20Poly1305::new(&Key::from(secret.0));
        Self { cipher, opened: Mutex::default() }
    }

    /// Makes a new key for an event.
    pub(crate) fn make(&self, event: EventId, number: u32) -> SealedKey {
        let seed: [u8; 32] = rand::random();
        SealedKey {
            public: hex::encode(Signer::new(event, number, &seed).public_bytes()),
            seed: self.seal(&seed, &binding(event, number)),
        }
    }

    /// Decrypts a key of an event and compares its two halves.
    pub(crate) fn open_key(&self, event: EventId, number: u32, key: &SealedKey) -> Result<Signer> {
        let signer = self.open(event, number, &key.seed).ok_or_else(|| {
            Error::unusable(format!(
                "key {number} of event {event} cannot be opened: TICKET_KEY_SECRET is not the one it \
                 was encrypted with, or the record is damaged"
            ))
        })?;
        if hex::encode(signer.public_bytes()) != key.public {
            return Err(Error::Corrupt(format!(
                "the two halves of key {number} of event {event} do not belong together"
            )));
        }
        Ok(signer)
    }

    /// Decrypts the seed of the event's key of that number; `None` if it belongs to another key or was
    /// encrypted with another secret.
    fn open(&self, event: EventId, number: u32, sealed: &str) -> Option<Signer> {
        let seed = self.unseal(sealed, &binding(event, number))?;
        Some(Signer::new(event, number, seed.as_slice().try_into().ok()?))
    }

    /// Encrypts a known text, by which the secret is recognised later.
    pub(crate) fn seal_check(&self) -> String {
        self.seal(CHECK, CHECK)
    }

    /// Returns whether the check was encrypted with this secret.
    pub(crate) fn opens_check(&self, sealed: &str) -> bool {
        self.unseal(sealed, CHECK).is_some_and(|text| text == CHECK)
    }

    /// Returns a key that was opened before.
    pub(crate) fn remembered(&self, event: EventId, number: u32) -> Option<Arc<Signer>> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.get(&(event, number)).cloned()
    }

    /// Remembers an opened key for the next ticket.
    pub(crate) fn remember(&self, event: EventId, number: u32, signer: Signer) -> Arc<Signer> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.len() >= REMEMBERED {
            opened.clear();
        }
        opened.entry((event, number)).or_insert_with(|| Arc::new(signer)).clone()
    }

    fn seal(&self, text: &[u8], binding: &[u8]) -> String {
        let nonce: [u8; NONCE] = rand::random();
        let payload = Payload { msg: text, aad: binding };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.expect("only gigabytes are too long to encrypt");
        hex::encode([nonce.as_slice(), &sealed].concat())
    }

    fn unseal(&self, sealed: &str, binding: &[u8]) -> Option<Vec<u8>> {
        let bytes = hex::decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>()?;
        self.cipher.decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: binding }).ok()
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault(…)")
    }
}

/// Ties a seed to its record.
fn binding(event: EventId, number: u32) -> Vec<u8> {
    [b"seed".as_slice(), &event.to_bytes(), &number.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_opens_only_with_its_secret_and_in_its_record() {
        let (vault, event) = (Vault::new(&TicketSecret::new("one")), EventId::generate());
        let key = vault.make(event, 1);
        let opened = vault.open_key(event, 1, &key).unwrap();
        assert_eq!(hex::encode(opened.public_bytes()), key.public);
        let mixed = SealedKey { public: vault.make(event, 1).public, ..key.clone() };
        assert!(matches!(vault.open_key(event, 1, &mixed), Err(Error::Corrupt(_))));
        let sealed = key.seed;

        assert!(Vault::new(&TicketSecret::new("two")).open(event, 1, &sealed).is_none());
        assert!(vault.open(event, 2, &sealed).is_none(), "copied to another number");
        assert!(vault.open(EventId::generate(), 1, &sealed).is_none(), "copied to another event");
        for damaged in ["", "00", "zz", &sealed[2..], &sealed[..sealed.len() - 2]] {
            assert!(vault.open(event, 1, damaged).is_none(), "{damaged}");
        }
        let again = vault.make(event, 1).seed;
        assert_ne!(sealed[..48], again[..48], "no nonce is used twice");
    }

    #[test]
    fn the_check_knows_its_secret() {
        let (one, two) = (TicketSecret::new("one"), TicketSecret::new("two"));
        let sealed = Vault::new(&one).seal_check();
        assert!(Vault::new(&one).opens_check(&sealed));
        assert!(!Vault::new(&two).opens_check(&sealed));
        assert!(!format!("{one:?} {:?}", Vault::new(&one)).contains("one"));
    }

    #[test]
    fn remembered_keys_do_not_pile_up() {
        let vault = Vault::new(&TicketSecret::new("one"));
        let event = EventId::generate();
        for number in 0..3 * REMEMBERED as u32 {
            vault.remember(event, number, Signer::new(event, number, &[1; 32]));
        }
        assert!(vault.opened.lock().unwrap().len() <= REMEMBERED);
        assert!(vault.remembered(event, 3 * REMEMBERED as u32 - 1).is_some());
    }
}
