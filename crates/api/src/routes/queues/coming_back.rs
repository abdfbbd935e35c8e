//! Jobs that come back: the store is the truth, so a ticket that is still ordered gets a new job when
//! its old one is taken off the queue. Whoever takes it off is told, and how to stop it for good.

use stampede_model::{GenerateTicket, TicketId, TicketStatus};

use crate::app::App;

/// The note after one job was removed, if a new one will take its place.
pub(super) async fn note_of_one(app: &App, queue: &str, job: &str) -> Option<String> {
    let ticket: TicketId = job.parse().ok().filter(|_| queue == GenerateTicket::QUEUE)?;
    // A database that is away now is no reason to fail: the job is off the queue already.
    let ticket = app.store.ticket(ticket).await.ok().flatten()?;
    (ticket.status == TicketStatus::Pending).then(|| {
        format!(
            "the ticket is still ordered, so within a minute it gets a new job; to stop it for good, \
             withdraw the ticket: PATCH /api/tickets/{} {{\"status\": \"void\"}}",
            ticket.id
        )
    })
}

/// The note after a queue was emptied, if new jobs will take the place of the old ones.
pub(super) fn note_of_all(queue: &str) -> Option<String> {
    (queue == GenerateTicket::QUEUE).then(|| {
        "tickets that are still ordered get new jobs within a minute; to hold them back, pause the \
         queue; to stop them for good, withdraw them: PATCH /api/tickets/{id} {\"status\": \"void\"}"
            .to_owned()
    })
}
