//! Events: create, read, list, change, delete.

use async_trait::async_trait;
use stampede_model::{Event, EventId, TicketId, Timestamp};

use crate::vault::Vault;
use crate::{Result, Slice, Sorted, Versioned};

/// Result of deleting an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// The event is deleted.
    Gone,
    /// There is no such event.
    NotFound,
    /// The event stays, because it has another version than the one that was seen.
    ChangedMeanwhile,
    /// The event stays, because this many tickets belong to it.
    HasTickets(u64),
}

/// The events. Ids sort by the time they were made, so pages are ordered by id.
#[async_trait]
pub trait Events: Send + Sync {
    /// Writes a new event and its first ticket key, both or neither.
    ///
    /// Fails with `Unusable` if the ticket keys of this database are encrypted with another secret, and
    /// with `Refused` if the event names a template that does not exist. Synced.
    async fn insert_event(&self, event: &Event, vault: &Vault) -> Result<()>;

    /// Reads one event.
    async fn event(&self, id: EventId) -> Result<Option<Event>>;

    /// Reads a part of the events.
    async fn events_slice(&self, owner: Option<&str>, slice: &Slice<EventId>)
    -> Result<Vec<Event>>;

    /// Reads a page of events, newest first; `after` is the last id of the page before.
    async fn events(
        &self,
        owner: Option<&str>,
        after: Option<EventId>,
        limit: u32,
    ) -> Result<Vec<Event>> {
        self.events_slice(owner, &Slice::new(Sorted::NewestFirst, after, limit)).await
    }

    /// Reads a page of the ids of all events, oldest first; `after` is the last id of the page before.
    async fn event_ids(&self, after: Option<EventId>, limit: u32) -> Result<Vec<EventId>>;

    /// Writes the details of an event if its `updated_at` is still `seen`; returns `false` if the event
    /// has changed since or is deleted.
    ///
    /// The new `updated_at` is [`rules::later`](crate::rules::later), so it is a version number too. Synced.
    async fn update_event(&self, event: &Event, seen: Timestamp) -> Result<bool>;

    /// Deletes an event that has no tickets, with its batches and ticket keys.
    ///
    /// An order placed at the same time is written first and keeps the event, or finds no event. Synced.
    async fn delete_event_as_seen(&self, id: EventId, seen: Option<Timestamp>) -> Result<Deleted>;

    /// Deletes any version of an event that has no tickets.
    async fn delete_event(&self, id: EventId) -> Result<Deleted> {
        self.delete_event_as_seen(id, None).await
    }

    /// Deletes an event with its ticket keys, batches and tickets; returns the ids of the tickets.
    ///
    /// Synced: the caller deletes the files of these tickets next.
    async fn delete_event_with_tickets_as_seen(
        &self,
        id: EventId,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<Vec<TicketId>>>;

    /// Deletes any version of an event with its tickets; no tickets if there is no such event.
    async fn delete_event_with_tickets(&self, id: EventId) -> Result<Vec<TicketId>> {
        let deleted = self.delete_event_with_tickets_as_seen(id, None).await?;
        Ok(deleted.done().unwrap_or_default())
    }
}
