//! Voiding a ticket: it admits nobody any more, and its PDF is deleted.

use stampede_model::{Ticket, TicketId};

use crate::announce::best_effort;
use crate::ticketing::now;
use crate::{Error, Ticketing};

impl Ticketing {
    /// Withdraws a ticket; a ticket that is void already stays so. `None`: there is no such ticket.
    pub async fn void(&self, id: TicketId) -> Result<Option<Ticket>, Error> {
        let Some((ticket, batch)) = self.shared.store.void_ticket(id, now()).await? else {
            return Ok(None);
        };
        self.shared.files.delete(&Ticket::pdf_path(id)).await?;
        self.shared.announcer.write_now(&batch).await;
        self.remove_job(id).await;
        Ok(Some(ticket))
    }

    /// Takes a job off the queue; a job whose ticket is gone or void would end by itself.
    pub(crate) async fn remove_job(&self, ticket: TicketId) {
        let id = ticket.to_string();
        best_effort("taking a job off the queue", self.shared.queue.remove(&id)).await;
    }
}
