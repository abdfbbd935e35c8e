//! Downloading: one PDF, or all tickets of a batch in one file.
//!
//! A PDF is never served unchecked: one that is stale, short or missing is made again, and the caller gets
//! it if that is quick (`remake.rs`).
//!
//! The file of a batch is written while it is sent, a page of tickets at a time (`pieces.rs`): neither the
//! size of the batch nor the speed of the client shows in memory. Tickets that are not in the file (void,
//! failed, with [`Extent::Partial`] also those not made yet) are named: in [`BatchFile::left_out`] for the
//! PDF, in `left-out.txt` inside the ZIP. The version and length of the file are known before (`plan.rs`), so that a
//! download that broke off can go on (`file.rs`).

mod archive;
mod as_csv;
mod file;
mod merged;
mod pieces;
mod places;
mod plan;
mod zipped;

use std::time::Duration;

use stampede_model::{Batch, Event, Pdf, Ticket, TicketId, TicketStatus};
use stampede_store::TicketFilter;
use tokio::time::Instant;

pub use self::file::BatchFile;
pub(crate) use self::file::Lengths;
use self::file::Source;
pub use self::pieces::Pieces;
use self::pieces::{Gone, PieceWriter};
pub(crate) use self::places::Places;
use crate::ticketing::now;
use crate::{Error, Ticketing};

/// Patience of a caller for a PDF that is made again.
const REMAKE_PATIENCE: Duration = Duration::from_secs(3);
/// Pause between two looks at a PDF that is made again.
const REMAKE_POLL: Duration = Duration::from_millis(50);
/// Tickets read from the store at a time.
const PAGE: u32 = 100;
/// Longest time after which a caller is told to ask for a batch again.
const LONGEST_RETRY_S: f64 = 60.0;
/// Tickets named in [`BatchFile::left_out`]; more are only counted.
const NAMED: u32 = 50;

/// What a caller gets who wants the PDF of a ticket.
#[derive(Debug)]
pub enum Download {
    /// The PDF.
    Ready(Pdf, Vec<u8>),
    /// It is being made; ask again soon.
    NotReady,
    /// The ticket is void.
    Void,
    /// Making it failed, for this reason.
    Failed(String),
    /// There is no such ticket.
    NotFound,
}

/// Which file of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchFormat {
    /// One PDF with the pages of all tickets.
    MergedPdf,
    /// A ZIP with one PDF for each ticket.
    Zip,
}

/// Which tickets a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of the batch. Tickets that are made again are waited for.
    Whole,
    /// Only the tickets whose PDF is made.
    Partial,
}

/// What a caller gets who wants the file of a batch.
pub enum BatchDownload {
    /// The file, written while it is read.
    Ready(Box<BatchFile>),
    /// Tickets are still to be made; ask again later.
    NotReady {
        /// Tickets that are missing.
        missing: u64,
        /// Tickets of the batch.
        total: u64,
        /// When to ask again.
        retry_after_s: u32,
    },
    /// No ticket is made: all failed, are void, or are still to be made.
    Nothing,
    /// Too many files are being downloaded at the same time, or too many of this owner; ask again later.
    TooMany,
    /// The event of the batch is gone.
    NoSuchEvent,
}

/// Why the rest of a file does not come.
enum Broken {
    /// Nobody reads it.
    Gone,
    /// It cannot be made.
    Failed(Error),
}

impl From<Gone> for Broken {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl<E: Into<Error>> From<E> for Broken {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Ticketing {
    /// The PDF of a ticket, made again if it is not current.
    pub async fn download(&self, ticket: Ticket, event: &Event) -> Result<Download, Error> {
        match ticket.status {
            TicketStatus::Completed => {}
            TicketStatus::Pending => return Ok(Download::NotReady),
            TicketStatus::Void => return Ok(Download::Void),
            TicketStatus::Failed => {
                let reason = ticket.error.unwrap_or_else(|| "unknown reason".to_owned());
                return Ok(Download::Failed(reason));
            }
        }
        if let Some((pdf, bytes)) = self.current_pdf(&ticket, event).await? {
            return Ok(Download::Ready(pdf, bytes));
        }
        let (id, generation) = (ticket.id, ticket.generation);
        tracing::info!(ticket = %id, "its PDF is stale, short or missing and is made again");
        self.remake(&[ticket]).await?;

        let give_up = Instant::now() + REMAKE_PATIENCE;
        while Instant::now() < give_up {
            tokio::time::sleep(REMAKE_POLL).await;
            let Some((ticket, event)) = self.ticket_with_event(id).await? else {
                return Ok(Download::NotFound);
            };
            if ticket.generation != generation {
                // Issued anew meanwhile. Who asked may hold a link to the former one: it is checked again by the next request.
                return Ok(Download::NotReady);
            }
            if ticket.status != TicketStatus::Completed {
                continue;
            }
            return match self.current_pdf(&ticket, &event).await? {
                Some((pdf, bytes)) => Ok(Download::Ready(pdf, bytes)),
                // Just made, and yet not current: making it again would not change that.
                None => Err(Error::Internal(format!(
                    "workers make another PDF of ticket {id} than this server expects; do all nodes run \
                     the same version and TICKET_TEMPLATE, and write to the same folder (PUBLIC_PATH, NFS_PATH)?"
                ))),
            };
        }
        Ok(Download::NotReady)
    }

    /// The file of a batch, if the caller can have it now.
    pub async fn download_batch(
        &self,
        batch: Batch,
        format: BatchFormat,
        extent: Extent,
    ) -> Result<BatchDownload, Error> {
        if extent == Extent::Whole && batch.pending() > 0 {
            let left = batch.seconds_left(now()).unwrap_or(1.0);
            // The rate of the first tickets says little: nobody is told to wait longer than the order is old.
            let age = now().duration_since(batch.created_at).as_secs_f64();
            let retry_after_s = left.clamp(1.0, age.clamp(1.0, LONGEST_RETRY_S)).ceil() as u32;
            let (missing, total) = (batch.pending(), batch.total);
            return Ok(BatchDownload::NotReady { missing, total, retry_after_s });
        }
        if batch.completed == 0 {
            return Ok(BatchDownload::Nothing);
        }
        let Some(place) = self.shared.downloads.take(&batch.owner) else {
            return Ok(BatchDownload::TooMany);
        };
        let plan = self.plan(&batch, format, extent).await?;
        let (mut begun, mut left_out) = (None, None);
        if format == BatchFormat::MergedPdf {
            left_out = Some(self.named_left_out(&batch, extent).await?);
            let Some(event) = self.event(batch.event_id).await? else {
                return Ok(BatchDownload::NoSuchEvent);
            };
            // A template that does not work is told here, before the file begins.
            self.must_not_be_set_aside(&event).await?;
            begun = Some(merged::Begun::new(self, &batch, extent, &event).await?);
        }
        let source = Source { ticketing: self.clone(), batch, extent, plan };
        Ok(BatchDownload::Ready(Box::new(BatchFile { source, left_out, begun, place })))
    }

    /// The next tickets of a batch with its event, in the order they were ordered.
    async fn page(
        &self,
        batch: &Batch,
        after: Option<TicketId>,
    ) -> Result<Option<(Event, Vec<Ticket>)>, Error> {
        let filter = TicketFilter { batch: Some(batch.id), ..TicketFilter::default() };
        // Ids grow in the order in which the tickets of an order were numbered.
        let tickets = self.shared.store.tickets(&filter, after, PAGE).await?;
        if tickets.is_empty() {
            return Ok(None);
        }
        let event = self.event(batch.event_id).await?;
        let event = event.ok_or_else(|| Error::Internal("Event not found".to_owned()))?;
        Ok(Some((event, tickets)))
    }

    /// `void: id, id; failed: id; 3 pending`, of tickets that will not be in the file.
    async fn named_left_out(&self, batch: &Batch, extent: Extent) -> Result<String, Error> {
        let mut parts = Vec::new();
        for (status, count) in
            [(TicketStatus::Void, batch.voided), (TicketStatus::Failed, batch.failed)]
        {
            if count == 0 {
                continue;
            }
            let filter = TicketFilter {
                batch: Some(batch.id),
                status: Some(status),
                ..TicketFilter::default()
            };
            let tickets = self.shared.store.tickets(&filter, None, NAMED).await?;
            let ids: Vec<String> = tickets.iter().map(|ticket| ticket.id.to_string()).collect();
            let more = count.saturating_sub(ids.len() as u64);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            parts.push(format!("{}: {}{more}", status.as_str(), ids.join(", ")));
        }
        if extent == Extent::Partial && batch.pending() > 0 {
            parts.push(format!("pending: {} tickets", batch.pending()));
        }
        Ok(if parts.is_empty() { "none".to_owned() } else { parts.join("; ") })
    }
}
