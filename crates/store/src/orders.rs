//! Orders: a batch and all of its tickets, or nothing.

use async_trait::async_trait;
use stampede_model::{Batch, BatchId, Order, TicketId, Timestamp};

use crate::Result;
use crate::vault::Vault;

/// Result of placing an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placed {
    /// The order is written.
    New(Batch),
    /// The same owner placed it before under the same idempotency key; nothing was written.
    Existing(Batch),
    /// The same owner placed another request under the same idempotency key; nothing was written.
    OtherRequest,
    /// There is no such event, or it was deleted; nothing was written.
    NoSuchEvent,
}

/// Orders and the batches they become.
///
/// A batch counts its tickets by status. The counters move in the same transaction as the tickets, as
/// [`rules`](crate::rules) says, and `revision` grows with every change of a counter.
#[async_trait]
pub trait Orders: Send + Sync {
    /// Writes an order: the batch and all tickets, each pending, or nothing.
    ///
    /// The tickets get the next serials of their event, without gaps; an order that fails takes none. They
    /// get the event's signing key, which is made if the event has none. Of concurrent orders with one
    /// idempotency key exactly one is new. Synced.
    async fn place_order(&self, order: &Order, vault: &Vault) -> Result<Placed>;

    /// Reads one batch.
    async fn batch(&self, id: BatchId) -> Result<Option<Batch>>;

    /// Reads batches with a counter that changed at or after `since`, the last changed first.
    async fn batches_changed_since(&self, since: Timestamp, limit: u32) -> Result<Vec<Batch>>;

    /// Reads the ids of the tickets of a batch, in the order they were ordered.
    async fn batch_ticket_ids(&self, id: BatchId) -> Result<Vec<TicketId>>;

    /// Finds batches whose counters differ from a count of their tickets; empty unless somebody changed
    /// the database by hand.
    async fn drifted_batches(&self) -> Result<Vec<BatchId>>;
}
