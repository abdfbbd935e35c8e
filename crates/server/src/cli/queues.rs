//! The command line of `stampede queues`.

use std::time::Duration;

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
    /// Count the jobs of all queues, by state
    Status,
    /// List jobs, or search them by id, name and payload
    Jobs {
        /// Name of the queue
        queue: String,
        /// waiting (with or without a priority), prioritized, active, delayed, waiting-children, completed, failed
        /// or all [default: waiting; all for a search]
        #[arg(long)]
        state: Option<String>,
        /// Only jobs that contain this text
        #[arg(long)]
        search: Option<String>,
        /// Skip this many
        #[arg(long, default_value_t = 0)]
        skip: usize,
        /// Show at most this many
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
    /// Pause a queue: workers take no more jobs from it
    Pause {
        /// Name of the queue
        queue: String,
    },
    /// Resume a paused queue
    Resume {
        /// Name of the queue
        queue: String,
    },
    /// Add a job
    Add {
        /// Name of the queue
        queue: String,
        /// Type of the job
        name: String,
        /// Its payload
        #[arg(long, value_name = "JSON", value_parser = json, default_value = "{}")]
        data: Value,
        /// Its id; a second job with the same id is not added [default: a new id]
        #[arg(long)]
        id: Option<String>,
        /// Time before the job may begin, such as 90s or 2h
        #[arg(long, value_name = "TIME", value_parser = duration)]
        delay: Option<Duration>,
        /// 1 is the highest; a job without priority runs before all jobs with one
        #[arg(long)]
        priority: Option<u32>,
        /// Most attempts
        #[arg(long)]
        attempts: Option<u32>,
    },
    /// Limit how many jobs of a queue all workers together run at a time
    Concurrency {
        /// Name of the queue
        queue: String,
        /// How many, or "off"
        #[arg(value_parser = concurrency)]
        jobs: Concurrency,
    },
    /// List the rate limits
    Limits,
    /// Set a rate limit, or change it while it is in use
    Limit {
        /// queue:NAME for a whole queue, or a name that jobs ask for, such as account:17
        name: String,
        /// Most permits in any window; 0 stops everything
        #[arg(long)]
        max: u32,
        /// Length of the window, such as 1s or 1m
        #[arg(long, value_name = "TIME", value_parser = duration)]
        per: Duration,
    },
    /// Remove a rate limit
    Unlimit {
        /// Its name
        name: String,
    },
    /// List open circuit breakers: outside services that are not called now because they failed
    Breakers,
    /// Close a circuit breaker: its service is called again at once
    CloseBreaker {
        /// Name of the service
        name: String,
    },
    /// List the schedules of a queue
    Schedules {
        /// Name of the queue
        queue: String,
    },
    /// Add or change a schedule, which adds a job again and again
    #[command(group = clap::ArgGroup::new("when").required(true))]
    Schedule {
        /// Name of the queue
        queue: String,
        /// Id of the schedule
        id: String,
        /// Type of its jobs
        #[arg(long)]
        name: String,
        /// When jobs are added: minute, hour, day of the month, month, day of the week
        #[arg(long, group = "when", value_name = "PATTERN")]
        cron: Option<String>,
        /// Time zone of the pattern, such as Europe/Berlin [default: UTC]
        #[arg(long, value_name = "ZONE", requires = "cron")]
        time_zone: Option<String>,
        /// Time between two jobs, such as 30s, instead of a pattern
        #[arg(long, group = "when", value_name = "TIME", value_parser = duration)]
        every: Option<Duration>,
        /// Their payload
        #[arg(long, value_name = "JSON", value_parser = json, default_value = "{}")]
        data: Value,
    },
    /// Remove a schedule
    Unschedule {
        /// Name of the queue
        queue: String,
        /// Id of the schedule
        id: String,
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
    #[command(
        override_usage = "stampede queues clean [OPTIONS] <QUEUE>\n       stampede queues clean [OPTIONS] --all"
    )]
    Clean {
        /// Name of the queue
        #[arg(required_unless_present = "all")]
        queue: Option<String>,
        /// All queues but those of dead letters
        #[arg(long, conflicts_with = "queue")]
        all: bool,
        /// failed, completed, waiting (with or without a priority), prioritized or delayed
        #[arg(long, default_value = "failed")]
        state: String,
        /// Only jobs without change for this long, such as 30s or 2h
        #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s")]
        grace: Duration,
        /// At most this many jobs of each queue
        #[arg(long, default_value_t = 10_000)]
        limit: u64,
    },
    /// Run a failed job again, or all failed jobs
    #[command(
        override_usage = "stampede queues retry [OPTIONS] <QUEUE> <ID>\n       stampede queues retry [OPTIONS] <QUEUE> --all"
    )]
    Retry {
        /// Name of the queue
        queue: String,
        /// Id of the job
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// All failed jobs, also those that other software left without a dead letter
        #[arg(long, conflicts_with = "id")]
        all: bool,
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
    /// List or search dead letters: jobs that failed permanently
    DeadLetters {
        /// Name of the queue
        queue: String,
        /// Only letters that contain this text
        #[arg(long)]
        search: Option<String>,
        /// Skip this many
        #[arg(long, default_value_t = 0)]
        skip: usize,
        /// Show at most this many
        #[arg(long, default_value_t = 50)]
        count: usize,
    },
    /// Replay dead letters: run their jobs again, with all attempts
    #[command(
        override_usage = "stampede queues replay [OPTIONS] <QUEUE> <IDS>...\n       stampede queues replay [OPTIONS] <QUEUE> --all"
    )]
    Replay {
        /// Name of the queue
        queue: String,
        /// Ids of jobs
        #[arg(required_unless_present = "all")]
        ids: Vec<String>,
        /// All of them
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// Payload to use instead of their own
        #[arg(long, value_name = "JSON", value_parser = json)]
        data: Option<Value>,
    },
    /// Delete dead letters
    #[command(
        override_usage = "stampede queues purge [OPTIONS] <QUEUE> <IDS>...\n       stampede queues purge [OPTIONS] <QUEUE> --all"
    )]
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

/// How many jobs may run at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Concurrency(pub(crate) Option<u64>);

fn concurrency(text: &str) -> Result<Concurrency, String> {
    match text {
        "off" => Ok(Concurrency(None)),
        _ => match text.parse() {
            Ok(jobs) if jobs > 0 => Ok(Concurrency(Some(jobs))),
            _ => Err("must be a whole number, 1 at least, or \"off\"".to_owned()),
        },
    }
}

/// A time as people write it: `500ms`, `30s`, `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<jiff::SignedDuration>();
    let parsed = parsed.ok().and_then(|duration| Duration::try_from(duration).ok());
    parsed.ok_or_else(|| "must be a time such as 500ms, 30s, 5m or 1h30m".to_owned())
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, ms) in [("0s", 0), ("250ms", 250), ("30s", 30_000), ("1h30m", 5_400_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "5", "s", "-1s", "5 sheep", "99999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
