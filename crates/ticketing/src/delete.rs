//! Deleting tickets, one by one or with their event.

use std::time::Duration;

use stampede_model::{EventId, Ticket, TicketId, Timestamp};
use stampede_store::{Deleted, Versioned};

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
    /// It has another version than the one that was seen.
    ChangedMeanwhile,
}

impl Ticketing {
    /// Deletes a ticket with its PDF and its job; with `seen`, only that version of it.
    pub async fn delete_ticket(
        &self,
        id: TicketId,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<()>, Error> {
        let deleted = self.shared.store.delete_ticket_as_seen(id, seen, now()).await?;
        if deleted == Versioned::ChangedMeanwhile {
            return Ok(Versioned::ChangedMeanwhile);
        }
        let shrunk = deleted.done();
        // Without its record, too: an earlier attempt may have ended between the record and the file.
        self.shared.files.delete(&Ticket::pdf_path(id)).await?;
        if let Some(batch) = &shrunk {
            self.shared.announcer.write_shrunk(batch).await;
        }
        self.remove_job(id).await;
        Ok(shrunk.map_or(Versioned::NotFound, |_| Versioned::Done(())))
    }

    /// Deletes an event that has no tickets; with `seen`, only that version of it.
    pub async fn delete_event(
        &self,
        id: EventId,
        seen: Option<Timestamp>,
    ) -> Result<EventDeletion, Error> {
        Ok(match self.shared.store.delete_event_as_seen(id, seen).await? {
            Deleted::ChangedMeanwhile => EventDeletion::ChangedMeanwhile,
            Deleted::Gone => EventDeletion::Gone,
            Deleted::NotFound => EventDeletion::NotFound,
            Deleted::HasTickets(count) => EventDeletion::HasTickets(count),
        })
    }

    /// Deletes an event with all of its tickets. PDFs and jobs are deleted in the background: without their
    /// records they do no harm.
    pub async fn delete_event_with_tickets(
        &self,
        id: EventId,
        seen: Option<Timestamp>,
    ) -> Result<EventDeletion, Error> {
        let deleted = self.shared.store.delete_event_with_tickets_as_seen(id, seen).await?;
        let tickets = match deleted {
            Versioned::Done(tickets) => tickets,
            Versioned::ChangedMeanwhile => return Ok(EventDeletion::ChangedMeanwhile),
            Versioned::NotFound => return Ok(EventDeletion::NotFound),
        };
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
        Ok(EventDeletion::Gone)
    }
}
