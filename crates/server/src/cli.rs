//! What a person types.

use clap::{Args, Parser, Subcommand};
use stampede_model::Role;

/// Turns orders into finished work, fast: event tickets as PDFs.
///
/// Without a command it serves: the HTTP API and the worker processes, with everything it needs
/// kept under one data directory. Nothing else has to be configured to try it out:
///
///   stampede                         start here, then in another terminal:
///   stampede demo --tickets 200      order 200 tickets and watch them being made
///
/// Settings are environment variables; those below are flags too, and the flag wins. Only as variables:
/// REDIS_HOST, REDIS_PORT, REDIS_PASSWORD, REDIS_DB, ADMIN_KEY, STORAGE_TYPE, NFS_PATH.
#[derive(Debug, Parser)]
#[command(name = "stampede", version, verbatim_doc_comment)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) settings: SettingArgs,
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
    /// Make and revoke API keys
    #[command(subcommand)]
    Token(Token),
    /// Check settings, database, Redis, folders and the template, and say what is wrong
    Doctor,
    /// Measure how fast it is
    #[command(subcommand)]
    Bench(Bench),
}

/// Options of `demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// How many tickets to order
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) tickets: u32,
    /// The server [default: http://HOST:PORT of the settings]
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// An API key [default: ADMIN_KEY, or a temporary key made in the local database]
    #[arg(long, env = "STAMPEDE_KEY", hide_env_values = true)]
    pub(crate) key: Option<String>,
    /// Also download the PDFs into this folder
    #[arg(long)]
    pub(crate) out: Option<std::path::PathBuf>,
}

/// Commands of `token`.
#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Make an API key and print it; it is stored only as a hash and cannot be shown again
    Create {
        /// What it may do: admin, organiser or viewer
        #[arg(long)]
        role: Role,
        /// Whose records it works on; keys of one user share events and tickets [default: a new user]
        #[arg(long)]
        user: Option<String>,
    },
    /// Make an API key worthless, from the next request on
    Revoke {
        /// The key
        key: String,
    },
}

/// Commands of `bench`.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// From order to ready PDFs, through a server that it starts in a temporary folder
    Tickets(BenchTickets),
}

/// Options of `bench tickets`.
#[derive(Debug, Args)]
pub(crate) struct BenchTickets {
    /// How many tickets to order
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) tickets: u32,
    /// Worker processes [default: one per core]
    #[arg(long)]
    pub(crate) workers: Option<u32>,
    /// Jobs a worker runs at a time [default: as the server's]
    #[arg(long)]
    pub(crate) slots: Option<u32>,
    /// Print one JSON object instead of a report
    #[arg(long)]
    pub(crate) json: bool,
}

/// The settings as given, unchecked: `settings.rs` checks them all and reports all mistakes at once.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct SettingArgs {
    /// What this node does: api, worker, both or auto (both, for now) [default: both]
    #[arg(long, env = "WORKER_MODE", global = true, hide_env_values = true, value_name = "MODE")]
    pub(crate) worker_mode: Option<String>,
    /// Worker processes [default: one per core]
    #[arg(long, env = "WORKER_COUNT", global = true, hide_env_values = true, value_name = "N")]
    pub(crate) worker_count: Option<String>,
    /// Jobs a worker runs at a time [default: 16]
    #[arg(long, env = "JOB_CONCURRENCY", global = true, hide_env_values = true, value_name = "N")]
    pub(crate) job_concurrency: Option<String>,
    /// Name of this node [default: host name and process id]
    #[arg(long, env = "SERVER_NAME", global = true, hide_env_values = true, value_name = "NAME")]
    pub(crate) server_name: Option<String>,
    /// Address to listen on [default: 127.0.0.1]
    #[arg(long, env = "HOST", global = true, hide_env_values = true, value_name = "ADDRESS")]
    pub(crate) host: Option<String>,
    /// Port to listen on [default: 3000]
    #[arg(long, env = "PORT", global = true, hide_env_values = true, value_name = "PORT")]
    pub(crate) port: Option<String>,
    /// Redis or Valkey; also REDIS_HOST, REDIS_PORT, REDIS_PASSWORD, REDIS_DB [default: a private redis-server in DATA_DIR]
    #[arg(long, env = "REDIS_URL", global = true, hide_env_values = true, value_name = "URL")]
    pub(crate) redis_url: Option<String>,
    /// Database: sqlite:PATH or postgres://… [default: SQLite in DATA_DIR]
    #[arg(long, env = "DATABASE_URL", global = true, hide_env_values = true, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Where everything is kept [default: ./data]
    #[arg(long, env = "DATA_DIR", global = true, hide_env_values = true, value_name = "FOLDER")]
    pub(crate) data_dir: Option<String>,
    /// Where PDFs are kept [default: DATA_DIR/public]
    #[arg(long, env = "PUBLIC_PATH", global = true, hide_env_values = true, value_name = "FOLDER")]
    pub(crate) public_path: Option<String>,
    /// Sync every PDF to disk before it counts as made: true or false [default: false]
    #[arg(long, env = "FILE_SYNC", global = true, hide_env_values = true, value_name = "BOOL")]
    pub(crate) file_sync: Option<String>,
    /// A Typst file to use instead of the built-in ticket
    #[arg(
        long,
        env = "TICKET_TEMPLATE",
        global = true,
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) ticket_template: Option<String>,
    /// Most tickets in one order [default: 100000]
    #[arg(long, env = "MAX_QUANTITY", global = true, hide_env_values = true, value_name = "N")]
    pub(crate) max_quantity: Option<String>,
    /// Largest request body [default: 16777216]
    #[arg(
        long,
        env = "MAX_BODY_BYTES",
        global = true,
        hide_env_values = true,
        value_name = "BYTES"
    )]
    pub(crate) max_body_bytes: Option<String>,
    /// How long to keep trying to reach database and Redis at start [default: 0]
    #[arg(
        long,
        env = "START_TIMEOUT",
        global = true,
        hide_env_values = true,
        value_name = "SECONDS"
    )]
    pub(crate) start_timeout: Option<String>,
    /// How long running jobs may take to end at shutdown [default: 30]
    #[arg(
        long,
        env = "SHUTDOWN_TIMEOUT",
        global = true,
        hide_env_values = true,
        value_name = "SECONDS"
    )]
    pub(crate) shutdown_timeout: Option<String>,
    /// error, warn, info, debug or trace, or a filter such as info,stampede_broker=debug [default: info]
    #[arg(long, env = "LOG_LEVEL", global = true, hide_env_values = true, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
    /// text or json [default: text]
    #[arg(long, env = "LOG_FORMAT", global = true, hide_env_values = true, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
}
