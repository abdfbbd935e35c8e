//! Recipients that come into a campaign: files, lists, guests.

mod guests;
mod open;

use std::fs::File;
use std::io::{self, Seek};

use stampede_audience::{self as audience, Charset, Format, RecipientRow, Rules};
use stampede_model::campaign::{AddressKind, SkipReason};
use stampede_model::{CampaignId, RecipientId};
use stampede_store::{Import, NewRecipient};
use stampede_wire::campaigns::{Contract, ImportReport};
use tokio::sync::mpsc;

pub use self::guests::Guests;
pub(crate) use self::guests::{address as guest_address, fields as guest_fields};
use self::open::{Importing, Target};
use crate::reconcile::IMPORT_DIES;
use crate::{Campaigns, Error, now, texts};

/// Recipients that are written at a time.
const PIECE: usize = 1_000;
/// Pieces that are read ahead.
const AHEAD: usize = 2;

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

/// The result of an import.
#[derive(Debug, Clone)]
pub enum Imported {
    /// It is read, and the recipients are added unless it is a dry run.
    Done(Box<ImportReport>),
    /// The file cannot be read, for this reason. Nothing was added.
    Unreadable(String),
    /// The file is refused, and rows of it have mistakes, too: the report has all of them. Nothing was added.
    Mistaken(Box<ImportReport>),
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
    /// Adds the recipients of a file. Its size does not show in memory. An import is whole or undone; a row that cannot be read is
    /// reported, and one whose address is none is kept as skipped.
    pub async fn import_file(&self, id: CampaignId, file: ImportFile) -> Result<Imported, Error> {
        let mut importing = match self.begin(id, file.purpose).await? {
            Ok(importing) => importing,
            Err(refused) => return Ok(refused),
        };
        let added = add_file(&mut importing, file).await;
        importing.close(added).await
    }

    /// Adds recipients that a request lists. They keep the rules of the rows of files: one that breaks them is reported.
    pub async fn import_rows(
        &self,
        id: CampaignId,
        rows: Vec<RecipientRow>,
        purpose: Purpose,
    ) -> Result<Imported, Error> {
        let mut importing = match self.begin(id, purpose).await? {
            Ok(importing) => importing,
            Err(refused) => return Ok(refused),
        };
        let added = add_rows(&mut importing, rows).await;
        importing.close(added).await
    }

    /// The campaign that recipients are for.
    async fn target(&self, id: CampaignId) -> Result<Option<Target>, Error> {
        let Some(campaign) = self.shared.store.campaign(id).await? else { return Ok(None) };
        let account = self.shared.store.account(&campaign.account).await?;
        let channel = account.as_ref().map(|account| account.channel);
        let kind = channel.map_or(AddressKind::Any, |channel| channel.address_kind());
        let country = campaign.country.clone();
        let country = country.or_else(|| account.and_then(|account| account.country));
        Ok(Some(Target { campaign, channel, kind, country }))
    }

    /// Begins to add recipients, or says why none can be added.
    async fn begin(
        &self,
        id: CampaignId,
        purpose: Purpose,
    ) -> Result<Result<Importing, Imported>, Error> {
        let Some(mut target) = self.target(id).await? else { return Ok(Err(Imported::NotFound)) };
        let import = RecipientId::generate();
        if purpose == Purpose::DryRun {
            // As the import itself would be refused.
            if !target.campaign.state.takes_recipients() {
                let contract = self.contract(target.campaign).await?;
                return Ok(Err(Imported::WrongState(Box::new(contract))));
            }
            if target.campaign.importing.is_some() {
                return Ok(Err(Imported::Busy));
            }
        }
        if purpose == Purpose::Import {
            let dead_before = now() - IMPORT_DIES;
            let begun = self.shared.store.begin_import(id, import, now(), dead_before).await?;
            match begun {
                // While an import is open, the campaign keeps its account: addresses are normalised for that.
                Import::Begun => match self.target(id).await {
                    Ok(Some(found)) => target = found,
                    read => {
                        let importing = Importing::new(self.clone(), target, purpose, import);
                        return importing
                            .close(read.map(|_| Some(Imported::NotFound)))
                            .await
                            .map(Err);
                    }
                },
                Import::Busy => return Ok(Err(Imported::Busy)),
                Import::NotFound => return Ok(Err(Imported::NotFound)),
                Import::WrongState => {
                    let contract = self.contract(target.campaign).await?;
                    return Ok(Err(Imported::WrongState(Box::new(contract))));
                }
            }
        }
        Ok(Ok(Importing::new(self.clone(), target, purpose, import)))
    }
}

/// Adds the recipients of a file; `Some`: it is refused, and nothing stays.
async fn add_file(importing: &mut Importing, file: ImportFile) -> Result<Option<Imported>, Error> {
    let (kind, country) = importing.addresses();
    let (pieces, mut read) = mpsc::channel(AHEAD);
    let reading = tokio::task::spawn_blocking(move || {
        let rules = Rules { kind, country: country.as_deref(), most: MOST_RECIPIENTS as usize };
        read_pieces(file, &rules, &pieces)
    });
    while let Some(piece) = read.recv().await {
        if let Some(refused) = importing.add(&piece).await? {
            // The reader notices that nobody listens any more.
            return Ok(Some(refused));
        }
    }
    let refused = match reading.await.map_err(Error::internal)? {
        Ok(report) => {
            importing.read(report);
            return Ok(None);
        }
        Err(audience::Error::TooMany(_)) => Imported::TooMany,
        Err(audience::Error::Refused { report, .. }) => {
            importing.read(*report);
            importing.undo().await?;
            return Ok(Some(Imported::Mistaken(importing.take_report())));
        }
        Err(wrong @ (audience::Error::Unreadable(_) | audience::Error::NotJson(_))) => {
            Imported::Unreadable(wrong.to_string())
        }
        Err(audience::Error::Io(error)) => return Err(Error::internal(error)),
    };
    importing.undo().await?;
    Ok(Some(refused))
}

/// Adds the recipients of a request; `Some`: they are refused, and none stays.
async fn add_rows(
    importing: &mut Importing,
    rows: Vec<RecipientRow>,
) -> Result<Option<Imported>, Error> {
    let (kind, country) = importing.addresses();
    let mut recipients = Vec::with_capacity(rows.len());
    for (line, row) in (1..).zip(rows) {
        match row.checked() {
            Ok(row) => recipients.push(listed(row, kind, country.as_deref(), line)),
            Err(mistakes) => {
                for (field, wrong) in mistakes {
                    importing.mistake(Some(line), &field, &wrong);
                }
            }
        }
    }
    importing.know(recipients.iter().flat_map(|row| row.fields.keys().map(String::as_str)));
    importing.count_messages(recipients.iter().filter(|row| row.message.is_some()).count());
    for piece in recipients.chunks(PIECE) {
        if let Some(refused) = importing.add(piece).await? {
            return Ok(Some(refused));
        }
    }
    Ok(None)
}

/// Reads a file on a thread that may wait, piece by piece.
fn read_pieces(
    mut file: ImportFile,
    rules: &Rules<'_>,
    pieces: &mpsc::Sender<Vec<NewRecipient>>,
) -> Result<audience::Report, audience::Error> {
    let gone = || io::Error::other("nobody takes the rows any more");
    let mut piece = Vec::with_capacity(PIECE);
    let mut keep = |row: audience::Row| {
        piece.push(recipient(row));
        if piece.len() == PIECE {
            let full = std::mem::replace(&mut piece, Vec::with_capacity(PIECE));
            pieces.blocking_send(full).map_err(|_| gone())?;
        }
        Ok(())
    };
    let ImportFile { format, charset, .. } = file;
    file.file.rewind().map_err(audience::Error::Io)?;
    let report = audience::read(file.file, format, charset, rules, &mut keep)?;
    if !piece.is_empty() {
        pieces.blocking_send(piece).map_err(|_| audience::Error::Io(gone()))?;
    }
    Ok(report)
}

/// A row of a request as a recipient.
fn listed(row: RecipientRow, kind: AddressKind, country: Option<&str>, line: u64) -> NewRecipient {
    let (address, skip) = match texts::normalise(kind, country, &row.address) {
        Ok(address) => (address, None),
        Err(wrong) => (row.address, Some((SkipReason::Invalid, wrong))),
    };
    NewRecipient {
        id: RecipientId::generate(),
        address,
        fields: row.fields,
        message: row.message,
        time_zone: row.time_zone,
        ticket: None,
        line: Some(line),
        skip,
    }
}

/// A row of a file as a recipient.
fn recipient(row: audience::Row) -> NewRecipient {
    let (address, skip) = match row.address {
        Ok(address) => (address, None),
        Err(bad) => (bad.given, Some((SkipReason::Invalid, bad.why.to_string()))),
    };
    NewRecipient {
        id: RecipientId::generate(),
        address,
        fields: row.fields,
        message: row.message,
        time_zone: row.time_zone,
        ticket: None,
        line: Some(row.line),
        skip,
    }
}
