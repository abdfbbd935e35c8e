//! The secret that private keys are encrypted with: checked at the start, replaced when it is lost.

use std::sync::Arc;

use stampede_model::Timestamp;

use crate::vault::{TicketSecret, Vault};
use crate::{Error, Result, Store};

/// Events read in one step.
const PAGE: u32 = 500;

/// Tells the operator that the secret is not the one of the database.
pub(crate) const WRONG_SECRET: &str = "TICKET_KEY_SECRET is not the secret that the ticket keys in this \
     database were encrypted with; set it to the former value or, if that is lost for good, make new \
     keys with: stampede ticket-keys renew (tickets that were handed out stay valid)";

impl Store {
    /// Returns this store with the secret that private keys are encrypted with.
    pub fn with_ticket_secret(mut self, secret: &TicketSecret) -> Self {
        self.vault = Some(Arc::new(Vault::new(secret)));
        self
    }

    /// Returns whether this database has private keys, encrypted with whatever secret.
    pub async fn has_ticket_secret(&self) -> Result<bool> {
        Ok(self.secret_check().await?.is_some())
    }

    /// Fails with `Unusable` if this store's secret is not the database's, which is the one that its first
    /// key was encrypted with.
    pub async fn check_ticket_secret(&self) -> Result<()> {
        match self.secret_check().await? {
            Some(sealed) if !self.vault()?.opens_check(&sealed) => {
                Err(Error::unusable(WRONG_SECRET))
            }
            _ => Ok(()),
        }
    }

    /// Checks the secret, then gives a key to events and tickets that are older than ticket keys.
    /// Idempotent; any number of processes may do so at the same time.
    pub async fn prepare_ticket_keys(&self, now: Timestamp) -> Result<()> {
        let vault = self.vault()?;
        self.check_ticket_secret().await?;
        loop {
            let events = self.events_without_key(PAGE).await?;
            if events.is_empty() {
                return Ok(());
            }
            for event in events {
                self.adopt_event(event, vault, now).await?;
            }
        }
    }

    /// Replaces a secret that is lost, or known to others, by this store's secret: every event gets a new
    /// key, which signs all of its tickets from now on. Tokens of former keys stay valid until those keys
    /// are revoked. Webhooks are disabled until they are rotated, and accounts of campaigns are blocked until their credentials
    /// are entered again: what was encrypted cannot be decrypted. Returns the number of events.
    ///
    /// If it is interrupted, the former secret stays the database's; it has to be repeated.
    pub async fn renew_ticket_secret(&self, now: Timestamp) -> Result<u64> {
        let vault = self.vault()?;
        let (mut after, mut renewed) = (None, 0);
        loop {
            let events = self.event_ids(after, PAGE).await?;
            let Some(last) = events.last() else { break };
            after = Some(*last);
            for event in events {
                self.renew_key_of(event, vault, now).await?;
                renewed += 1;
            }
        }
        let webhooks = self.disable_all_webhooks(now).await?;
        if webhooks > 0 {
            tracing::warn!(
                webhooks,
                "webhooks are disabled: their secrets cannot be decrypted; rotate them"
            );
        }
        let accounts = self.lose_credentials(now).await?;
        if accounts > 0 {
            tracing::warn!(
                accounts,
                "accounts of campaigns are blocked: their credentials cannot be decrypted; enter them again"
            );
        }
        self.replace_secret_check(&vault.seal_check()).await?;
        Ok(renewed)
    }
}
