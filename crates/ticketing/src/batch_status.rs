//! The status of a batch: counters, rate and time left, and what the queue holds.

use std::time::Duration;

use stampede_broker::Counts;
use stampede_model::{Batch, Timestamp};
use stampede_wire::ticketing::batches::{BatchStatus, QueueStats};

use crate::{Error, Ticketing};

/// Batches up to this size list their tickets; larger ones only say where to page through them.
const LISTED_TICKETS: u64 = 1_000;
/// The queue's counts are left out if Redis takes longer.
const PATIENCE: Duration = Duration::from_secs(1);

impl Ticketing {
    /// The status of a batch now.
    pub async fn batch_status(&self, batch: &Batch) -> Result<BatchStatus, Error> {
        let counts = tokio::time::timeout(PATIENCE, self.shared.queue.counts()).await;
        let counts = counts.ok().and_then(Result::ok).map(stats);
        let tickets = match batch.total <= LISTED_TICKETS {
            true => Some(self.shared.store.batch_ticket_ids(batch.id).await?),
            false => None,
        };
        Ok(BatchStatus::new(batch, Timestamp::now(), counts, tickets))
    }
}

fn stats(counts: Counts) -> QueueStats {
    QueueStats {
        waiting: counts.waiting,
        prioritized: counts.prioritized,
        active: counts.active,
        delayed: counts.delayed,
        completed: counts.completed,
        failed: counts.failed,
        waiting_children: counts.waiting_children,
    }
}
