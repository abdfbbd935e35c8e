//! Webhooks: `/api/webhooks`, `stampede webhooks`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use stampede_model::feed::Kind;
use stampede_model::{BatchId, DeliveryId, EventId, FeedEventId, Timestamp, WebhookId};

/// A kind of messages that a webhook can get: those that are never lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageKind(Kind);

impl MessageKind {
    /// All kinds.
    pub fn all() -> impl Iterator<Item = Self> {
        Kind::ALL.iter().copied().filter(|kind| kind.is_stored()).map(Self)
    }

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        self.0.as_str()
    }
}

impl fmt::Display for MessageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for MessageKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::all().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::all().map(Self::as_str).collect();
            format!("must be one of {}", names.join(", "))
        })
    }
}

impl JsonSchema for MessageKind {
    fn schema_name() -> Cow<'static, str> {
        "MessageKind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = Self::all().map(Self::as_str).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

/// Whether a webhook gets messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebhookState {
    /// It does.
    Active,
    /// It does not.
    Disabled,
}

impl WebhookState {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
        }
    }
}

impl FromStr for WebhookState {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "active" => Ok(Self::Active),
            "disabled" => Ok(Self::Disabled),
            _ => Err("must be active or disabled"),
        }
    }
}

/// Why a webhook was disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DisabledReason {
    /// A person has disabled it.
    ByHand,
    /// It answered 410.
    Gone,
    /// It accepted nothing for five days.
    Failing,
    /// Its secret was lost with the ticket secret: rotate it.
    SecretLost,
}

impl DisabledReason {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ByHand => "by_hand",
            Self::Gone => "gone",
            Self::Failing => "failing",
            Self::SecretLost => "secret_lost",
        }
    }
}

/// A webhook, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// The webhook's id.
    pub id: WebhookId,
    /// The user whose messages it gets.
    pub owner: String,
    /// Where messages are sent.
    pub url: String,
    /// Words for people.
    pub description: String,
    /// The kinds of messages it gets; `null`: all.
    pub kinds: Option<Vec<String>>,
    /// The only event whose messages it gets; `null`: all events of its owner.
    pub event: Option<EventId>,
    /// Whether it gets messages.
    pub state: WebhookState,
    /// Why it was disabled.
    pub disabled_reason: Option<DisabledReason>,
    /// When it was disabled.
    pub disabled_at: Option<Timestamp>,
    /// The first failed attempt since the last one that succeeded.
    pub failing_since: Option<Timestamp>,
    /// When a message was last accepted, to the minute.
    pub last_success_at: Option<Timestamp>,
    /// Until when messages are signed with the former secret, too.
    pub former_secret_until: Option<Timestamp>,
    /// Counts its changes, for `If-Match`.
    pub version: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A webhook with its secret, which is shown once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IssuedWebhook {
    /// The webhook.
    #[serde(flatten)]
    pub webhook: Webhook,
    /// The secret that proves messages: `whsec_` and base64. It cannot be shown again.
    pub secret: String,
}

/// One page of webhooks, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookPage {
    /// The webhooks.
    pub webhooks: Vec<Webhook>,
    /// The `after` of the next page; `null` on the last.
    pub next: Option<WebhookId>,
}

/// The state of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    /// It is to be sent, for the first time or again.
    Pending,
    /// The endpoint accepted it.
    Delivered,
    /// The endpoint did not accept it in any attempt.
    Failed,
    /// The webhook was disabled first.
    Cancelled,
}

impl DeliveryState {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The delivery of one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// The delivery's id.
    pub id: DeliveryId,
    /// The webhook.
    pub webhook_id: WebhookId,
    /// The message's id, which is the header `webhook-id` of every attempt.
    pub message_id: FeedEventId,
    /// The kind of the message.
    pub kind: String,
    /// The ticketed event that it is about.
    pub event_id: Option<EventId>,
    /// The order that it is about.
    pub batch_id: Option<BatchId>,
    /// Its state.
    pub state: DeliveryState,
    /// Attempts so far.
    pub attempts: u32,
    /// When it is tried again.
    pub next_attempt_at: Option<Timestamp>,
    /// The status of the last answer.
    pub last_status: Option<u16>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    /// When it happened.
    pub happened_at: Timestamp,
    /// When the delivery was made.
    pub created_at: Timestamp,
    /// When it was delivered, failed or cancelled.
    pub ended_at: Option<Timestamp>,
}

/// One page of deliveries, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryPage {
    /// The deliveries.
    pub deliveries: Vec<Delivery>,
    /// The `after` of the next page; `null` on the last.
    pub next: Option<DeliveryId>,
}

/// A delivery with what was sent and answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryLog {
    /// The delivery.
    #[serde(flatten)]
    pub delivery: Delivery,
    /// The body that every attempt sends.
    pub body: String,
    /// The last 50 attempts, the first first.
    pub log: Vec<Attempt>,
}

/// One attempt to deliver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// When it began.
    pub at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The headers that were sent, without the signature.
    pub headers: BTreeMap<String, String>,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// Why it failed; `null`: it did not.
    pub error: Option<String>,
    /// The first 4 KiB of the answer, as text.
    pub answer: String,
}

/// Deliveries that were asked for once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedeliveredMany {
    /// How many.
    pub redelivered: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ticketing::golden::assert_golden;

    const AT: &str = "2027-01-15T08:00:00Z";

    #[test]
    fn webhooks_have_the_names_that_clients_read() {
        let at: Timestamp = AT.parse().unwrap();
        let (id, event) = (WebhookId::from_bytes([1; 16]), EventId::from_bytes([2; 16]));
        let webhook = Webhook {
            id,
            owner: "ann".into(),
            url: "https://example.com/hook".into(),
            description: "Box office".into(),
            kinds: Some(vec!["batch.completed".into()]),
            event: Some(event),
            state: WebhookState::Disabled,
            disabled_reason: Some(DisabledReason::SecretLost),
            disabled_at: Some(at),
            failing_since: None,
            last_success_at: Some(at),
            former_secret_until: None,
            version: 3,
            created_at: at,
            updated_at: at,
        };
        let mut json = json!({
            "id": id, "owner": "ann", "url": "https://example.com/hook", "description": "Box office",
            "kinds": ["batch.completed"], "event": event, "state": "disabled",
            "disabledReason": "secret_lost", "disabledAt": AT, "failingSince": null,
            "lastSuccessAt": AT, "formerSecretUntil": null, "version": 3, "createdAt": AT, "updatedAt": AT,
        });
        assert_golden(&webhook, json.clone());
        let page = WebhookPage { webhooks: vec![webhook.clone()], next: Some(id) };
        assert_golden(&page, json!({ "webhooks": [json], "next": id }));
        json["secret"] = json!("whsec_x");
        assert_golden(&IssuedWebhook { webhook, secret: "whsec_x".into() }, json);
        for reason in [
            DisabledReason::ByHand,
            DisabledReason::Gone,
            DisabledReason::Failing,
            DisabledReason::SecretLost,
        ] {
            assert_golden(&reason, json!(reason.as_str()));
        }
        for state in [WebhookState::Active, WebhookState::Disabled] {
            assert_golden(&state, json!(state.as_str()));
            assert_eq!(state.as_str().parse(), Ok(state));
        }
    }

    #[test]
    fn deliveries_have_the_names_that_clients_read() {
        let at: Timestamp = AT.parse().unwrap();
        let (id, webhook) = (DeliveryId::from_bytes([1; 16]), WebhookId::from_bytes([2; 16]));
        let message = FeedEventId::from_bytes([3; 16]);
        let delivery = Delivery {
            id,
            webhook_id: webhook,
            message_id: message,
            kind: "batch.completed".into(),
            event_id: None,
            batch_id: None,
            state: DeliveryState::Failed,
            attempts: 11,
            next_attempt_at: None,
            last_status: Some(500),
            last_error: Some("answered 500".into()),
            happened_at: at,
            created_at: at,
            ended_at: Some(at),
        };
        let mut json = json!({
            "id": id, "webhookId": webhook, "messageId": message, "kind": "batch.completed", "eventId": null,
            "batchId": null, "state": "failed", "attempts": 11, "nextAttemptAt": null, "lastStatus": 500,
            "lastError": "answered 500", "happenedAt": AT, "createdAt": AT, "endedAt": AT,
        });
        assert_golden(&delivery, json.clone());
        let page = DeliveryPage { deliveries: vec![delivery.clone()], next: None };
        assert_golden(&page, json!({ "deliveries": [json], "next": null }));
        let attempt = Attempt {
            at,
            duration_ms: 12,
            headers: [("webhook-id".to_owned(), message.to_string())].into(),
            status: Some(500),
            error: Some("answered 500".into()),
            answer: "oops".into(),
        };
        json["body"] = json!("{}");
        json["log"] = json!([{
            "at": AT, "durationMs": 12, "headers": { "webhook-id": message }, "status": 500,
            "error": "answered 500", "answer": "oops",
        }]);
        assert_golden(&DeliveryLog { delivery, body: "{}".into(), log: vec![attempt] }, json);
        assert_golden(&RedeliveredMany { redelivered: 2 }, json!({ "redelivered": 2 }));
        for state in [
            DeliveryState::Pending,
            DeliveryState::Delivered,
            DeliveryState::Failed,
            DeliveryState::Cancelled,
        ] {
            assert_golden(&state, json!(state.as_str()));
        }
    }

    #[test]
    fn only_kinds_that_are_never_lost_can_be_chosen() {
        assert_eq!("batch.completed".parse::<MessageKind>().unwrap().as_str(), "batch.completed");
        for other in ["node.started", "alert", "webhook.test", ""] {
            let told = other.parse::<MessageKind>().unwrap_err();
            assert!(told.contains("must be one of event.created"), "{told}");
        }
    }
}
