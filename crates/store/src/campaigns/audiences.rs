//! Recipients that come into a campaign, piece by piece.

use std::collections::BTreeMap;

use async_trait::async_trait;
use stampede_model::campaign::SkipReason;
use stampede_model::{CampaignId, RecipientId, TicketId, Timestamp};

use crate::Result;

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

    /// Ends an import; `false` if it was not open any more. Synced.
    async fn end_import(&self, campaign: CampaignId, import: RecipientId) -> Result<bool>;

    /// Removes everything that an import has added, in portions, and ends it.
    async fn undo_import(&self, campaign: CampaignId, import: RecipientId) -> Result<()>;

    /// Undoes imports that were not continued since a moment; returns how many.
    async fn undo_dead_imports(&self, dead_before: Timestamp) -> Result<u64>;
}
