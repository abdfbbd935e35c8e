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
    /// List the nodes and their workers (the default)
    List,
    /// List all worker processes and their states
    Workers,
    /// Show the coordinator, totals and alerts
    Cluster,
    /// List the last 100 decisions about the number of workers
    History,
    /// Add workers
    ScaleUp {
        /// A node, or all
        node: String,
        /// How many
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_024))]
        count: u32,
        #[command(flatten)]
        patience: Patience,
    },
    /// Remove workers; they end their jobs first
    ScaleDown {
        /// A node, or all
        node: String,
        /// How many
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_024))]
        count: u32,
        #[command(flatten)]
        patience: Patience,
    },
    /// Replace all workers one by one, with the program that is on disk now
    Restart {
        /// A node, or all
        node: String,
        #[command(flatten)]
        patience: Patience,
    },
}

/// How long to wait for the effect of a command.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Patience {
    /// Send the command only; do not wait for its effect
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Most seconds to wait for the effect
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
}
