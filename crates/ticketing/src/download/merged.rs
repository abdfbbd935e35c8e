//! The merged PDF: printed from the records, not put together from files.
//!
//! Tickets of organisers' templates are stamped in processes of the compiler, which have limits: this process, which
//! serves everybody, only copies their bytes. A template that is set aside is refused before the file begins, and so is one
//! that does not get through the first tickets.

use stampede_model::{Batch, Event, Ticket, TicketDocument, TicketId, TicketStatus};
use stampede_press::Merger;

use super::{Broken, Extent, PieceWriter};
use crate::{Error, Ticketing};

/// Bytes that are sent at least at a time.
const PIECE: usize = 64 << 10;

/// A merged PDF that has begun.
pub(super) struct Begun {
    merger: Merger,
    /// The tickets after this one are still to be added.
    after: Option<TicketId>,
}

impl Begun {
    /// Begins the PDF of a batch with the first page of its tickets.
    pub(super) async fn new(
        ticketing: &Ticketing,
        batch: &Batch,
        extent: Extent,
        event: &Event,
    ) -> Result<Self, Error> {
        let title = format!("{} – {}", event.details.name, batch.id);
        let mut begun = Self { merger: Merger::new(&title), after: None };
        if let Some((event, tickets)) = ticketing.page(batch, None).await? {
            let documents = begun.documents(ticketing, &event, &tickets, extent).await?;
            let press = &ticketing.shared.press;
            let template = press.ready(&event).await?;
            // Of a template that is typeset, the first ticket says enough.
            if let Some(first) = documents.chunks(template.merged_at_once()).next() {
                begun.merger.add(press.compiler(), &template, first).await?;
                let last = first.last().and_then(|last| last.id.parse().ok());
                begun.after = last.or(begun.after);
            }
        }
        Ok(begun)
    }

    /// Writes the rest, at the pace of its reader.
    pub(super) async fn write(
        mut self,
        ticketing: &Ticketing,
        batch: &Batch,
        extent: Extent,
        pieces: &PieceWriter,
    ) -> Result<(), Broken> {
        pieces.send(self.merger.take()).await?;
        let press = &ticketing.shared.press;
        while let Some((event, tickets)) = ticketing.page(batch, self.after).await? {
            ticketing.must_not_be_set_aside(&event).await?;
            let template = press.ready(&event).await?;
            let documents = self.documents(ticketing, &event, &tickets, extent).await?;
            for some in documents.chunks(template.merged_at_once()) {
                self.merger.add(press.compiler(), &template, some).await?;
                if self.merger.waiting() >= PIECE {
                    pieces.send(self.merger.take()).await?;
                }
            }
            // Stamping our templates never waits for anything; other tasks need this thread too.
            tokio::task::yield_now().await;
        }
        pieces.send(self.merger.finish()?).await?;
        Ok(())
    }

    /// The tickets of a page that belong into the file.
    async fn documents(
        &mut self,
        ticketing: &Ticketing,
        event: &Event,
        tickets: &[Ticket],
        extent: Extent,
    ) -> Result<Vec<TicketDocument>, Error> {
        let mut documents = Vec::with_capacity(tickets.len());
        for ticket in tickets {
            self.after = Some(ticket.id);
            let is_wanted = match ticket.status {
                TicketStatus::Completed => true,
                // Changed since the file began: it is printed as it is now.
                TicketStatus::Pending => extent == Extent::Whole,
                TicketStatus::Failed | TicketStatus::Void => false,
            };
            if is_wanted {
                let token = ticketing.shared.store.token(ticket).await?;
                documents.push(TicketDocument::new(event, ticket, &token));
            }
        }
        Ok(documents)
    }
}
