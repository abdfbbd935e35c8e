//! Uploading a file of guests: read, checked, placed as one order, enqueued; its size does not show in memory.
//!
//! ```text
//! file ──▶ guests that keep the rules, in a file of their own ──▶ preflight ──▶ one transaction ──▶ jobs
//!          (stampede_guests; all mistakes are collected)          a thousand tickets at a time
//! ```
//!
//! Nothing is written before the last row was read: a file with a mistake is refused as a whole. What becomes of an
//! order after its commit is the same as in `place.rs`.

mod guest_file;
mod warned;

use std::fs::File;
use std::io::{self, Seek};
use std::time::Duration;

use stampede_broker::{JobSpec, kept};
use stampede_guests::{Charset, Defaults, Format, Guest, Report, Rules};
use stampede_model::{Batch, BatchId, Event, Idempotency, Money, Order, TicketId};
use stampede_store::{AuditEntry, Placed};
use stampede_wire::ticketing::orders::TicketWarnings;
use tokio_util::sync::CancellationToken;

use self::guest_file::{GuestFile, GuestWriter};
use self::warned::Warned;
use crate::jobs::generate_ticket::GenerateTicket;
use crate::place::of_order;
use crate::preflight::Strictness;
use crate::spool::Spool;
use crate::ticketing::now;
use crate::{Error, Ticketing, test_hooks};

/// An upload is answered when its jobs are on the queue, or after this time.
const ANSWER_AFTER: Duration = Duration::from_millis(250);
/// Tickets that are checked, written or enqueued at a time.
const CHUNK: usize = 1_000;
/// Guests of a dry run that are shown.
const SHOWN: usize = 10;

/// Why a file is uploaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To order.
    Order,
    /// To learn what an order would do. Nothing is written.
    DryRun,
}

/// A file of guests.
#[derive(Debug)]
pub struct UploadRequest {
    /// The event. The order and its tickets belong to its owner, also if an administrator uploads the file.
    pub event: Event,
    /// The file.
    pub file: File,
    /// Its form.
    pub format: Format,
    /// The encoding that was declared.
    pub charset: Option<Charset>,
    /// Values for guests who have none of their own. Those that the file itself gives for all come first.
    pub defaults: Defaults,
    /// Whether warnings refuse the order, unless the file says it.
    pub strictness: Strictness,
    /// Marks an order that the client may send twice.
    pub idempotency: Option<Idempotency>,
    /// Why it is uploaded.
    pub purpose: Purpose,
    /// The entry of the audit log, which is written in the transaction of the order.
    pub entry: Option<AuditEntry>,
}

/// What was read from a file.
#[derive(Debug, Default)]
pub struct UploadRead {
    /// What the file says besides its guests.
    pub report: Report,
    /// The first guests, as they were read.
    pub first: Vec<Guest>,
    /// The price of all tickets; `None`: no ticket has one.
    pub price: Option<Money>,
    /// What would not come out well.
    pub warnings: TicketWarnings,
}

/// What became of an upload.
#[derive(Debug)]
pub enum Uploaded {
    /// It is accepted, now or by an earlier request with the same idempotency key.
    Accepted {
        /// Its batch.
        batch_id: BatchId,
        /// Tickets of the batch.
        total: u64,
        /// What was read.
        read: UploadRead,
    },
    /// It would be accepted, or refused for the mistakes or warnings in it.
    DryRun {
        /// It would be accepted.
        accepted: bool,
        /// What was read.
        read: UploadRead,
    },
    /// The file cannot be read: the message says why.
    Unreadable(String),
    /// The file is no JSON: the message says why.
    NotJson(String),
    /// Rows have mistakes. Nothing was written.
    Mistaken(UploadRead),
    /// It is strict and has warnings. Nothing was written.
    RefusedByWarnings(UploadRead),
    /// Another order was placed with the same idempotency key. Nothing was written.
    KeyOfAnotherOrder,
    /// The event is gone. Nothing was written.
    NoSuchEvent,
}

impl Ticketing {
    /// Reads a file of guests, and orders a ticket for each. A caller that stops waiting does not separate the commit from
    /// the enqueueing.
    pub async fn upload(&self, spool: &Spool, request: UploadRequest) -> Result<Uploaded, Error> {
        let ticketing = self.clone();
        let spool = spool.clone();
        let uploading = async move { ticketing.read_and_place(&spool, request).await };
        self.shared.requests.spawn(kept(uploading)).await.map_err(Error::internal)?
    }

    async fn read_and_place(
        &self,
        spool: &Spool,
        request: UploadRequest,
    ) -> Result<Uploaded, Error> {
        let UploadRequest {
            event,
            file,
            format,
            charset,
            defaults,
            strictness,
            idempotency,
            purpose,
            entry,
        } = request;
        let rules =
            Rules { currency: event.details.currency, most: self.limits().quantity as usize };
        let aside = spool.file().await.map_err(unkept)?.finish().await.map_err(unkept)?;
        let stop = self.shared.requests.stop();
        let until = stop.clone();
        let reading =
            tokio::task::spawn_blocking(move || read(file, aside, format, charset, rules, &until));
        let (report, first, aside) = match reading.await.map_err(Error::internal)? {
            Ok(read) => read,
            Err(error @ stampede_guests::Error::TooMany(_)) => {
                return Ok(Uploaded::Unreadable(error.to_string()));
            }
            Err(error @ stampede_guests::Error::NotJson(_)) => {
                return Ok(Uploaded::NotJson(error.to_string()));
            }
            Err(stampede_guests::Error::Unreadable(why)) => return Ok(Uploaded::Unreadable(why)),
            Err(stampede_guests::Error::Io(_)) if stop.is_cancelled() => return Err(stopping()),
            Err(stampede_guests::Error::Io(error)) => return Err(unkept(error)),
        };
        let strictness = match report.strict {
            Some(true) => Strictness::Strict,
            Some(false) => Strictness::Lenient,
            None => strictness,
        };
        let given = report.defaults.clone();
        let defaults = Defaults {
            email: given.email.or(defaults.email),
            phone: given.phone.or(defaults.phone),
            chat: given.chat.or(defaults.chat),
            seat: given.seat.or(defaults.seat),
            price: given.price.or(defaults.price),
        };
        let price = total_price(&report, defaults.price);
        let mut read = UploadRead { report, first, price, warnings: TicketWarnings::default() };
        let is_mistaken = read.report.mistakes.count > 0;
        if is_mistaken && purpose == Purpose::Order {
            return Ok(Uploaded::Mistaken(read));
        }
        let order = head(&event, idempotency);
        let mut guests = GuestFile::new(aside, &event, &order, defaults);
        let mut warned = Warned::remarks(&read.report);
        // A file whose mistakes are told has other tickets when they are mended.
        if !is_mistaken {
            self.check_guests(&event, &mut guests, strictness, &mut warned).await?;
        }
        let is_refused = strictness == Strictness::Strict && !warned.is_empty();
        read.warnings = warned.into_listed();
        if purpose == Purpose::DryRun {
            return Ok(Uploaded::DryRun { accepted: !is_mistaken && !is_refused, read });
        }
        if is_refused {
            return Ok(Uploaded::RefusedByWarnings(read));
        }
        // A server that stops may be ended before the answer: the client would not know of the order.
        if stop.is_cancelled() {
            return Err(stopping());
        }
        let entry = entry.map(|entry| of_order(entry, &order, read.report.guests));
        match self.shared.store.place_in_chunks(&order, &mut guests, entry.as_ref()).await? {
            Placed::New(batch) => {
                let total = batch.total;
                self.enqueue_upload(batch, guests.into_placed()).await;
                Ok(Uploaded::Accepted { batch_id: order.batch_id, total, read })
            }
            Placed::Existing(batch) => {
                Ok(Uploaded::Accepted { batch_id: batch.id, total: batch.total, read })
            }
            Placed::OtherRequest => Ok(Uploaded::KeyOfAnotherOrder),
            Placed::NoSuchEvent => Ok(Uploaded::NoSuchEvent),
        }
    }

    /// Checks all tickets against the event's template, a chunk at a time.
    async fn check_guests(
        &self,
        event: &Event,
        guests: &mut GuestFile,
        strictness: Strictness,
        warned: &mut Warned,
    ) -> Result<(), Error> {
        guests.begin().await.map_err(unkept)?;
        loop {
            let (tickets, lines) = guests.next_tickets().await.map_err(unkept)?;
            if tickets.is_empty() {
                return Ok(());
            }
            if self.shared.requests.stop().is_cancelled() {
                return Err(stopping());
            }
            let tickets = std::sync::Arc::new(tickets);
            let checked = self.preflight(event.clone(), &tickets, strictness).await?;
            warned.add(checked.into_warnings(), &tickets, &lines);
        }
    }

    /// Enqueues the jobs of a committed upload; that goes on while the client has its answer.
    async fn enqueue_upload(&self, batch: Batch, placed: Vec<PlacedTicket>) {
        let ticketing = self.clone();
        let task = self.shared.requests.spawn(kept(async move {
            test_hooks::hang_at("order-committed").await;
            if let Err(error) = ticketing.try_enqueue_upload(&batch, &placed).await {
                tracing::warn!(%error, batch = %batch.id, "order kept, but not enqueued; the reconciler will");
            }
        }));
        // Not in time is not an error, and a panic has been reported already.
        let _ = tokio::time::timeout(ANSWER_AFTER, task).await;
    }

    async fn try_enqueue_upload(
        &self,
        batch: &Batch,
        placed: &[PlacedTicket],
    ) -> Result<(), stampede_broker::Error> {
        let announcer = &self.shared.announcer;
        // First, so that readers outside find the batch when they hear of its first ticket.
        let ids: Vec<TicketId> = placed.iter().map(|ticket| ticket.id).collect();
        announcer.mirror().put(batch, &ids).await?;
        drop(ids);
        announcer.batch_created(batch).await;
        for chunk in placed.chunks(CHUNK) {
            let job = |ticket: &PlacedTicket| {
                let payload = GenerateTicket { ticket_id: ticket.id, batch_id: batch.id };
                payload.with_priority(ticket.is_vip)
            };
            let jobs: Vec<JobSpec> = chunk.iter().map(job).collect();
            self.shared.queue.enqueue(&jobs).await?;
        }
        Ok(())
    }
}

/// A ticket that was written, as far as its job needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedTicket {
    id: TicketId,
    is_vip: bool,
}

/// Reads a file; its guests go to the file aside.
fn read(
    mut file: File,
    aside: File,
    format: Format,
    charset: Option<Charset>,
    rules: Rules,
    stop: &CancellationToken,
) -> Result<(Report, Vec<Guest>, File), stampede_guests::Error> {
    file.rewind()?;
    let (mut writer, mut first) = (GuestWriter::new(aside), Vec::new());
    let report = stampede_guests::read(file, format, charset, rules, &mut |guest| {
        if stop.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        writer.add(&guest)?;
        if first.len() < SHOWN {
            first.push(guest);
        }
        Ok(())
    })?;
    Ok((report, first, writer.finish()?))
}

/// An order without its tickets.
fn head(event: &Event, idempotency: Option<Idempotency>) -> Order {
    Order {
        batch_id: BatchId::generate(),
        event_id: event.id,
        owner: event.owner.clone(),
        tickets: Vec::new(),
        idempotency,
        created_at: now(),
    }
}

/// The price of all tickets.
fn total_price(report: &Report, default: Option<Money>) -> Option<Money> {
    let others = default
        .filter(|_| report.without_price > 0)
        .and_then(|price| price.times(report.without_price as u64));
    match (report.price, others) {
        (Some(own), Some(others)) => own.plus(others),
        (own, others) => own.or(others),
    }
}

/// The server stops: nothing was ordered, and the client may ask another node.
fn stopping() -> Error {
    Error::Unavailable { what: "the server", cause: "it is stopping".to_owned() }
}

/// A file of the spool cannot be written or read: most likely its disk is full.
fn unkept(error: std::io::Error) -> Error {
    Error::Unavailable { what: "the disk for uploads", cause: error.to_string() }
}
