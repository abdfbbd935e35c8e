//! Options of `stampede watch`.

use clap::Args;

use super::ServerArgs;

/// Options of `watch`.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Only events of these kinds, such as batch.completed,ticket.failed
    #[arg(long, value_delimiter = ',')]
    pub(crate) kinds: Vec<String>,
    /// Only events about this order
    #[arg(long, value_name = "ID")]
    pub(crate) batch: Option<String>,
    /// Only events about this event
    #[arg(long, value_name = "ID")]
    pub(crate) event: Option<String>,
    /// Only events about this queue
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
    /// Begin after the event with this id; 0 shows everything that is kept
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,
    /// End after so many events
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// Print every event as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
