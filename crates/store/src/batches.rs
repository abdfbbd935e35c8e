//! Batches as a whole: lists of them, cancelling, trying failed tickets again.

use async_trait::async_trait;
use stampede_model::{Batch, BatchId, EventId, Timestamp};

use crate::{Result, Slice};

/// Which batches to list; an empty filter means all.
#[derive(Debug, Clone, Default)]
pub struct BatchFilter {
    /// Only batches of this user.
    pub owner: Option<String>,
    /// Only batches for this event.
    pub event: Option<EventId>,
}

/// What becomes of tickets whose PDF was made before their batch is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MadeTickets {
    /// They stay: somebody may have them already.
    #[default]
    Keep,
    /// They become void, too.
    Void,
}

/// A cancelled batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancelled {
    /// The batch afterwards.
    pub batch: Batch,
    /// Tickets that were not made, and are void now.
    pub unmade: u64,
    /// Tickets that were made, and are void now.
    pub made: u64,
}

/// Operations on whole batches. Tickets change as [`rules`](crate::rules) says.
#[async_trait]
pub trait Batches: Send + Sync {
    /// Reads a part of the list of batches.
    async fn batches(&self, filter: &BatchFilter, slice: &Slice<BatchId>) -> Result<Vec<Batch>>;

    /// Makes all tickets of a batch void that were never made, in one step; `made` says what becomes of the others.
    ///
    /// A ticket counts as made from the moment when its first PDF is recorded, also while it is made again. Of a cancelling
    /// and a completion at the same time, one comes first: the ticket is completed and stays, or void and the completion is
    /// refused. Idempotent. `None` if there is no such batch. Synced.
    async fn cancel_batch(
        &self,
        id: BatchId,
        made: MadeTickets,
        now: Timestamp,
    ) -> Result<Option<Cancelled>>;

    /// Makes the failed tickets of a batch pending again, in one step; returns the batch afterwards and how many they are.
    /// `None` if there is no such batch. Synced.
    async fn retry_batch(&self, id: BatchId, now: Timestamp) -> Result<Option<(Batch, u64)>>;
}
