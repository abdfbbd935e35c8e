//! Runs the order pipeline against a Redis, a Valkey or Stampede's own engine:
//!
//! ```sh
//! cargo run -p stampede-example-orders -- --redis redis://127.0.0.1:6379
//! ```

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::Parser;
use stampede_broker::Config;
use stampede_example_orders::Options;

/// An order pipeline over four queues, with an outside world that misbehaves, and a report
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    options: Options,
    /// The Redis, Valkey or Stampede engine to use; its maxmemory-policy must be noeviction
    #[arg(long, env = "REDIS_URL", hide_env_values = true, value_name = "URL")]
    #[arg(default_value = "redis://127.0.0.1:6379")]
    redis: String,
    /// The prefix of all keys; a prefix that holds an earlier run is not used again [default: a new one]
    #[arg(long)]
    prefix: Option<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let cli = Cli::parse();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    // In a Redis Cluster all queues of a flow must be in one slot: the braces see to that.
    let prefix = cli.prefix.unwrap_or_else(|| format!("{{orders-{now}}}"));
    let config = Config { prefix: Some(prefix), ..Config::new(cli.redis) };
    stampede_example_orders::run(&cli.options, &config).await
}
