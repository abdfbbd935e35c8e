//! The command line of `stampede campaigns`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use stampede_model::campaign::AccountId;
use stampede_model::{CampaignId, RecipientId, Timestamp};

use super::ServerArgs;
use super::token::duration;

/// Options of `campaigns`.
#[derive(Debug, Args)]
pub(crate) struct Campaigns {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print one JSON value instead of a table
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: CampaignsCommand,
}

/// Commands of `campaigns`.
#[derive(Debug, Subcommand)]
pub(crate) enum CampaignsCommand {
    /// List campaigns with their states and counts
    List {
        /// Only those that are draft, scheduled, running, paused, completed or cancelled
        #[arg(long)]
        state: Option<String>,
    },
    /// Make a campaign for the recipients of a file (CSV, NDJSON, JSON) and print its id
    Create(Box<CampaignCreate>),
    /// Show one campaign
    Show(WhichCampaign),
    /// Tell what a campaign would do: who gets a message, who does not and why, when it ends
    Validate(WhichCampaign),
    /// Show the message of one recipient as it would be sent
    Preview {
        #[command(flatten)]
        which: WhichCampaign,
        /// The position of the recipient
        #[arg(default_value_t = 1)]
        position: u64,
    },
    /// Send the message to other addresses, to try it out
    Test {
        #[command(flatten)]
        which: WhichCampaign,
        /// Where the message is sent
        #[arg(required = true)]
        addresses: Vec<String>,
        /// The position of the recipient whose fields fill the message
        #[arg(long)]
        position: Option<u64>,
    },
    /// Start a campaign, or resume one that is paused
    Start {
        #[command(flatten)]
        which: WhichCampaign,
        /// Not before this time, such as 2026-11-21T19:30:00+03:00
        #[arg(long, value_name = "TIME")]
        at: Option<Timestamp>,
        /// Watch it until it ends
        #[arg(long, conflicts_with = "at")]
        watch: bool,
    },
    /// Pause a campaign: only messages in flight may still arrive
    Pause(WhichCampaign),
    /// Resume a paused campaign where it was
    Resume(WhichCampaign),
    /// End a campaign: what was not sent is skipped
    Cancel(WhichCampaign),
    /// Show a bar until a campaign ends or pauses
    Watch(WhichCampaign),
    /// Tell what has become of a campaign
    Report {
        #[command(flatten)]
        which: WhichCampaign,
        /// Write a row for each recipient into this file
        #[arg(long, value_name = "FILE")]
        csv: Option<PathBuf>,
    },
    /// List recipients
    Recipients {
        #[command(flatten)]
        which: WhichCampaign,
        /// Only those in this state, such as failed
        #[arg(long)]
        state: Option<String>,
        /// How many at most
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// List recipients of whom nobody knows whether the message arrived, or settle them
    Unknown {
        #[command(flatten)]
        which: WhichCampaign,
        /// Send again, count as sent, or count as failed [default: list them]
        #[arg(long, value_enum)]
        action: Option<UnknownChoice>,
        /// This recipient; may be repeated
        #[arg(long = "recipient", value_name = "ID", requires = "action")]
        recipients: Vec<RecipientId>,
        /// All of them
        #[arg(long, requires = "action", conflicts_with = "recipients")]
        all: bool,
    },
    /// Try failed recipients again
    RetryFailed {
        #[command(flatten)]
        which: WhichCampaign,
        /// This recipient; may be repeated [default: all]
        #[arg(long = "recipient", value_name = "ID")]
        recipients: Vec<RecipientId>,
    },
    /// Delete a campaign with its recipients; suppressed addresses stay
    Delete(WhichCampaign),
}

/// How recipients are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnknownChoice {
    /// Send the message again
    Resend,
    /// Count it as sent
    Sent,
    /// Count it as failed
    Failed,
}

impl UnknownChoice {
    /// The word on the wire.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Resend => "resend",
            Self::Sent => "sent",
            Self::Failed => "failed",
        }
    }
}

/// Options of `campaigns create`.
#[derive(Debug, Args)]
pub(crate) struct CampaignCreate {
    /// The file with one recipient a row; `-` reads standard input
    pub(crate) file: PathBuf,
    /// The account that sends
    #[arg(long, value_name = "ID", default_value = AccountId::CONSOLE)]
    pub(crate) account: AccountId,
    /// Its name, for people [default: the file's name]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The text in Liquid, such as "Hello {{ name }}" [default: the column `message`]
    #[arg(long)]
    pub(crate) text: Option<String>,
    /// The subject of a mail, in Liquid
    #[arg(long)]
    pub(crate) subject: Option<String>,
    /// A file with the message: a text in Liquid (*.txt, *.liquid), HTML (*.html), or a `content` as JSON (*.json). A mail of HTML
    /// takes its subject from --subject and the text for simple mail programs from --text
    #[arg(long, value_name = "FILE")]
    pub(crate) template: Option<PathBuf>,
    /// Most messages in any window …
    #[arg(long, value_name = "N", requires = "per")]
    pub(crate) limit: Option<u32>,
    /// … of this length, such as 1m
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "limit")]
    pub(crate) per: Option<Duration>,
    /// The country of telephone numbers without a country's code, such as DE
    #[arg(long)]
    pub(crate) country: Option<String>,
    /// The form of the file: csv, ndjson or json [default: by the file's name]
    #[arg(long)]
    pub(crate) format: Option<String>,
    /// The delimiter of a CSV file: comma, semicolon or tab [default: found by looking]
    #[arg(long)]
    pub(crate) delimiter: Option<String>,
    /// The encoding of the file, such as windows-1251 [default: found by looking]
    #[arg(long)]
    pub(crate) charset: Option<String>,
    /// Start it at once and watch it
    #[arg(long)]
    pub(crate) start: bool,
}

/// One campaign.
#[derive(Debug, Args)]
pub(crate) struct WhichCampaign {
    /// The campaign's id
    #[arg(value_name = "CAMPAIGN")]
    pub(crate) campaign: CampaignId,
}
