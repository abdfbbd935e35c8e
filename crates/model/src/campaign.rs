//! Campaigns: one message to each of many recipients, through one account of one channel.
//!
//! ```text
//!   Account ◀── Campaign ◀── Recipient (the ledger) ◀── attempts        Suppression: an address that gets nothing any more
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `states.rs` | the states of campaigns and recipients, and every change between them: pure |
//! | `pacing.rs` | limits, spacing, caps, warm-up and quiet hours as people set them |
//! | `content.rs` | the message: the recipients' own texts, or a template |
//! | `address_key.rs` | the form in which addresses are compared |
//! | `outcome.rs` | the closed set of results of one attempt |
//!
//! The API and older software call a campaign a contract: its routes are `/api/contracts`.

mod address_key;
mod content;
mod outcome;
mod pacing;
mod states;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use self::address_key::address_key;
pub use self::content::{Content, Template};
pub use self::outcome::{Failure, Outcome, SuppressionReason};
pub use self::pacing::{AutoPause, Day, Pacing, QuietHours, Rate, Rest, Spacing, WarmUp};
pub use self::states::{
    CampaignChange, CampaignState, RecipientChange, RecipientState, SkipReason,
    next_campaign_state, next_recipient_state,
};

/// How messages travel.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Channel {
    /// A line in the log for each message: to try everything out.
    Console,
    /// An HTTP endpoint of the marketer's own, after Standard Webhooks.
    Webhook,
    /// Mail.
    Smtp,
    /// A Telegram bot.
    Telegram,
    /// WhatsApp's Cloud API.
    Whatsapp,
    /// A provider of SMS that is spoken to over HTTP.
    Sms,
}

impl Channel {
    /// All channels.
    pub const ALL: [Self; 6] =
        [Self::Console, Self::Webhook, Self::Smtp, Self::Telegram, Self::Whatsapp, Self::Sms];

    /// The word on the wire and in the database. It never changes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Console => "console",
            Self::Webhook => "webhook",
            Self::Smtp => "smtp",
            Self::Telegram => "telegram",
            Self::Whatsapp => "whatsapp",
            Self::Sms => "sms",
        }
    }

    /// Reads [`Self::as_str`] back.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.as_str() == word)
    }

    /// The kind of address that the channel needs.
    pub fn address_kind(self) -> AddressKind {
        match self {
            Self::Console | Self::Webhook => AddressKind::Any,
            Self::Smtp => AddressKind::Mail,
            Self::Telegram => AddressKind::Chat,
            Self::Whatsapp | Self::Sms => AddressKind::Phone,
        }
    }
}

/// What an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    /// A telephone number, kept as E.164 with its plus.
    Phone,
    /// An address for mail; its domain is kept in lower case.
    Mail,
    /// A chat of Telegram: a number, or the name of a channel with its `@`.
    Chat,
    /// A telephone number or an address for mail if it looks like one, else any text without control characters.
    Any,
}

/// Names an account: chosen by its owner, or made like other ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AccountId(String);

impl AccountId {
    /// The account that exists from the start. Its channel is the console, and everybody may use it.
    pub const CONSOLE: &'static str = "console";
    /// Most bytes of an id.
    pub const LONGEST: usize = 64;

    /// The account that exists from the start.
    pub fn console() -> Self {
        Self(Self::CONSOLE.to_owned())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether everybody may use this account.
    pub fn is_console(&self) -> bool {
        self.0 == Self::CONSOLE
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The text is no id of an account.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 64 letters (a to z, A to Z), digits, '-', '_' or '.'")]
pub struct NotAnAccountId;

impl FromStr for AccountId {
    type Err = NotAnAccountId;

    fn from_str(text: &str) -> Result<Self, NotAnAccountId> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        // "." and ".." are no names in a path.
        let is_id = (1..=Self::LONGEST).contains(&text.len())
            && text.bytes().all(is_allowed)
            && text.bytes().any(|byte| byte != b'.');
        if is_id { Ok(Self(text.to_owned())) } else { Err(NotAnAccountId) }
    }
}

impl TryFrom<String> for AccountId {
    type Error = NotAnAccountId;

    fn try_from(text: String) -> Result<Self, NotAnAccountId> {
        text.parse()
    }
}

impl From<AccountId> for String {
    fn from(id: AccountId) -> Self {
        id.0
    }
}

impl JsonSchema for AccountId {
    fn schema_name() -> Cow<'static, str> {
        "AccountId".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_id_is_safe_in_paths_and_keys() {
        for good in ["console", "your_account_id", "a", "A.b-c_9"] {
            assert_eq!(good.parse::<AccountId>().unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", "a/b", "a b", "ä", "a{b}", &"x".repeat(65)] {
            assert!(bad.parse::<AccountId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn every_channel_is_read_back_from_its_word() {
        for channel in Channel::ALL {
            assert_eq!(Channel::from_word(channel.as_str()), Some(channel));
            assert_eq!(serde_json::to_value(channel).unwrap(), channel.as_str());
        }
    }
}
