//! The secret that private keys are encrypted with: recognised at the start, replaced when it is lost.

use std::sync::Arc;

use sqlx::{AnyConnection, AssertSqlSafe, Row};
use stampede_model::{EventId, Timestamp};

use super::{TicketSecret, TicketsOf, Vault, ensure_key, newest_key, write_key};
use crate::rows;
use crate::transaction::in_transaction;
use crate::{Error, Result, Store};

/// Events looked at in one step.
const PAGE: i64 = 500;

/// What the operator is told.
const WRONG: &str = "TICKET_KEY_SECRET is not the secret that the ticket keys in this database were \
     encrypted with; set it to the former value or, if that is lost for good, make new keys with: \
     stampede ticket-keys renew (tickets that were handed out stay valid)";

/// Makes sure that all keys are encrypted with one secret: the first key decides which.
pub(super) async fn claim(db: &mut AnyConnection, vault: &Vault) -> sqlx::Result<()> {
    // Waits for another process that is just writing the first key.
    sqlx::query(
        "INSERT INTO ticket_secret (id, sealed) VALUES (1, $1) ON CONFLICT (id) DO NOTHING",
    )
    .bind(vault.seal_check())
    .execute(&mut *db)
    .await?;
    let row = sqlx::query("SELECT sealed FROM ticket_secret").fetch_one(db).await?;
    let sealed: String = row.try_get("sealed")?;
    if vault.opens_check(&sealed) { Ok(()) } else { Err(sqlx::Error::Configuration(WRONG.into())) }
}

impl Store {
    /// The same records, with the secret that private keys are encrypted with.
    pub fn with_ticket_secret(mut self, secret: &TicketSecret) -> Self {
        self.vault = Some(Arc::new(Vault::new(secret)));
        self
    }

    /// Whether private keys have been encrypted in this database, with whatever secret.
    pub async fn has_ticket_secret(&self) -> Result<bool> {
        Ok(self.sealed_check().await?.is_some())
    }

    /// Refuses a secret that is not the database's, which is the one its first key was encrypted with.
    /// Then gives a key to events and tickets that are older than keys. Any number of processes may do so, as often as
    /// they like.
    pub async fn prepare_ticket_keys(&self, now: Timestamp) -> Result<()> {
        let vault = self.vault()?;
        self.check_ticket_secret().await?;
        let keyless = "SELECT id FROM events WHERE NOT EXISTS (SELECT 1 FROM ticket_keys \
             WHERE ticket_keys.event_id = events.id AND revoked_at IS NULL) LIMIT $1";
        self.for_each_event(keyless, async |event| self.adopt(vault, event, now).await).await?;
        let unsigned =
            "SELECT DISTINCT event_id AS id FROM tickets WHERE signing_key IS NULL LIMIT $1";
        self.for_each_event(unsigned, async |event| self.adopt(vault, event, now).await).await
    }

    /// Refuses a secret that is not the database's.
    pub async fn check_ticket_secret(&self) -> Result<()> {
        match self.sealed_check().await? {
            Some(sealed) if !self.vault()?.opens_check(&sealed) => Err(Error::unusable(WRONG)),
            _ => Ok(()),
        }
    }

    /// Starts anew with this store's secret when the former one is lost or known to others: every event
    /// gets a new key, which signs all of its tickets from now on. Former keys still prove what they
    /// signed, until they are revoked. Returns how many events that were.
    ///
    /// Broken off half-way, the former secret still counts and it is to be done again.
    pub async fn renew_ticket_secret(&self, now: Timestamp) -> Result<u64> {
        let vault = self.vault()?;
        let (mut after, mut renewed) = (String::new(), 0);
        loop {
            let query = sqlx::query("SELECT id FROM events WHERE id > $1 ORDER BY id LIMIT $2");
            let page = self.fetch_all(query.bind(after.as_str()).bind(PAGE)).await?;
            for row in &page {
                let event: EventId = rows::parsed(row, "id")?;
                after = event.to_string();
                in_transaction!(self, [self.limits.order], async |db| {
                    if self.hold_event(db, event).await? {
                        let number = newest_key(db, event).await? + 1;
                        write_key(db, vault, event, number, now).await?;
                        let all = TicketsOf::OtherKeysThan(number);
                        self.give_key(db, event, number, all, now).await?;
                    }
                    Ok(())
                })?;
                renewed += 1;
            }
            if page.is_empty() {
                break;
            }
        }
        let sealed = vault.seal_check();
        in_transaction!(self, async |db| {
            sqlx::query(
                "INSERT INTO ticket_secret (id, sealed) VALUES (1, $1) \
                 ON CONFLICT (id) DO UPDATE SET sealed = excluded.sealed",
            )
            .bind(sealed.as_str())
            .execute(db)
            .await?;
            Ok(())
        })?;
        Ok(renewed)
    }

    /// Gives an event a key if it has none, and its tickets without a key that key.
    async fn adopt(&self, vault: &Vault, event: EventId, now: Timestamp) -> Result<()> {
        in_transaction!(self, [self.limits.order], async |db| {
            // Deleted meanwhile: so are its tickets.
            if self.hold_event(db, event).await? {
                let key = ensure_key(db, vault, event, now).await?;
                self.give_key(db, event, key, TicketsOf::NoKey, now).await?;
            }
            Ok(())
        })
    }

    /// Does something to each event that the statement finds, until it finds none.
    async fn for_each_event(
        &self,
        find: &'static str,
        each: impl AsyncFn(EventId) -> Result<()>,
    ) -> Result<()> {
        loop {
            let query = sqlx::query(AssertSqlSafe(find)).bind(PAGE);
            let page = self.fetch_all_within(self.limits.order, query).await?;
            if page.is_empty() {
                return Ok(());
            }
            for row in &page {
                each(rows::parsed(row, "id")?).await?;
            }
        }
    }

    async fn sealed_check(&self) -> Result<Option<String>> {
        let row = self.fetch_optional(sqlx::query("SELECT sealed FROM ticket_secret")).await?;
        Ok(row.map(|row| row.try_get("sealed")).transpose()?)
    }
}
