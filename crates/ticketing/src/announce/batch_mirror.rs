//! `batch:{id}` in Redis: the state of a batch for older software (docs/compatibility.md).

use std::time::Duration;

use stampede_broker::{Error, SnapshotWrite, Snapshots};
use stampede_model::{Batch, TicketId};
use stampede_store::Store;
use stampede_wire::ticketing::batches::BatchCounters;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// A finished batch can be read for a week after its last change …
const KEEP_FINISHED: Duration = Duration::from_secs(7 * DAY.as_secs());
/// … and one in progress for a month.
const KEEP_OPEN: Duration = Duration::from_secs(30 * DAY.as_secs());

/// Writes the state of batches. Cheap to clone.
#[derive(Clone)]
pub(crate) struct BatchMirror {
    snapshots: Snapshots,
}

impl BatchMirror {
    pub(crate) fn new(snapshots: Snapshots) -> Self {
        Self { snapshots }
    }

    /// Writes the state of a batch together with its list of tickets.
    pub(crate) async fn put(&self, batch: &Batch, tickets: &[TicketId]) -> Result<(), Error> {
        let list = serde_json::to_string(tickets).unwrap_or_else(|_| "[]".to_owned());
        self.send(batch, Some(&list)).await.map(drop)
    }

    /// Writes the state of a batch and keeps the list of tickets in Redis. `Ok(false)`: Redis has no such
    /// batch (any more), use [`BatchMirror::put`].
    pub(crate) async fn update(&self, batch: &Batch) -> Result<bool, Error> {
        self.send(batch, None).await
    }

    /// Writes the state of a batch, with its list of tickets if Redis does not have it any more.
    pub(crate) async fn write(&self, store: &Store, batch: &Batch) -> Result<(), String> {
        if self.update(batch).await.map_err(|e| e.to_string())? {
            return Ok(());
        }
        let tickets = store.batch_ticket_ids(batch.id).await.map_err(|e| e.to_string())?;
        self.put(batch, &tickets).await.map_err(|e| e.to_string())
    }

    async fn send(&self, batch: &Batch, list: Option<&str>) -> Result<bool, Error> {
        // Plain data can always be written as JSON.
        let mut head = serde_json::to_string(&BatchCounters::from(batch)).unwrap_or_default();
        // The script adds the list, then the closing brace.
        head.pop();
        let write = SnapshotWrite {
            key: &format!("batch:{}", batch.id),
            revision: batch.revision,
            head: &head,
            list,
            keep: if batch.pending() == 0 { KEEP_FINISHED } else { KEEP_OPEN },
        };
        self.snapshots.write(write).await
    }
}
