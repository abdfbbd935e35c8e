//! What keeps private keys private: they stand in the database only encrypted, with a secret from the
//! settings that does not.
//!
//! XChaCha20-Poly1305 with a random nonce for each seed. Event and number of the key are part of what
//! is authenticated: a seed that was copied to another row does not open there.
//!
//! Opened keys are remembered, for opening one takes a look into the database.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};
use stampede_model::{EventId, Signer};

/// Makes the encryption key another one than any other use of the same secret would make.
const KEY_DOMAIN: &[u8] = b"stampede ticket keys v1\0";
/// What the sealed check says.
const CHECK: &[u8] = b"the secret is right";
/// Bytes of a nonce.
const NONCE: usize = 24;
/// Opened keys to remember; a worker rarely works on that many events at a time.
const REMEMBERED: usize = 1_024;

/// What private keys are encrypted with. Holds no more than what follows from the text.
#[derive(Clone)]
pub struct TicketSecret([u8; 32]);

impl TicketSecret {
    /// A text of at least 128 random bits; a fast hash is enough for one that cannot be guessed.
    pub fn new(text: &str) -> Self {
        Self(Sha256::new().chain_update(KEY_DOMAIN).chain_update(text).finalize().into())
    }
}

impl fmt::Debug for TicketSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketSecret(…)")
    }
}

/// Seals and opens seeds.
pub(crate) struct Vault {
    cipher: XChaCha20Poly1305,
    opened: Mutex<HashMap<(EventId, u32), Arc<Signer>>>,
}

impl Vault {
    pub(crate) fn new(secret: &TicketSecret) -> Self {
        let cipher = XChaCha20Poly1305::new(&Key::from(secret.0));
        Self { cipher, opened: Mutex::default() }
    }

    /// A new key for an event, and its seed encrypted.
    pub(crate) fn make(&self, event: EventId, number: u32) -> (Signer, String) {
        let seed: [u8; 32] = rand::random();
        (Signer::new(event, number, &seed), self.seal(&seed, &binding(event, number)))
    }

    /// The key whose seed was encrypted as the event's key of that number; `None` when it was not, or
    /// with another secret.
    pub(crate) fn open(&self, event: EventId, number: u32, sealed: &str) -> Option<Signer> {
        let seed = self.unseal(sealed, &binding(event, number))?;
        Some(Signer::new(event, number, seed.as_slice().try_into().ok()?))
    }

    /// Something known, by which the secret is recognised.
    pub(crate) fn seal_check(&self) -> String {
        self.seal(CHECK, CHECK)
    }

    /// Whether it was sealed with this secret.
    pub(crate) fn opens_check(&self, sealed: &str) -> bool {
        self.unseal(sealed, CHECK).is_some_and(|text| text == CHECK)
    }

    /// A key opened before.
    pub(crate) fn remembered(&self, event: EventId, number: u32) -> Option<Arc<Signer>> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.get(&(event, number)).cloned()
    }

    /// Keeps an opened key for the next ticket.
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

/// Ties a seed to its row.
fn binding(event: EventId, number: u32) -> Vec<u8> {
    [b"seed".as_slice(), &event.to_bytes(), &number.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_opens_only_with_its_secret_and_in_its_row() {
        let (vault, event) = (Vault::new(&TicketSecret::new("one")), EventId::generate());
        let (signer, sealed) = vault.make(event, 1);
        let opened = vault.open(event, 1, &sealed).unwrap();
        assert_eq!(opened.public_bytes(), signer.public_bytes());

        assert!(Vault::new(&TicketSecret::new("two")).open(event, 1, &sealed).is_none());
        assert!(vault.open(event, 2, &sealed).is_none(), "copied to another number");
        assert!(vault.open(EventId::generate(), 1, &sealed).is_none(), "copied to another event");
        for damaged in ["", "00", "zz", &sealed[2..], &sealed[..sealed.len() - 2]] {
            assert!(vault.open(event, 1, damaged).is_none(), "{damaged}");
        }
        let (_, again) = vault.make(event, 1);
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
