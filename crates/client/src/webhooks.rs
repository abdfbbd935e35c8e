//! Webhooks and their deliveries.

use serde::Serialize;
use stampede_model::{DeliveryId, EventId, Timestamp, WebhookId};
use stampede_wire::webhooks::{
    Delivery, DeliveryLog, DeliveryPage, IssuedWebhook, RedeliveredMany, Webhook, WebhookPage,
    WebhookState,
};

use crate::{Client, Result, with_query};

/// A webhook to be made.
#[derive(Debug, Clone, Serialize)]
pub struct NewWebhook {
    /// Where messages are sent.
    pub url: String,
    /// Words for people.
    pub description: String,
    /// The kinds of messages; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
    /// The only event whose messages it gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<EventId>,
}

/// Deliveries to list.
#[derive(Debug, Clone, Default)]
pub struct DeliveryQuery {
    /// Only those in this state.
    pub state: Option<String>,
    /// Only those of this kind.
    pub kind: Option<String>,
    /// How many at most.
    pub limit: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rotate {
    grace_seconds: u64,
}

#[derive(Serialize)]
struct State {
    state: WebhookState,
}

#[derive(Serialize)]
struct Since {
    since: Timestamp,
}

/// An empty body.
#[derive(Serialize)]
struct Nothing {}

impl Client {
    /// Makes a webhook.
    pub async fn create_webhook(&self, webhook: &NewWebhook) -> Result<IssuedWebhook> {
        self.post("/api/webhooks", webhook).await
    }

    /// A page of webhooks, newest first.
    pub async fn webhooks(&self, after: Option<WebhookId>) -> Result<WebhookPage> {
        let after = after.map(|id| id.to_string());
        self.get(&with_query("/api/webhooks", &[("after", after.as_deref())])).await
    }

    /// A webhook.
    pub async fn webhook(&self, id: WebhookId) -> Result<Webhook> {
        self.get(&format!("/api/webhooks/{id}")).await
    }

    /// Disables a webhook, or makes it active.
    pub async fn set_webhook_state(&self, id: WebhookId, state: WebhookState) -> Result<Webhook> {
        self.patch(&format!("/api/webhooks/{id}"), &State { state }).await
    }

    /// Gives a webhook another secret; messages are signed with the former one, too, for so many seconds.
    pub async fn rotate_webhook(&self, id: WebhookId, grace_seconds: u64) -> Result<IssuedWebhook> {
        self.post(&format!("/api/webhooks/{id}/rotate"), &Rotate { grace_seconds }).await
    }

    /// Deletes a webhook.
    pub async fn delete_webhook(&self, id: WebhookId) -> Result<()> {
        self.delete::<serde_json::Value>(&format!("/api/webhooks/{id}")).await.map(drop)
    }

    /// Sends a test message.
    pub async fn test_webhook(&self, id: WebhookId) -> Result<Delivery> {
        self.post(&format!("/api/webhooks/{id}/test"), &Nothing {}).await
    }

    /// Deliveries of a webhook, newest first.
    pub async fn deliveries(&self, id: WebhookId, query: &DeliveryQuery) -> Result<DeliveryPage> {
        let limit = query.limit.map(|limit| limit.to_string());
        let parameters = [
            ("state", query.state.as_deref()),
            ("kind", query.kind.as_deref()),
            ("limit", limit.as_deref()),
        ];
        self.get(&with_query(&format!("/api/webhooks/{id}/deliveries"), &parameters)).await
    }

    /// A delivery with every attempt.
    pub async fn delivery(&self, id: WebhookId, delivery: DeliveryId) -> Result<DeliveryLog> {
        self.get(&format!("/api/webhooks/{id}/deliveries/{delivery}")).await
    }

    /// Sends a delivery once more.
    pub async fn redeliver(&self, id: WebhookId, delivery: DeliveryId) -> Result<Delivery> {
        let path = format!("/api/webhooks/{id}/deliveries/{delivery}/redeliver");
        self.post(&path, &Nothing {}).await
    }

    /// Sends everything once more that failed or was cancelled since a time.
    pub async fn redeliver_since(
        &self,
        id: WebhookId,
        since: Timestamp,
    ) -> Result<RedeliveredMany> {
        self.post(&format!("/api/webhooks/{id}/redeliver"), &Since { since }).await
    }
}
