//! `stampede bench engine`: the embedded engine beside redis-server, in one run on one machine.
//!
//! Both are separate processes in temporary folders, with the same durability and the same kind of
//! socket, and our own broker is the client of both. Every measurement is made on one server and right
//! after it on the other, in turns (A B, then B A in the next round), so that other load on the machine
//! affects both. A ratio is the median of the rounds' ratios. The CPU time of a server for one job hardly
//! depends on other load, and is shown beside the speed.
//!
//! | file | measures |
//! |---|---|
//! | `life.rs` | BullMQ jobs added, taken and completed a second; latency at a fixed rate |
//! | `memory.rs` | resident memory for each waiting job |
//! | `plain.rs` | GET, SET and LPUSH with redis-benchmark |
//! | `restart.rs` | with `--restart`, instead of the others: start with many waiting jobs, pauses of a compaction under load |

mod life;
mod memory;
mod plain;
mod report;
mod restart;
mod servers;
mod wire;

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use self::report::Report;
use self::servers::{Server, Setup};
use crate::figures::percentile;
use crate::local::interrupted;

/// Jobs at a time: one; a few; as many as "stampede serve" has on two cores.
const LEVELS: [usize; 3] = [1, 8, 32];
/// Load for each core above which a comparison says little.
const BUSY: f64 = 0.5;
/// Jobs before anything is measured.
const WARM_UP: u32 = 500;

/// The figures of one round for one server.
#[derive(Debug, Default, Clone)]
struct Round {
    /// Jobs at a time → jobs a second.
    life: BTreeMap<usize, f64>,
    /// Jobs at a time → microseconds of the server's CPU time for a job.
    cpu_us: BTreeMap<usize, f64>,
    p50_ms: f64,
    p99_ms: f64,
    /// `SET P1` → requests a second.
    plain: BTreeMap<String, f64>,
}

/// Options of `bench engine`.
#[derive(Debug, Clone, Args)]
pub struct BenchEngine {
    /// Jobs added, taken and completed in each measurement
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    jobs: u32,
    /// Rounds; each measures both servers, in turns (A B, B A, …), and medians are shown
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// How long latency is measured in each round, in seconds
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Jobs a second while latency is measured
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// Waiting jobs for the measurement of memory; 0 leaves it out
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(0..=20_000_000))]
    waiting: u32,
    /// Instead: fill with the waiting jobs, kill, and measure the start and the pauses of a compaction under load
    #[arg(long)]
    restart: bool,
    /// When both write to disk
    #[arg(long, value_enum, default_value_t, value_name = "POLICY")]
    fsync: Fsync,
    /// Connect to both over loopback TCP instead of unix sockets
    #[arg(long)]
    tcp: bool,
    /// Measure redis-server against itself: how far the ratios are from 1 is the noise of this machine
    #[arg(long)]
    self_check: bool,
    /// Print one JSON object instead of a report
    #[arg(long)]
    json: bool,
}

/// When writes reach the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Fsync {
    /// Before they are answered: no acknowledged write is ever lost
    Always,
    /// Within a second: a power cut loses at most one second, a crash of the process nothing
    #[default]
    Everysec,
    /// When the operating system decides: a crash of the process loses nothing
    Never,
}

impl Fsync {
    /// The word for `stampede engine run --fsync`.
    fn as_str(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Everysec => "everysec",
            Self::Never => "never",
        }
    }
}

pub(crate) async fn run(options: BenchEngine) -> Result<()> {
    // An interruption drops the servers, which kills them and removes their folders.
    tokio::select! {
        result = compare(options) => result,
        signal = interrupted() => { signal?; bail!("interrupted") }
    }
}

async fn compare(options: BenchEngine) -> Result<()> {
    let setup = Setup::new(&options)?;
    if options.restart {
        return restart::run(&setup, &options).await;
    }
    let mut report = Report::new(&options, load());
    let tell = |text: String| {
        if !options.json {
            eprintln!("{text}");
        }
    };
    if report.load > BUSY * std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64) {
        eprintln!("Warning: this machine is busy (load {}); the figures say little", report.load);
    }
    for number in 0..options.rounds {
        let order = if number % 2 == 0 { [0, 1] } else { [1, 0] };
        let found = measure(&setup, order, &options).await?;
        for (side, round) in found.into_iter().enumerate() {
            tell(format!(
                "round {} of {}: {:<12} {} jobs/s, p99 {:.2} ms",
                number + 1,
                options.rounds,
                setup.sides[side].name(),
                round.life.values().map(|n| format!("{n:.0}")).collect::<Vec<_>>().join(" / "),
                round.p99_ms
            ));
            report.rounds[side].push(round);
        }
    }
    if options.waiting > 0 {
        for side in [0, 1] {
            let kind = setup.sides[side];
            let memory = memory::measure(&setup, kind, options.waiting).await?;
            tell(format!(
                "memory: {:<12} {:.0} bytes for a waiting job",
                kind.name(),
                memory.resident
            ));
            report.memory[side] = Some(memory);
        }
    }
    if options.json {
        println!("{}", report.json())
    } else {
        report.print()
    }
    Ok(())
}

/// One round: everything on both servers, side by side.
async fn measure(setup: &Setup, order: [usize; 2], options: &BenchEngine) -> Result<[Round; 2]> {
    let servers =
        [Server::start(setup, setup.sides[0]).await?, Server::start(setup, setup.sides[1]).await?];
    let mut rounds = [Round::default(), Round::default()];
    for side in order {
        life::whole_lives(&servers[side], "warm-up", 8, WARM_UP).await?;
    }
    for level in LEVELS {
        // One at a time is slow and steady: fewer jobs say as much.
        let jobs = if level == 1 { options.jobs / 4 } else { options.jobs };
        for side in order {
            let (server, queue) = (&servers[side], format!("life-{level}"));
            let cpu = server.cpu_seconds()?;
            let speed = life::whole_lives(server, &queue, level, jobs).await?;
            let cpu = server.cpu_seconds()? - cpu;
            rounds[side].life.insert(level, speed);
            rounds[side].cpu_us.insert(level, cpu * 1e6 / f64::from(jobs));
        }
    }
    for side in order {
        let server = &servers[side];
        let mut waits_ms = life::at_a_rate(server, options.rate, options.seconds).await?;
        waits_ms.sort_by(f64::total_cmp);
        rounds[side].p50_ms = percentile(&waits_ms, 0.5);
        rounds[side].p99_ms = percentile(&waits_ms, 0.99);
    }
    for side in order {
        rounds[side].plain = plain::measure(&servers[side], options.jobs).await?;
    }
    for server in servers {
        server.stop().await?;
    }
    Ok(rounds)
}

/// How many processes want to run, by the system's account of the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}
