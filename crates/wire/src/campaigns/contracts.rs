//! Campaigns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::campaign::{AccountId, AutoPause, CampaignState, Channel, Content, Pacing};
use stampede_model::{BatchId, CampaignId, EventId, Timestamp};

use super::ImportReport;

/// Recipients by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContractCounts {
    /// All recipients.
    pub total: u64,
    /// Nothing was sent, or it is to be tried again.
    pub pending: u64,
    /// Their jobs are on the queue.
    pub queued: u64,
    /// Their messages are being sent at this moment.
    pub sending: u64,
    /// The provider accepted the message.
    pub sent: u64,
    /// The provider says that it arrived.
    pub delivered: u64,
    /// The provider says that it was read.
    pub read: u64,
    /// The provider refused it, or no attempt was left.
    pub failed: u64,
    /// The message may have arrived: a receipt or a person settles it.
    pub unknown: u64,
    /// Nothing was to be sent.
    pub skipped: u64,
}

/// A campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contract {
    /// The campaign's id.
    pub id: CampaignId,
    /// The user whose campaign it is.
    pub owner: String,
    /// The account that sends.
    pub account_id: AccountId,
    /// The channel of the account; `null` if the account was deleted.
    pub channel: Option<Channel>,
    /// Its name, for people.
    pub name: String,
    /// Its state.
    pub status: CampaignState,
    /// Why it is in this state, if a rule put it there.
    pub status_reason: Option<String>,
    /// What is sent.
    pub content: Content,
    /// How fast it sends, besides the rules of its account.
    pub pacing: Pacing,
    /// When it pauses by itself.
    pub auto_pause: AutoPause,
    /// Most attempts for one recipient.
    pub max_attempts: u32,
    /// The time zone of its quiet hours, for recipients without one.
    pub time_zone: Option<String>,
    /// The country of telephone numbers without a country's code.
    pub country: Option<String>,
    /// When it starts by itself.
    pub start_at: Option<Timestamp>,
    /// After this moment nothing more is sent.
    pub end_at: Option<Timestamp>,
    /// The event that all guests among the recipients are of; `null`: there are none, or of several events.
    pub event_id: Option<EventId>,
    /// The order that all guests among the recipients are of; `null`: there are none, or of several orders.
    pub batch_id: Option<BatchId>,
    /// Recipients by state.
    pub counts: ContractCounts,
    /// How many percent of the recipients are done: sent, failed, unknown or skipped.
    pub progress: u32,
    /// A list of recipients is being imported: the campaign cannot start.
    pub importing: bool,
    /// When the last message leaves, if all goes well; `null` if nothing is left or nobody can say.
    pub eta_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its version: when a person or a rule last changed it. Counts do not change it.
    pub updated_at: Timestamp,
    /// When it first started.
    pub started_at: Option<Timestamp>,
    /// When it was completed or cancelled.
    pub ended_at: Option<Timestamp>,
}

/// One page of campaigns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContractPage {
    /// The campaigns.
    pub contracts: Vec<Contract>,
    /// The `after` of the next page; `null` on the last.
    pub next: Option<CampaignId>,
}

/// A campaign that was made, with the recipients that came with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatedContract {
    /// Always true; clients of older software read it.
    pub success: bool,
    /// The campaign's id, under the name that clients of older software read.
    pub contract_id: CampaignId,
    /// The campaign.
    #[serde(flatten)]
    pub contract: Contract,
    /// What became of the recipients of the request; absent if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipients: Option<ImportReport>,
}

/// A campaign that was paused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PausedContract {
    /// The campaign.
    #[serde(flatten)]
    pub contract: Contract,
    /// Messages that were being sent when it was paused: only these may still arrive.
    pub in_flight: u64,
}

/// How many recipients a person has settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettledRecipients {
    /// How many.
    pub recipients: u64,
}
