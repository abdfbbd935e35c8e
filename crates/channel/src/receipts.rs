//! Requests of providers, by channel: verified first, then read.

use serde::de::DeserializeOwned;
use stampede_model::campaign::Channel;

use crate::account::Account;
use crate::notice::{Incoming, Notice, Refused};
use crate::{sms, smtp, telegram, webhook, whatsapp};

/// Verifies a request of the account's provider, and reads what it tells.
pub fn receipts(account: &Account, incoming: &Incoming) -> Result<Vec<Notice>, Refused> {
    match account.channel {
        Channel::Console => Err(Refused::NotOffered),
        Channel::Webhook => webhook::receipts(&credentials(account)?, incoming),
        Channel::Smtp => smtp::receipts(&credentials(account)?, incoming),
        Channel::Telegram => {
            telegram::receipts(&settings(account)?, &credentials(account)?, incoming)
        }
        Channel::Whatsapp => {
            whatsapp::receipts(&settings(account)?, &credentials(account)?, incoming)
        }
        Channel::Sms => sms::receipts(&settings(account)?, &credentials(account)?, incoming),
    }
}

/// The answer to a provider that asks whether it may send receipts (`GET`); `None`: it proves nothing, or does not ask.
pub fn challenge(account: &Account, query: &str) -> Option<String> {
    match account.channel {
        Channel::Whatsapp => whatsapp::challenge(&credentials(account).ok()?, query),
        _ => None,
    }
}

/// The number of a request, if the provider numbers them: a number that was worked on is not worked on again. `None`: repeating
/// the request changes nothing.
pub fn update_id(account: &Account, incoming: &Incoming) -> Option<i64> {
    match account.channel {
        Channel::Telegram => telegram::update_id(&credentials(account).ok()?, incoming),
        _ => None,
    }
}

fn settings<T: DeserializeOwned>(account: &Account) -> Result<T, Refused> {
    serde_json::from_str(&account.settings).map_err(|_| Refused::NotOffered)
}

fn credentials<T: DeserializeOwned>(account: &Account) -> Result<T, Refused> {
    serde_json::from_slice(&account.credentials).map_err(|_| Refused::NotOffered)
}
