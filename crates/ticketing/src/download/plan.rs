//! The plan of a batch's file, made before its first byte is sent: its version, and the length of a ZIP.
//!
//! Equal plans give equal bytes, on every node: PDFs are determined by their fingerprints. So a download that broke off
//! can go on at any byte. There is no plan while tickets are to be made again, because the event or the template has changed:
//! then the file is written as it comes, without a length.

use sha2::{Digest, Sha256};
use stampede_model::{Batch, Event, Ticket, TicketStatus};

use super::archive::{Length, Name};
use super::zipped::{LeftOut, not_made};
use super::{BatchFormat, Extent};
use crate::{Error, Ticketing};

/// The plan of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// The version of the file, as an `ETag` has it between its quotes.
    pub(super) version: String,
    /// Bytes of the file; `None`: nobody knows before it is made.
    pub(super) length: Option<u64>,
}

impl Ticketing {
    /// The plan of a file; `None`: some of its PDFs have to be made again.
    pub(super) async fn plan(
        &self,
        batch: &Batch,
        format: BatchFormat,
        extent: Extent,
    ) -> Result<Option<Plan>, Error> {
        let mut hash = Sha256::new();
        hash.update(format!("{format:?} {extent:?} {} v1", batch.id));
        let (mut length, mut left_out) = (Length::new(batch.total), LeftOut::default());
        let (mut after, mut is_first) = (None, true);
        while let Some((event, tickets)) = self.page(batch, after).await? {
            after = tickets.last().map(|ticket| ticket.id);
            if is_first {
                // It is the title of a merged PDF.
                hash.update(&event.details.name);
                is_first = false;
            }
            let revision = self.shared.press.revision_of(&event).await?;
            for ticket in &tickets {
                // Each ticket: after a change of the event, some have been made again and others have not.
                if self.is_outdated(ticket, &event, &revision).await? {
                    return Ok(None);
                }
                let name = Name::Ticket { index: ticket.index, id: ticket.id };
                hash.update(ticket.id.to_bytes());
                match (ticket.status, &ticket.pdf) {
                    (TicketStatus::Completed, Some(pdf)) => {
                        hash.update(&pdf.fingerprint);
                        hash.update(&pdf.checksum);
                        length.add(name, pdf.size);
                    }
                    _ => {
                        let Some(reason) = not_made(ticket, extent) else { return Ok(None) };
                        hash.update(&reason);
                        left_out.add(name, batch.total, &reason);
                    }
                }
            }
        }
        if let Some(text) = left_out.into_text() {
            length.add(Name::LeftOut, text.len() as u64);
        }
        let version = hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let length = (format == BatchFormat::Zip).then(|| length.total());
        Ok(Some(Plan { version, length }))
    }

    /// Whether the event or its template has changed since this ticket was made.
    async fn is_outdated(
        &self,
        ticket: &Ticket,
        event: &Event,
        revision: &str,
    ) -> Result<bool, Error> {
        let is_made = ticket.status == TicketStatus::Completed;
        Ok(is_made && self.wanted_pdf(ticket, event, revision).await?.is_none())
    }
}
