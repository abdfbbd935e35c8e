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
        #[arg(long, default_value_t = 1)]
        count: u32,
    },
    /// Fewer workers; they end their jobs first
    ScaleDown {
        /// A node, or all
        node: String,
        /// How many
        #[arg(long, default_value_t = 1)]
        count: u32,
    },
    /// Replace all workers one by one, by a newer program if there is one on the disk
    Restart {
        /// A node, or all
        node: String,
    },
}
