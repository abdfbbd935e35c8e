//! What has become of a campaign.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::campaign::{CampaignState, Rate, RecipientState};
use stampede_model::{CampaignId, Timestamp};

use super::{Contract, ContractCounts};

/// The report of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ContractReport")]
pub struct Report {
    /// The campaign with its counts.
    pub contract: Contract,
    /// Failed, unknown and skipped recipients by code or reason, the most first.
    pub codes: Vec<CodeCount>,
    /// The messages of the last minutes, the oldest first; minutes without messages are absent.
    pub minutes: Vec<Minute>,
    /// The limit that holds: no window has more messages.
    pub limit: Rate,
    /// The shortest time in which the rest can be sent, in milliseconds; `null`: nobody can say.
    pub left_ms: Option<u64>,
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

/// The messages of one minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Minute {
    /// The beginning of the minute.
    pub at: Timestamp,
    /// Messages that were accepted.
    pub sent: u64,
    /// Attempts that did not succeed.
    pub failed: u64,
}

/// The part of a campaign that changes while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContractLive {
    /// The campaign's id.
    pub id: CampaignId,
    /// Its state.
    pub status: CampaignState,
    /// Why it is in this state, if a rule put it there.
    pub status_reason: Option<String>,
    /// Recipients by state.
    pub counts: ContractCounts,
    /// How many percent of the recipients are done.
    pub progress: u32,
    /// When the last message leaves, if all goes well.
    pub eta_at: Option<Timestamp>,
}
