//! Requests of providers, by channel: verified first, then read.

use serde::de::DeserializeOwned;
use stampede_model::campaign::Channel;

use crate::account::Account;
use crate::notice::{Incoming, Received, Refused};
use crate::{sms, smtp, telegram, webhook, whatsapp};

/// Verifies a request of the account's provider, and reads what it tells.
pub fn receipts(account: &Account, incoming: &Incoming) -> Result<Received, Refused> {
    let notices = match account.channel {
        Channel::Console => return Err(Refused::NotOffered),
        Channel::Telegram => {
            return telegram::receipts(&settings(account)?, &credentials(account)?, incoming);
        }
        Channel::Webhook => webhook::receipts(&credentials(account)?, incoming),
        Channel::Smtp => smtp::receipts(&credentials(account)?, incoming),
        Channel::Whatsapp => {
            whatsapp::receipts(&settings(account)?, &credentials(account)?, incoming)
        }
        Channel::Sms => sms::receipts(&settings(account)?, &credentials(account)?, incoming),
    };
    notices.map(Received::from)
}

/// The answer to a provider that asks whether it may send receipts (`GET`); `None`: it proves nothing, or does not ask.
pub fn challenge(account: &Account, query: &str) -> Option<String> {
    match account.channel {
        Channel::Whatsapp => whatsapp::challenge(&credentials(account).ok()?, query),
        _ => None,
    }
}

fn settings<T: DeserializeOwned>(account: &Account) -> Result<T, Refused> {
    serde_json::from_str(&account.settings).map_err(|_| Refused::NotOffered)
}

fn credentials<T: DeserializeOwned>(account: &Account) -> Result<T, Refused> {
    serde_json::from_slice(&account.credentials).map_err(|_| Refused::NotOffered)
}
