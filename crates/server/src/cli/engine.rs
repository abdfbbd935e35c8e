//! The command line of the embedded engine: `stampede engine …`.

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

    /// Replaces the flag of the server's setting `PORT`, so that `--port` is the engine's port here.
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
    /// Stop workers and producers first: a write during the copy is lost or makes the copy fail.
    Export(Export),
    /// Copy everything from a Redis or Valkey, and compare both sides afterwards
    ///
    /// Stop workers and producers first: a write during the copy is lost or makes the copy fail.
    Import(Import),
    /// Read a journal without changing it, and print what is in it and what a repair would do
    ///
    /// Exit code: 0 whole, 3 damaged and "repair" can restore the state of a moment, 4 damaged and "repair" would
    /// refuse.
    Check(Journal),
    /// Bring a damaged journal back to the state of one moment, or refuse
    ///
    /// The result is everything up to some moment and nothing after it. If the files hold no such state, nothing is
    /// changed. Nothing is ever deleted: what is not used is set aside as *.damaged. Run "check" first to see what
    /// would happen. Exit code: 0 nothing is lost, 3 something is lost and was named, 4 refused.
    Repair(Repair),
}

/// Options of `engine run`.
#[derive(Debug, Clone, Args)]
pub(crate) struct EngineRun {
    /// Port to listen on; 0 is any free port [default: 6379, or none with --unixsocket]
    #[arg(id = "engine_port", long = "port", value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Address to listen on; any but loopback needs a password [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,
    /// Also listen on this socket file, for programs of the same user on this machine
    #[arg(long, value_name = "FILE")]
    pub(crate) unixsocket: Option<PathBuf>,
    /// Where the journal is kept [default: DATA_DIR/engine, as "stampede serve"]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// Keep nothing on disk: all data are lost when the engine stops
    #[arg(long, conflicts_with = "dir")]
    pub(crate) in_memory: bool,
    /// When writes reach the disk
    #[arg(long, value_enum, default_value_t, value_name = "POLICY")]
    pub(crate) fsync: FsyncArg,
    /// The password of clients; prefer the variable, because other users can see flags
    #[arg(long, env = "ENGINE_PASSWORD", hide_env_values = true, value_name = "SECRET")]
    pub(crate) password: Option<String>,
    /// Most connections at a time
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pub(crate) maxclients: usize,
}

/// When writes reach the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum FsyncArg {
    /// Before they are answered: no acknowledged write is ever lost
    Always,
    /// Within a second: a power cut loses at most one second, a crash of the process nothing
    #[default]
    Everysec,
    /// When the operating system decides: a crash of the process loses nothing
    Never,
}

impl FsyncArg {
    /// The word of the command line.
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

/// Options of `engine repair`.
#[derive(Debug, Args)]
pub(crate) struct Repair {
    #[command(flatten)]
    pub(crate) journal: Journal,
    /// Keep what is readable of a damaged snapshot, although that is the state of no moment; what is missing is named
    #[arg(long)]
    pub(crate) salvage: bool,
}

/// Options of `engine check`, and of `engine repair`.
#[derive(Debug, Args)]
pub(crate) struct Journal {
    /// Its folder [default: DATA_DIR/engine]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}
