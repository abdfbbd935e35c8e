//! Endpoints: make, list, read, change, rotate, delete, test.

use std::time::Duration;

use serde_json::json;
use stampede_model::{DeliveryId, EventId, FeedEventId, WebhookId};
use stampede_store::{
    Disabled, DisabledReason, NewDelivery, Slice, Versioned, Webhook as Record, WebhookFilter,
    WebhookWritten,
};
use stampede_wire::webhooks::{Delivery, IssuedWebhook, Webhook, WebhookState};

use crate::message::TEST_KIND;
use crate::{Error, Webhooks, address, answers, now, signature};

/// Most endpoints of one user.
pub const MOST_ENDPOINTS: u32 = 50;
/// Longest time that messages are signed with the former secret, too.
pub const LONGEST_GRACE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// An endpoint to be made.
#[derive(Debug, Clone)]
pub struct NewWebhook {
    /// The user whose messages it gets.
    pub owner: String,
    /// Where messages are sent: checked with [`Webhooks::check_url`].
    pub url: String,
    /// Words for people.
    pub description: String,
    /// The kinds of messages it gets; `None`: all.
    pub kinds: Option<Vec<String>>,
    /// The only event whose messages it gets.
    pub event: Option<EventId>,
}

/// The result of making an endpoint.
#[derive(Debug, Clone)]
pub enum Made {
    /// It is made; its secret is shown once.
    Done(Box<IssuedWebhook>),
    /// Its owner has as many as there may be.
    TooMany,
}

/// Fields of an endpoint to be changed; `None`: stays as it is.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Where messages are sent: checked with [`Webhooks::check_url`].
    pub url: Option<String>,
    /// Words for people.
    pub description: Option<String>,
    /// The kinds of messages it gets; `Some(None)`: all.
    pub kinds: Option<Option<Vec<String>>>,
    /// Whether it gets messages.
    pub state: Option<WebhookState>,
}

/// The result of a change.
#[derive(Debug, Clone)]
pub enum Written {
    /// It is written.
    Done(Box<Webhook>),
    /// Somebody else has changed it since the version that was read.
    Changed,
    /// It cannot become active: its secret is lost, and has to be rotated first.
    SecretLost,
}

/// The result of sending a test.
#[derive(Debug, Clone)]
pub enum Tested {
    /// The message is on its way.
    Sent(Box<Delivery>),
    /// The endpoint is disabled.
    Disabled,
}

/// What became of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// It is deleted.
    Done,
    /// It has another version than the one that was seen, and stays.
    Changed,
    /// There is no such endpoint.
    NotFound,
}

impl Webhooks {
    /// Checks the URL of an endpoint; the error says what would be right. The address behind a name is checked when it is
    /// connected to.
    pub fn check_url(&self, url: &str) -> Result<String, String> {
        address::parse(url, self.shared.client.allowed()).map(String::from)
    }

    /// Makes an endpoint.
    pub async fn create(&self, new: NewWebhook) -> Result<Made, Error> {
        let (now, secret) = (now(), signature::new_secret());
        let record = Record {
            id: WebhookId::generate(),
            owner: new.owner,
            url: new.url,
            description: new.description,
            kinds: new.kinds,
            event: new.event,
            disabled: None,
            former_until: None,
            version: 1,
            failing_since: None,
            last_success_at: None,
            created_at: now,
            updated_at: now,
        };
        match self.shared.store.insert_webhook(&record, &secret, MOST_ENDPOINTS).await? {
            WebhookWritten::Done => Ok(Made::Done(Box::new(answers::issued(record, &secret)))),
            WebhookWritten::TooMany => Ok(Made::TooMany),
        }
    }

    /// A part of the list of endpoints.
    pub async fn list(
        &self,
        filter: &WebhookFilter,
        slice: &Slice<WebhookId>,
    ) -> Result<Vec<Webhook>, Error> {
        let found = self.shared.store.webhooks(filter, slice).await?;
        Ok(found.into_iter().map(answers::webhook).collect())
    }

    /// An endpoint.
    pub async fn webhook(&self, id: WebhookId) -> Result<Option<Webhook>, Error> {
        Ok(self.shared.store.webhook(id).await?.map(answers::webhook))
    }

    /// Changes an endpoint that still has the version `seen`.
    pub async fn change(
        &self,
        id: WebhookId,
        seen: u32,
        change: &Change,
    ) -> Result<Written, Error> {
        let store = &self.shared.store;
        let Some(mut record) = store.webhook(id).await? else { return Ok(Written::Changed) };
        let now = now();
        if let Some(url) = &change.url {
            record.url.clone_from(url);
        }
        if let Some(description) = &change.description {
            record.description.clone_from(description);
        }
        if let Some(kinds) = &change.kinds {
            record.kinds.clone_from(kinds);
        }
        match (change.state, &record.disabled) {
            (Some(WebhookState::Active), Some(disabled))
                if disabled.reason == DisabledReason::SecretLost =>
            {
                return Ok(Written::SecretLost);
            }
            (Some(WebhookState::Active), Some(_)) => {
                // What waited when it was disabled stays cancelled.
                while store.cancel_pending(id, now).await? > 0 {}
                record.disabled = None;
            }
            (Some(WebhookState::Disabled), None) => {
                record.disabled = Some(Disabled { reason: DisabledReason::ByHand, at: now });
            }
            _ => {}
        }
        record.updated_at = now;
        if !store.update_webhook(&record, seen).await? {
            return Ok(Written::Changed);
        }
        let written = self.webhook(id).await?;
        Ok(written.map_or(Written::Changed, |webhook| Written::Done(Box::new(webhook))))
    }

    /// Gives an endpoint another secret, which is shown once. Messages are signed with the former one, too, for the time of
    /// `grace`.
    pub async fn rotate(
        &self,
        id: WebhookId,
        grace: Duration,
    ) -> Result<Option<IssuedWebhook>, Error> {
        let (now, secret) = (now(), signature::new_secret());
        let until = (!grace.is_zero()).then(|| now + grace.min(LONGEST_GRACE));
        let store = &self.shared.store;
        if !store.rotate_webhook(id, &secret, until, now).await? {
            return Ok(None);
        }
        Ok(store.webhook(id).await?.map(|webhook| answers::issued(webhook, &secret)))
    }

    /// Deletes an endpoint: it gets nothing any more. With `seen`, only that version of it.
    pub async fn delete(&self, id: WebhookId, seen: Option<u32>) -> Result<Deleted, Error> {
        Ok(match self.shared.store.delete_webhook_as_seen(id, seen, now()).await? {
            Versioned::Done(()) => Deleted::Done,
            Versioned::ChangedMeanwhile => Deleted::Changed,
            Versioned::NotFound => Deleted::NotFound,
        })
    }

    /// Sends a message of the kind `webhook.test` to an endpoint.
    pub async fn test(&self, id: WebhookId) -> Result<Tested, Error> {
        let now = now();
        let delivery = NewDelivery {
            id: DeliveryId::generate(),
            webhook: id,
            message: FeedEventId::generate(),
            kind: TEST_KIND.to_owned(),
            happened_at: now,
            data: json!({ "webhookId": id }).to_string(),
        };
        let store = &self.shared.store;
        if !store.insert_delivery(&delivery, now).await? {
            return Ok(Tested::Disabled);
        }
        let written = store.delivery(id, delivery.id).await?;
        Ok(written.map_or(Tested::Disabled, |sent| Tested::Sent(Box::new(answers::delivery(sent)))))
    }
}
