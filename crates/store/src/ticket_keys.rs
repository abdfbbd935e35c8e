//! The keys that sign an event's tickets: made with the event, rotated, revoked.
//!
//! ```text
//!   event made ──▶ key 1 signs ── rotate ──▶ key 2 signs, tokens of key 1 stay valid
//!                      └── revoke ──▶ tokens of key 1 are refused; key 2 is made at once and signs the
//!                                     tickets of key 1 from now on: their PDFs are stale
//! ```
//!
//! A ticket keeps the number of the key that signs it, so rotating changes no PDF that exists. An order,
//! an edit and a reissue lock the event of the ticket (shared), revoking locks it alone. So no ticket can
//! get a key that is being revoked at the same time.
//!
//! Private halves are stored encrypted (`vault.rs`). Public halves are not: verifying needs no secret.

use async_trait::async_trait;
use stampede_model::{Event, EventId, KeyRing, PublicKey, Timestamp};

use crate::vault::{SealedKey, Vault};
use crate::{Error, Result};

/// The most keys an event may have by rotating: scanners load all of them.
pub(crate) const MAX_KEYS: u32 = 1_000;

/// Result of a rotation.
#[derive(Debug, Clone, PartialEq)]
pub enum Rotated {
    /// This key signs from now on.
    New(Box<PublicKey>),
    /// The event has as many keys as it may have.
    TooMany,
    /// There is no such event.
    NotFound,
}

/// Result of a revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    /// The key is revoked, by this call or an earlier one.
    Done {
        /// The key that signs now.
        signing: u32,
        /// Tickets that got the signing key and need a new PDF.
        tickets: u64,
    },
    /// There is no such event, or it has no such key.
    NotFound,
}

/// The ticket keys and the check of the secret they are encrypted with. All changes are synced.
///
/// A database has one secret: the first key decides which. The database stores a check, something known
/// encrypted with that secret; every operation that writes a key compares its vault with the check in
/// the same transaction and fails with `Unusable` if they differ. Renewing does not compare.
#[async_trait]
pub trait TicketKeys: Send + Sync {
    /// Reads all public keys of an event, by number.
    async fn ticket_keys(&self, event: EventId) -> Result<Vec<PublicKey>>;

    /// Reads all public keys of an event as a key ring.
    async fn key_ring(&self, event: &Event) -> Result<KeyRing> {
        let keys = self.ticket_keys(event.id).await?;
        KeyRing::new(event.id, event.details.name.clone(), keys)
            .map_err(|error| Error::Corrupt(format!("keys of event {}: {error}", event.id)))
    }

    /// Reads one key with its private half, encrypted.
    #[doc(hidden)]
    async fn sealed_key(&self, event: EventId, number: u32) -> Result<Option<SealedKey>>;

    /// Makes a new key that signs from now on; tickets signed before stay as they are.
    async fn rotate_ticket_key(
        &self,
        event: EventId,
        vault: &Vault,
        now: Timestamp,
    ) -> Result<Rotated>;

    /// Revokes a key: tokens that it signed are refused from now on. Its tickets get the key that signs
    /// now, which is a new one if the revoked key was the newest.
    async fn revoke_ticket_key(
        &self,
        event: EventId,
        number: u32,
        vault: &Vault,
        now: Timestamp,
    ) -> Result<Revoked>;

    /// Reads the check of the secret; `None` until the first key is written.
    #[doc(hidden)]
    async fn secret_check(&self) -> Result<Option<String>>;

    /// Replaces the check of the secret.
    #[doc(hidden)]
    async fn replace_secret_check(&self, sealed: &str) -> Result<()>;

    /// Finds events that have no valid key, or tickets without a key: records older than ticket keys.
    #[doc(hidden)]
    async fn events_without_key(&self, limit: u32) -> Result<Vec<EventId>>;

    /// Gives an event a key if it has no valid one, and gives that key to its tickets without a key.
    #[doc(hidden)]
    async fn adopt_event(&self, event: EventId, vault: &Vault, now: Timestamp) -> Result<()>;

    /// Makes a new key for an event with another secret, and gives it to all tickets of the event.
    #[doc(hidden)]
    async fn renew_key_of(&self, event: EventId, vault: &Vault, now: Timestamp) -> Result<()>;
}
