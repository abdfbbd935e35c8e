//! The command line of the embedded engine: `stampede engine …` and `stampede bench engine`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// The embedded queue server: it speaks the Redis protocol, runs BullMQ's scripts and keeps a journal.
///
/// "stampede serve" starts it by itself when no Redis is configured. Run it alone to give a queue to other
/// programs; Node's and Python's BullMQ, Bull Board and redis-cli connect to it as they would to Redis:
///
///   stampede engine --port 6379 --dir data/engine     the same as: stampede engine run …
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true
)]
pub(crate) struct Engine {
    #[command(subcommand)]
    pub(crate) command: Option<EngineCommand>,

    #[command(flatten)]
    pub(crate) run: EngineRun,

    /// Takes the place of the server's setting of the same name, so that `--port` is ours here.
    #[arg(id = "port", long = "api-port", hide = true)]
    _api_port: Option<String>,
}

/// Commands of `engine`.
#[derive(Debug, Subcommand)]
pub(crate) enum EngineCommand {
    /// Run it until SIGTERM or Ctrl-C
    Run(EngineRun),
    /// Copy everything to a Redis or Valkey, and compare both sides afterwards
    ///
    /// Stop workers and producers first: what is written during the copy is lost or spoils it.
    Export(Export),
    /// Copy everything from a Redis or Valkey, and compare both sides afterwards
    ///
    /// Stop workers and producers first: what is written during the copy is lost or spoils it.
    Import(Import),
    /// Read a journal without changing it, and say what is in it
    Check(Journal),
    /// Keep everything before the first damage of a journal, and move the rest aside
    Repair(Journal),
}

/// Options of `engine run`.
#[derive(Debug, Clone, Args)]
pub(crate) struct EngineRun {
    /// Port to listen on; 0 takes any free one [default: 6379, or none with --unixsocket]
    #[arg(id = "engine_port", long = "port", value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Address to listen on; others than this machine's own need a password [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,
    /// Listen on this socket file too, for programs of the same user on this machine
    #[arg(long, value_name = "FILE")]
    pub(crate) unixsocket: Option<PathBuf>,
    /// Where the journal is kept [default: DATA_DIR/engine, as "stampede serve"]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// Keep nothing on disk: everything is gone at the end
    #[arg(long, conflicts_with = "dir")]
    pub(crate) in_memory: bool,
    /// When writes reach the disk
    #[arg(long, value_enum, default_value_t, value_name = "POLICY")]
    pub(crate) fsync: FsyncArg,
    /// What clients must know; better given as the variable, for flags can be seen by others
    #[arg(long, env = "ENGINE_PASSWORD", hide_env_values = true, value_name = "SECRET")]
    pub(crate) password: Option<String>,
    /// Most connections at a time
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub(crate) maxclients: usize,
}

/// When writes reach the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum FsyncArg {
    /// Before they are answered: nothing acknowledged is ever lost
    Always,
    /// Within a second: a power cut takes at most that much, the end of the process next to nothing
    #[default]
    Everysec,
    /// When the system likes
    Never,
}

impl FsyncArg {
    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Everysec => "everysec",
            Self::Never => "never",
        }
    }
}

/// Options of `engine export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The Redis or Valkey to copy to: redis://[user:password@]host:port[/database]
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    /// A running engine to copy from, instead of a journal
    #[arg(long, value_name = "URL", conflicts_with = "dir")]
    pub(crate) from: Option<String>,
    /// The journal to copy from [default: DATA_DIR/engine]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// Delete what is in the target's databases first
    #[arg(long)]
    pub(crate) replace: bool,
}

/// Options of `engine import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The Redis or Valkey to copy from: redis://[user:password@]host:port[/database]
    #[arg(long, value_name = "URL")]
    pub(crate) from: String,
    /// A running engine to copy to, instead of a journal
    #[arg(long, value_name = "URL", conflicts_with = "dir")]
    pub(crate) to: Option<String>,
    /// The journal to copy to [default: DATA_DIR/engine]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// Delete what is in the target's databases first
    #[arg(long)]
    pub(crate) replace: bool,
}

/// Which journal.
#[derive(Debug, Args)]
pub(crate) struct Journal {
    /// Its folder [default: DATA_DIR/engine]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}

/// Options of `bench engine`.
#[derive(Debug, Clone, Args)]
pub(crate) struct BenchEngine {
    /// Jobs added, taken and completed in each measurement
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    pub(crate) jobs: u32,
    /// Rounds; each measures both servers, in turns (A B, B A, …), and medians are shown
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(crate) rounds: u32,
    /// How long latency is measured in each round
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) seconds: u32,
    /// Jobs a second while latency is measured
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rate: u32,
    /// Waiting jobs for the measurement of memory; 0 leaves it out
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(0..=20_000_000))]
    pub(crate) waiting: u32,
    /// Instead: fill with the waiting jobs, kill, and measure the start and the pauses of a compaction under load
    #[arg(long)]
    pub(crate) restart: bool,
    /// When both write to disk
    #[arg(long, value_enum, default_value_t, value_name = "POLICY")]
    pub(crate) fsync: FsyncArg,
    /// Connect to both over loopback TCP instead of unix sockets
    #[arg(long)]
    pub(crate) tcp: bool,
    /// Measure redis-server against itself: how far the ratios are from 1 is the noise of this machine
    #[arg(long)]
    pub(crate) self_check: bool,
    /// Print one JSON object instead of a report
    #[arg(long)]
    pub(crate) json: bool,
}
