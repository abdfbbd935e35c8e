//! `stampede bench idle`: CPU and memory of a node that has nothing to do.
//!
//! Starts a server of its own like `bench tickets`, lets it settle, and then reads the CPU time of all its
//! processes and their memory. Memory is the proportional share (PSS): pages that the processes share,
//! such as the program itself, count once.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::processes::{CpuTimes, memory_of_tree};
use crate::server::{Server, Size};

/// How long a server takes to calm down after its start.
const SETTLE: Duration = Duration::from_secs(10);

/// Options of `bench idle`.
#[derive(Debug, Args)]
pub struct BenchIdle {
    /// Worker processes
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    workers: u32,
    /// How long to measure, in seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Print one JSON object instead of a report
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(options: BenchIdle) -> Result<()> {
    let server = Server::start(Size { workers: Some(options.workers), slots: None }).await?;
    tokio::time::sleep(SETTLE).await;
    let pid = server.pid()?;
    let before = CpuTimes::of_tree(pid);
    tokio::time::sleep(Duration::from_secs(options.seconds.into())).await;
    let used = CpuTimes::of_tree(pid).since(&before);
    let memory = memory_of_tree(pid);
    server.stop().await;

    let seconds: f64 = used.processes().map(|process| process.seconds).sum();
    let percent = seconds / f64::from(options.seconds) * 100.0;
    let mb = |bytes: u64| (bytes as f64 / f64::from(1 << 20) * 10.0).round() / 10.0;
    let (pss, rss) = (mb(memory.proportional), mb(memory.resident));
    if options.json {
        let report = json!({
            "workers": options.workers, "seconds": options.seconds, "cpuPercent": percent,
            "memoryMb": pss, "residentMb": rss,
        });
        println!("{report}");
        return Ok(());
    }
    println!(
        "A node with {} workers that has nothing to do, for {} s:",
        options.workers, options.seconds
    );
    println!("  CPU     {percent:.2} % of one core");
    for process in used.processes() {
        let share = process.seconds / f64::from(options.seconds) * 100.0;
        println!("          {share:.2} % {}", process.name);
    }
    println!("  Memory  {pss} MB together (sum of resident sizes: {rss} MB)");
    Ok(())
}
