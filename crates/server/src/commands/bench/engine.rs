//! `stampede bench engine`: the embedded engine beside redis-server, in one run on one machine.
//!
//! Both are separate processes in temporary folders, with the same durability and the same kind of
//! socket, and our own broker is the client of both. Every single measurement is made on one and at
//! once on the other, in turns (A B, then B A in the next round), so that whatever else happens on the
//! machine hits both; a ratio is the median of the rounds' ratios. The CPU time that a server needs for
//! a job hardly depends on what else runs, and is shown beside the speed.
//!
//! | file | measures |
//! |---|---|
//! | `life.rs` | BullMQ jobs added, taken and completed a second; the same at a fixed rate: latency |
//! | `memory.rs` | resident memory for each waiting job |
//! | `plain.rs` | GET, SET and LPUSH with redis-benchmark |
//! | `restart.rs` | instead of all that: start with many waiting jobs, pauses of a compaction under load |

mod life;
mod memory;
mod plain;
mod report;
mod restart;
mod servers;
mod wire;

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use tokio_util::sync::CancellationToken;

use self::report::Report;
use self::servers::{Server, Setup};
use crate::cli::BenchEngine;
use crate::commands::signals::stop_on_signal;

/// Jobs at a time: one; a few; as many as "stampede serve" has on two cores.
const LEVELS: [usize; 3] = [1, 8, 32];
/// Load for each core above which a comparison says little.
const BUSY: f64 = 0.5;
/// Jobs before anything is measured.
const WARM_UP: u32 = 500;

/// What one round found for one server.
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

pub(crate) async fn run(options: BenchEngine) -> Result<()> {
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    // Leaving in the middle ends the servers and removes their folders.
    tokio::select! {
        result = compare(options) => result,
        () = stop.cancelled() => bail!("interrupted"),
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

/// The value below which a share of sorted values lies.
pub(super) fn percentile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_percentiles() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median([]).is_nan());
        let hundred: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!(percentile(&hundred, 0.99), 99.0);
        assert_eq!(percentile(&[7.0], 0.99), 7.0);
    }
}
