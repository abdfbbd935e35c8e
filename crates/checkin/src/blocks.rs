//! Tickets that the organiser has blocked: refused at every door until the block is lifted.
//!
//! A void ticket stays void for ever and loses its PDF. A block is for the time being: a ticket that is not paid yet, or
//! that was reported stolen.

use stampede_model::{EventId, TicketId};
use stampede_store::Block;
use stampede_wire::checkin::blocks::{Block as Shown, Blocks};

use crate::{CheckIn, Error, now};

impl CheckIn {
    /// Blocks a ticket, or changes the reason of its block; `None` if the event has no such ticket.
    pub async fn block(
        &self,
        event: EventId,
        ticket: TicketId,
        reason: Option<&str>,
    ) -> Result<Option<Shown>, Error> {
        let block = self.shared.store.block_ticket(event, ticket, reason, now()).await?;
        Ok(block.map(shown))
    }

    /// Lifts the block of a ticket, if there is one.
    pub async fn unblock(&self, event: EventId, ticket: TicketId) -> Result<(), Error> {
        self.shared.store.unblock_ticket(event, ticket).await?;
        Ok(())
    }

    /// The blocked tickets of an event.
    pub async fn blocks(&self, event: EventId) -> Result<Blocks, Error> {
        let blocks = self.shared.store.blocks(event).await?;
        Ok(Blocks { blocks: blocks.into_iter().map(shown).collect() })
    }
}

fn shown(block: Block) -> Shown {
    Shown {
        ticket: block.ticket_id,
        target: block.event_id,
        number: block.serial,
        reason: block.reason,
        blocked_at: block.created_at,
    }
}
