//! An account of a channel, and what an operator sets for all accounts.

use std::fmt;

use stampede_model::Timestamp;
use stampede_model::campaign::{AccountId, Channel};
use stampede_outbound::AllowedAddresses;
use url::Url;

/// An account as it is stored: [`crate::read_settings`] made its settings and credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// Names the account.
    pub id: AccountId,
    /// Its channel.
    pub channel: Channel,
    /// The settings of its channel: JSON without secrets.
    pub settings: String,
    /// The secrets: JSON. They are shown nowhere.
    pub credentials: Vec<u8>,
    /// The version: connections of other versions are closed.
    pub version: Timestamp,
}

impl fmt::Debug for Account {
    /// Leaves the credentials out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("id", &self.id)
            .field("channel", &self.channel)
            .field("settings", &self.settings)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// What an operator sets for all accounts.
#[derive(Debug, Clone)]
pub struct Config {
    /// Addresses that are not public and may be reached all the same.
    pub allowed: AllowedAddresses,
    /// Where Telegram's Bot API is: `https://api.telegram.org`, or a local Bot API server.
    pub telegram_api_url: Url,
    /// Where WhatsApp's Cloud API is: `https://graph.facebook.com`.
    pub whatsapp_api_url: Url,
    /// Where providers reach this server (`PUBLIC_URL`): Twilio is told where to send receipts.
    pub receipts_base: Option<Url>,
}
