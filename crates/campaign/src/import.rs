//! Recipients that come into a campaign: files, lists, guests.

use std::fs::File;

use stampede_guests::{Charset, Format};
use stampede_model::{BatchId, CampaignId, EventId};
use stampede_wire::campaigns::{Contract, ImportReport};

use crate::{Campaigns, Error, RecipientRow};

/// Why a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To add its recipients.
    Import,
    /// To learn what would be added. Nothing is written.
    DryRun,
}

/// A file of recipients.
#[derive(Debug)]
pub struct ImportFile {
    /// The file, from its beginning.
    pub file: File,
    /// Its form.
    pub format: Format,
    /// The encoding that was declared.
    pub charset: Option<Charset>,
    /// Why it is read.
    pub purpose: Purpose,
}

/// Guests who become recipients: one for each ticket, at the address of its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guests {
    /// Of all tickets of an event.
    OfEvent(EventId),
    /// Of all tickets of an order.
    OfBatch(BatchId),
}

/// The result of an import.
#[derive(Debug, Clone)]
pub enum Imported {
    /// It is read, and the recipients are added unless it is a dry run.
    Done(Box<ImportReport>),
    /// The file cannot be read, for this reason. Nothing was added.
    Unreadable(String),
    /// Another import of the campaign has not ended.
    Busy,
    /// A running, completed or cancelled campaign takes no recipients.
    WrongState(Box<Contract>),
    /// There is no such campaign.
    NotFound,
    /// There is no such event or order of the campaign's owner.
    NoSuchGuests,
    /// The campaign would have more recipients than allowed ([`MOST_RECIPIENTS`]). Nothing was added.
    TooMany,
}

/// Most recipients of one campaign.
pub const MOST_RECIPIENTS: u64 = 1_000_000;

impl Campaigns {
    /// Adds the recipients of a file. Its size does not show in memory. An import is whole or undone; a row that cannot be used is
    /// reported and, if it has an address, kept as skipped.
    pub async fn import_file(&self, id: CampaignId, file: ImportFile) -> Result<Imported, Error> {
        todo!()
    }

    /// Adds recipients that a request lists.
    pub async fn import_rows(
        &self,
        id: CampaignId,
        rows: Vec<RecipientRow>,
        purpose: Purpose,
    ) -> Result<Imported, Error> {
        todo!()
    }

    /// Adds the guests of an event or an order of the campaign's owner: one recipient for each ticket, at the address of its
    /// holder. Tickets without an address are reported, and void ones left out.
    pub async fn import_guests(
        &self,
        id: CampaignId,
        guests: Guests,
        purpose: Purpose,
    ) -> Result<Imported, Error> {
        todo!()
    }
}
