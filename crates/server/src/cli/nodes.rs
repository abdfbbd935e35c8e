//! The command line of `stampede nodes`.

use clap::{Args, Subcommand};

use super::ServerArgs;

/// Options of `nodes`.
#[derive(Debug, Args)]
pub(crate) struct Nodes {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print one JSON value instead of a table
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<NodesCommand>,
}

/// Commands of `nodes`.
#[derive(Debug, Subcommand)]
pub(crate) enum NodesCommand {
    /// Who is there, with how many workers (the default)
    List,
    /// Every worker process and its state
    Workers,
    /// Who coordinates, totals and alerts
    Cluster,
    /// The last 100 decisions about the number of workers
    History,
    /// More workers
    ScaleUp {
        /// A node, or all
        node: String,
        /// How many
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_024))]
        count: u32,
        #[command(flatten)]
        patience: Patience,
    },
    /// Fewer workers; they end their jobs first
    ScaleDown {
        /// A node, or all
        node: String,
        /// How many
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_024))]
        count: u32,
        #[command(flatten)]
        patience: Patience,
    },
    /// Replace all workers one by one, by a newer program if there is one on the disk
    Restart {
        /// A node, or all
        node: String,
        #[command(flatten)]
        patience: Patience,
    },
}

/// How long to wait for what comes of a command.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Patience {
    /// Only tell the nodes; do not wait for what they do
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// How many seconds to wait until the nodes have done it
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
}
