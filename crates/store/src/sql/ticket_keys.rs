//! Ticket keys in SQL.

use async_trait::async_trait;
use sqlx::{AnyConnection, AssertSqlSafe, Row};
use stampede_model::{EventId, PublicKey, Timestamp};

use super::ticket_secret::{check_secret, write_secret_check};
use super::transaction::in_transaction;
use super::{Sql, rows};
use crate::Durability::Synced;
use crate::ticket_keys::MAX_KEYS;
use crate::vault::{SealedKey, Vault};
use crate::{Result, Revoked, Rotated, TicketKeys};

#[async_trait]
impl TicketKeys for Sql {
    async fn ticket_keys(&self, event: EventId) -> Result<Vec<PublicKey>> {
        let query = sqlx::query(
            "SELECT event_id AS id, number, public_key, created_at, revoked_at \
             FROM ticket_keys WHERE event_id = $1 ORDER BY number",
        );
        self.fetch_all(query.bind(event.to_string()), rows::public_key).await
    }

    async fn sealed_key(&self, event: EventId, number: u32) -> Result<Option<SealedKey>> {
        let query = sqlx::query(
            "SELECT public_key, sealed_seed FROM ticket_keys WHERE event_id = $1 AND number = $2",
        );
        let query = query.bind(event.to_string()).bind(i64::from(number));
        self.fetch_optional(query, |row| {
            Ok(SealedKey { public: row.try_get("public_key")?, seed: row.try_get("sealed_seed")? })
        })
        .await
    }

    async fn rotate_ticket_key(
        &self,
        event: EventId,
        vault: &Vault,
        now: Timestamp,
    ) -> Result<Rotated> {
        in_transaction!(self, Synced, async |db| {
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

    async fn revoke_ticket_key(
        &self,
        event: EventId,
        number: u32,
        vault: &Vault,
        now: Timestamp,
    ) -> Result<Revoked> {
        in_transaction!(self, Synced, [self.limits.order], async |db| {
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
            // A new key, not an older one: older ones were rotated out for a reason.
            let newest = newest_key(db, event).await?;
            if newest == number {
                insert_key(db, vault, event, newest + 1, now).await?;
            }
            let signing = ensure_key(db, vault, event, now).await?;
            let tickets = self.give_key(db, event, signing, TicketsOf::Key(number), now).await?;
            Ok(Revoked::Done { signing, tickets })
        })
    }

    async fn secret_check(&self) -> Result<Option<String>> {
        let query = sqlx::query("SELECT sealed FROM ticket_secret");
        self.fetch_optional(query, |row| row.try_get("sealed")).await
    }

    async fn replace_secret_check(&self, sealed: &str) -> Result<()> {
        in_transaction!(self, Synced, async |db| { write_secret_check(db, sealed).await })
    }

    async fn events_without_key(&self, limit: u32) -> Result<Vec<EventId>> {
        let query = sqlx::query(
            "SELECT id FROM events WHERE NOT EXISTS (SELECT 1 FROM ticket_keys \
             WHERE ticket_keys.event_id = events.id AND revoked_at IS NULL) \
             UNION SELECT event_id AS id FROM tickets WHERE signing_key IS NULL LIMIT $1",
        );
        let query = query.bind(i64::from(limit));
        self.fetch_all_within(self.limits.order, query, |row| rows::parsed(row, "id")).await
    }

    async fn adopt_event(&self, event: EventId, vault: &Vault, now: Timestamp) -> Result<()> {
        in_transaction!(self, Synced, [self.limits.order], async |db| {
            // An event deleted meanwhile has no tickets either.
            if self.hold_event(db, event).await? {
                let key = ensure_key(db, vault, event, now).await?;
                self.give_key(db, event, key, TicketsOf::NoKey, now).await?;
            }
            Ok(())
        })
    }

    async fn renew_key_of(&self, event: EventId, vault: &Vault, now: Timestamp) -> Result<()> {
        in_transaction!(self, Synced, [self.limits.order], async |db| {
            if self.hold_event(db, event).await? {
                let number = newest_key(db, event).await? + 1;
                write_key(db, vault, event, number, now).await?;
                self.give_key(db, event, number, TicketsOf::OtherKeysThan(number), now).await?;
            }
            Ok(())
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

impl Sql {
    /// Gives tickets of an event, which is locked, another key.
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
}

/// Returns the key that signs for an event, which is locked; makes one if there is none.
pub(super) async fn ensure_key(
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

/// Writes a new key, if the other keys are encrypted with the same secret.
pub(super) async fn insert_key(
    db: &mut AnyConnection,
    vault: &Vault,
    event: EventId,
    number: u32,
    now: Timestamp,
) -> sqlx::Result<PublicKey> {
    check_secret(db, vault).await?;
    write_key(db, vault, event, number, now).await
}

async fn write_key(
    db: &mut AnyConnection,
    vault: &Vault,
    event: EventId,
    number: u32,
    now: Timestamp,
) -> sqlx::Result<PublicKey> {
    let key = vault.make(event, number);
    let row = sqlx::query(
        "INSERT INTO ticket_keys (event_id, number, public_key, sealed_seed, created_at) \
         VALUES ($1, $2, $3, $4, $5) \
         RETURNING event_id AS id, number, public_key, created_at, revoked_at",
    )
    .bind(event.to_string())
    .bind(i64::from(number))
    .bind(key.public)
    .bind(key.seed)
    .bind(now.as_millisecond())
    .fetch_one(db)
    .await?;
    rows::public_key(&row)
}

/// Returns the highest number of the event's keys, revoked ones included; 0 if it has none.
async fn newest_key(db: &mut AnyConnection, event: EventId) -> sqlx::Result<u32> {
    let row = sqlx::query(
        "SELECT COALESCE(MAX(number), 0) AS number FROM ticket_keys WHERE event_id = $1",
    )
    .bind(event.to_string())
    .fetch_one(db)
    .await?;
    rows::number(&row, "number")
}
