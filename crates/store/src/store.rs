//! [`Store`]: the records, whatever database they are in.
//!
//! A `Store` dereferences to its [`Backend`], so the operations of every subject are called on it
//! directly: `store.event(id)`, `store.void_ticket(id, now)`. Methods of `Store` itself are those that
//! need the ticket secret, which no backend knows, and those that combine several subjects
//! (`verification.rs`, `ticket_secret.rs`).

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use stampede_model::{Event, EventId, Order, Ticket, Timestamp, Token};
use stampede_telemetry::Metrics;

use crate::limits::Limits;
use crate::sql::Sql;
use crate::vault::Vault;
use crate::{
    AuditEntry, Backend, Error, Events, Orders, Placed, Result, Revoked, Rotated, TicketChunks,
    TicketKeys,
};

/// Which database, and how it is used.
#[derive(Debug, Clone)]
pub struct Config {
    /// `sqlite:/path/stampede.db` or `postgres://user:password@host:5432/stampede`.
    pub url: String,
    /// Connections of this process; at least one.
    pub max_connections: u32,
    /// How long a read may take before the caller gets `Unavailable`. A write transaction may take three
    /// times as long, an order six times.
    pub statement_timeout: Duration,
    /// Where the durations of reads and transactions are counted.
    pub metrics: Metrics,
}

impl Default for Config {
    /// Everything but the address, which has to be given.
    fn default() -> Self {
        Self {
            url: String::new(),
            max_connections: 4,
            statement_timeout: Duration::from_secs(10),
            metrics: Metrics::default(),
        }
    }
}

/// The records. Cheap to clone; all clones share their connections.
#[derive(Debug, Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
    /// Encrypts and decrypts the private keys of events; absent in processes that only verify.
    pub(crate) vault: Option<Arc<Vault>>,
}

impl Deref for Store {
    type Target = dyn Backend;

    fn deref(&self) -> &Self::Target {
        &*self.backend
    }
}

impl Store {
    /// Opens the database; a SQLite file and its folder are created if they are missing.
    pub async fn connect(config: &Config) -> Result<Self> {
        let limits = Limits::new(config.statement_timeout);
        let backend = Sql::connect(&config.url, config.max_connections, limits).await?;
        let backend = Arc::new(backend.counted_by(&config.metrics));
        Ok(Self { backend, vault: None })
    }

    /// Writes a new event and its first ticket key: see [`Events::insert_event`].
    pub async fn insert_event(&self, event: &Event) -> Result<()> {
        Events::insert_event(&**self, event, self.vault()?).await
    }

    /// Writes an order, all of it or nothing: see [`Orders::place_order`].
    pub async fn place_order(&self, order: &Order) -> Result<Placed> {
        Orders::place_order(&**self, order, self.vault()?).await
    }

    /// Writes an order with its entry of the audit log: see [`Orders::place_noted_order`].
    pub async fn place_noted_order(
        &self,
        order: &Order,
        entry: Option<&AuditEntry>,
    ) -> Result<Placed> {
        Orders::place_noted_order(&**self, order, entry, self.vault()?).await
    }

    /// Writes an order whose tickets come piece by piece: see [`Orders::place_in_chunks`].
    pub async fn place_in_chunks(
        &self,
        order: &Order,
        chunks: &mut dyn TicketChunks,
        entry: Option<&AuditEntry>,
    ) -> Result<Placed> {
        Orders::place_in_chunks(&**self, order, chunks, entry, self.vault()?).await
    }

    /// Makes a new key that signs from now on: see [`TicketKeys::rotate_ticket_key`].
    pub async fn rotate_ticket_key(&self, event: EventId, now: Timestamp) -> Result<Rotated> {
        TicketKeys::rotate_ticket_key(&**self, event, self.vault()?, now).await
    }

    /// Revokes a key: see [`TicketKeys::revoke_ticket_key`].
    pub async fn revoke_ticket_key(
        &self,
        event: EventId,
        number: u32,
        now: Timestamp,
    ) -> Result<Revoked> {
        TicketKeys::revoke_ticket_key(&**self, event, number, self.vault()?, now).await
    }

    /// Signs the token of a ticket that was placed; the token is the same every time.
    pub async fn token(&self, ticket: &Ticket) -> Result<Token> {
        let vault = self.vault()?;
        let (event, id) = (ticket.event_id, ticket.id);
        let number = ticket.signing_key.ok_or_else(|| {
            Error::unusable(format!("ticket {id} has no key yet; the next start gives it one"))
        })?;
        let signer = match vault.remembered(event, number) {
            Some(signer) => signer,
            None => {
                let sealed = self.sealed_key(event, number).await?.ok_or_else(|| {
                    Error::Corrupt(format!("event {event} has no ticket key {number}"))
                })?;
                vault.remember(event, number, vault.open_key(event, number, &sealed)?)
            }
        };
        Ok(signer.sign(ticket.serial, ticket.generation))
    }

    /// Signs the content of a link that is handed to people without a key. The signature is the same on all nodes, and
    /// is not valid any more when the ticket secret was replaced.
    pub fn sign_link(&self, content: &[u8]) -> Result<[u8; 32]> {
        Ok(self.vault()?.sign_link(content))
    }

    /// Returns whether [`Store::sign_link`] made the signature; takes the same time for every signature.
    pub fn signed_link(&self, content: &[u8], signature: &[u8]) -> Result<bool> {
        Ok(self.vault()?.signed_link(content, signature))
    }

    /// The secret of a device that enrols with this code and nonce: the same each time and on all nodes, and known to nobody
    /// who does not know the ticket secret.
    pub fn enrolment_secret(&self, code: &str, nonce: &str) -> Result<[u8; 32]> {
        Ok(self.vault()?.enrolment_secret(code, nonce))
    }

    /// The vault that encrypts and decrypts keys.
    pub(crate) fn vault(&self) -> Result<&Vault> {
        self.vault.as_deref().ok_or_else(|| {
            Error::unusable("tickets cannot be signed without a secret; set TICKET_KEY_SECRET")
        })
    }
}
