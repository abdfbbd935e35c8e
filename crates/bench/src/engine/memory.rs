//! Resident memory for each waiting job.
//!
//! Resident memory of the process counts what the operator has to pay for: fragmentation, buffers and
//! all. What each server says about itself (`used_memory`) is not defined alike, and is shown beside it.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::task::JoinSet;

use super::life::job;
use super::servers::{Kind, Server, Setup};

/// Buffers for the disk are empty after this long.
const SETTLE: Duration = Duration::from_millis(2_500);
/// Connections that add jobs at the same time.
const PRODUCERS: u32 = 4;
const CHUNK: u32 = 2_000;

/// Bytes for each waiting job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    /// Growth of the process.
    pub(super) resident: f64,
    /// Growth of what the server says it uses.
    pub(super) used: f64,
    /// Growth of its files.
    pub(super) disk: f64,
}

pub(super) async fn measure(setup: &Setup, kind: Kind, waiting: u32) -> Result<Memory> {
    let server = Server::start(setup, kind).await?;
    // Connections and scripts have their price, too, but not for each job.
    fill(&server, "warm-up", 1_000).await?;
    tokio::time::sleep(SETTLE).await;
    let used = |server: &Server| -> Result<u64> {
        server.connect()?.info("memory", "used_memory")?.context("INFO has no used_memory")
    };
    let before = (server.resident_bytes()?, used(&server)?, server.disk_bytes());
    fill(&server, "waiting", waiting).await?;
    tokio::time::sleep(SETTLE).await;
    let after = (server.resident_bytes()?, used(&server)?, server.disk_bytes());
    server.stop().await?;
    let for_each = |before: u64, after: u64| (after as f64 - before as f64) / f64::from(waiting);
    Ok(Memory {
        resident: for_each(before.0, after.0),
        used: for_each(before.1, after.1),
        disk: for_each(before.2, after.2),
    })
}

/// Adds waiting jobs over several connections.
pub(super) async fn fill(server: &Server, name: &str, waiting: u32) -> Result<()> {
    let mut producers = JoinSet::new();
    for producer in 0..PRODUCERS {
        let queue = server.broker().await?.queue(name).await?;
        producers.spawn(async move {
            let starts = (0..waiting).step_by(CHUNK as usize).skip(producer as usize);
            for start in starts.step_by(PRODUCERS as usize) {
                let end = waiting.min(start + CHUNK);
                queue.enqueue(&(start..end).map(job).collect::<Vec<_>>()).await?;
            }
            anyhow::Ok(())
        });
    }
    for filled in producers.join_all().await {
        filled?;
    }
    let counts = server.broker().await?.queue(name).await?.counts().await?;
    if counts.waiting != u64::from(waiting) {
        bail!("{} of {waiting} jobs are waiting", counts.waiting);
    }
    Ok(())
}
