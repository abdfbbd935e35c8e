//! Deleting tickets, one by one or with their event.

use std::time::Duration;

use stampede_model::{EventId, Ticket, TicketId};
use stampede_store::Deleted;

use crate::ticketing::now;
use crate::{Error, Ticketing};

/// Time that a stop gives to the deletion of PDFs.
const CLEANING_PATIENCE: Duration = Duration::from_secs(5);

/// What became of an event that was to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventDeletion {
    /// It is gone.
    Gone,
    /// It has so many tickets, and stays.
    HasTickets(u64),
    /// There is no such event.
    NotFound,
}

impl Ticketing {
    /// Deletes a ticket with its PDF and its job.
    pub async fn delete_ticket(&self, id: TicketId) -> Result<(), Error> {
        let shrunk = self.shared.store.delete_ticket(id, now()).await?;
        self.shared.files.delete(&Ticket::pdf_path(id)).await?;
        if let Some(batch) = shrunk {
            self.shared.announcer.write_shrunk(&batch).await;
        }
        self.remove_job(id).await;
        Ok(())
    }

    /// Deletes an event that has no tickets.
    pub async fn delete_event(&self, id: EventId) -> Result<EventDeletion, Error> {
        Ok(match self.shared.store.delete_event(id).await? {
            Deleted::Gone => EventDeletion::Gone,
            Deleted::NotFound => EventDeletion::NotFound,
            Deleted::HasTickets(count) => EventDeletion::HasTickets(count),
        })
    }

    /// Deletes an event with all of its tickets. PDFs and jobs are deleted in the background: without their
    /// records they do no harm.
    pub async fn delete_event_with_tickets(&self, id: EventId) -> Result<(), Error> {
        let tickets = self.shared.store.delete_event_with_tickets(id).await?;
        let ticketing = self.clone();
        let stop = self.shared.requests.stop();
        self.shared.requests.spawn(async move {
            let mut left = tickets.len();
            let cleaning = async {
                for ticket in &tickets {
                    let _ = ticketing.shared.files.delete(&Ticket::pdf_path(*ticket)).await;
                    left -= 1;
                }
                for ticket in tickets {
                    ticketing.remove_job(ticket).await;
                }
            };
            let stopped = async {
                stop.cancelled().await;
                tokio::time::sleep(CLEANING_PATIENCE).await;
            };
            tokio::select! {
                () = cleaning => {}
                () = stopped => {
                    tracing::warn!(event = %id, left, "the server stops; PDFs of a deleted event are left");
                }
            }
        });
        Ok(())
    }
}
