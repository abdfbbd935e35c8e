//! What a person types. The embedded engine's own command line is in `cli/engine.rs`.

mod engine;
mod nodes;
mod queues;
mod template;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use stampede_model::Role;

pub(crate) use self::engine::{
    BenchEngine, Engine, EngineCommand, EngineRun, Export, FsyncArg, Import,
};
pub(crate) use self::nodes::{Nodes, NodesCommand, Patience};
pub(crate) use self::queues::{Queues, QueuesCommand};
pub(crate) use self::template::{
    LocalTemplate, Template, TemplatePreview, TemplatePublish, TemplateSource,
};

/// Turns orders into finished work, fast: event tickets as PDFs.
///
/// Without a command it serves: the HTTP API and the worker processes, with everything it needs
/// kept under one data directory. Nothing else has to be configured to try it out:
///
///   stampede                         start here, then in another terminal:
///   stampede demo --tickets 200      order 200 tickets and watch them being made
///
/// Settings are environment variables; those below are flags of every command too, and the flag wins. Only as variables:
/// REDIS_HOST, REDIS_PORT, REDIS_PASSWORD, REDIS_DB, REDIS_TLS_CA, REDIS_TLS_CERT, REDIS_TLS_KEY,
/// QUEUE_PREFIX, ADMIN_KEY, TICKET_KEY_SECRET, STORAGE_TYPE, NFS_PATH, SCALE_*, WORKER_MEMORY_LIMIT_MB, API_LATENCY_LIMIT_MS, STUCK_QUEUE_AFTER.
#[derive(Debug, Parser)]
#[command(name = "stampede", version, verbatim_doc_comment)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

impl Cli {
    /// Reads the command line; ends the process with help or an explanation if there is nothing to do.
    pub(crate) fn read() -> Self {
        Self::from_arg_matches(&Self::shaped().get_matches()).unwrap_or_else(|error| error.exit())
    }

    /// The options of `bench engine` as they are without flags.
    #[cfg(test)]
    pub(crate) fn bench_engine_for_tests() -> BenchEngine {
        let Ok(Self { command: Some(Command::Bench(Bench::Engine(options))), .. }) =
            Self::try_parse_from(["stampede", "bench", "engine"])
        else {
            unreachable!("the command exists")
        };
        options
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

/// Commands that find their server and its data by its settings.
const BY_SETTINGS: [&str; 8] =
    ["worker", "demo", "token", "verify", "ticket-keys", "queues", "nodes", "doctor"];

fn only_in_long_help(command: clap::Command) -> clap::Command {
    command.mut_args(|arg| {
        let setting = arg.get_help_heading() == Some("Settings");
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
        let shown = logs && ["log_level", "log_format"].contains(&arg.get_id().as_str());
        let setting = arg.get_help_heading() == Some("Settings");
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
    /// Make and revoke API keys
    #[command(subcommand)]
    Token(Token),
    /// Tell whose a ticket is, and whether it is genuine
    Verify(Verify),
    /// The keys that sign tickets
    #[command(subcommand)]
    TicketKeys(TicketKeys),
    /// Look into the queues of a running server, and tidy them up
    Queues(Queues),
    /// The nodes of the cluster: who is there, what they do, and telling them what to do
    Nodes(Nodes),
    /// Check settings, database, Redis, folders and the template, and say what is wrong
    Doctor,
    /// The embedded queue server: run it alone, copy it to or from a Redis, check and repair its journal
    Engine(Engine),
    /// Something to watch and to copy from
    #[command(subcommand)]
    Example(Example),
    /// Make, check, preview, watch and publish a template in a folder
    #[command(subcommand)]
    Template(Template),
    /// Measure how fast it is
    #[command(subcommand)]
    Bench(Bench),
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
    Orders(ExampleOrders),
}

/// Options of `example orders`.
#[derive(Debug, Args)]
pub(crate) struct ExampleOrders {
    /// How many orders
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) orders: u32,
    /// Print one JSON object instead of a report
    #[arg(long)]
    pub(crate) json: bool,
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

/// Options of `verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The text of a ticket's QR code, or a PDF (its codes are read with pdftoppm and zbarimg)
    #[arg(value_name = "TOKEN or PDF")]
    pub(crate) ticket: String,
    /// Verify without database and network, with what GET /api/events/{id}/keys answered; once per event
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

/// Commands of `bench`.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// From order to ready PDFs, through a server that it starts in a temporary folder
    Tickets(BenchTickets),
    /// What a node costs that has nothing to do: processor and memory
    Idle(BenchIdle),
    /// What one ticket costs: stamped, typeset, and by other programs that are installed
    Render(BenchRender),
    /// The embedded engine beside redis-server: jobs a second, latency, memory, restart
    Engine(BenchEngine),
    /// Our queues beside Node's BullMQ on the same redis-server: jobs a second, latency
    Queue(BenchQueue),
}

/// Options of `bench queue`.
#[derive(Debug, Args)]
pub(crate) struct BenchQueue {
    /// Jobs in each measurement
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    pub(crate) jobs: u32,
    /// Rounds; each measures both, in turns, and medians are shown
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(crate) rounds: u32,
    /// Jobs a second while latency is measured
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rate: u32,
    /// How long latency is measured in each round
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) seconds: u32,
    /// Print one JSON object instead of a report
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `bench render`.
#[derive(Debug, Args)]
pub(crate) struct BenchRender {
    /// Tickets to stamp in each round
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) tickets: u32,
    /// Tickets for Typst in each round
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) typst: u32,
    /// Tickets for each of the other programs in each round; 0 leaves them out
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) outside: u32,
    /// Rounds, of which the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) rounds: u32,
    /// Print one JSON object instead of a report
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `bench idle`.
#[derive(Debug, Args)]
pub(crate) struct BenchIdle {
    /// Worker processes
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) workers: u32,
    /// How long to look
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) seconds: u32,
    /// Print one JSON object instead of a report
    #[arg(long)]
    pub(crate) json: bool,
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
    /// What this node does: api, worker, both, or auto (both, with workers that make way for the API) [default: both]
    #[arg(long, env = "WORKER_MODE", global = true, hide_env_values = true, value_name = "MODE")]
    pub(crate) worker_mode: Option<String>,
    /// Worker processes: alone exactly so many, with MIN_WORKERS or MAX_WORKERS so many at start [default: one per core]
    #[arg(long, env = "WORKER_COUNT", global = true, hide_env_values = true, value_name = "N")]
    pub(crate) worker_count: Option<String>,
    /// Fewest workers when there is little to do [default: 2, with WORKER_MODE=auto 0]
    #[arg(long, env = "MIN_WORKERS", global = true, hide_env_values = true, value_name = "N")]
    pub(crate) min_workers: Option<String>,
    /// Most workers when there is much to do [default: two per core]
    #[arg(long, env = "MAX_WORKERS", global = true, hide_env_values = true, value_name = "N")]
    pub(crate) max_workers: Option<String>,
    /// Whether this node may coordinate the cluster: true or false [default: true]
    #[arg(
        long,
        env = "IS_COORDINATOR",
        global = true,
        hide_env_values = true,
        value_name = "BOOL"
    )]
    pub(crate) is_coordinator: Option<String>,
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
    /// Redis or Valkey: redis://, rediss://, redis-sentinel://, redis-cluster://; also REDIS_HOST, REDIS_PORT, REDIS_PASSWORD, REDIS_DB [default: the embedded engine, in DATA_DIR/engine]
    #[arg(long, env = "REDIS_URL", global = true, hide_env_values = true, value_name = "URL")]
    pub(crate) redis_url: Option<String>,
    /// When the embedded engine syncs to disk: always, everysec or never [default: everysec]
    #[arg(
        long,
        env = "ENGINE_FSYNC",
        global = true,
        hide_env_values = true,
        value_name = "POLICY"
    )]
    pub(crate) engine_fsync: Option<String>,
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
