//! An import that is open: pieces are added, counted and reported; its end makes it whole.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use stampede_audience as audience;
use stampede_model::campaign::{AddressKind, Channel, Content};
use stampede_model::{BatchId, EventId, RecipientId};
use stampede_store::{Arrival, Campaign, FIELD_NAMES_KEPT, Imported as Counted, NewRecipient};
use stampede_wire::campaigns::{Duplicate, ImportColumn, ImportReport, ImportedRow, RowMistake};

use super::{Imported, MOST_RECIPIENTS, Purpose};
use crate::{Campaigns, Error, content, now, texts};

/// Mistakes and duplicates that are listed.
const LISTED: usize = 1_000;
/// Recipients that a report shows.
const SHOWN: usize = 10;
/// Columns that are no fields.
const KNOWN: [&str; 3] = ["address", "message", "timeZone"];

/// A campaign that recipients are added to.
pub(super) struct Target {
    pub(super) campaign: Campaign,
    /// The channel of its account, if there still is one.
    pub(super) channel: Option<Channel>,
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
    /// The names of the fields that its recipients have.
    fields: BTreeSet<String>,
    /// Recipients with a message of their own.
    messages: usize,
    /// Recipients that are sent to and have no ticket.
    without_ticket: u64,
    /// The keys of a dry run as hashes, with their lines: nothing is written that could be compared.
    seen: HashMap<u64, Option<u64>>,
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
        let (fields, seen) = (BTreeSet::new(), HashMap::new());
        Self {
            campaigns,
            target,
            purpose,
            import,
            report,
            total,
            fields,
            messages: 0,
            without_ticket: 0,
            seen,
        }
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
        let is_without = |row: &&NewRecipient| row.skip.is_none() && row.ticket.is_none();
        self.without_ticket += piece.iter().filter(is_without).count() as u64;
        for row in piece {
            if let Some((_, wrong)) = &row.skip {
                self.mistake(row.line, "", wrong);
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
        let counted = match self.purpose {
            Purpose::DryRun => self.judge(piece).await?,
            Purpose::Import => {
                let (store, id) = (&self.campaigns.shared.store, self.target.campaign.id);
                match store.import_recipients(id, self.import, piece, now()).await? {
                    Some(counted) => counted,
                    // Somebody took it for dead.
                    None => return Ok(Some(Imported::Busy)),
                }
            }
        };
        self.report.added += counted.added;
        self.report.invalid += counted.invalid;
        self.report.suppressed += counted.suppressed;
        self.report.duplicates += counted.duplicates.len() as u64;
        let room = LISTED.saturating_sub(self.report.duplicate_rows.len());
        let listed = counted.duplicates.into_iter().take(room);
        let listed = listed.map(|(line, first_line)| Duplicate { line, first_line });
        self.report.duplicate_rows.extend(listed);
        Ok(None)
    }

    /// Notes what the file says besides its rows. Its mistakes are those of invalid addresses, too.
    pub(super) fn read(&mut self, read: audience::Report) {
        self.know(read.fields.keys().map(String::as_str));
        self.count_messages(read.messages);
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

    /// Notes a row that cannot be used, or an address that is none. Without a field, the mistake is about the whole row.
    pub(super) fn mistake(&mut self, line: Option<u64>, field: &str, wrong: &str) {
        self.report.mistakes_total += 1;
        if self.report.mistakes.len() < LISTED {
            let field = Some(field.to_owned()).filter(|field| !field.is_empty());
            let message = wrong.to_owned();
            self.report.mistakes.push(RowMistake { line, field, message });
        }
    }

    /// Notes the names of fields that recipients have. More names than are kept are hardly names.
    pub(super) fn know<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        for name in names {
            if self.fields.len() < FIELD_NAMES_KEPT && !self.fields.contains(name) {
                self.fields.insert(name.to_owned());
            }
        }
    }

    /// Counts recipients with a message of their own.
    pub(super) fn count_messages(&mut self, messages: usize) {
        self.messages += messages;
    }

    /// Counts what a piece would add, by the rules of an import.
    async fn judge(&mut self, piece: &[NewRecipient]) -> Result<Counted, Error> {
        let (store, id) = (&self.campaigns.shared.store, self.target.campaign.id);
        let mut known = store.known_recipients(id, piece).await?;
        let mut counted = Counted::default();
        let keys: Vec<Option<String>> = piece.iter().map(NewRecipient::key).collect();
        for key in keys.iter().flatten() {
            if let Some(first) = self.seen.get(&hash(key)) {
                // It is in an earlier piece, which an import would have written.
                known.keys.entry(key.clone()).or_insert(*first);
            }
        }
        for (row, key) in piece.iter().zip(&keys) {
            let arrival = known.judge(row);
            if let (Some(key), Arrival::Added | Arrival::Suppressed) = (key, arrival) {
                self.seen.insert(hash(key), row.line);
            }
            counted.count(row.line, arrival);
        }
        Ok(counted)
    }

    /// Notes that the guests of an event, or of one order of it, are added.
    pub(super) async fn note_guests(
        &self,
        event: EventId,
        batch: Option<BatchId>,
    ) -> Result<(), Error> {
        if self.purpose == Purpose::Import {
            let (store, id) = (&self.campaigns.shared.store, self.target.campaign.id);
            // An import that is not open any more is told at its end.
            store.note_guests(id, self.import, event, batch).await?;
        }
        Ok(())
    }

    /// Counts void tickets, which are left out.
    pub(super) fn leave_out(&mut self, tickets: usize) {
        self.report.void += tickets as u64;
    }

    /// Ends the import: its recipients stay.
    pub(super) async fn end(mut self) -> Result<Imported, Error> {
        // Before the end: an import that fails is undone.
        self.report.problems = self.problems().await?;
        if self.purpose == Purpose::Import {
            let (store, id) = (&self.campaigns.shared.store, self.target.campaign.id);
            if !store.end_import(id, self.import, &self.fields).await? {
                return Ok(Imported::Busy);
            }
            let ImportReport { added, invalid, duplicates, suppressed, .. } = self.report;
            tracing::info!(campaign = %id, added, invalid, duplicates, suppressed, "recipients imported");
        }
        Ok(Imported::Done(Box::new(self.report)))
    }

    /// Why the content of the campaign cannot be sent to its recipients, these included.
    async fn problems(&self) -> Result<Vec<String>, Error> {
        let (campaigns, campaign) = (&self.campaigns, &self.target.campaign);
        if self.report.rows == 0 {
            return Ok(Vec::new());
        }
        match (&campaign.content, self.target.channel) {
            (Content::Own, _) if self.messages == 0 => {
                Ok(campaigns.no_content(campaign).await?.into_iter().collect())
            }
            (Content::Template(_), Some(channel)) => {
                let mut known = campaigns.shared.store.recipient_fields(campaign.id).await?;
                let is_known = known.len().max(self.fields.len()) < FIELD_NAMES_KEPT;
                known.extend(self.fields.iter().cloned());
                let mistakes = texts::mistakes(campaign, channel, is_known.then_some(&known));
                let ready = texts::ready(campaign, channel);
                let needed = content::sends_tickets(campaign, channel, &ready);
                let needed = needed.filter(|_| self.without_ticket > 0);
                let missing = needed.map(|what| content::no_tickets(self.without_ticket, what));
                Ok(mistakes.iter().map(texts::sentence).chain(missing).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The report of a file that is refused, of which nothing stays.
    pub(super) fn into_report(self) -> Box<ImportReport> {
        Box::new(ImportReport { added: 0, ..self.report })
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

fn hash(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
