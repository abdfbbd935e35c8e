//! Reading events, tickets and batches.

use stampede_model::{Batch, BatchId, Event, EventId, Ticket, TicketId};
use stampede_store::{BatchFilter, Slice, TicketFilter};

use crate::{Error, Ticketing};

impl Ticketing {
    /// One event.
    pub async fn event(&self, id: EventId) -> Result<Option<Event>, Error> {
        Ok(self.shared.store.event(id).await?)
    }

    /// One ticket.
    pub async fn ticket(&self, id: TicketId) -> Result<Option<Ticket>, Error> {
        Ok(self.shared.store.ticket(id).await?)
    }

    /// One ticket with its event.
    pub async fn ticket_with_event(&self, id: TicketId) -> Result<Option<(Ticket, Event)>, Error> {
        Ok(self.shared.store.tickets_with_events(&[id]).await?.pop())
    }

    /// A page of tickets, in the order of their ids.
    pub async fn tickets(
        &self,
        filter: &TicketFilter,
        after: Option<TicketId>,
        limit: u32,
    ) -> Result<Vec<Ticket>, Error> {
        Ok(self.shared.store.tickets(filter, after, limit).await?)
    }

    /// A part of the tickets.
    pub async fn tickets_slice(
        &self,
        filter: &TicketFilter,
        slice: &Slice<TicketId>,
    ) -> Result<Vec<Ticket>, Error> {
        Ok(self.shared.store.tickets_slice(filter, slice).await?)
    }

    /// A part of the list of batches.
    pub async fn batches(
        &self,
        filter: &BatchFilter,
        slice: &Slice<BatchId>,
    ) -> Result<Vec<Batch>, Error> {
        Ok(self.shared.store.batches(filter, slice).await?)
    }

    /// One batch.
    pub async fn batch(&self, id: BatchId) -> Result<Option<Batch>, Error> {
        Ok(self.shared.store.batch(id).await?)
    }
}
