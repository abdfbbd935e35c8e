//! The command line. The flags of settings come from the table in `settings/table.rs`; benchmarks and
//! the example bring their own options.

mod accounts;
mod audit;
mod campaigns;
mod engine;
mod nodes;
mod queues;
mod sticker;
mod template;
mod token;
mod watch;
mod webhooks;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use stampede_bench::Bench;

pub(crate) use self::accounts::{AccountCreate, Accounts, AccountsCommand};
pub(crate) use self::audit::Audit;
pub(crate) use self::campaigns::{CampaignCreate, Campaigns, CampaignsCommand};
pub(crate) use self::engine::{Engine, EngineCommand, EngineRun, Export, FsyncArg, Import, Repair};
pub(crate) use self::nodes::{Nodes, NodesCommand, Patience};
pub(crate) use self::queues::{Queues, QueuesCommand};
pub(crate) use self::sticker::Sticker;
pub(crate) use self::template::{
    LocalTemplate, Template, TemplatePreview, TemplatePublish, TemplateSource,
};
pub(crate) use self::token::{Token, TokenCommand, TokenCreate, WhichKey};
pub(crate) use self::watch::Watch;
pub(crate) use self::webhooks::{WebhookCreate, Webhooks, WebhooksCommand};
use crate::settings::{Given, HEADING, variables_only};

/// Turns orders into finished work, fast: event tickets as PDFs.
#[derive(Debug, Parser)]
#[command(name = "stampede", version, long_about = long_about())]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) settings: Given,
}

impl Cli {
    /// Reads the command line; ends the process with help or an explanation if there is nothing to do.
    pub(crate) fn read() -> Self {
        Self::from_arg_matches(&Self::shaped().get_matches()).unwrap_or_else(|error| error.exit())
    }

    /// The settings of the server are understood everywhere, but shown only where they are looked for:
    /// in `stampede --help` and `stampede serve --help`.
    fn shaped() -> clap::Command {
        let mut command = Self::command();
        command.build();
        let others: Vec<String> = command
            .get_subcommands()
            .map(|below| below.get_name().to_owned())
            .filter(|name| name != "serve")
            .collect();
        let command = others
            .into_iter()
            .fold(command, |command, name| command.mut_subcommand(name, without_settings));
        only_in_long_help(command)
            .after_help("Settings, such as PORT and DATA_DIR: stampede --help")
            .after_long_help("")
    }
}

/// The introduction of `stampede --help`.
fn long_about() -> String {
    format!(
        "\
Turns orders into finished work, fast: event tickets as PDFs.

Without a command it serves: the HTTP API and the worker processes, with everything it needs
kept under one data directory. Nothing else has to be configured to try it out:

  stampede                         start here, then in another terminal:
  stampede demo --tickets 200      order 200 tickets and watch them being made

Settings are environment variables; those below are flags of every command too, and the flag wins.
\"stampede settings\" explains all of them. Only as variables: {}.",
        variables_only().join(", ")
    )
}

/// Commands that find their server and its data by its settings.
const BY_SETTINGS: [&str; 15] = [
    "worker",
    "demo",
    "order",
    "token",
    "audit",
    "verify",
    "ticket-keys",
    "queues",
    "webhooks",
    "campaigns",
    "accounts",
    "sticker",
    "nodes",
    "watch",
    "doctor",
];

fn only_in_long_help(command: clap::Command) -> clap::Command {
    command.mut_args(|arg| {
        let setting = arg.get_help_heading() == Some(HEADING);
        if setting { arg.hide_short_help(true) } else { arg }
    })
}

/// Hides settings of the server, but for those of the log where there is one.
fn without_settings(command: clap::Command) -> clap::Command {
    let command = match BY_SETTINGS.contains(&command.get_name()) {
        true => command.after_help(
            "See stampede --help for the settings (DATA_DIR, DATABASE_URL, PORT, …) by which it finds the server.",
        ),
        false => command,
    };
    let names: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let logs = ["engine", "run"].contains(&command.get_name());
    let command = command.mut_args(|arg| {
        let shown = logs && ["log-level", "log-format"].contains(&arg.get_id().as_str());
        let setting = arg.get_help_heading() == Some(HEADING);
        if setting && !shown { arg.hide(true) } else { arg }
    });
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, without_settings))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the API and run the workers (the default)
    Serve,
    /// Run one worker process; the server starts these by itself
    Worker,
    /// Order tickets from a running server and watch them being made
    Demo(Demo),
    /// Order a ticket for each guest of a file (CSV, NDJSON, JSON), and watch them being made
    Order(OrderFile),
    /// Make, list, rotate and revoke API keys
    Token(Token),
    /// Show what was changed, by whom, from where, and how it ended
    Audit(Audit),
    /// Tell whose a ticket is, and whether it is genuine
    Verify(Verify),
    /// Renew the keys that sign tickets
    #[command(subcommand)]
    TicketKeys(TicketKeys),
    /// Inspect and manage the queues of a running server
    Queues(Queues),
    /// Make, try out and look after webhooks of a running server
    Webhooks(Webhooks),
    /// Make, start, watch and settle campaigns of a running server
    Campaigns(Campaigns),
    /// Make, list and check the accounts that send campaigns
    Accounts(Accounts),
    /// Draw a sticker: a text as WEBP, PNG or TGS
    Sticker(Sticker),
    /// List the nodes of the cluster, and send them commands
    Nodes(Nodes),
    /// Print what happens, as it happens: orders, tickets, scans, queues, nodes
    Watch(Watch),
    /// Check settings, database, Redis, folders and the template, and say what is wrong
    Doctor,
    /// Print the OpenAPI document of the HTTP API
    Openapi,
    /// List all settings with their defaults and meanings
    Settings(SettingsList),
    /// The embedded queue server: run it alone, copy it to or from a Redis, check and repair its journal
    Engine(Engine),
    /// Run an example program, to watch and to copy from
    #[command(subcommand)]
    Example(Example),
    /// Make, check, preview, watch and publish a template in a folder
    #[command(subcommand)]
    Template(Template),
    /// Measure speed, CPU time and memory
    #[command(subcommand)]
    Bench(Bench),
}

/// Options of `settings`.
#[derive(Debug, Args)]
pub(crate) struct SettingsList {
    /// Print docs/settings.md instead of a list
    #[arg(long)]
    pub(crate) markdown: bool,
}

/// Which server a command talks to.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// The server [default: http://HOST:PORT of the settings]
    #[arg(long, global = true)]
    pub(crate) url: Option<String>,
    /// An API key [default: ADMIN_KEY, or a temporary key made in the local database]
    #[arg(long, env = "STAMPEDE_KEY", hide_env_values = true, global = true)]
    pub(crate) key: Option<String>,
}

/// Commands of `example`.
#[derive(Debug, Subcommand)]
pub(crate) enum Example {
    /// An order pipeline over four queues, with an outside world that misbehaves, and a report
    Orders(stampede_example_orders::Options),
}

/// Options of `demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// How many tickets to order
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) tickets: u32,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Also download the PDFs into this folder
    #[arg(long)]
    pub(crate) out: Option<std::path::PathBuf>,
}

/// Options of `order`.
#[derive(Debug, Args)]
pub(crate) struct OrderFile {
    /// The id of the event
    pub(crate) event: String,
    /// The file with one guest a row; `-` reads standard input
    pub(crate) file: std::path::PathBuf,
    /// Tell what would be ordered, and order nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The form of the file: csv, ndjson or json [default: by the file's name]
    #[arg(long)]
    pub(crate) format: Option<String>,
    /// The delimiter of a CSV file: comma, semicolon or tab [default: found by looking]
    #[arg(long)]
    pub(crate) delimiter: Option<String>,
    /// The encoding of the file, such as windows-1251 [default: UTF-8, or what its byte order mark says]
    #[arg(long)]
    pub(crate) charset: Option<String>,
    /// Seat, row or class of guests who have none
    #[arg(long)]
    pub(crate) seat: Option<String>,
    /// Price of guests who have none
    #[arg(long)]
    pub(crate) price: Option<String>,
    /// Order nothing if there are warnings
    #[arg(long)]
    pub(crate) strict: bool,
    /// The same file with the same key is the same order
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Download all tickets into this ZIP when they are made
    #[arg(long, value_name = "FILE")]
    pub(crate) zip: Option<std::path::PathBuf>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Options of `verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The text of a ticket's QR code, or a PDF (its codes are read with pdftoppm and zbarimg)
    #[arg(value_name = "TOKEN or PDF")]
    pub(crate) ticket: String,
    /// Verify without database and network, with what GET /api/events/{id}/keys or GET /api/checkin/bundle
    /// answered (a bundle knows void and replaced tickets); once per event
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Vec<std::path::PathBuf>,
    /// Print one JSON object instead of a report
    #[arg(long)]
    pub(crate) json: bool,
}

/// Commands of `ticket-keys`.
#[derive(Debug, Subcommand)]
pub(crate) enum TicketKeys {
    /// Give every event a new key, when the secret that encrypts the keys is lost, known to others or
    /// to be replaced; tickets that were handed out stay valid
    Renew,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn settings(arguments: &[&str]) -> Settings {
        let matches = Cli::shaped().get_matches_from(arguments);
        let cli = Cli::from_arg_matches(&matches).unwrap();
        Settings::resolve(&cli.settings, &|_| None).unwrap()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::shaped().debug_assert();
    }

    #[test]
    fn flags_of_settings_are_understood_before_and_after_a_command() {
        for arguments in [
            &["stampede", "--port", "4000"][..],
            &["stampede", "--port", "4000", "serve"],
            &["stampede", "serve", "--port", "4000"],
            &["stampede", "queues", "status", "--port=4000"],
        ] {
            assert_eq!(settings(arguments).port, 4000, "{arguments:?}");
        }
        assert_eq!(settings(&["stampede", "--max-job-bytes", "4096"]).max_job_bytes, 4096);
    }

    #[test]
    fn the_engine_has_a_port_of_its_own() {
        let arguments = ["stampede", "engine", "--port", "7000"];
        assert!(!settings(&arguments).port_is_given);
    }

    #[test]
    fn the_help_names_every_setting() {
        let help = Cli::shaped().render_long_help().to_string();
        for name in ["MAX_JOB_BYTES", "--max-job-bytes", "SCALE_UP_PRESSURE", "TICKET_KEY_SECRET"] {
            assert!(help.contains(name), "{name} is not in {help}");
        }
    }
}
