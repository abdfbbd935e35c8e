//! The figures as a table or as one JSON object.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::memory::Memory;
use super::{BenchEngine, LEVELS, Round};
use crate::figures::{median, rounded};

/// All rounds of both sides: the measured server, and the one it is compared with.
pub(super) struct Report {
    options: BenchEngine,
    pub(super) load: f64,
    pub(super) rounds: [Vec<Round>; 2],
    pub(super) memory: [Option<Memory>; 2],
}

impl Report {
    pub(super) fn new(options: &BenchEngine, load: f64) -> Self {
        Self { options: options.clone(), load, rounds: Default::default(), memory: [None; 2] }
    }

    fn middle(&self, side: usize, figure: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds[side].iter().map(figure))
    }

    /// Both sides of a round were measured at the same time, so they are compared with each other.
    fn ratio(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        let pairs = self.rounds[0].iter().zip(&self.rounds[1]);
        median(pairs.map(|(ours, theirs)| figure(ours) / figure(theirs)))
    }

    /// The number of jobs at a time at which redis-server is fastest: the comparison is made there.
    fn best_level(&self) -> usize {
        let speed = |level: usize| self.middle(1, life(level));
        LEVELS.into_iter().max_by(|a, b| speed(*a).total_cmp(&speed(*b))).unwrap_or(LEVELS[0])
    }

    fn plain(&self, side: usize) -> BTreeMap<String, f64> {
        let names = self.rounds[side].first().map(|round| round.plain.keys()).into_iter().flatten();
        names.map(|name| (name.clone(), self.middle(side, plain(name)))).collect()
    }

    fn memory_ratio(&self) -> Option<f64> {
        Some(self.memory[0]?.resident / self.memory[1]?.resident)
    }

    pub(super) fn json(&self) -> Value {
        let (ours, theirs) = (self.plain(0), self.plain(1));
        let plain_vs_redis: serde_json::Map<String, Value> = ours
            .iter()
            .filter_map(|(name, rate)| {
                Some((name.clone(), json!(rounded(rate / theirs.get(name)?))))
            })
            .collect();
        json!({
            "life_vs_redis": rounded(self.ratio(life(self.best_level()))),
            "p99_vs_redis": rounded(self.ratio(|round| round.p99_ms)),
            "memory_vs_redis": self.memory_ratio().map(rounded),
            "cpu_vs_redis": rounded(self.ratio(cpu(self.best_level()))),
            "plain_vs_redis": plain_vs_redis,
            "jobs_at_a_time": self.best_level(),
            "engine": self.side(0),
            "redis": self.side(1),
            "fsync": self.options.fsync.as_str(),
            "socket": if self.options.tcp { "tcp" } else { "unix" },
            "load_before": self.load,
            "rounds": self.options.rounds,
            "jobs": self.options.jobs,
            "rate": self.options.rate,
            "seconds": self.options.seconds,
            "waiting": self.options.waiting,
            "self_check": self.options.self_check,
        })
    }

    fn side(&self, side: usize) -> Value {
        let by_level = |figure: &dyn Fn(usize) -> f64| {
            let rows = LEVELS.map(|level| (level.to_string(), json!(rounded(figure(level)))));
            serde_json::Map::from_iter(rows)
        };
        let every_round: Vec<Value> = self.rounds[side]
            .iter()
            .map(|round| {
                json!({
                    "life": round.life, "cpu_us": round.cpu_us, "p50_ms": rounded(round.p50_ms),
                    "p99_ms": rounded(round.p99_ms), "plain": round.plain,
                })
            })
            .collect();
        json!({
            "jobs_per_s": by_level(&|level| self.middle(side, life(level))),
            "cpu_us_per_job": by_level(&|level| self.middle(side, cpu(level))),
            "p50_ms": rounded(self.middle(side, |round| round.p50_ms)),
            "p99_ms": rounded(self.middle(side, |round| round.p99_ms)),
            "bytes_per_waiting_job": self.memory[side].map(|memory| memory.resident.round()),
            "used_memory_per_waiting_job": self.memory[side].map(|memory| memory.used.round()),
            "disk_bytes_per_waiting_job": self.memory[side].map(|memory| memory.disk.round()),
            "requests_per_s": self.plain(side),
            "rounds": every_round,
        })
    }

    pub(super) fn print(&self) {
        let name = if self.options.self_check { "redis (again)" } else { "engine" };
        println!();
        println!("{:<44} {name:>13} {:>13} {:>7}", "", "redis-server", "ratio");
        for level in LEVELS {
            self.row(&format!("whole lives a second, {level} at a time"), life(level), 0);
        }
        for level in LEVELS {
            self.row(&format!("server's CPU µs for a life, {level} at a time"), cpu(level), 1);
        }
        let rate = self.options.rate;
        self.row(&format!("life at {rate} a second, p50 ms"), |round| round.p50_ms, 2);
        self.row(&format!("life at {rate} a second, p99 ms"), |round| round.p99_ms, 2);
        if let [Some(ours), Some(theirs)] = self.memory {
            let row =
                |what: &str, ours: f64, theirs: f64| row(what, ours, theirs, ours / theirs, 0);
            row("bytes of memory for a waiting job", ours.resident, theirs.resident);
            row("  by their own account (used_memory)", ours.used, theirs.used);
            row("  on disk", ours.disk, theirs.disk);
        }
        let names = self.plain(0);
        if names.is_empty() {
            println!("redis-benchmark is not installed: GET, SET and LPUSH were not measured");
        }
        for name in names.keys() {
            self.row(&format!("{name} a second (redis-benchmark)"), plain(name), 0);
        }
        println!();
        println!(
            "Medians of {} rounds, ratios too; {} sockets, fsync {} on both; lives: the ratio that counts is the one at {} \
             jobs at a time, where redis-server is fastest.",
            self.options.rounds,
            if self.options.tcp { "TCP" } else { "unix" },
            self.options.fsync.as_str(),
            self.best_level()
        );
        println!("CPU, latency and memory: a ratio below 1 is better. Everything else: above 1.");
    }

    fn row(&self, what: &str, figure: impl Fn(&Round) -> f64, digits: usize) {
        let (ours, theirs) = (self.middle(0, &figure), self.middle(1, &figure));
        row(what, ours, theirs, self.ratio(figure), digits);
    }
}

fn row(what: &str, ours: f64, theirs: f64, ratio: f64, digits: usize) {
    println!("{what:<44} {ours:>13.digits$} {theirs:>13.digits$} {ratio:>7.2}");
}

fn life(level: usize) -> impl Fn(&Round) -> f64 {
    move |round| round.life.get(&level).copied().unwrap_or(f64::NAN)
}

fn cpu(level: usize) -> impl Fn(&Round) -> f64 {
    move |round| round.cpu_us.get(&level).copied().unwrap_or(f64::NAN)
}

fn plain(name: &str) -> impl Fn(&Round) -> f64 {
    move |round| round.plain.get(name).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        engine: BenchEngine,
    }

    #[test]
    fn a_ratio_compares_what_was_measured_at_the_same_time() {
        let options = Options::parse_from(["bench"]).engine;
        let mut report = Report::new(&options, 0.0);
        // The machine was three times slower in the second round, and something hit one side of the third.
        for (ours, theirs) in [(1200.0, 1000.0), (400.0, 330.0), (1200.0, 200.0)] {
            for (side, speed) in [ours, theirs].into_iter().enumerate() {
                let life = LEVELS.map(|level| (level, speed)).into();
                report.rounds[side].push(Round { life, ..Round::default() });
            }
        }
        assert!((1.2..1.22).contains(&report.ratio(life(8))), "{}", report.ratio(life(8)));
        assert!(report.json()["life_vs_redis"].is_f64());
    }
}
