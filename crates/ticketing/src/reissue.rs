//! Reissuing a ticket because its paper was lost or stolen: the old paper is refused from now on.

use stampede_model::{Ticket, TicketId, TicketStatus};

use crate::ticketing::now;
use crate::{Error, Ticketing};

/// What became of a reissue.
#[derive(Debug, Clone)]
pub enum Reissue {
    /// The ticket has a new generation, and its PDF is being made again.
    Done(Box<Ticket>),
    /// The ticket is void and cannot be issued again.
    Void,
    /// There is no such ticket.
    NotFound,
}

impl Ticketing {
    /// Gives a ticket a new generation and makes its PDF again.
    pub async fn reissue(&self, id: TicketId) -> Result<Reissue, Error> {
        let Some((ticket, batch)) = self.shared.store.reissue_ticket(id, now()).await? else {
            return Ok(Reissue::NotFound);
        };
        if ticket.status == TicketStatus::Void {
            return Ok(Reissue::Void);
        }
        self.shared.announcer.write_now(&batch).await;
        self.enqueue_again(std::slice::from_ref(&ticket)).await;
        Ok(Reissue::Done(Box::new(ticket)))
    }
}
