//! Blocked tickets.

use stampede_model::{EventId, TicketId, Timestamp};

/// A ticket that the organiser has blocked: it is refused at every door until the block is lifted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The ticket.
    pub ticket_id: TicketId,
    /// Its event.
    pub event_id: EventId,
    /// Its number within the event.
    pub serial: u32,
    /// Why, for people.
    pub reason: Option<String>,
    /// Since when.
    pub created_at: Timestamp,
    /// When its reason last changed; its version.
    pub updated_at: Timestamp,
}
