//! The senders of all accounts. A sender holds the connections of one account, as long as the account has the same version.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use stampede_model::Timestamp;
use stampede_model::campaign::{AccountId, Channel, Failure, Outcome};
use stampede_outbound::{AllowedAddresses, AtOnce, BeforeWrite, Client, Dialer, Limits};

use crate::account::{Account, Config};
use crate::checked::Checked;
use crate::message::Message;
use crate::secrets::Secrets;
use crate::{console, sms, smtp, telegram, webhook, whatsapp};

/// Most accounts whose senders are kept.
const MOST_SENDERS: usize = 1_000;

/// How long a provider may take.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    /// Connecting to a provider that is spoken to over HTTP.
    pub connect: Duration,
    /// A whole request to such a provider.
    pub request: Duration,
    /// Connecting to a mail server.
    pub mail_connect: Duration,
    /// The answer of a mail server to a command.
    pub mail_command: Duration,
    /// The content of a mail, and the answer to its final dot.
    pub mail_dot: Duration,
}

impl Default for TimeLimits {
    /// Those of RFC 5321, 4.5.3.2 for mail.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            request: Duration::from_secs(30),
            mail_connect: Duration::from_secs(30),
            mail_command: Duration::from_secs(5 * 60),
            mail_dot: Duration::from_secs(10 * 60),
        }
    }
}

/// Sends messages through accounts. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Channels {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    limits: TimeLimits,
    dialer: Arc<Dialer>,
    /// Reaches what owners of accounts choose.
    guarded: Client,
    /// Reaches what the operator chose: Telegram's and WhatsApp's API.
    trusted: Client,
    senders: Mutex<HashMap<AccountId, (Timestamp, Arc<Sender>)>>,
}

/// An account that is ready to send.
struct Sender {
    id: AccountId,
    provider: Provider,
    /// No text of a provider is told with one of these in it.
    secrets: Secrets,
}

enum Provider {
    Console(console::Settings),
    Webhook(webhook::Settings, webhook::Credentials),
    Smtp(Box<smtp::Sender>),
    Telegram(telegram::Settings, telegram::Credentials),
    Whatsapp(Box<whatsapp::Settings>, whatsapp::Credentials, whatsapp::State),
    Sms(Box<sms::Sender>),
}

impl Channels {
    /// Nothing is connected yet.
    pub fn new(config: Config) -> Self {
        Self::with_limits(config, TimeLimits::default())
    }

    /// With other time limits than the usual ones.
    pub fn with_limits(config: Config, limits: TimeLimits) -> Self {
        let (connect, whole) = (limits.connect, limits.request);
        let http = Limits { connect, whole, body: whole / 3, ..Limits::default() };
        let dialer = Arc::new(Dialer::new(config.allowed.clone()));
        let guarded = Client::with_dialer(dialer.clone(), http);
        let everything: AllowedAddresses = "*".parse().unwrap_or_default();
        let trusted = Client::new(everything, http);
        let senders = Mutex::default();
        Self { shared: Arc::new(Shared { config, limits, dialer, guarded, trusted, senders }) }
    }

    /// Sends one message once. What came of it is always known to be one of the outcomes; nothing is tried again.
    pub async fn send(&self, account: &Account, message: &Message) -> Outcome {
        self.send_when(account, message, &mut AtOnce).await
    }

    /// Sends one message once, as soon as the caller allows it, who is asked when the connection to the provider is there: connecting
    /// may take long. A message that is not allowed is not sent.
    pub async fn send_when(
        &self,
        account: &Account,
        message: &Message,
        before: &mut dyn BeforeWrite,
    ) -> Outcome {
        let sender = match self.sender(account) {
            Ok(sender) => sender,
            Err(failure) => return Outcome::Account(failure),
        };
        let outcome = self.send_with(&sender.provider, &sender.id, message, before).await;
        sender.secrets.outcome(outcome)
    }

    async fn send_with(
        &self,
        provider: &Provider,
        id: &AccountId,
        message: &Message,
        before: &mut dyn BeforeWrite,
    ) -> Outcome {
        let Shared { config, guarded, trusted, .. } = &*self.shared;
        match provider {
            Provider::Console(settings) => console::send(settings, id, message, before).await,
            Provider::Webhook(settings, credentials) => {
                webhook::send(settings, credentials, guarded, message, before).await
            }
            Provider::Smtp(sender) => sender.send(message, before).await,
            Provider::Telegram(settings, credentials) => {
                let api = (trusted, &config.telegram_api_url);
                telegram::send(settings, credentials, api, message, before).await
            }
            Provider::Whatsapp(settings, credentials, state) => {
                let api = (trusted, &config.whatsapp_api_url);
                whatsapp::send(settings, credentials, state, api, message, before).await
            }
            Provider::Sms(sender) => {
                let receipts = config.receipts_base.as_ref();
                sender.send(guarded, receipts, id, message, before).await
            }
        }
    }

    /// Whether an account works, without a message: the text tells whose account it is, the failure what is wrong.
    pub async fn check(&self, account: &Account) -> Result<Checked, Failure> {
        let sender = self.sender(account)?;
        let Shared { config, guarded, trusted, .. } = &*self.shared;
        let checked = match &sender.provider {
            Provider::Console(_) => Ok(Checked::verified("messages are written to the log")),
            Provider::Webhook(settings, _) => webhook::check(settings, guarded).await,
            Provider::Smtp(sender) => sender.check().await.map(Checked::verified),
            Provider::Telegram(_, credentials) => {
                let api = (trusted, &config.telegram_api_url);
                telegram::check(credentials, api).await.map(Checked::verified)
            }
            Provider::Whatsapp(settings, credentials, _) => {
                let api = (trusted, &config.whatsapp_api_url);
                whatsapp::check(settings, credentials, api).await.map(Checked::verified)
            }
            Provider::Sms(sender) => sender.check(guarded).await,
        };
        match checked {
            Ok(told) => Ok(Checked { text: sender.secrets.text(&told.text), ..told }),
            Err(failure) => Err(sender.secrets.failure(failure)),
        }
    }

    /// The sender of an account: the one that is kept, or a new one.
    fn sender(&self, account: &Account) -> Result<Arc<Sender>, Failure> {
        let mut senders = self.shared.senders.lock();
        if let Some((version, sender)) = senders.get(&account.id)
            && *version == account.version
        {
            return Ok(sender.clone());
        }
        let provider = self.open(account)?;
        let secrets = Secrets::of(account);
        let sender = Arc::new(Sender { id: account.id.clone(), provider, secrets });
        if senders.len() >= MOST_SENDERS && !senders.contains_key(&account.id) {
            senders.clear();
        }
        senders.insert(account.id.clone(), (account.version, sender.clone()));
        Ok(sender)
    }

    fn open(&self, account: &Account) -> Result<Provider, Failure> {
        Ok(match account.channel {
            Channel::Console => Provider::Console(settings(account)?),
            Channel::Webhook => Provider::Webhook(settings(account)?, credentials(account)?),
            Channel::Smtp => {
                let TimeLimits { mail_connect, mail_command, mail_dot, .. } = self.shared.limits;
                let limits =
                    smtp::Limits { connect: mail_connect, command: mail_command, dot: mail_dot };
                let (settings, credentials) = (settings(account)?, credentials(account)?);
                let dialer = self.shared.dialer.clone();
                let sender = smtp::Sender::new(settings, credentials, dialer, limits);
                Provider::Smtp(Box::new(sender))
            }
            Channel::Telegram => Provider::Telegram(settings(account)?, credentials(account)?),
            Channel::Whatsapp => {
                let state = whatsapp::State::default();
                Provider::Whatsapp(Box::new(settings(account)?), credentials(account)?, state)
            }
            Channel::Sms => {
                let sender = sms::Sender::open(settings(account)?, credentials(account)?)?;
                Provider::Sms(Box::new(sender))
            }
        })
    }
}

fn settings<T: DeserializeOwned>(account: &Account) -> Result<T, Failure> {
    let told =
        |_| Failure::new("settings", "the account's settings cannot be read: set them again");
    serde_json::from_str(&account.settings).map_err(told)
}

fn credentials<T: DeserializeOwned>(account: &Account) -> Result<T, Failure> {
    // The parser's own words could hold a part of a secret.
    let told =
        |_| Failure::new("credentials", "the account's credentials cannot be read: set them again");
    serde_json::from_slice(&account.credentials).map_err(told)
}
