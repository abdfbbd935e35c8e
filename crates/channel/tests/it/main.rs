//! Channels against providers that misbehave.
#![allow(clippy::unwrap_used)]

mod eyes;
mod http;
mod mail;
mod secrets;
mod tables;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use stampede_channel::{Account, Channels, Config, Message, TimeLimits, read_settings};
use stampede_model::campaign::{Channel, Outcome};
use stampede_model::{CampaignId, RecipientId, Timestamp};

/// Channels that reach this machine, and are patient for a short time only.
fn channels(telegram: &str, whatsapp: &str) -> Channels {
    let config = Config {
        allowed: "127.0.0.1".parse().unwrap(),
        telegram_api_url: telegram.parse().unwrap(),
        whatsapp_api_url: whatsapp.parse().unwrap(),
        receipts_base: Some("https://me.example".parse().unwrap()),
    };
    let limits = TimeLimits {
        connect: Duration::from_secs(5),
        request: Duration::from_secs(3),
        mail_connect: Duration::from_secs(5),
        mail_command: Duration::from_secs(3),
        mail_dot: Duration::from_secs(3),
    };
    Channels::with_limits(config, limits)
}

fn account(channel: Channel, settings: &Value, credentials: &Value) -> Account {
    let read = read_settings(channel, settings, credentials);
    let (settings, credentials) = read.unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let id = format!("my-{}", channel.as_str()).parse().unwrap();
    Account { id, channel, settings, credentials, version: Timestamp::UNIX_EPOCH }
}

fn message(address: &str) -> Message {
    Message {
        recipient: RecipientId::generate(),
        campaign: CampaignId::generate(),
        address: address.to_owned(),
        fields: BTreeMap::new(),
        subject: None,
        text: "Hello".to_owned(),
        html: None,
        whatsapp: None,
        attachments: Vec::new(),
        unsubscribe_url: None,
        attempt: 1,
    }
}

/// The word of an outcome, with what belongs to it.
fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::SlowDown(pause, _) => format!("slow_down {}", pause.as_secs()),
        Outcome::WaitForRecipient(pause, _) => format!("wait {}", pause.as_secs()),
        Outcome::Never(_, Some(reason)) => format!("never {}", reason.as_str()),
        Outcome::Bounced(_, Some(reason)) => format!("bounced {}", reason.as_str()),
        outcome => outcome.as_str().to_owned(),
    }
}
