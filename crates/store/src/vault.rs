//! Encryption of private keys: the database holds them only encrypted, with a secret from the settings
//! that the database does not hold.
//!
//! XChaCha20-Poly1305 with a random nonce for each seed. Event and number of the key are part of what
//! is authenticated: a seed that was copied to another record does not open there.
//!
//! Answers to requests that may be sent twice are encrypted in the same way, bound to their request.
//! The secrets of webhooks are encrypted in the same way, bound to their endpoint; the credentials of accounts, bound to
//! their account.
//!
//! Opened keys are remembered, because opening one takes a read from the database.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use stampede_model::campaign::AccountId;
use stampede_model::{EventId, Signer, WebhookId};

use crate::{Error, Result};

/// Separates this encryption key from any other use of the same secret.
const KEY_DOMAIN: &[u8] = b"stampede ticket keys v1\0";
/// Separates the key that signs links from the key that encrypts.
const LINK_DOMAIN: &[u8] = b"stampede links v1\0";
/// Separates secrets of devices from links.
const ENROLMENT_DOMAIN: &[u8] = b"stampede enrolment v1\0";
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
    /// Signs links; the same on all nodes, because all have the same secret.
    links: Hmac<Sha256>,
    opened: Mutex<HashMap<(EventId, u32), Arc<Signer>>>,
}

impl Vault {
    pub(crate) fn new(secret: &TicketSecret) -> Self {
        let cipher = XChaCha20Poly1305::new(&Key::from(secret.0));
        let derived = mac_with(&secret.0).chain_update(LINK_DOMAIN).finalize().into_bytes();
        Self { cipher, links: mac_with(&derived), opened: Mutex::default() }
    }

    /// Signs the content of a link.
    pub(crate) fn sign_link(&self, content: &[u8]) -> [u8; 32] {
        self.links.clone().chain_update(content).finalize().into_bytes().into()
    }

    /// Returns whether this secret signed the content; takes the same time for every signature.
    pub(crate) fn signed_link(&self, content: &[u8], signature: &[u8]) -> bool {
        self.links.clone().chain_update(content).verify_slice(signature).is_ok()
    }

    /// The secret of a device that enrols with this code and nonce; the same on all nodes.
    pub(crate) fn enrolment_secret(&self, code: &str, nonce: &str) -> [u8; 32] {
        // A link's content begins with another byte.
        let content = [ENROLMENT_DOMAIN, code.as_bytes(), b"\0", nonce.as_bytes()].concat();
        self.sign_link(&content)
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

    /// Encrypts the answer to a request that may be sent twice.
    pub(crate) fn seal_answer(&self, owner: &str, key: &str, answer: &[u8]) -> Vec<u8> {
        self.seal_bytes(answer, &answer_binding(owner, key))
    }

    /// Decrypts the answer to a request that was sent twice; `None` if it belongs to another request or was encrypted with
    /// another secret.
    pub(crate) fn open_answer(&self, owner: &str, key: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        self.unseal_bytes(sealed, &answer_binding(owner, key))
    }

    /// Encrypts a known text, by which the secret is recognised later.
    pub(crate) fn seal_check(&self) -> String {
        self.seal(CHECK, CHECK)
    }

    /// Returns whether the check was encrypted with this secret.
    pub(crate) fn opens_check(&self, sealed: &str) -> bool {
        self.unseal(sealed, CHECK).is_some_and(|text| text == CHECK)
    }

    /// Encrypts the secret that signs the messages of an endpoint.
    pub(crate) fn seal_webhook_secret(&self, webhook: WebhookId, secret: &[u8]) -> String {
        self.seal(secret, &webhook_binding(webhook))
    }

    /// Decrypts the secret that signs the messages of an endpoint.
    pub(crate) fn open_webhook_secret(&self, webhook: WebhookId, sealed: &str) -> Result<Vec<u8>> {
        self.unseal(sealed, &webhook_binding(webhook)).ok_or_else(|| {
            Error::unusable(format!(
                "the secret of webhook {webhook} cannot be opened: TICKET_KEY_SECRET is not the one it was \
                 encrypted with, or the record is damaged"
            ))
        })
    }

    /// Encrypts the credentials of an account.
    pub(crate) fn seal_account_credentials(&self, id: &AccountId, credentials: &[u8]) -> String {
        self.seal(credentials, &account_binding(id))
    }

    /// Decrypts the credentials of an account.
    pub(crate) fn open_account_credentials(&self, id: &AccountId, sealed: &str) -> Result<Vec<u8>> {
        self.unseal(sealed, &account_binding(id)).ok_or_else(|| {
            Error::unusable(format!(
                "the credentials of account {id} cannot be opened: TICKET_KEY_SECRET is not the one they were \
                 encrypted with, or the record is damaged; enter the credentials again"
            ))
        })
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
        hex::encode(self.seal_bytes(text, binding))
    }

    fn unseal(&self, sealed: &str, binding: &[u8]) -> Option<Vec<u8>> {
        self.unseal_bytes(&hex::decode(sealed).ok()?, binding)
    }

    fn seal_bytes(&self, text: &[u8], binding: &[u8]) -> Vec<u8> {
        let nonce: [u8; NONCE] = rand::random();
        let payload = Payload { msg: text, aad: binding };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.expect("only gigabytes are too long to encrypt");
        [nonce.as_slice(), &sealed].concat()
    }

    fn unseal_bytes(&self, sealed: &[u8], binding: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE>()?;
        self.cipher.decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: binding }).ok()
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault(…)")
    }
}

fn mac_with(key: &[u8]) -> Hmac<Sha256> {
    <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("a key of HMAC may have any length")
}

/// Ties a seed to its record.
fn binding(event: EventId, number: u32) -> Vec<u8> {
    [b"seed".as_slice(), &event.to_bytes(), &number.to_be_bytes()].concat()
}

/// Ties the answer to a request to its record. The length keeps owner and key apart.
fn answer_binding(owner: &str, key: &str) -> Vec<u8> {
    let length = (owner.len() as u64).to_be_bytes();
    [b"answer".as_slice(), &length, owner.as_bytes(), key.as_bytes()].concat()
}

/// Ties the secret of an endpoint to its record.
fn webhook_binding(webhook: WebhookId) -> Vec<u8> {
    [b"webhook".as_slice(), &webhook.to_bytes()].concat()
}

/// Ties credentials to their account.
fn account_binding(id: &AccountId) -> Vec<u8> {
    [b"account".as_slice(), id.as_str().as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_opens_only_with_its_secret_and_in_its_record() {
        let vault = Vault::new(&TicketSecret::new("one"));
        let sealed = vault.seal_answer("ann", "key", b"shown once");
        assert_eq!(vault.open_answer("ann", "key", &sealed).unwrap(), b"shown once");
        assert!(!sealed.windows(5).any(|part| part == b"shown"));
        for (owner, key) in [("bob", "key"), ("ann", "other"), ("annk", "ey")] {
            assert!(vault.open_answer(owner, key, &sealed).is_none(), "{owner} {key}");
        }
        let other = Vault::new(&TicketSecret::new("two"));
        assert!(other.open_answer("ann", "key", &sealed).is_none());
        assert!(vault.open_answer("ann", "key", &sealed[..20]).is_none());
    }

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
    fn the_secret_of_a_webhook_opens_only_in_its_record() {
        let (vault, webhook) = (Vault::new(&TicketSecret::new("one")), WebhookId::generate());
        let sealed = vault.seal_webhook_secret(webhook, b"secret");
        assert_eq!(vault.open_webhook_secret(webhook, &sealed).unwrap(), b"secret");
        assert!(vault.open_webhook_secret(WebhookId::generate(), &sealed).is_err());
        let other = Vault::new(&TicketSecret::new("two"));
        assert!(other.open_webhook_secret(webhook, &sealed).is_err());
    }

    #[test]
    fn credentials_open_only_in_their_account() {
        let vault = Vault::new(&TicketSecret::new("one"));
        let [ann, bob]: [AccountId; 2] = ["ann", "bob"].map(|id| id.parse().unwrap());
        let sealed = vault.seal_account_credentials(&ann, b"bot token");
        assert_eq!(vault.open_account_credentials(&ann, &sealed).unwrap(), b"bot token");
        let error = vault.open_account_credentials(&bob, &sealed).unwrap_err();
        assert!(error.to_string().contains("account bob"), "{error}");
        let other = Vault::new(&TicketSecret::new("two"));
        assert!(other.open_account_credentials(&ann, &sealed).is_err());
    }

    #[test]
    fn a_link_is_signed_by_the_secret_of_all_nodes_and_by_no_other() {
        let [one, again, two] =
            ["one", "one", "two"].map(|text| Vault::new(&TicketSecret::new(text)));
        let signature = one.sign_link(b"ticket 7");
        assert!(again.signed_link(b"ticket 7", &signature));
        assert!(!two.signed_link(b"ticket 7", &signature));
        assert!(!one.signed_link(b"ticket 8", &signature));
        assert!(!one.signed_link(b"ticket 7", &signature[..31]));
        assert!(!one.signed_link(b"ticket 7", &[]));
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
