//! Test messages: what people try out before a campaign starts. The ledger does not know of them.

use std::time::Duration;

use async_trait::async_trait;
use stampede_model::{CampaignId, RecipientId, Timestamp};

use crate::Result;

/// Test messages of a campaign that are kept: the last ones.
pub const TESTS_KEPT: u32 = 50;

/// A test message for which the provider was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestAttempt {
    /// Names the message. No recipient has this id.
    pub id: RecipientId,
    /// The campaign.
    pub campaign: CampaignId,
    /// The address, normalised.
    pub address: String,
    /// The position of the recipient whose fields filled the message.
    pub position: u64,
    /// When the call began.
    pub at: Timestamp,
    /// How it ended; `None`: the provider has not answered, or the process died before it wrote the answer.
    pub end: Option<TestEnd>,
}

/// How a test message ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestEnd {
    /// How long the call took.
    pub took: Duration,
    /// The word of the outcome.
    pub outcome: String,
    /// The code of the failure.
    pub code: Option<String>,
    /// The provider's answer, up to 512 bytes, without secrets.
    pub answer: Option<String>,
    /// The provider's id of the message.
    pub provider_id: Option<String>,
}

/// The log of test messages.
#[async_trait]
pub trait TestLog: Send + Sync {
    /// Writes a test message, or writes it again with its end. The campaign's last [`TESTS_KEPT`] are kept. Synced.
    async fn note_test(&self, test: &TestAttempt) -> Result<()>;

    /// The test messages of a campaign, the last first.
    async fn campaign_tests(&self, campaign: CampaignId) -> Result<Vec<TestAttempt>>;
}
