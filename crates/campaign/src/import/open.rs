//! An import that is open: pieces are added, counted and reported; its end makes it whole.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use stampede_audience as audience;
use stampede_model::RecipientId;
use stampede_model::campaign::AddressKind;
use stampede_store::{Campaign, NewRecipient};
use stampede_wire::campaigns::{Duplicate, ImportColumn, ImportReport, ImportedRow, RowMistake};

use super::{Imported, MOST_RECIPIENTS, Purpose};
use crate::{Campaigns, Error, now};

/// Mistakes and duplicates that are listed.
const LISTED: usize = 1_000;
/// Recipients that a report shows.
const SHOWN: usize = 10;
/// Columns that are no fields.
const KNOWN: [&str; 3] = ["address", "message", "timeZone"];

/// A campaign that recipients are added to.
pub(super) struct Target {
    pub(super) campaign: Campaign,
    /// The kind of its addresses.
    pub(super) kind: AddressKind,
    /// The country of telephone numbers without a country's code.
    pub(super) country: Option<String>,
}

/// An import that is open. One that is dropped is undone by the next import, or by the reconciler.
pub(super) struct Importing {
    campaigns: Campaigns,
    target: Target,
    purpose: Purpose,
    import: RecipientId,
    report: ImportReport,
    total: u64,
    /// The addresses of a dry run, as hashes: nothing is written that could be compared.
    seen: HashSet<u64>,
}

impl Importing {
    /// An import that has begun, into a campaign.
    pub(super) fn new(
        campaigns: Campaigns,
        target: Target,
        purpose: Purpose,
        import: RecipientId,
    ) -> Self {
        let total = target.campaign.counts.total();
        let report =
            ImportReport { dry_run: purpose == Purpose::DryRun, ..ImportReport::default() };
        Self { campaigns, target, purpose, import, report, total, seen: HashSet::new() }
    }

    /// Adds a piece; `Some`: the import is refused and undone.
    pub(super) async fn add(&mut self, piece: &[NewRecipient]) -> Result<Option<Imported>, Error> {
        let rows = piece.len() as u64;
        self.report.rows += rows;
        self.total += rows;
        if self.total > MOST_RECIPIENTS {
            self.undo().await?;
            return Ok(Some(Imported::TooMany));
        }
        for row in piece {
            if let Some((_, wrong)) = &row.skip {
                self.mistake(row.line, wrong);
            }
            if self.report.first.len() < SHOWN {
                self.report.first.push(ImportedRow {
                    line: row.line,
                    address: row.address.clone(),
                    fields: row.fields.clone(),
                    message: row.message.clone(),
                });
            }
        }
        if self.purpose == Purpose::DryRun {
            self.count(piece).await?;
            return Ok(None);
        }
        let (store, id) = (&self.campaigns.shared.store, self.target.campaign.id);
        let Some(added) = store.import_recipients(id, self.import, piece, now()).await? else {
            // Somebody took it for dead.
            return Ok(Some(Imported::Busy));
        };
        self.report.added += added.added;
        self.report.invalid += added.invalid;
        self.report.suppressed += added.suppressed;
        self.report.duplicates += added.duplicates.len() as u64;
        let room = LISTED.saturating_sub(self.report.duplicate_rows.len());
        let listed = added.duplicates.into_iter().take(room);
        let listed = listed.map(|(line, first_line)| Duplicate { line, first_line });
        self.report.duplicate_rows.extend(listed);
        Ok(None)
    }

    /// Notes what the file says besides its rows. Its mistakes are those of invalid addresses, too.
    pub(super) fn read(&mut self, read: audience::Report) {
        let report = &mut self.report;
        report.mistakes_total = read.mistakes.count;
        report.mistakes = read
            .mistakes
            .listed
            .into_iter()
            .map(|mistake| RowMistake {
                line: mistake.line,
                field: Some(mistake.field).filter(|field| !field.is_empty()),
                message: mistake.message,
            })
            .collect();
        report.encoding = Some(read.encoding.to_owned());
        report.delimiter = read.delimiter.map(|delimiter| delimiter.as_str().to_owned());
        report.columns = read
            .columns
            .into_iter()
            .map(|column| {
                let is_field = !KNOWN.contains(&column.field.as_str());
                let meaning = if is_field { "field" } else { column.field.as_str() };
                ImportColumn {
                    title: column.name,
                    meaning: Some(meaning.to_owned()),
                    field: is_field.then_some(column.field),
                }
            })
            .collect();
    }

    /// Notes a row that cannot be read, or an address that is none.
    fn mistake(&mut self, line: Option<u64>, wrong: &str) {
        self.report.mistakes_total += 1;
        if self.report.mistakes.len() < LISTED {
            let message = wrong.to_owned();
            self.report.mistakes.push(RowMistake { line, field: None, message });
        }
    }

    /// Counts what a piece would add.
    async fn count(&mut self, piece: &[NewRecipient]) -> Result<(), Error> {
        let valid: Vec<&NewRecipient> = piece.iter().filter(|row| row.skip.is_none()).collect();
        self.report.invalid += (piece.len() - valid.len()) as u64;
        let mut addresses = Vec::with_capacity(valid.len());
        for row in valid {
            let mut hasher = DefaultHasher::new();
            (&row.address, row.ticket).hash(&mut hasher);
            match self.seen.insert(hasher.finish()) {
                true => addresses.push(row.address.clone()),
                false => {
                    self.report.duplicates += 1;
                    if self.report.duplicate_rows.len() < LISTED {
                        let duplicate = Duplicate { line: row.line, first_line: None };
                        self.report.duplicate_rows.push(duplicate);
                    }
                }
            }
        }
        let Target { campaign, .. } = &self.target;
        let store = &self.campaigns.shared.store;
        let account = store.account(&campaign.account).await?;
        let owner = account.and_then(|account| account.owner);
        let owner = owner.unwrap_or_else(|| campaign.owner.clone());
        let suppressed: HashSet<String> = store
            .suppressed_addresses(&owner, &campaign.account, &addresses)
            .await?
            .into_iter()
            .collect();
        let silent = addresses.iter().filter(|address| suppressed.contains(*address)).count();
        self.report.suppressed += silent as u64;
        self.report.added += (addresses.len() - silent) as u64;
        Ok(())
    }

    /// Ends the import: its recipients stay.
    pub(super) async fn end(self) -> Result<Imported, Error> {
        if self.purpose == Purpose::Import {
            let (store, id) = (&self.campaigns.shared.store, self.target.campaign.id);
            if !store.end_import(id, self.import).await? {
                return Ok(Imported::Busy);
            }
            let ImportReport { added, invalid, duplicates, suppressed, .. } = self.report;
            tracing::info!(campaign = %id, added, invalid, duplicates, suppressed, "recipients imported");
        }
        Ok(Imported::Done(Box::new(self.report)))
    }

    /// Removes everything that was added.
    pub(super) async fn undo(&self) -> Result<(), Error> {
        if self.purpose == Purpose::Import {
            let (store, id) = (&self.campaigns.shared.store, self.target.campaign.id);
            store.undo_import(id, self.import).await?;
        }
        Ok(())
    }
}
