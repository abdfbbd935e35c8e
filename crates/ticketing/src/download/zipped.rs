//! The ZIP: PDFs from the files, each checked. Those that are stale or missing are made again meanwhile.

use std::collections::HashSet;
use std::time::Duration;

use async_zip::error::ZipError;
use stampede_model::{Batch, Event, Ticket, TicketId, TicketStatus};
use tokio::time::Instant;

use super::archive::Archive;
use super::{Broken, Extent, PieceWriter};
use crate::{Error, Ticketing};

/// Patience for the tickets of a page that are made again; those that are not made by then are left out.
const REMAKE_PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks at a ticket that is made again.
const REMAKE_POLL: Duration = Duration::from_millis(100);

/// Name of the file that lists missing tickets and the reasons.
const LEFT_OUT: &str = "left-out.txt";

pub(super) async fn write(
    ticketing: &Ticketing,
    batch: &Batch,
    extent: Extent,
    pieces: &PieceWriter,
) -> Result<(), Broken> {
    let mut archive = Archive::new(batch.total);
    let digits = batch.total.checked_ilog10().map_or(4, |log| (log as usize + 1).max(4));
    let mut left_out = String::new();
    let mut after = None;
    while let Some((event, tickets)) = ticketing.page(batch, after).await? {
        after = tickets.last().map(|ticket| ticket.id);
        let revision = ticketing.shared.press.revision_of(&event).await?;
        let stale = renew_stale(ticketing, &event, &tickets, &revision).await?;
        for ticket in &tickets {
            let name = entry_name(ticket.index, digits, ticket.id);
            let content = match stale.contains(&ticket.id) {
                false => at_once(ticketing, &event, ticket, &revision, extent).await?,
                true => None,
            };
            let content = match content {
                Some(content) => content,
                None => stale.wait_for(ticketing, ticket.id).await?,
            };
            match content {
                Ok(pdf) => {
                    pieces.send(archive.add(name, &pdf).await.map_err(failed)?).await?;
                }
                Err(reason) => left_out.push_str(&format!("{name}: {reason}\r\n")),
            }
        }
    }
    if !left_out.is_empty() {
        let text = format!("These tickets are not in this archive:\r\n\r\n{left_out}");
        let added = archive.add(LEFT_OUT.to_owned(), text.as_bytes()).await;
        pieces.send(added.map_err(failed)?).await?;
    }
    pieces.send(archive.finish().await.map_err(failed)?).await?;
    Ok(())
}

/// The PDF of a ticket, or the reason why there is none.
type Content = Result<Vec<u8>, String>;

/// The tickets of a page that are being made again.
struct Stale {
    tickets: HashSet<TicketId>,
    give_up: Instant,
}

/// Puts all tickets of a page whose PDFs are not current back on the queue, together.
async fn renew_stale(
    ticketing: &Ticketing,
    event: &Event,
    tickets: &[Ticket],
    revision: &str,
) -> Result<Stale, Error> {
    let mut stale = Vec::new();
    for ticket in tickets.iter().filter(|ticket| ticket.status == TicketStatus::Completed) {
        let wanted = ticketing.wanted_pdf(ticket, event, revision).await?;
        let size = ticketing.shared.files.size(&Ticket::pdf_path(ticket.id)).await?;
        if wanted.is_none() || wanted.map(|pdf| pdf.size) != size {
            stale.push(ticket.clone());
        }
    }
    if !stale.is_empty() {
        tracing::info!(tickets = stale.len(), event = %event.id, "PDFs for a ZIP are made again");
        ticketing.remake(&stale).await?;
    }
    let tickets = stale.iter().map(|ticket| ticket.id).collect();
    Ok(Stale { tickets, give_up: Instant::now() + REMAKE_PATIENCE })
}

/// The PDF of a ticket that need not be waited for, as of nearly every ticket; `None` if its PDF is not current.
async fn at_once(
    ticketing: &Ticketing,
    event: &Event,
    ticket: &Ticket,
    revision: &str,
    extent: Extent,
) -> Result<Option<Content>, Error> {
    match ticket.status {
        TicketStatus::Void => Ok(Some(Err("void".to_owned()))),
        TicketStatus::Failed => Ok(Some(Err(failure(ticket)))),
        TicketStatus::Pending if extent == Extent::Partial => {
            Ok(Some(Err("not made yet".to_owned())))
        }
        TicketStatus::Pending => Ok(None),
        TicketStatus::Completed => {
            let Some(pdf) = ticketing.wanted_pdf(ticket, event, revision).await? else {
                return Ok(None);
            };
            let bytes = ticketing.stored_pdf(ticket, &pdf).await?;
            if bytes.is_none() {
                // The right size, but other bytes.
                ticketing.remake(std::slice::from_ref(ticket)).await?;
            }
            Ok(bytes.map(Ok))
        }
    }
}

impl Stale {
    fn contains(&self, id: &TicketId) -> bool {
        self.tickets.contains(id)
    }

    /// Waits until a ticket is made.
    async fn wait_for(&self, ticketing: &Ticketing, id: TicketId) -> Result<Content, Error> {
        loop {
            let row = ticketing.shared.store.tickets_with_events(&[id]).await?.pop();
            let Some((ticket, event)) = row else { return Ok(Err("deleted".to_owned())) };
            let revision = ticketing.shared.press.revision_of(&event).await?;
            if ticket.status != TicketStatus::Pending {
                let made = at_once(ticketing, &event, &ticket, &revision, Extent::Whole).await?;
                if let Some(content) = made {
                    return Ok(content);
                }
            }
            if Instant::now() >= self.give_up {
                return Ok(Err("being made anew; download again in a moment".to_owned()));
            }
            tokio::time::sleep(REMAKE_POLL).await;
        }
    }
}

fn failure(ticket: &Ticket) -> String {
    let reason = ticket.error.as_deref().unwrap_or("unknown reason");
    let line: String =
        reason.chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect();
    format!("failed: {line}")
}

/// `ticket-0001-<id>.pdf`: digits, letters and hyphens, the same file on every system.
fn entry_name(index: u32, digits: usize, id: TicketId) -> String {
    format!("ticket-{index:0digits$}-{id}.pdf")
}

fn failed(error: ZipError) -> Error {
    Error::Internal(format!("writing a ZIP: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_in_the_order_of_the_tickets() {
        let id = TicketId::from_bytes([7; 16]);
        let name = entry_name(1, 4, id);
        assert_eq!(name, "ticket-0001-07070707-0707-0707-0707-070707070707.pdf");
        assert!(entry_name(9_999, 5, id) < entry_name(10_000, 5, id));
    }
}
