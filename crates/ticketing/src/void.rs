//! Voiding a ticket: it admits nobody any more, and its PDF is deleted.

use stampede_model::{Ticket, TicketId, Timestamp};
use stampede_store::Versioned;

use crate::announce::best_effort;
use crate::ticketing::now;
use crate::{Error, Ticketing};

impl Ticketing {
    /// Withdraws a ticket; a ticket that is void already stays so. With `seen`, only that version of it.
    pub async fn void(
        &self,
        id: TicketId,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<Ticket>, Error> {
        let (ticket, batch) = match self.shared.store.void_ticket_as_seen(id, seen, now()).await? {
            Versioned::Done(done) => done,
            Versioned::ChangedMeanwhile => return Ok(Versioned::ChangedMeanwhile),
            Versioned::NotFound => return Ok(Versioned::NotFound),
        };
        self.shared.files.delete(&Ticket::pdf_path(id)).await?;
        self.shared.announcer.write_now(&batch).await;
        self.remove_job(id).await;
        Ok(Versioned::Done(ticket))
    }

    /// Takes a job off the queue; a job whose ticket is gone or void would end by itself.
    pub(crate) async fn remove_job(&self, ticket: TicketId) {
        let id = ticket.to_string();
        best_effort("taking a job off the queue", self.shared.queue.remove(&id)).await;
    }
}
