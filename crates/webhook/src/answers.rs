//! Records as the API tells them.

use std::collections::BTreeMap;

use stampede_store as store;
use stampede_store::{WebhookAttempt, WebhookDelivery};
use stampede_wire::webhooks::{
    Attempt, Delivery, DeliveryLog, DeliveryState, DisabledReason, IssuedWebhook, Webhook,
    WebhookState,
};

use crate::{client, message, now, signature};

pub(crate) fn webhook(webhook: store::Webhook) -> Webhook {
    let disabled = webhook.disabled.as_ref();
    Webhook {
        id: webhook.id,
        owner: webhook.owner,
        url: webhook.url,
        description: webhook.description,
        kinds: webhook.kinds,
        event: webhook.event,
        state: match disabled {
            Some(_) => WebhookState::Disabled,
            None => WebhookState::Active,
        },
        disabled_reason: disabled.map(|disabled| match disabled.reason {
            store::DisabledReason::ByHand => DisabledReason::ByHand,
            store::DisabledReason::Gone => DisabledReason::Gone,
            store::DisabledReason::Failing => DisabledReason::Failing,
            store::DisabledReason::SecretLost => DisabledReason::SecretLost,
        }),
        disabled_at: disabled.map(|disabled| disabled.at),
        failing_since: webhook.failing_since,
        last_success_at: webhook.last_success_at,
        former_secret_until: webhook.former_until.filter(|until| *until > now()),
        version: webhook.version,
        created_at: webhook.created_at,
        updated_at: webhook.updated_at,
    }
}

pub(crate) fn issued(found: store::Webhook, secret: &[u8]) -> IssuedWebhook {
    IssuedWebhook { webhook: webhook(found), secret: signature::shown(secret) }
}

pub(crate) fn delivery(delivery: WebhookDelivery) -> Delivery {
    Delivery {
        id: delivery.id,
        webhook_id: delivery.webhook,
        message_id: delivery.message,
        kind: delivery.kind,
        event_id: delivery.event,
        batch_id: delivery.batch,
        state: state(delivery.state),
        attempts: delivery.attempts,
        next_attempt_at: delivery.next_at,
        last_status: delivery.last_status,
        last_error: delivery.last_error,
        happened_at: delivery.happened_at,
        created_at: delivery.created_at,
        ended_at: delivery.ended_at,
    }
}

fn state(state: store::DeliveryState) -> DeliveryState {
    match state {
        store::DeliveryState::Pending => DeliveryState::Pending,
        store::DeliveryState::Delivered => DeliveryState::Delivered,
        store::DeliveryState::Failed => DeliveryState::Failed,
        store::DeliveryState::Cancelled => DeliveryState::Cancelled,
    }
}

/// The state of the store for one of the wire.
pub(crate) fn stored(state: DeliveryState) -> store::DeliveryState {
    match state {
        DeliveryState::Pending => store::DeliveryState::Pending,
        DeliveryState::Delivered => store::DeliveryState::Delivered,
        DeliveryState::Failed => store::DeliveryState::Failed,
        DeliveryState::Cancelled => store::DeliveryState::Cancelled,
    }
}

pub(crate) fn log(found: WebhookDelivery, attempts: Vec<WebhookAttempt>) -> DeliveryLog {
    let body = message::body(&found).unwrap_or_default();
    let message = found.message.to_string();
    let log = attempts
        .into_iter()
        .map(|attempt| Attempt {
            headers: headers(&message, &attempt),
            at: attempt.at,
            duration_ms: attempt.duration.as_millis() as u64,
            status: attempt.status,
            error: attempt.error,
            answer: attempt.answer,
        })
        .collect();
    DeliveryLog { delivery: delivery(found), body, log }
}

/// The headers of an attempt. The signature is left out: with it, a reader of the log could send the message again.
fn headers(message: &str, attempt: &WebhookAttempt) -> BTreeMap<String, String> {
    let mut headers: BTreeMap<String, String> = client::headers()
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned()))
        .collect();
    headers.insert("webhook-id".to_owned(), message.to_owned());
    headers.insert("webhook-timestamp".to_owned(), attempt.at.as_second().to_string());
    headers
}
