//! The body of a message: `{id, type, timestamp, eventId, batchId, data}`. All attempts send the same bytes.

use serde::Serialize;
use serde_json::value::RawValue;
use stampede_model::{BatchId, EventId, FeedEventId, Timestamp};
use stampede_store::WebhookDelivery;

/// The kind of the message that `test` sends.
pub(crate) const TEST_KIND: &str = "webhook.test";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    id: FeedEventId,
    r#type: &'a str,
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<EventId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_id: Option<BatchId>,
    data: &'a RawValue,
}

/// The body of a delivery; `None`: its data is no JSON, which the store never writes.
pub(crate) fn body(delivery: &WebhookDelivery) -> Option<String> {
    let message = Message {
        id: delivery.message,
        r#type: &delivery.kind,
        timestamp: delivery.happened_at,
        event_id: delivery.event,
        batch_id: delivery.batch,
        data: serde_json::from_str(&delivery.data).ok()?,
    };
    serde_json::to_string(&message).ok()
}

#[cfg(test)]
mod tests {
    use stampede_model::{DeliveryId, WebhookId};
    use stampede_store::DeliveryState;

    use super::*;

    #[test]
    fn a_message_has_the_names_that_receivers_read() {
        let at: Timestamp = "2026-11-18T15:00:00.5Z".parse().unwrap();
        let (message, batch) = (FeedEventId::from_bytes([1; 16]), BatchId::from_bytes([2; 16]));
        let mut delivery = WebhookDelivery {
            id: DeliveryId::generate(),
            webhook: WebhookId::generate(),
            message,
            kind: "batch.completed".to_owned(),
            event: None,
            batch: Some(batch),
            happened_at: at,
            data: r#"{"total":2}"#.to_owned(),
            state: DeliveryState::Pending,
            attempts: 0,
            tries: 0,
            next_at: None,
            last_status: None,
            last_error: None,
            created_at: at,
            ended_at: None,
        };
        let wanted = format!(
            r#"{{"id":"{message}","type":"batch.completed","timestamp":"2026-11-18T15:00:00.5Z","batchId":"{batch}","data":{{"total":2}}}}"#
        );
        assert_eq!(body(&delivery), Some(wanted));
        delivery.data = "{".to_owned();
        assert_eq!(body(&delivery), None);
    }
}
