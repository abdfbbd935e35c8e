//! Accounts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stampede_model::Timestamp;
use stampede_model::campaign::{AccountId, Channel, Pacing};

/// An account of a channel, without its credentials: they are never shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "CampaignAccount")]
pub struct Account {
    /// The account's id.
    pub id: AccountId,
    /// The user whose account it is; `null`: everybody may use it.
    pub owner: Option<String>,
    /// Its name, for people.
    pub name: String,
    /// Its channel.
    pub channel: Channel,
    /// The settings of its channel, without secrets.
    pub settings: Value,
    /// How fast it sends. Without a limit it sends 20 messages a minute.
    pub pacing: Pacing,
    /// The country of telephone numbers without a country's code, such as `DE`.
    pub country: Option<String>,
    /// The time zone of its days and quiet hours.
    pub time_zone: Option<String>,
    /// Why it may not send: its provider refused it. A change of its settings or credentials, or a check that succeeds, lifts it.
    pub blocked_reason: Option<String>,
    /// When its first message was sent.
    pub first_sent_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When a person last changed it.
    pub updated_at: Timestamp,
}

/// One page of accounts, sorted by id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CampaignAccountPage")]
pub struct AccountPage {
    /// The accounts.
    pub accounts: Vec<Account>,
    /// The `after` of the next page; `null` on the last.
    pub next: Option<AccountId>,
}

/// Whether an account's provider accepts its credentials. No message was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccountCheck {
    /// The provider accepts them, or is reachable and does not refuse them.
    pub ok: bool,
    /// The provider accepts them. `false` with `ok`: it says nothing about accounts unless a message is sent. A block is lifted only by
    /// a provider that accepts them.
    pub verified: bool,
    /// Who the provider says the account is, or why it refuses it.
    pub message: String,
}
