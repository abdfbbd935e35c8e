//! Messages that left: for limits whose log does not reach back far enough.

use async_trait::async_trait;
use stampede_model::campaign::AccountId;
use stampede_model::{CampaignId, Timestamp};

use crate::Result;

/// Whose messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendScope {
    /// Those of all campaigns of an account.
    Account(AccountId),
    /// Those of a campaign.
    Campaign(CampaignId),
}

/// Which messages that left to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendFilter {
    /// The account or the campaign whose messages count.
    pub scope: SendScope,
    /// Only messages that left after this moment count.
    pub since: Timestamp,
    /// Messages to the same address count as one, the latest.
    pub once_per_address: bool,
}

/// A message that left, or may have left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastSend {
    /// Names it, the same in every call; the address, if messages to the same address count as one.
    pub key: String,
    /// It did not leave before this moment.
    pub earliest: Timestamp,
    /// It did not leave after this moment.
    pub latest: Timestamp,
}

/// Questions about messages that left.
#[async_trait]
pub trait PastSends: Send + Sync {
    /// Messages that left before `now`, the latest first: attempts that count, test messages, recipients in the state `sending`, and
    /// those whose run never said how it ended. Attempts that never reached the provider are left out, and receipts. Attempts of
    /// campaigns whose ledger was removed are gone.
    async fn past_sends(
        &self,
        filter: &SendFilter,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<PastSend>>;
}
