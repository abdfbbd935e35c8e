//! What is asked about many recipients of a campaign at once: for reports, and before a campaign starts.

use async_trait::async_trait;
use stampede_model::campaign::{AccountId, CampaignState, RecipientState};
use stampede_model::{CampaignId, Timestamp};

use crate::Result;

/// Codes of which each has a count of its own in a report: those of most recipients.
pub const CODES_REPORTED: u32 = 1_000;
/// The code of the counts of all other codes, one count a state.
pub const OTHER_CODES: &str = "(other codes)";

/// Recipients with one code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeCount {
    /// Their state.
    pub state: RecipientState,
    /// The code, or the reason for skipping.
    pub code: String,
    /// What was said about one of them.
    pub example: Option<String>,
    /// How many.
    pub recipients: u64,
}

/// The messages of one minute, or of another span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CampaignMinute {
    /// The beginning of the span.
    pub at: Timestamp,
    /// Messages that were accepted.
    pub sent: u64,
    /// Attempts that failed; the message may have been sent by a later one.
    pub failed_attempts: u64,
    /// Attempts of which nobody knew whether the message arrived.
    pub unknown: u64,
}

/// An account with messages that wait for a slot, or are being sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountAtWork {
    /// The account.
    pub account: AccountId,
    /// Its recipients that have a job.
    pub queued: u64,
    /// Its recipients that are being sent to.
    pub sending: u64,
}

/// The last attempts of a campaign that ended with a recipient's turn, for its speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastAttempts {
    /// How many.
    pub count: u64,
    /// When the first of them began.
    pub first: Timestamp,
    /// When the last of them ended.
    pub last: Timestamp,
}

/// The campaigns in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CampaignTotal {
    /// Their state.
    pub state: CampaignState,
    /// How many.
    pub campaigns: u64,
    /// Their recipients of whom nobody knows whether the message arrived.
    pub unknown: u64,
}

/// Questions about many recipients at once. An open recipient is pending, queued or being sent to.
#[async_trait]
pub trait Reports: Send + Sync {
    /// Failed, unknown and skipped recipients by code or reason, the most first: [`CODES_REPORTED`] codes, then the others together
    /// ([`OTHER_CODES`]).
    async fn recipients_by_code(&self, campaign: CampaignId) -> Result<Vec<CodeCount>>;

    /// When the first and the last attempt of a campaign began; `None`: there was none. Attempts that do not count are left out.
    async fn campaign_span(&self, campaign: CampaignId) -> Result<Option<(Timestamp, Timestamp)>>;

    /// The messages of each span of so many milliseconds; spans without one are left out. So are attempts that do not count, and
    /// receipts.
    async fn campaign_minutes(
        &self,
        campaign: CampaignId,
        step_ms: u64,
    ) -> Result<Vec<CampaignMinute>>;

    /// The last attempts of a campaign that began since a moment, at most `most` of them: sent, failed for good, or unknown. `None`:
    /// there is none.
    async fn last_attempts(
        &self,
        campaign: CampaignId,
        since: Timestamp,
        most: u32,
    ) -> Result<Option<LastAttempts>>;

    /// The accounts whose running campaigns have queued recipients, or recipients that are being sent to. Reads no recipient.
    async fn accounts_at_work(&self) -> Result<Vec<AccountAtWork>>;

    /// Open recipients without a ticket.
    async fn without_ticket(&self, campaign: CampaignId) -> Result<u64>;

    /// Recipients that are not skipped and in which a field is empty or missing: (field, how many, positions of the first ten).
    /// Fields that no recipient lacks are left out.
    async fn empty_fields(
        &self,
        campaign: CampaignId,
        fields: &[String],
    ) -> Result<Vec<(String, u64, Vec<u64>)>>;

    /// Whether an open recipient has a message of its own.
    async fn has_messages(&self, campaign: CampaignId) -> Result<bool>;

    /// Open recipients without a message of their own: how many, and the positions of the first ten.
    async fn without_message(&self, campaign: CampaignId) -> Result<(u64, Vec<u64>)>;

    /// The campaigns of all owners by state; states without one are left out. Deleted campaigns do not count.
    async fn campaign_totals(&self) -> Result<Vec<CampaignTotal>>;

    /// How many open recipients have an address that is suppressed now: they are skipped when they are claimed.
    async fn suppressed_recipients(&self, campaign: CampaignId) -> Result<u64>;
}
