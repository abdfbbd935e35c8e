//! Recipients that come into a campaign, piece by piece.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use async_trait::async_trait;
use stampede_model::campaign::{SkipReason, address_key};
use stampede_model::{BatchId, CampaignId, EventId, RecipientId, TicketId, Timestamp};

use crate::Result;

/// Names of fields of a campaign from which on nobody can say that a name is unknown: more are not surely kept.
pub const FIELD_NAMES_KEPT: usize = 1_000;

/// A recipient to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecipient {
    /// Names the recipient.
    pub id: RecipientId,
    /// The address, normalised; as it was given if it is none.
    pub address: String,
    /// The recipient's fields.
    pub fields: BTreeMap<String, String>,
    /// The recipient's own message.
    pub message: Option<String>,
    /// The recipient's own time zone.
    pub time_zone: Option<String>,
    /// The ticket that the message is about. Two tickets of one address are two recipients.
    pub ticket: Option<TicketId>,
    /// The line of the file that it came from.
    pub line: Option<u64>,
    /// Why nothing is sent, if that is known already; `Invalid` only.
    pub skip: Option<(SkipReason, String)>,
}

impl NewRecipient {
    /// What no two recipients of a campaign share; `None`: nothing is sent to this one.
    pub fn key(&self) -> Option<String> {
        if self.skip.is_some() {
            return None;
        }
        Some(key_of(&self.address, self.ticket))
    }
}

/// What no two recipients of a campaign share: the address, and the ticket if there is one.
pub(crate) fn key_of(address: &str, ticket: Option<TicketId>) -> String {
    match ticket {
        // A line break is in no address.
        Some(ticket) => format!("{}\n{ticket}", address_key(address)),
        None => address_key(address).into_owned(),
    }
}

/// What becomes of a recipient that is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It will be sent to.
    Added,
    /// It is skipped: its address is suppressed for the account or everywhere.
    Suppressed,
    /// It is skipped: its address is invalid.
    Invalid,
    /// It is skipped: an earlier recipient, from this line, has its key.
    Duplicate(Option<u64>),
}

/// What decides about recipients that are added. An import and a dry run decide by the same rules.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The keys ([`NewRecipient::key`]) of earlier recipients, with their lines.
    pub keys: HashMap<String, Option<u64>>,
    /// The addresses that are suppressed, as they are compared ([`address_key`]).
    pub suppressed: HashSet<String>,
}

impl Known {
    /// Decides about the next recipient, which is an earlier one for those that follow.
    pub fn judge(&mut self, recipient: &NewRecipient) -> Arrival {
        let Some(key) = recipient.key() else { return Arrival::Invalid };
        if let Some(first) = self.keys.get(&key) {
            return Arrival::Duplicate(*first);
        }
        self.keys.insert(key, recipient.line);
        match self.suppressed.contains(address_key(&recipient.address).as_ref()) {
            true => Arrival::Suppressed,
            false => Arrival::Added,
        }
    }
}

/// An import that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Import {
    /// It may add recipients.
    Begun,
    /// Another import of the campaign has not ended.
    Busy,
    /// The campaign is neither draft nor paused nor scheduled.
    WrongState,
    /// There is no such campaign.
    NotFound,
}

/// The result of a piece of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// Recipients that were added and will be sent to.
    pub added: u64,
    /// Recipients that were added as skipped because their address is invalid.
    pub invalid: u64,
    /// Recipients that were added as skipped because an earlier one has the same address: their line, and that of the first.
    pub duplicates: Vec<(Option<u64>, Option<u64>)>,
    /// Recipients that were skipped because their address is suppressed for the account or everywhere.
    pub suppressed: u64,
}

impl Imported {
    /// Counts a recipient.
    pub fn count(&mut self, line: Option<u64>, arrival: Arrival) {
        match arrival {
            Arrival::Added => self.added += 1,
            Arrival::Suppressed => self.suppressed += 1,
            Arrival::Invalid => self.invalid += 1,
            Arrival::Duplicate(first) => self.duplicates.push((line, first)),
        }
    }
}

/// Imports of recipients. While one is open, the campaign cannot start; an import whose process died is undone when the next
/// one begins, or by [`Audiences::undo_dead_imports`]. Pieces are not synced; the end of an import is.
#[async_trait]
pub trait Audiences: Send + Sync {
    /// Begins an import of recipients. An import that was not continued since `dead_before` counts as dead.
    async fn begin_import(
        &self,
        campaign: CampaignId,
        import: RecipientId,
        now: Timestamp,
        dead_before: Timestamp,
    ) -> Result<Import>;

    /// Adds a piece of recipients, in their order; `None` if the import is not open any more. Positions go on where the
    /// campaign's last recipient ends. Suppressed addresses are kept as skipped.
    async fn import_recipients(
        &self,
        campaign: CampaignId,
        import: RecipientId,
        recipients: &[NewRecipient],
        now: Timestamp,
    ) -> Result<Option<Imported>>;

    /// What decides about recipients if they were added now. Nothing is written.
    async fn known_recipients(
        &self,
        campaign: CampaignId,
        recipients: &[NewRecipient],
    ) -> Result<Known>;

    /// Notes that an open import adds the guests of an event, or of one order of it. A campaign has the event, and the order, that
    /// all of its guests are of. `false`: the import is not open any more. Not synced: the end of the import is.
    async fn note_guests(
        &self,
        campaign: CampaignId,
        import: RecipientId,
        event: EventId,
        batch: Option<BatchId>,
    ) -> Result<bool>;

    /// Ends an import, and notes the names of the fields that its recipients came with; `false` if it was not open any more.
    /// Synced.
    async fn end_import(
        &self,
        campaign: CampaignId,
        import: RecipientId,
        fields: &BTreeSet<String>,
    ) -> Result<bool>;

    /// The names of the fields that the recipients of a campaign came with, of all imports that ended. With [`FIELD_NAMES_KEPT`] or
    /// more, some are missing.
    async fn recipient_fields(&self, campaign: CampaignId) -> Result<BTreeSet<String>>;

    /// Removes everything that an import has added, in portions, and ends it.
    async fn undo_import(&self, campaign: CampaignId, import: RecipientId) -> Result<()>;

    /// Undoes imports that were not continued since a moment; returns how many.
    async fn undo_dead_imports(&self, dead_before: Timestamp) -> Result<u64>;
}
