//! The command line of `stampede queues`.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::ServerArgs;

/// Options of `queues`.
#[derive(Debug, Args)]
pub(crate) struct Queues {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print one JSON value instead of a table
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: QueuesCommand,
}

/// Commands of `queues`.
#[derive(Debug, Subcommand)]
pub(crate) enum QueuesCommand {
    /// How many jobs are where
    Status,
    /// List jobs, or search them by id, name and payload
    Jobs {
        /// Name of the queue
        queue: String,
        /// waiting (with or without a priority), prioritized, active, delayed, waiting-children, completed or failed
        #[arg(long, default_value = "waiting")]
        state: String,
        /// Only jobs that contain this text
        #[arg(long)]
        search: Option<String>,
        /// Pass over so many
        #[arg(long, default_value_t = 0)]
        skip: usize,
        /// Show so many at most
        #[arg(long, default_value_t = 50)]
        count: usize,
    },
    /// Show one job with its history and log
    Job {
        /// Name of the queue
        queue: String,
        /// Id of the job
        id: String,
    },
    /// Let no worker take another job
    Pause {
        /// Name of the queue
        queue: String,
    },
    /// Let workers go on
    Resume {
        /// Name of the queue
        queue: String,
    },
    /// Remove all jobs that wait
    Drain {
        /// Name of the queue
        queue: String,
        /// Delayed jobs too
        #[arg(long)]
        delayed: bool,
    },
    /// Remove ended jobs
    Clean {
        /// Which queue [default: all]
        #[arg(long)]
        queue: Option<String>,
        /// failed, completed, waiting (with or without a priority), prioritized or delayed
        #[arg(long, default_value = "failed")]
        state: String,
        /// Only those older than this many seconds
        #[arg(long, default_value_t = 0)]
        grace_s: u64,
        /// At most so many of each queue
        #[arg(long, default_value_t = 10_000)]
        limit: u64,
    },
    /// Run a failed job again
    Retry {
        /// Name of the queue
        queue: String,
        /// Id of the job
        id: String,
    },
    /// Let a delayed job begin now
    Promote {
        /// Name of the queue
        queue: String,
        /// Id of the job
        id: String,
    },
    /// Remove a job that waits, or stop one that runs; a ticket that is still ordered gets a new job
    Cancel {
        /// Name of the queue
        queue: String,
        /// Id of the job
        id: String,
    },
    /// Remove a job that is not being worked on
    Remove {
        /// Name of the queue
        queue: String,
        /// Id of the job
        id: String,
    },
    /// Destroy a queue with everything in it
    Obliterate {
        /// Name of the queue
        queue: String,
        /// The name of the queue once more
        #[arg(long, value_name = "QUEUE")]
        confirm: String,
        /// Even while jobs are being worked on
        #[arg(long)]
        force: bool,
    },
    /// List or search jobs that failed for good
    DeadLetters {
        /// Name of the queue
        queue: String,
        /// Only letters that contain this text
        #[arg(long)]
        search: Option<String>,
        /// Pass over so many
        #[arg(long, default_value_t = 0)]
        skip: usize,
        /// Show so many at most
        #[arg(long, default_value_t = 50)]
        count: usize,
    },
    /// Run dead letters again, with all their attempts
    Replay {
        /// Name of the queue
        queue: String,
        /// Ids of jobs
        #[arg(required_unless_present = "all")]
        ids: Vec<String>,
        /// All of them
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// With this payload instead of their own
        #[arg(long, value_name = "JSON", value_parser = json)]
        data: Option<Value>,
    },
    /// Throw dead letters away
    Purge {
        /// Name of the queue
        queue: String,
        /// Ids of jobs
        #[arg(required_unless_present = "all")]
        ids: Vec<String>,
        /// All of them
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))
}
