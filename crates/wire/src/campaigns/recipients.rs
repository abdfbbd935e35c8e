//! Recipients and suppressed addresses.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::campaign::{AccountId, RecipientState, SkipReason, SuppressionReason};
use stampede_model::{CampaignId, RecipientId, TicketId, Timestamp};

/// A recipient of a campaign: one row of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recipient {
    /// The recipient's id, which providers get as the key of the message.
    pub id: RecipientId,
    /// The campaign.
    pub contract_id: CampaignId,
    /// The place among the recipients, from 1: the cursor of the list.
    pub position: u64,
    /// The address, normalised.
    pub address: String,
    /// The fields that fill a template.
    pub fields: BTreeMap<String, String>,
    /// The recipient's own message.
    pub message: Option<String>,
    /// The recipient's own time zone.
    pub time_zone: Option<String>,
    /// The ticket that the message is about.
    pub ticket_id: Option<TicketId>,
    /// The line of the file that it came from.
    pub line: Option<u64>,
    /// The state.
    pub status: RecipientState,
    /// Why it is skipped.
    pub skip_reason: Option<SkipReason>,
    /// The code of the last failure: the provider's, or a word of ours.
    pub code: Option<String>,
    /// What was said about the last failure, or why it is skipped.
    pub detail: Option<String>,
    /// Attempts that count.
    pub attempts: u32,
    /// It is not tried again before this moment.
    pub next_at: Option<Timestamp>,
    /// The provider's id of the message.
    pub provider_id: Option<String>,
    /// When its state last changed.
    pub updated_at: Timestamp,
    /// When the provider accepted it.
    pub sent_at: Option<Timestamp>,
    /// When it arrived.
    pub delivered_at: Option<Timestamp>,
    /// When it was read.
    pub read_at: Option<Timestamp>,
}

/// One page of recipients, by position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecipientPage {
    /// The recipients.
    pub recipients: Vec<Recipient>,
    /// The `after` of the next page; `null` on the last.
    pub next: Option<u64>,
}

/// A recipient with all attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecipientLog {
    /// The recipient.
    #[serde(flatten)]
    pub recipient: Recipient,
    /// The attempts, the first first.
    pub log: Vec<Attempt>,
}

/// One attempt to send a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "MessageAttempt")]
pub struct Attempt {
    /// The number of the attempt, from 1.
    pub number: u32,
    /// When it began.
    pub at: Timestamp,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// How it ended: `sent`, `not_sent`, `unknown`, `slow_down`, `wait_for_recipient`, `temporary`, `never`, `refused`, `content`, `account`.
    pub outcome: String,
    /// The code of the failure.
    pub code: Option<String>,
    /// What the provider said, up to 512 bytes.
    pub answer: Option<String>,
}

/// An address that gets nothing any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Suppression {
    /// The user whose campaigns it holds for; `null`: all who use the account, because nobody owns it.
    pub owner: Option<String>,
    /// The account that it holds for; `null`: all accounts of the owner.
    pub account_id: Option<AccountId>,
    /// The address, normalised.
    pub address: String,
    /// Why.
    pub reason: SuppressionReason,
    /// Since when.
    pub since: Timestamp,
    /// By whom: a user, or what told it.
    pub by: String,
}

/// One page of suppressed addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuppressionPage {
    /// The addresses.
    pub suppressions: Vec<Suppression>,
    /// The `after` of the next page; `null` on the last.
    pub next: Option<String>,
}

/// How many suppressions were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SuppressionsAdded {
    /// How many are new.
    pub added: u64,
}

/// The content of an unsubscribe link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unsubscription {
    /// The address.
    pub address: String,
    /// The name of the account that sends to it.
    pub sender: String,
    /// It gets nothing any more already.
    pub is_done: bool,
}
