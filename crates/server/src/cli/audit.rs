//! `stampede audit` on the command line.

use clap::Args;
use stampede_model::{AuditId, EventId, Timestamp};

use super::ServerArgs;

/// Options of `audit`.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Show one entry with the record before and after
    #[arg(value_name = "ID")]
    pub(crate) entry: Option<AuditId>,
    /// Only changes by this user
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// Only this operation, such as updateEvent
    #[arg(long)]
    pub(crate) operation: Option<String>,
    /// Only changes of the record with this id or name
    #[arg(long)]
    pub(crate) record: Option<String>,
    /// Only changes of records of this event
    #[arg(long)]
    pub(crate) event: Option<EventId>,
    /// Only entries from this moment on, such as 2026-11-21T19:30:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<Timestamp>,
    /// Only entries before this moment
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<Timestamp>,
    /// How many entries at most, the newest
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) limit: u32,
    /// Print one JSON object a line
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print CSV
    #[arg(long)]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
