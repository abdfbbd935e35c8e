//! The ZIP: PDFs from the files, each checked. Those that are stale or missing are made again meanwhile.

use std::collections::HashSet;
use std::time::Duration;

use stampede_model::{Batch, Event, Ticket, TicketId, TicketStatus};
use tokio::time::Instant;

use super::archive::{Archive, Name};
use super::plan::Plan;
use super::{Broken, Extent, PieceWriter};
use crate::{Error, Ticketing};

/// Patience for the tickets of a page that are made again; those that are not made by then are left out.
const REMAKE_PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks at a ticket that is made again.
const REMAKE_POLL: Duration = Duration::from_millis(100);

pub(super) async fn write(
    ticketing: &Ticketing,
    batch: &Batch,
    extent: Extent,
    plan: Option<&Plan>,
    pieces: &PieceWriter,
) -> Result<(), Broken> {
    let mut archive = Archive::new(batch.total);
    let mut left_out = LeftOut::default();
    let mut after = None;
    while let Some((event, tickets)) = ticketing.page(batch, after).await? {
        after = tickets.last().map(|ticket| ticket.id);
        let revision = ticketing.shared.press.revision_of(&event).await?;
        let stale = renew_stale(ticketing, &event, &tickets, &revision, plan).await?;
        for ticket in &tickets {
            let name = Name::Ticket { index: ticket.index, id: ticket.id };
            let content = match stale.contains(&ticket.id) {
                false => at_once(ticketing, &event, ticket, &revision, extent).await?,
                true => None,
            };
            let content = match content {
                Some(content) => content,
                None => stale.wait_for(ticketing, ticket.id).await?,
            };
            match content {
                Ok(pdf) => add(&mut archive, name, pdf, pieces).await?,
                Err(reason) => left_out.add(name, batch.total, &reason),
            }
        }
    }
    if let Some(text) = left_out.into_text() {
        add(&mut archive, Name::LeftOut, text.into_bytes(), pieces).await?;
    }
    for piece in archive.finish() {
        pieces.send(piece).await?;
    }
    Ok(())
}

/// Adds a file to the archive.
async fn add(
    archive: &mut Archive,
    name: Name,
    content: Vec<u8>,
    pieces: &PieceWriter,
) -> Result<(), Broken> {
    let head = archive
        .add(name, &content)
        .ok_or_else(|| Error::Internal(format!("{} is too large for a ZIP", archive.name(name))))?;
    pieces.send(head).await?;
    pieces.send(content).await?;
    Ok(())
}

/// The list of tickets that are not in an archive.
#[derive(Debug, Default)]
pub(super) struct LeftOut(String);

impl LeftOut {
    /// Adds a ticket of an order of `total`.
    pub(super) fn add(&mut self, name: Name, total: u64, reason: &str) {
        let name = Archive::new(total).name(name);
        self.0.push_str(&format!("{name}: {reason}\r\n"));
    }

    /// The text; `None`: all tickets are in the archive.
    pub(super) fn into_text(self) -> Option<String> {
        let is_any = !self.0.is_empty();
        is_any.then(|| format!("These tickets are not in this archive:\r\n\r\n{}", self.0))
    }
}

/// The reason why a ticket is left out; `None`: it has a PDF, or waits for one.
pub(super) fn not_made(ticket: &Ticket, extent: Extent) -> Option<String> {
    match ticket.status {
        TicketStatus::Void => Some("void".to_owned()),
        TicketStatus::Failed => Some(failure(ticket)),
        TicketStatus::Pending if extent == Extent::Partial => Some("not made yet".to_owned()),
        TicketStatus::Pending | TicketStatus::Completed => None,
    }
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
    plan: Option<&Plan>,
) -> Result<Stale, Error> {
    let mut stale = Vec::new();
    for ticket in tickets.iter().filter(|ticket| ticket.status == TicketStatus::Completed) {
        let wanted = ticketing.wanted_pdf(ticket, event, revision).await?;
        if wanted.is_none() && plan.is_some() {
            // The reader was told the version before, and would get a mixture.
            return Err(Error::Internal("the event or its template was changed".to_owned()));
        }
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
    if let Some(reason) = not_made(ticket, extent) {
        return Ok(Some(Err(reason)));
    }
    match ticket.status {
        TicketStatus::Void | TicketStatus::Failed | TicketStatus::Pending => Ok(None),
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
