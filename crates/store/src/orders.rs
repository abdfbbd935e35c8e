//! Orders: a batch and all of its tickets, or nothing.

use std::io;

use async_trait::async_trait;
use stampede_model::{Batch, BatchId, Order, Ticket, TicketId, Timestamp};

use crate::vault::Vault;
use crate::{AuditEntry, Result};

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

/// The tickets of an order that is too large to be held in memory, read piece by piece.
#[async_trait]
pub trait TicketChunks: Send {
    /// Begins anew with the first ticket: a transaction that lost against another one is tried again.
    async fn rewind(&mut self) -> io::Result<()>;

    /// The next tickets, in order; none after the last.
    async fn next(&mut self) -> io::Result<Vec<Ticket>>;
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
    ///
    /// A new order writes its entry of the audit log in the same transaction.
    async fn place_noted_order(
        &self,
        order: &Order,
        entry: Option<&AuditEntry>,
        vault: &Vault,
    ) -> Result<Placed>;

    /// Writes an order without an entry of the audit log.
    async fn place_order(&self, order: &Order, vault: &Vault) -> Result<Placed> {
        self.place_noted_order(order, None, vault).await
    }

    /// Writes an order as [`Orders::place_order`] does, with the tickets of `chunks` instead of its own.
    ///
    /// The memory of one chunk is needed at a time. Nobody sees the order before all of it is written. A new order writes its
    /// entry of the audit log in the same transaction. Synced.
    async fn place_in_chunks(
        &self,
        order: &Order,
        chunks: &mut dyn TicketChunks,
        entry: Option<&AuditEntry>,
        vault: &Vault,
    ) -> Result<Placed>;

    /// Reads one batch.
    async fn batch(&self, id: BatchId) -> Result<Option<Batch>>;

    /// A number that changes whenever a ticket of a batch is issued anew, and usually when one that was is deleted; 0 while
    /// none was.
    async fn batch_reissues(&self, id: BatchId) -> Result<u64>;

    /// Reads batches with a counter that changed at or after `since`, the last changed first.
    async fn batches_changed_since(&self, since: Timestamp, limit: u32) -> Result<Vec<Batch>>;

    /// Reads the ids of the tickets of a batch, in the order they were ordered.
    async fn batch_ticket_ids(&self, id: BatchId) -> Result<Vec<TicketId>>;

    /// Finds batches whose counters differ from a count of their tickets; empty unless somebody changed
    /// the database by hand.
    async fn drifted_batches(&self) -> Result<Vec<BatchId>>;
}
