//! What has become of a campaign.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::Timestamp;
use stampede_model::campaign::{Rate, RecipientState};

use super::Contract;

/// The report of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ContractReport")]
pub struct Report {
    /// The campaign with its counts.
    pub contract: Contract,
    /// Failed, unknown and skipped recipients by code or reason, the most first.
    pub codes: Vec<CodeCount>,
    /// The messages of the whole campaign by time, the oldest first; spans without messages are absent.
    pub minutes: Vec<Minute>,
    /// How long each span of `minutes` is, in milliseconds: a minute, or more if the campaign lasts longer than half a day.
    pub step_ms: u64,
    /// The limit that holds: no window has more messages.
    pub limit: Rate,
    /// The shortest time in which the rest can be sent, in milliseconds; `null`: nobody can say.
    pub left_ms: Option<u64>,
    /// The last test messages, the newest first. They are no recipients, and count nowhere.
    pub tests: Vec<TestAttempt>,
}

/// Recipients with one code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeCount {
    /// Their state.
    pub status: RecipientState,
    /// The code, or the reason for skipping.
    pub code: String,
    /// What was said about one of them.
    pub example: Option<String>,
    /// How many.
    pub recipients: u64,
}

/// The messages of one span of time: a minute, unless the campaign is long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Minute {
    /// The beginning of the span.
    pub at: Timestamp,
    /// Messages that were accepted.
    pub sent: u64,
    /// Attempts that failed. A recipient may have got the message by a later one.
    pub failed_attempts: u64,
    /// Attempts of which nobody knew whether the message arrived.
    pub unknown: u64,
}

/// A test message for which the provider was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestAttempt {
    /// The address.
    pub address: String,
    /// The position of the recipient whose fields filled the message.
    pub position: u64,
    /// When the call began.
    pub at: Timestamp,
    /// How long it took, in milliseconds; `null` while nobody knows how it ended.
    pub took_ms: Option<u64>,
    /// How it ended, in the words of an attempt; `sending`: the provider has not answered, or the server died meanwhile.
    pub outcome: String,
    /// The code of the failure.
    pub code: Option<String>,
    /// What the provider said, up to 512 bytes.
    pub answer: Option<String>,
    /// The provider's id of the message.
    pub provider_id: Option<String>,
}
