//! Batches: the answer to a question, and the state in Redis that other software reads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::{Batch, BatchId, EventId, TicketId, Timestamp};

pub use stampede_model::BatchStatus as BatchState;

/// The answer of `GET /api/batches/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchStatus {
    /// The batch with its counters.
    #[serde(flatten)]
    pub counters: BatchCounters,
    /// Tickets still to be made.
    pub pending: u64,
    /// Tickets made per second since the order.
    pub rate_per_second: f64,
    /// Seconds until the rest is made at that rate; `null` while no ticket is made.
    pub seconds_left: Option<f64>,
    /// Jobs in the queue by state; `null` while Redis does not answer.
    pub queue_stats: Option<QueueStats>,
    /// Path of the list of its tickets.
    pub tickets_url: String,
    /// Its tickets; absent for large batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tickets: Option<Vec<TicketId>>,
}

/// A batch with its counters: part of the answer, and all of `batch:{id}` in Redis but its list of tickets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchCounters {
    /// The batch's id.
    pub id: BatchId,
    /// The event of its tickets.
    pub event_id: EventId,
    /// The user who ordered.
    pub user_id: String,
    /// Tickets in it.
    pub total: u64,
    /// Tickets whose PDF is ready.
    pub completed: u64,
    /// Tickets that failed permanently.
    pub failed: u64,
    /// Tickets withdrawn.
    pub voided: u64,
    /// The state that follows from the counters.
    pub status: BatchState,
    /// When it was ordered, in milliseconds since 1970.
    pub created_at: i64,
    /// When a counter last changed, in milliseconds since 1970.
    pub updated_at: i64,
}

/// The answer to a batch that was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchCancelled {
    /// Always true.
    pub success: bool,
    /// The batch.
    pub batch_id: BatchId,
    /// Tickets that were not made, and were made void by this request.
    pub cancelled: u64,
    /// Tickets that were made, and were made void by this request.
    pub made_voided: u64,
    /// Tickets that stay.
    pub kept: u64,
    /// All void tickets of the batch.
    pub voided: u64,
}

/// The answer to a batch whose failed tickets are tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchRetried {
    /// Always true.
    pub success: bool,
    /// The batch.
    pub batch_id: BatchId,
    /// Tickets that had failed and are tried again.
    pub retried: u64,
    /// All tickets that are still to be made.
    pub pending: u64,
}

/// One page of batches, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BatchPage {
    /// The batches.
    pub batches: Vec<BatchCounters>,
    /// The `after` of the next page; `null` on the last page.
    pub next: Option<BatchId>,
}

/// Jobs of a queue by state; the names are BullMQ's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueStats {
    /// Waiting without priority.
    pub waiting: u64,
    /// Waiting with priority.
    pub prioritized: u64,
    /// Being worked on.
    pub active: u64,
    /// Waiting for their time, retries among them.
    pub delayed: u64,
    /// Completed and still kept.
    pub completed: u64,
    /// Failed and still kept.
    pub failed: u64,
    /// Waiting for their children in a flow.
    #[serde(rename = "waiting-children")]
    pub waiting_children: u64,
}

impl From<&Batch> for BatchCounters {
    fn from(batch: &Batch) -> Self {
        Self {
            id: batch.id,
            event_id: batch.event_id,
            user_id: batch.owner.clone(),
            total: batch.total,
            completed: batch.completed,
            failed: batch.failed,
            voided: batch.voided,
            status: batch.status(),
            created_at: batch.created_at.as_millisecond(),
            updated_at: batch.updated_at.as_millisecond(),
        }
    }
}

impl BatchStatus {
    /// The state of a batch at the time `now`; rate and time left are rounded to a tenth.
    pub fn new(
        batch: &Batch,
        now: Timestamp,
        queue_stats: Option<QueueStats>,
        tickets: Option<Vec<TicketId>>,
    ) -> Self {
        let tenths = |number: f64| (number * 10.0).round() / 10.0;
        Self {
            counters: batch.into(),
            pending: batch.pending(),
            rate_per_second: tenths(batch.rate_per_s(now)),
            seconds_left: batch.seconds_left(now).map(tenths),
            queue_stats,
            tickets_url: format!("/api/tickets?batch={}", batch.id),
            tickets,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::ticketing::golden::assert_golden;

    fn batch() -> Batch {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        Batch {
            id: BatchId::from_bytes([1; 16]),
            event_id: EventId::from_bytes([2; 16]),
            owner: "ann".into(),
            total: 10,
            completed: 3,
            failed: 1,
            voided: 1,
            revision: 7,
            created_at: at,
            updated_at: at,
        }
    }

    #[test]
    fn the_state_in_redis_has_the_names_that_other_software_reads() {
        assert_golden(
            &BatchCounters::from(&batch()),
            json!({
                "id": "01010101-0101-0101-0101-010101010101",
                "eventId": "02020202-0202-0202-0202-020202020202",
                "userId": "ann",
                "total": 10,
                "completed": 3,
                "failed": 1,
                "voided": 1,
                "status": "processing",
                "createdAt": 1_800_000_000_000_i64,
                "updatedAt": 1_800_000_000_000_i64,
            }),
        );
    }

    #[test]
    fn the_answer_has_the_names_that_clients_read() {
        let stats = QueueStats {
            waiting: 0,
            prioritized: 5,
            active: 0,
            delayed: 0,
            completed: 3,
            failed: 1,
            waiting_children: 0,
        };
        let now = batch().created_at + Duration::from_secs(3);
        let status = BatchStatus::new(&batch(), now, Some(stats), Some(Vec::new()));
        assert_golden(
            &status,
            json!({
                "id": "01010101-0101-0101-0101-010101010101",
                "eventId": "02020202-0202-0202-0202-020202020202",
                "userId": "ann",
                "total": 10,
                "completed": 3,
                "failed": 1,
                "voided": 1,
                "pending": 5,
                "status": "processing",
                "ratePerSecond": 1.3,
                "secondsLeft": 3.8,
                "createdAt": 1_800_000_000_000_i64,
                "updatedAt": 1_800_000_000_000_i64,
                "queueStats": {
                    "waiting": 0, "prioritized": 5, "active": 0, "delayed": 0, "completed": 3,
                    "failed": 1, "waiting-children": 0,
                },
                "ticketsUrl": "/api/tickets?batch=01010101-0101-0101-0101-010101010101",
                "tickets": [],
            }),
        );
        let large = BatchStatus::new(&batch(), batch().created_at, None, None);
        let large = serde_json::to_value(large).unwrap();
        assert!(large["queueStats"].is_null() && large["secondsLeft"].is_null());
        assert!(large.get("tickets").is_none());
    }
}
