//! The outbox: events of the feed that are committed and not told yet.
//!
//! A change that outsiders are told of writes its row in its own transaction, with its durability. The relay
//! (`crates/feed`) reads the rows in order, writes them to the feed in Redis and settles them. A relay that dies in
//! between leaves the rows, and the next one tells them again under the same ids: at least once, never zero times.
//!
//! ```text
//!   change + row ── one commit ──▶ outbox ──▶ relay ──▶ feed in Redis
//!                                    ▲          │
//!                                    └─ settle ─┘   deletes the rows
//! ```

use async_trait::async_trait;
use stampede_model::{BatchId, EventId, FeedEventId, Timestamp};

use crate::Result;

/// An event of the feed in the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxRow {
    /// Its place: of two changes of one record, the later one has the larger number.
    pub seq: u64,
    /// Names the event, however often it is told.
    pub id: FeedEventId,
    /// The name of its kind. A newer version may have written one that this one does not know.
    pub kind: String,
    /// The user whose records changed.
    pub owner: String,
    /// The ticketed event.
    pub event_id: Option<EventId>,
    /// The order.
    pub batch_id: Option<BatchId>,
    /// The data of its kind, as JSON ([`Change::data`](stampede_model::feed::Change::data)).
    pub data: String,
    /// When it happened.
    pub at: Timestamp,
}

/// The size of the outbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutboxSize {
    /// Rows that wait.
    pub rows: u64,
    /// When the first of them was written.
    pub oldest: Option<Timestamp>,
}

/// Events of the feed that wait to be told. All other operations write them, each in its own transaction.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Reads the first rows, in order.
    async fn outbox(&self, limit: u32) -> Result<Vec<OutboxRow>>;

    /// Deletes rows that were told, and writes their deliveries to webhooks; rows that are gone are left out.
    ///
    /// Relaxed: if a power cut undoes it, the rows are told again, under the same ids.
    async fn settle_outbox(&self, rows: &[OutboxRow]) -> Result<()>;

    /// Counts the rows.
    async fn outbox_size(&self) -> Result<OutboxSize>;

    /// Returns after the next write of this process, or at once if there was one since the last call. A hint to
    /// look: other processes write, too.
    async fn written(&self);
}
