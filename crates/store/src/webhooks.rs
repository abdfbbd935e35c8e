//! Webhooks: endpoints that are told what happens, and the deliveries of messages to them.
//!
//! ```text
//!              ┌────────────── retry ─────────────┐
//!              ▼                                  │
//!   message ─▶ pending ── attempt ──▶ delivered   │
//!                 │          ├────────────────────┘
//!                 │          └─────▶ failed       (no attempts are left)
//!                 └────────────────▶ cancelled    (the endpoint was disabled or deleted)
//!   delivered, failed, cancelled ── redeliver ──▶ pending
//! ```
//!
//! A message has at most one delivery to an endpoint, whatever is repeated.

mod deliveries;

use async_trait::async_trait;
use stampede_model::{EventId, Timestamp, WebhookId};

pub use self::deliveries::{
    AttemptResult, DeliveryFilter, DeliveryState, NewDelivery, OutgoingDelivery, PendingDelivery,
    Redelivered, SealedDelivery, WebhookAttempt, WebhookDeliveries, WebhookDelivery,
};
use crate::vault::Vault;
use crate::{Result, Slice, Store, Versioned};

/// An endpoint, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Names the endpoint.
    pub id: WebhookId,
    /// The user whose messages it gets.
    pub owner: String,
    /// Where messages are sent.
    pub url: String,
    /// Words for people; may be empty.
    pub description: String,
    /// The kinds of messages it gets; `None`: all.
    pub kinds: Option<Vec<String>>,
    /// The only event whose messages it gets; `None`: all events of its owner.
    pub event: Option<EventId>,
    /// Why and since when it gets nothing; `None`: it is active.
    pub disabled: Option<Disabled>,
    /// Until when messages are signed with the former secret, too.
    pub former_until: Option<Timestamp>,
    /// Counts the changes that people made; 1 for a new endpoint.
    pub version: u32,
    /// The first failed attempt since the last one that succeeded.
    pub failing_since: Option<Timestamp>,
    /// When a message was last accepted, to the minute.
    pub last_success_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When a person last changed it, or it was disabled.
    pub updated_at: Timestamp,
}

/// Why and since when an endpoint gets nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disabled {
    /// Why.
    pub reason: DisabledReason,
    /// Since when.
    pub at: Timestamp,
}

/// Why an endpoint gets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisabledReason {
    /// A person has disabled it.
    ByHand,
    /// It answered that it is gone for good.
    Gone,
    /// It has accepted nothing for days.
    Failing,
    /// Its secret was encrypted with a ticket secret that is lost.
    SecretLost,
}

impl DisabledReason {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::ByHand, Self::Gone, Self::Failing, Self::SecretLost];

    /// The word in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ByHand => "by_hand",
            Self::Gone => "gone",
            Self::Failing => "failing",
            Self::SecretLost => "secret_lost",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }
}

/// Which endpoints to list; what is absent matches all.
#[derive(Debug, Clone, Default)]
pub struct WebhookFilter {
    /// Only endpoints of this user.
    pub owner: Option<String>,
    /// Only endpoints of this event alone.
    pub event: Option<EventId>,
    /// Only endpoints that are active, or that are not.
    pub is_active: Option<bool>,
}

/// The result of making an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookWritten {
    /// It is written.
    Done,
    /// Its owner has as many as there may be.
    TooMany,
}

/// The endpoints. All changes are synced: a deleted endpoint must not get messages again.
#[async_trait]
pub trait Webhooks: Send + Sync {
    /// Writes a new endpoint with its secret, unless its owner has `most` already.
    async fn insert_webhook(
        &self,
        webhook: &Webhook,
        secret: &[u8],
        most: u32,
        vault: &Vault,
    ) -> Result<WebhookWritten>;

    /// An endpoint that is not deleted.
    async fn webhook(&self, id: WebhookId) -> Result<Option<Webhook>>;

    /// A part of the list of endpoints.
    async fn webhooks(
        &self,
        filter: &WebhookFilter,
        slice: &Slice<WebhookId>,
    ) -> Result<Vec<Webhook>>;

    /// Writes address, description, kinds and state of an endpoint, if it still has the version `seen`. Of an endpoint that is
    /// disabled, the first pending deliveries are cancelled ([`WebhookDeliveries::cancel_pending`] cancels the rest); one that
    /// becomes active counts as not failing.
    async fn update_webhook(&self, webhook: &Webhook, seen: u32) -> Result<bool>;

    /// Gives an endpoint another secret. The former one counts until `former_until`; `None`: it ends at once. A secret that is
    /// lost ends at once, and the endpoint can be made active again.
    async fn rotate_webhook(
        &self,
        id: WebhookId,
        secret: &[u8],
        former_until: Option<Timestamp>,
        now: Timestamp,
        vault: &Vault,
    ) -> Result<bool>;

    /// Deletes an endpoint and cancels the first of its pending deliveries; the rest like those of a disabled one. With
    /// `seen`, only that version of it.
    async fn delete_webhook_as_seen(
        &self,
        id: WebhookId,
        seen: Option<u32>,
        now: Timestamp,
    ) -> Result<Versioned<()>>;

    /// Deletes an endpoint, whatever its version. `false`: there is none.
    async fn delete_webhook(&self, id: WebhookId, now: Timestamp) -> Result<bool> {
        let deleted = self.delete_webhook_as_seen(id, None, now).await?;
        Ok(matches!(deleted, Versioned::Done(())))
    }

    /// Disables all endpoints, whose secrets can no longer be decrypted, also those that were disabled for another reason;
    /// returns how many.
    async fn disable_all_webhooks(&self, now: Timestamp) -> Result<u64>;
}

impl Store {
    /// Writes a new endpoint: see [`Webhooks::insert_webhook`].
    pub async fn insert_webhook(
        &self,
        webhook: &Webhook,
        secret: &[u8],
        most: u32,
    ) -> Result<WebhookWritten> {
        Webhooks::insert_webhook(&**self, webhook, secret, most, self.vault()?).await
    }

    /// Gives an endpoint another secret: see [`Webhooks::rotate_webhook`].
    pub async fn rotate_webhook(
        &self,
        id: WebhookId,
        secret: &[u8],
        former_until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<bool> {
        Webhooks::rotate_webhook(&**self, id, secret, former_until, now, self.vault()?).await
    }

    /// A pending delivery of an active endpoint, with the secrets that sign it at a time.
    pub async fn outgoing_delivery(
        &self,
        id: stampede_model::DeliveryId,
        now: Timestamp,
    ) -> Result<Option<OutgoingDelivery>> {
        let Some(found) = self.sealed_delivery(id).await? else { return Ok(None) };
        let vault = self.vault()?;
        let webhook = found.webhook;
        let mut secrets = vec![vault.open_webhook_secret(webhook, &found.secret)?];
        if let (Some(former), Some(until)) = (&found.former_secret, found.former_until)
            && until > now
        {
            secrets.push(vault.open_webhook_secret(webhook, former)?);
        }
        let SealedDelivery { delivery, url, owner, .. } = found;
        Ok(Some(OutgoingDelivery { delivery, webhook, owner, url, secrets }))
    }
}
