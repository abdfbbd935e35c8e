//! A batch: the tickets of one order, counted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BatchId, EventId, Timestamp};

/// Counters of one order. The store changes them in the same statement as the tickets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Names the batch.
    pub id: BatchId,
    /// The event its tickets are for.
    pub event_id: EventId,
    /// The user who ordered.
    pub owner: String,
    /// Tickets in it.
    pub total: u64,
    /// Tickets whose PDF is ready.
    pub completed: u64,
    /// Tickets that failed for good.
    pub failed: u64,
    /// Tickets withdrawn.
    pub voided: u64,
    /// Grows with every change of the counters; a reader keeps the highest it has seen.
    pub revision: u64,
    /// When it was ordered.
    pub created_at: Timestamp,
    /// When a counter last changed.
    pub updated_at: Timestamp,
}

/// Where a batch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BatchState")]
pub enum BatchStatus {
    /// Some tickets are still to be made.
    Processing,
    /// All are made.
    Completed,
    /// None is left to be made, but some failed.
    CompletedWithErrors,
}

impl Batch {
    /// Tickets still to be made.
    pub fn pending(&self) -> u64 {
        self.total.saturating_sub(self.completed + self.failed + self.voided)
    }

    /// Where the batch stands; a function of the counters, so the two cannot disagree.
    pub fn status(&self) -> BatchStatus {
        match (self.pending(), self.failed) {
            (0, 0) => BatchStatus::Completed,
            (0, _) => BatchStatus::CompletedWithErrors,
            _ => BatchStatus::Processing,
        }
    }

    /// Tickets per second since the order, up to now or to the end of the batch.
    pub fn rate_per_s(&self, now: Timestamp) -> f64 {
        let until = if self.pending() == 0 { self.updated_at } else { now };
        let elapsed_s = until.duration_since(self.created_at).as_secs_f64();
        if elapsed_s <= 0.0 { 0.0 } else { (self.completed + self.failed) as f64 / elapsed_s }
    }

    /// Seconds until the rest is made at the rate so far; `None` while nothing is known.
    pub fn seconds_left(&self, now: Timestamp) -> Option<f64> {
        let rate = self.rate_per_s(now);
        match self.pending() {
            0 => Some(0.0),
            pending if rate > 0.0 => Some(pending as f64 / rate),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(total: u64, completed: u64, failed: u64, voided: u64) -> Batch {
        let start: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        Batch {
            id: BatchId::generate(),
            event_id: EventId::generate(),
            owner: "ann".into(),
            total,
            completed,
            failed,
            voided,
            revision: 0,
            created_at: start,
            updated_at: start,
        }
    }

    #[test]
    fn a_batch_ends_even_when_tickets_fail_or_are_withdrawn() {
        assert_eq!(batch(3, 2, 0, 0).status(), BatchStatus::Processing);
        assert_eq!(batch(3, 3, 0, 0).status(), BatchStatus::Completed);
        assert_eq!(batch(3, 2, 1, 0).status(), BatchStatus::CompletedWithErrors);
        assert_eq!(batch(3, 2, 0, 1).status(), BatchStatus::Completed);
        assert_eq!(batch(0, 0, 0, 0).status(), BatchStatus::Completed);
    }

    #[test]
    fn rate_and_time_left_follow_from_the_counters() {
        let half = batch(100, 50, 0, 0);
        let now = half.created_at + std::time::Duration::from_secs(10);
        assert_eq!(half.rate_per_s(now), 5.0);
        assert_eq!(half.seconds_left(now), Some(10.0));
        assert_eq!(batch(100, 0, 0, 0).seconds_left(now), None);
        assert_eq!(batch(1, 1, 0, 0).seconds_left(now), Some(0.0));
    }
}
