//! With many waiting jobs: the time of a start after a crash, and the pauses of clients while the journal
//! is compacted under load.
//!
//! A pause is the longest time of an answer that a client sees. A thread repeats a GET over a connection of
//! its own, while jobs are added, taken and completed at a moderate rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::BenchEngine;
use super::life::{Workers, job};
use super::memory::fill;
use super::servers::{Kind, Server, Setup};
use super::wire::Wire;
use crate::figures::{median, percentile, rounded};

/// After this long, `everysec` has written everything to disk.
const SETTLE: Duration = Duration::from_millis(2_500);
/// How long pauses are watched without a compaction.
const QUIET: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(300);
const QUEUE: &str = "waiting";

struct Found {
    kind: Kind,
    start_s: f64,
    disk_bytes: u64,
    resident_bytes: u64,
    quiet: Pauses,
    compacting: Pauses,
    compaction_s: f64,
}

struct Pauses {
    longest_ms: f64,
    p999_ms: f64,
    p50_ms: f64,
}

pub(super) async fn run(setup: &Setup, options: &BenchEngine) -> Result<()> {
    let mut found = Vec::new();
    for kind in setup.sides {
        found.push(measure(setup, kind, options).await?);
    }
    if options.json {
        let sides: Vec<Value> = found.iter().map(Found::json).collect();
        println!(
            "{}",
            json!({ "waiting": options.waiting, "engine": sides[0], "redis": sides[1] })
        );
        return Ok(());
    }
    println!("{} waiting jobs, fsync {}", options.waiting, options.fsync.as_str());
    found.iter().for_each(Found::print);
    Ok(())
}

async fn measure(setup: &Setup, kind: Kind, options: &BenchEngine) -> Result<Found> {
    let tell = |text: &str| {
        if !options.json {
            eprintln!("{}: {text}", kind.name());
        }
    };
    let mut server = Server::start(setup, kind).await?;
    tell("adding jobs");
    fill(&server, QUEUE, options.waiting).await?;
    tokio::time::sleep(SETTLE).await;
    let disk_bytes = server.disk_bytes();
    tell("killed, and started again");
    let start_s = server.crash_and_start().await?.as_secs_f64();
    let counts = server.broker().await?.queue(QUEUE).await?.counts().await?;
    if counts.waiting != u64::from(options.waiting) {
        bail!("{}: {} of {} jobs came back", kind.name(), counts.waiting, options.waiting);
    }
    let load = Load::start(&server, options.rate).await?;
    let watch = Watch::start(server.connect()?);
    tokio::time::sleep(QUIET).await;
    let quiet = watch.finish().await?;

    tell("compacting under load");
    let watch = Watch::start(server.connect()?);
    let mut wire = server.connect()?;
    let started = Instant::now();
    let answer = wire.ask(&["BGREWRITEAOF"])?;
    if answer.is_error() {
        bail!("{}: BGREWRITEAOF: {answer:?}", kind.name());
    }
    while wire
        .info("persistence", "aof_rewrite_in_progress")?
        .context("no aof_rewrite_in_progress")?
        != 0
    {
        if started.elapsed() > PATIENCE {
            bail!("{}: the compaction does not end", kind.name());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let compaction_s = started.elapsed().as_secs_f64();
    let compacting = watch.finish().await?;
    load.stop().await?;
    let resident_bytes = server.resident_bytes()?;
    server.stop().await?;
    Ok(Found { kind, start_s, disk_bytes, resident_bytes, quiet, compacting, compaction_s })
}

/// Jobs that come and go at a rate on a queue of their own.
struct Load {
    stop: CancellationToken,
    producer: tokio::task::JoinHandle<Result<()>>,
    workers: Workers,
}

impl Load {
    async fn start(server: &Server, rate: u32) -> Result<Self> {
        let stop = CancellationToken::new();
        let workers = Workers::start(server, "load", 8, u64::MAX).await?;
        let queue = server.broker().await?.queue("load").await?;
        let stopped = stop.clone();
        let producer = tokio::spawn(async move {
            let mut tick = tokio::time::interval(Duration::from_secs(1) / rate);
            for number in 0.. {
                tick.tick().await;
                if stopped.is_cancelled() {
                    break;
                }
                queue.enqueue(&[job(number)]).await?;
            }
            Ok(())
        });
        Ok(Self { stop, producer, workers })
    }

    async fn stop(self) -> Result<()> {
        self.stop.cancel();
        self.producer.await??;
        self.workers.stop().await;
        Ok(())
    }
}

/// Asks again and again, and notes how long each answer takes.
struct Watch {
    stop: Arc<AtomicBool>,
    thread: tokio::task::JoinHandle<Result<Vec<f64>>>,
}

impl Watch {
    fn start(mut wire: Wire) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = tokio::task::spawn_blocking(move || {
            let mut answers_ms = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let asked = Instant::now();
                wire.ask(&["GET", "nothing"])?;
                answers_ms.push(asked.elapsed().as_secs_f64() * 1000.0);
                // Often enough to meet every pause that matters, seldom enough not to be the load.
                std::thread::sleep(Duration::from_micros(500));
            }
            Ok(answers_ms)
        });
        Self { stop, thread }
    }

    async fn finish(self) -> Result<Pauses> {
        self.stop.store(true, Ordering::Relaxed);
        let mut answers_ms = self.thread.await??;
        answers_ms.sort_by(f64::total_cmp);
        Ok(Pauses {
            longest_ms: percentile(&answers_ms, 1.0),
            p999_ms: percentile(&answers_ms, 0.999),
            p50_ms: median(answers_ms),
        })
    }
}

impl Pauses {
    fn json(&self) -> Value {
        json!({
            "longest_ms": rounded(self.longest_ms),
            "p999_ms": rounded(self.p999_ms),
            "p50_ms": rounded(self.p50_ms),
        })
    }
}

impl Found {
    fn json(&self) -> Value {
        json!({
            "start_s": rounded(self.start_s),
            "disk_bytes": self.disk_bytes,
            "resident_bytes": self.resident_bytes,
            "pause_ms": rounded(self.compacting.longest_ms),
            "compaction_s": rounded(self.compaction_s),
            "get_without_compaction": self.quiet.json(),
            "get_during_compaction": self.compacting.json(),
        })
    }

    fn print(&self) {
        let megabytes = |bytes: u64| bytes / (1 << 20);
        println!("\n{}", self.kind.name());
        println!(
            "  start after a crash      {:.2} s, from {} MiB on disk",
            self.start_s,
            megabytes(self.disk_bytes)
        );
        for (when, pauses) in
            [("without compaction", &self.quiet), ("during compaction", &self.compacting)]
        {
            println!(
                "  GET {when:<20} longest {:.1} ms, p99.9 {:.2} ms, p50 {:.2} ms",
                pauses.longest_ms, pauses.p999_ms, pauses.p50_ms
            );
        }
        println!(
            "  compaction               {:.1} s under load; {} MiB of memory afterwards",
            self.compaction_s,
            megabytes(self.resident_bytes)
        );
    }
}
