//! What is asked about many recipients of a campaign at once: for reports, and before a campaign starts.

use async_trait::async_trait;
use stampede_model::campaign::{CampaignState, RecipientState};
use stampede_model::{CampaignId, Timestamp};

use crate::Result;

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
    /// Attempts that did not succeed.
    pub failed: u64,
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
    /// Failed, unknown and skipped recipients by code or reason, the most first.
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
