//! The command line of `stampede accounts`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Value;
use stampede_model::campaign::{AccountId, Channel};

use super::ServerArgs;
use super::token::duration;

/// Options of `accounts`.
#[derive(Debug, Args)]
pub(crate) struct Accounts {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print one JSON value instead of a table
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: AccountsCommand,
}

/// Commands of `accounts`.
#[derive(Debug, Subcommand)]
pub(crate) enum AccountsCommand {
    /// List accounts
    List,
    /// Make an account and print its id
    Create(Box<AccountCreate>),
    /// Show one account, without its credentials
    Show(WhichAccount),
    /// Ask the provider whether it accepts an account; no message is sent
    Check(WhichAccount),
    /// Delete an account that no campaign uses
    Delete(WhichAccount),
}

/// Options of `accounts create`.
#[derive(Debug, Args)]
pub(crate) struct AccountCreate {
    /// Its id [default: a new one]
    pub(crate) id: Option<AccountId>,
    /// How messages travel: console, webhook, smtp, telegram, whatsapp or sms
    #[arg(long, value_parser = channel)]
    pub(crate) channel: Channel,
    /// Its name, for people [default: its id]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The settings of its channel, such as '{"url": "https://example.com/send"}'
    #[arg(long, value_name = "JSON", value_parser = json)]
    pub(crate) settings: Option<Value>,
    /// A file with its credentials as a JSON object; `-` reads standard input. A command line is seen by others
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials: Option<PathBuf>,
    /// Most messages in any window …
    #[arg(long, value_name = "N", requires = "per")]
    pub(crate) limit: Option<u32>,
    /// … of this length, such as 1m
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "limit")]
    pub(crate) per: Option<Duration>,
    /// The country of telephone numbers without a country's code, such as DE
    #[arg(long)]
    pub(crate) country: Option<String>,
    /// The time zone of its days and quiet hours, such as Europe/Berlin
    #[arg(long)]
    pub(crate) time_zone: Option<String>,
}

/// One account.
#[derive(Debug, Args)]
pub(crate) struct WhichAccount {
    /// The account's id
    #[arg(value_name = "ACCOUNT")]
    pub(crate) account: AccountId,
}

fn channel(text: &str) -> Result<Channel, String> {
    let words: Vec<&str> = Channel::ALL.into_iter().map(Channel::as_str).collect();
    Channel::from_word(text).ok_or_else(|| format!("must be one of {}", words.join(", ")))
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("must be JSON: {error}"))
}
