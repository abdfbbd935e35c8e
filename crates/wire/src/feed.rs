//! Events of the feed, as live streams and webhooks send them. The kinds and their data are in `stampede_model::feed`.
//!
//! An event is one JSON object:
//!
//! ```json
//! {"id":"0198…","kind":"batch.created","at":"2026-11-18T15:00:00Z","userId":"ann","eventId":"0198…",
//!  "batchId":"0198…","data":{…}}
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use stampede_model::{BatchId, EventId, FeedEventId, Timestamp};

pub use stampede_model::feed::{Change, Kind, Subject};

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FeedEvent")]
pub struct Event {
    /// Names the event. An event that comes twice has the same id both times.
    pub id: FeedEventId,
    /// When it happened.
    pub at: Timestamp,
    /// The user whose records changed; absent for queues and nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The ticketed event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
    /// The order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_id: Option<BatchId>,
    /// What happened, with its data.
    #[serde(flatten)]
    pub change: Change,
}

/// An event whose data is JSON already: as it is written, and as it is read by programs that pass it on. Its kind may be one
/// that this version does not know.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope<'a> {
    /// Names the event.
    pub id: FeedEventId,
    /// What happened.
    #[serde(borrow)]
    pub kind: std::borrow::Cow<'a, str>,
    /// When it happened.
    pub at: Timestamp,
    /// The user whose records changed.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<std::borrow::Cow<'a, str>>,
    /// The ticketed event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
    /// The order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_id: Option<BatchId>,
    /// The data of its kind.
    #[serde(borrow)]
    pub data: &'a RawValue,
}

impl Envelope<'_> {
    /// The event as JSON.
    pub fn written(&self) -> String {
        // Texts and JSON always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use stampede_model::BatchStatus;
    use stampede_model::feed::{BatchProgress, QueueData};

    use super::*;

    #[test]
    fn an_event_has_the_same_form_written_by_its_parts_and_read_as_a_whole() {
        let (batch, event) = (BatchId::from_bytes([1; 16]), EventId::from_bytes([2; 16]));
        let id = FeedEventId::from_bytes([3; 16]);
        let at: Timestamp = "2026-11-18T15:00:00.5Z".parse().unwrap();
        let change = Change::BatchCreated(BatchProgress {
            batch_id: batch,
            total: 2,
            completed: 0,
            failed: 0,
            voided: 0,
            pending: 2,
            status: BatchStatus::Processing,
            revision: 1,
        });
        let data = change.data();
        let envelope = Envelope {
            id,
            kind: change.kind().as_str().into(),
            at,
            user_id: Some("ann".into()),
            event_id: Some(event),
            batch_id: Some(batch),
            data: serde_json::from_str(&data).unwrap(),
        };
        let text = envelope.written();
        let wanted = json!({
            "id": id.to_string(), "kind": "batch.created", "at": "2026-11-18T15:00:00.5Z",
            "userId": "ann", "eventId": event.to_string(), "batchId": batch.to_string(),
            "data": {
                "batchId": batch.to_string(), "total": 2, "completed": 0, "failed": 0, "voided": 0,
                "pending": 2, "status": "processing", "revision": 1,
            },
        });
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), wanted);
        let read: Event = serde_json::from_str(&text).unwrap();
        assert_eq!(read.change, change);
        assert_eq!(serde_json::to_value(&read).unwrap(), wanted);
    }

    #[test]
    fn events_of_queues_have_no_user() {
        let event = Event {
            id: FeedEventId::from_bytes([3; 16]),
            at: Timestamp::UNIX_EPOCH,
            user_id: None,
            event_id: None,
            batch_id: None,
            change: Change::QueuePaused(QueueData { queue: "tickets".into() }),
        };
        let written = serde_json::to_value(&event).unwrap();
        let keys: Vec<&String> = written.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["at", "data", "id", "kind"]);
    }
}
