//! The keys that sign an event's tickets: made with the event, rotated, revoked.
//!
//! ```text
//!   event made ──▶ key 1 signs ── rotate ──▶ key 2 signs, key 1 still proves
//!                      └── revoke ──▶ key 1 proves nothing; key 2 is made at once, and the tickets
//!                                     of key 1 become its tickets: their PDFs are stale
//! ```
//!
//! A ticket keeps the number of the key that signs it, so rotating changes no PDF that exists. Whoever
//! gives a ticket a key holds its event: an order and a change share it, revoking takes it alone, so
//! no ticket can get a key that is being revoked at the same moment.
//!
//! Private halves are encrypted (`vault.rs`); public ones are not, and prove tickets without any secret.

mod secret;
mod vault;

use sqlx::{AnyConnection, AssertSqlSafe, Row};
use stampede_model::{Event, EventId, KeyRing, PublicKey, Ticket, Timestamp, Token};

use crate::rows;
use crate::transaction::in_transaction;
use crate::{Error, Result, Store};

pub use vault::TicketSecret;
pub(crate) use vault::Vault;

/// Rotating further is refused: nobody needs so many, and scanners load all of them.
const MAX_KEYS: u32 = 1_000;

/// What became of a rotation.
#[derive(Debug, Clone, PartialEq)]
pub enum Rotated {
    /// This key signs from now on.
    New(Box<PublicKey>),
    /// The event has as many keys as it may have.
    TooMany,
    /// There is no such event.
    NotFound,
}

/// What became of a revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    /// The key proves nothing any more (or did not before).
    Done {
        /// The key that signs now.
        signing: u32,
        /// Tickets that it has to sign anew.
        tickets: u64,
    },
    /// There is no such event, or it has no such key.
    NotFound,
}

impl Store {
    /// The token of a ticket that was placed; the same every time.
    pub async fn token(&self, ticket: &Ticket) -> Result<Token> {
        let vault = self.vault()?;
        let (event, id) = (ticket.event_id, ticket.id);
        let number = ticket.signing_key.ok_or_else(|| {
            Error::unusable(format!("ticket {id} has no key yet; the next start gives it one"))
        })?;
        let signer = match vault.remembered(event, number) {
            Some(signer) => signer,
            None => vault.remember(event, number, self.open_key(vault, event, number).await?),
        };
        Ok(signer.sign(ticket.serial, ticket.generation))
    }

    /// All public keys of an event.
    pub async fn key_ring(&self, event: &Event) -> Result<KeyRing> {
        let query = sqlx::query(
            "SELECT event_id AS id, number, public_key, created_at, revoked_at \
             FROM ticket_keys WHERE event_id = $1 ORDER BY number",
        );
        let rows = self.fetch_all(query.bind(event.id.to_string())).await?;
        let keys = rows.iter().map(rows::public_key).collect::<sqlx::Result<_>>()?;
        KeyRing::new(event.id, event.details.name.clone(), keys)
            .map_err(|error| Error::Corrupt(format!("keys of event {}: {error}", event.id)))
    }

    /// Makes a new key that signs from now on; tickets signed before stay as they are.
    pub async fn rotate_ticket_key(&self, event: EventId, now: Timestamp) -> Result<Rotated> {
        let vault = self.vault()?;
        in_transaction!(self, async |db| {
            if !self.hold_event(db, event).await? {
                return Ok(Rotated::NotFound);
            }
            let newest = newest_key(db, event).await?;
            if newest >= MAX_KEYS {
                return Ok(Rotated::TooMany);
            }
            Ok(Rotated::New(Box::new(insert_key(db, vault, event, newest + 1, now).await?)))
        })
    }

    /// Takes the trust from a key: no token that it signed is accepted any more. Its tickets get the
    /// key that signs now, which is a new one if this one did; so they can be handed out again.
    pub async fn revoke_ticket_key(
        &self,
        event: EventId,
        number: u32,
        now: Timestamp,
    ) -> Result<Revoked> {
        let vault = self.vault()?;
        in_transaction!(self, [self.limits.order], async |db| {
            if !self.hold_event(db, event).await? {
                return Ok(Revoked::NotFound);
            }
            let revoked = sqlx::query(
                "UPDATE ticket_keys SET revoked_at = COALESCE(revoked_at, $3) \
                 WHERE event_id = $1 AND number = $2",
            )
            .bind(event.to_string())
            .bind(i64::from(number))
            .bind(now.as_millisecond())
            .execute(&mut *db)
            .await?;
            if revoked.rows_affected() == 0 {
                return Ok(Revoked::NotFound);
            }
            // Not an older one: somebody had a reason to rotate it out.
            let newest = newest_key(db, event).await?;
            if newest == number {
                insert_key(db, vault, event, newest + 1, now).await?;
            }
            let signing = ensure_key(db, vault, event, now).await?;
            let tickets = self.give_key(db, event, signing, TicketsOf::Key(number), now).await?;
            Ok(Revoked::Done { signing, tickets })
        })
    }

    /// Gives tickets of an event, which is held, another key.
    async fn give_key(
        &self,
        db: &mut AnyConnection,
        event: EventId,
        key: u32,
        tickets: TicketsOf,
        now: Timestamp,
    ) -> sqlx::Result<u64> {
        let (condition, former) = match tickets {
            TicketsOf::Key(former) => ("signing_key = $2", former),
            TicketsOf::NoKey => ("signing_key IS NULL AND $2 = $2", 0),
            TicketsOf::OtherKeysThan(former) => {
                ("(signing_key IS NULL OR signing_key <> $2)", former)
            }
        };
        let lock = self.dialect.to_change();
        if !lock.is_empty() {
            let sql = format!(
                "SELECT id FROM tickets WHERE event_id = $1 AND {condition} ORDER BY id {lock}"
            );
            let query = sqlx::query(AssertSqlSafe(sql)).bind(event.to_string());
            query.bind(i64::from(former)).execute(&mut *db).await?;
        }
        let sql = format!(
            "UPDATE tickets SET signing_key = $3, updated_at = {} WHERE event_id = $1 AND {condition}",
            self.dialect.later("$4", "updated_at")
        );
        let done = sqlx::query(AssertSqlSafe(sql))
            .bind(event.to_string())
            .bind(i64::from(former))
            .bind(i64::from(key))
            .bind(now.as_millisecond())
            .execute(db)
            .await?;
        Ok(done.rows_affected())
    }

    async fn open_key(
        &self,
        vault: &Vault,
        event: EventId,
        number: u32,
    ) -> Result<stampede_model::Signer> {
        let query = sqlx::query(
            "SELECT public_key, sealed_seed FROM ticket_keys WHERE event_id = $1 AND number = $2",
        );
        let query = query.bind(event.to_string()).bind(i64::from(number));
        let Some(row) = self.fetch_optional(query).await? else {
            return Err(Error::Corrupt(format!("event {event} has no ticket key {number}")));
        };
        let (public, sealed): (String, String) =
            (row.try_get("public_key")?, row.try_get("sealed_seed")?);
        let signer = vault.open(event, number, &sealed).ok_or_else(|| {
            Error::unusable(format!(
                "key {number} of event {event} cannot be opened: TICKET_KEY_SECRET is not the one it \
                 was encrypted with, or the record is damaged"
            ))
        })?;
        if hex::encode(signer.public_bytes()) != public {
            return Err(Error::Corrupt(format!(
                "the two halves of key {number} of event {event} do not belong together"
            )));
        }
        Ok(signer)
    }

    /// What seals and opens keys.
    pub(crate) fn vault(&self) -> Result<&Vault> {
        self.vault.as_deref().ok_or_else(|| {
            Error::unusable("tickets cannot be signed without a secret; set TICKET_KEY_SECRET")
        })
    }
}

/// Which tickets of an event get another key.
#[derive(Clone, Copy)]
enum TicketsOf {
    Key(u32),
    NoKey,
    OtherKeysThan(u32),
}

/// The key that signs for an event, which is held; made if there is none.
pub(crate) async fn ensure_key(
    db: &mut AnyConnection,
    vault: &Vault,
    event: EventId,
    now: Timestamp,
) -> sqlx::Result<u32> {
    let row = sqlx::query(
        "SELECT COALESCE(MAX(number), 0) AS number FROM ticket_keys \
         WHERE event_id = $1 AND revoked_at IS NULL",
    )
    .bind(event.to_string())
    .fetch_one(&mut *db)
    .await?;
    match rows::number(&row, "number")? {
        0 => {
            let number = newest_key(db, event).await? + 1;
            Ok(insert_key(db, vault, event, number, now).await?.number)
        }
        number => Ok(number),
    }
}

/// Writes a new key, provided that the other keys are encrypted with the same secret.
pub(crate) async fn insert_key(
    db: &mut AnyConnection,
    vault: &Vault,
    event: EventId,
    number: u32,
    now: Timestamp,
) -> sqlx::Result<PublicKey> {
    secret::claim(db, vault).await?;
    write_key(db, vault, event, number, now).await
}

async fn write_key(
    db: &mut AnyConnection,
    vault: &Vault,
    event: EventId,
    number: u32,
    now: Timestamp,
) -> sqlx::Result<PublicKey> {
    let (signer, sealed) = vault.make(event, number);
    let row = sqlx::query(
        "INSERT INTO ticket_keys (event_id, number, public_key, sealed_seed, created_at) \
         VALUES ($1, $2, $3, $4, $5) \
         RETURNING event_id AS id, number, public_key, created_at, revoked_at",
    )
    .bind(event.to_string())
    .bind(i64::from(number))
    .bind(hex::encode(signer.public_bytes()))
    .bind(sealed)
    .bind(now.as_millisecond())
    .fetch_one(db)
    .await?;
    rows::public_key(&row)
}

/// The highest number a key of the event has, revoked ones included; 0 when it has none.
async fn newest_key(db: &mut AnyConnection, event: EventId) -> sqlx::Result<u32> {
    let row = sqlx::query(
        "SELECT COALESCE(MAX(number), 0) AS number FROM ticket_keys WHERE event_id = $1",
    )
    .bind(event.to_string())
    .fetch_one(db)
    .await?;
    rows::number(&row, "number")
}
