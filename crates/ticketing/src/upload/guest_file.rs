//! The guests of an upload, kept aside in a file, and read again as tickets, a chunk at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};

use async_trait::async_trait;
use stampede_guests::{Defaults, Guest};
use stampede_model::{Currency, Event, Holder, Money, Order, Ticket, TicketId, TicketStatus};
use stampede_store::TicketChunks;

use super::{CHUNK, PlacedTicket};

/// Writes guests.
pub(super) struct GuestWriter {
    file: BufWriter<File>,
}

impl GuestWriter {
    pub(super) fn new(file: File) -> Self {
        Self { file: BufWriter::new(file) }
    }

    /// Adds a guest.
    pub(super) fn add(&mut self, guest: &Guest) -> io::Result<()> {
        serde_json::to_writer(&mut self.file, guest)?;
        self.file.write_all(b"\n")
    }

    /// The file, to be read.
    pub(super) fn finish(self) -> io::Result<File> {
        self.file.into_inner().map_err(|error| error.into_error())
    }
}

/// The tickets of an order, made of the guests in a file.
pub(super) struct GuestFile {
    /// Absent while a chunk is being read.
    file: Option<BufReader<File>>,
    /// What all tickets have in common.
    blank: Ticket,
    currency: Currency,
    defaults: Defaults,
    /// Tickets since the beginning of the file.
    read: u32,
    /// Tickets that were handed to the store since the last rewind.
    placed: Vec<PlacedTicket>,
}

impl GuestFile {
    pub(super) fn new(file: File, event: &Event, order: &Order, defaults: Defaults) -> Self {
        let blank = Ticket {
            id: TicketId::from_bytes([0; 16]),
            event_id: event.id,
            batch_id: order.batch_id,
            owner: order.owner.clone(),
            index: 0,
            serial: 0,
            generation: 1,
            signing_key: None,
            holder: Holder::default(),
            price: None,
            status: TicketStatus::Pending,
            error: None,
            pdf: None,
            processed_by: None,
            processed_at: None,
            created_at: order.created_at,
            updated_at: order.created_at,
        };
        let currency = event.details.currency;
        let file = Some(BufReader::new(file));
        Self { file, blank, currency, defaults, read: 0, placed: Vec::new() }
    }

    /// Begins with the first guest.
    pub(super) async fn begin(&mut self) -> io::Result<()> {
        self.read = 0;
        self.placed.clear();
        self.away(|file| file.rewind()).await
    }

    /// The next tickets, with the lines they come from; none after the last.
    pub(super) async fn next_tickets(&mut self) -> io::Result<(Vec<Ticket>, Vec<u64>)> {
        let guests = self.away(next_guests).await?;
        let lines = guests.iter().map(|guest| guest.line).collect();
        let tickets = guests.into_iter().map(|guest| self.ticket(guest)).collect();
        Ok((tickets, lines))
    }

    /// The tickets that were handed to the store.
    pub(super) fn into_placed(self) -> Vec<PlacedTicket> {
        self.placed
    }

    /// Works with the file on a thread that may wait for the disk.
    async fn away<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut BufReader<File>) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let lost =
            || io::Error::other("the file of guests was lost by a reading that was broken off");
        let mut file = self.file.take().ok_or_else(lost)?;
        let working = tokio::task::spawn_blocking(move || {
            let done = work(&mut file);
            (file, done)
        });
        let (file, done) = working.await.map_err(io::Error::other)?;
        self.file = Some(file);
        done
    }

    fn ticket(&mut self, guest: Guest) -> Ticket {
        self.read += 1;
        // The amount was written by `Money::amount`, which it reads.
        let price = guest.price.and_then(|amount| Money::parse(&amount, self.currency).ok());
        Ticket {
            id: TicketId::generate(),
            index: self.read,
            holder: Holder {
                name: guest.name,
                email: guest.email.or_else(|| self.defaults.email.clone()),
                phone: guest.phone.or_else(|| self.defaults.phone.clone()),
                chat: guest.chat.or_else(|| self.defaults.chat.clone()),
                seat: guest.seat.or_else(|| self.defaults.seat.clone()),
            },
            price: price.or(self.defaults.price),
            ..self.blank.clone()
        }
    }
}

#[async_trait]
impl TicketChunks for GuestFile {
    async fn rewind(&mut self) -> io::Result<()> {
        self.begin().await
    }

    async fn next(&mut self) -> io::Result<Vec<Ticket>> {
        let (tickets, _) = self.next_tickets().await?;
        let placed = tickets.iter().map(|t| PlacedTicket { id: t.id, is_vip: t.is_vip() });
        self.placed.extend(placed);
        Ok(tickets)
    }
}

fn next_guests(file: &mut BufReader<File>) -> io::Result<Vec<Guest>> {
    let (mut guests, mut line) = (Vec::with_capacity(CHUNK), String::new());
    while guests.len() < CHUNK {
        line.clear();
        if file.read_line(&mut line)? == 0 {
            break;
        }
        guests.push(serde_json::from_str(&line)?);
    }
    Ok(guests)
}
