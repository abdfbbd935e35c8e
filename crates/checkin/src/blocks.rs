//! Tickets that the organiser has blocked: refused at every door until the block is lifted.
//!
//! A void ticket stays void for ever and loses its PDF. A block is for the time being: a ticket that is not paid yet, or
//! that was reported stolen.

use stampede_model::{EventId, TicketId, Timestamp};
use stampede_store::{Block, Versioned};
use stampede_wire::checkin::blocks::{Block as Shown, Blocks};

use crate::{CheckIn, Error, Written, now};

impl CheckIn {
    /// Blocks a ticket, or changes the reason of its block; with `seen`, only that version of the block.
    pub async fn block(
        &self,
        event: EventId,
        ticket: TicketId,
        reason: Option<&str>,
        seen: Option<Timestamp>,
    ) -> Result<Written<Shown>, Error> {
        let store = &self.shared.store;
        let block = store.block_ticket_as_seen(event, ticket, reason, seen, now()).await?;
        Ok(Written::of(match block {
            Versioned::Done(block) => Versioned::Done(shown(block)),
            Versioned::ChangedMeanwhile => Versioned::ChangedMeanwhile,
            Versioned::NotFound => Versioned::NotFound,
        }))
    }

    /// Lifts the block of a ticket, if there is one; with `seen`, only that version of it.
    pub async fn unblock(
        &self,
        event: EventId,
        ticket: TicketId,
        seen: Option<Timestamp>,
    ) -> Result<Written<()>, Error> {
        Ok(Written::of(self.shared.store.unblock_ticket_as_seen(event, ticket, seen).await?))
    }

    /// The block of a ticket.
    pub async fn block_of(&self, ticket: TicketId) -> Result<Option<Shown>, Error> {
        Ok(self.shared.store.block(ticket).await?.map(shown))
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
        updated_at: block.updated_at,
    }
}
