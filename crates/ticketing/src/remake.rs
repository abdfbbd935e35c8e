//! Remaking: a PDF that is stale, short or missing goes back to the queue.
//!
//! The store keeps fingerprint, size and checksum of the PDF that was made. A PDF is current if it was made
//! from what ticket, event and template say now, and its bytes are those that were written.

use std::time::Duration;

use stampede_broker::JobSpec;
use stampede_model::{Event, Pdf, Ticket, TicketDocument};

use crate::jobs::generate_ticket::GenerateTicket;
use crate::ticketing::now;
use crate::{Error, Ticketing};

/// Patience of a request that adds jobs; the reconciler adds jobs that Redis does not take by then.
const ENQUEUE_PATIENCE: Duration = Duration::from_secs(2);

impl Ticketing {
    /// Marks the PDFs of tickets as stale and adds their jobs again.
    pub(crate) async fn remake(&self, tickets: &[Ticket]) -> Result<(), Error> {
        for ticket in tickets {
            if let Some(batch) = self.shared.store.mark_stale(ticket.id, now()).await? {
                self.shared.announcer.write_now(&batch).await;
            }
        }
        self.enqueue_again(tickets).await;
        Ok(())
    }

    /// Adds the jobs of tickets again, although they ran before.
    pub(crate) async fn enqueue_again(&self, tickets: &[Ticket]) {
        let jobs: Vec<JobSpec> = tickets.iter().map(GenerateTicket::job).collect();
        let first = tickets.first().map(|ticket| ticket.id);
        let enqueue = self.shared.queue.enqueue_again(&jobs);
        match tokio::time::timeout(ENQUEUE_PATIENCE, enqueue).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, ?first, "not enqueued; the reconciler will");
            }
            Err(_) => tracing::warn!(?first, "not enqueued; the reconciler will"),
        }
    }

    /// The PDF with its bytes, if it is current.
    pub(crate) async fn current_pdf(
        &self,
        ticket: &Ticket,
        event: &Event,
    ) -> Result<Option<(Pdf, Vec<u8>)>, Error> {
        let revision = self.shared.press.revision_of(event).await?;
        let Some(pdf) = self.wanted_pdf(ticket, event, &revision).await? else { return Ok(None) };
        Ok(self.stored_pdf(ticket, &pdf).await?.map(|bytes| (pdf, bytes)))
    }

    /// The PDF that was made last, if it was made from what the ticket says now.
    pub(crate) async fn wanted_pdf(
        &self,
        ticket: &Ticket,
        event: &Event,
        revision: &str,
    ) -> Result<Option<Pdf>, Error> {
        let token = self.shared.store.token(ticket).await?;
        let wanted = TicketDocument::new(event, ticket, &token).fingerprint(revision);
        Ok(ticket.pdf.clone().filter(|pdf| pdf.fingerprint == wanted.as_str()))
    }

    /// The bytes of a PDF, if they are in the files as they were written.
    pub(crate) async fn stored_pdf(
        &self,
        ticket: &Ticket,
        pdf: &Pdf,
    ) -> Result<Option<Vec<u8>>, Error> {
        let bytes = self.shared.files.get(&Ticket::pdf_path(ticket.id)).await?;
        Ok(bytes.filter(|bytes| pdf.matches(bytes)))
    }
}
