//! Tickets: read, list, edit, reissue, void, delete.
//!
//! `stampede_model::Ticket`'s file draws the states of a ticket and what moves it between them;
//! [`rules`](crate::rules) decides each move. Completing and failing are in `completions.rs`.

use async_trait::async_trait;
use stampede_model::{
    Batch, BatchId, Event, EventId, Holder, Money, Ticket, TicketId, TicketStatus, Timestamp,
};

use crate::{Result, Slice, Sorted, Versioned};

/// Which tickets to list; an empty filter means all.
#[derive(Debug, Clone, Default)]
pub struct TicketFilter {
    /// Only tickets of this user.
    pub owner: Option<String>,
    /// Only tickets for this event.
    pub event: Option<EventId>,
    /// Only tickets of this order.
    pub batch: Option<BatchId>,
    /// Only tickets with this status.
    pub status: Option<TicketStatus>,
}

/// The parts of a ticket that an organiser can change; they replace the former values.
#[derive(Debug, Clone, PartialEq)]
pub struct TicketEdit {
    /// Who it is for.
    pub holder: Holder,
    /// What it cost.
    pub price: Option<Money>,
}

/// Result of editing a ticket.
#[derive(Debug, Clone, PartialEq)]
pub enum Edited {
    /// The ticket is changed and pending, because its PDF has to be made again.
    Changed(Box<Ticket>, Batch),
    /// The ticket changed after the editor read it; it stays as it is.
    ChangedMeanwhile,
    /// The ticket is void and stays as it is.
    Void,
    /// There is no such ticket.
    NotFound,
}

/// The tickets. Every change sets `updated_at` to [`rules::later`](crate::rules::later), so that it is a
/// version number too.
#[async_trait]
pub trait Tickets: Send + Sync {
    /// Reads one ticket.
    async fn ticket(&self, id: TicketId) -> Result<Option<Ticket>>;

    /// Reads the ticket with this number within its event.
    async fn ticket_by_serial(&self, event: EventId, serial: u32) -> Result<Option<Ticket>>;

    /// Reads a part of the tickets.
    async fn tickets_slice(
        &self,
        filter: &TicketFilter,
        slice: &Slice<TicketId>,
    ) -> Result<Vec<Ticket>>;

    /// Reads a page of tickets, oldest first; `after` is the last id of the page before.
    async fn tickets(
        &self,
        filter: &TicketFilter,
        after: Option<TicketId>,
        limit: u32,
    ) -> Result<Vec<Ticket>> {
        self.tickets_slice(filter, &Slice::new(Sorted::OldestFirst, after, limit)).await
    }

    /// Reads many tickets, each with its event, by id; ids without a ticket are left out.
    async fn tickets_with_events(&self, ids: &[TicketId]) -> Result<Vec<(Ticket, Event)>>;

    /// Reads tickets that are pending and were last changed before `unchanged_since`, oldest first; `after`
    /// is the last id of the page before.
    async fn pending_tickets(
        &self,
        unchanged_since: Timestamp,
        after: Option<TicketId>,
        limit: u32,
    ) -> Result<Vec<Ticket>>;

    /// Edits a ticket if its `updated_at` is still `seen`; it is pending afterwards. A void ticket stays as
    /// it is.
    ///
    /// Another name or seat begins a new generation, signed by the newest key: paper that shows the former
    /// holder or place must not be accepted any more. Another price or e-mail does not. Synced.
    async fn edit_ticket(
        &self,
        id: TicketId,
        edit: &TicketEdit,
        seen: Timestamp,
        now: Timestamp,
    ) -> Result<Edited>;

    /// Issues a ticket again because its paper was lost or stolen: a new generation, signed by the newest
    /// key, pending. A void ticket stays as it is; `None` if there is no such ticket. Synced.
    async fn reissue_ticket(&self, id: TicketId, now: Timestamp)
    -> Result<Option<(Ticket, Batch)>>;

    /// Makes a ticket void for good; idempotent. Synced.
    async fn void_ticket_as_seen(
        &self,
        id: TicketId,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Versioned<(Ticket, Batch)>>;

    /// Makes any version of a ticket void; `None` if there is no such ticket.
    async fn void_ticket(&self, id: TicketId, now: Timestamp) -> Result<Option<(Ticket, Batch)>> {
        Ok(self.void_ticket_as_seen(id, None, now).await?.done())
    }

    /// Makes a completed ticket pending again, because its file is missing, short or stale; `None` if the
    /// ticket is not completed.
    ///
    /// Relaxed: if a power cut undoes it, the next reader notices the file again.
    async fn mark_stale(&self, id: TicketId, now: Timestamp) -> Result<Option<Batch>>;

    /// Deletes a ticket; returns its batch without it. Synced.
    async fn delete_ticket_as_seen(
        &self,
        id: TicketId,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Versioned<Batch>>;

    /// Deletes any version of a ticket; `None` if there is no such ticket.
    async fn delete_ticket(&self, id: TicketId, now: Timestamp) -> Result<Option<Batch>> {
        Ok(self.delete_ticket_as_seen(id, None, now).await?.done())
    }
}
