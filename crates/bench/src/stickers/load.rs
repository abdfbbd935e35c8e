//! A node with a pool of two under a steady stream of stickers that nobody has asked for before. Requests are sent at their
//! times, whether earlier ones were answered or not: a server that is slow gets no rest.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use stampede_client::{DrawnSticker, NewSticker};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::figures::{percentile, rounded};
use crate::processes::{Growth, memory_of_tree};
use crate::server::{Server, Size};

/// Stickers before measuring, so that fonts, caches and connections are warm.
const WARM_UP: usize = 100;

/// What became of the load.
pub(super) struct Load {
    rate: u32,
    seconds: u32,
    drawn: usize,
    later: usize,
    refused: usize,
    /// Requests without an answer, or with one that is no refusal for lack of room.
    lost: usize,
    waits_ms: Vec<f64>,
    before_mb: f64,
    after_mb: f64,
    peak_growth_mb: f64,
}

enum Ended {
    Drawn(f64),
    Later,
    Refused,
    Lost,
}

/// Starts a server and loads it.
pub(super) async fn measure(rate: u32, seconds: u32) -> Result<Load> {
    let settings = [
        ("WORKER_MODE", "api"),
        ("WORKER_POOL_SIZE", "2"),
        ("RATE_LIMIT_KEY", "0"),
        ("RATE_LIMIT_ADDRESS", "0"),
    ];
    let server = Server::start_with(Size { workers: Some(1), slots: None }, &settings).await?;
    let client = Arc::new(server.client.clone());
    for number in 0..WARM_UP {
        client.draw_sticker(&order(number, "warm")).await?;
    }
    let pid = server.pid()?;
    let before_mb = resident_mb(pid);
    let growth = Growth::begin(pid)?;
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut requests = JoinSet::new();
    for number in 0..(rate * seconds) as usize {
        ticks.tick().await;
        let client = client.clone();
        requests.spawn(async move {
            let started = Instant::now();
            match client.draw_sticker(&order(number, "load")).await {
                Ok(DrawnSticker::File(_)) => Ended::Drawn(started.elapsed().as_secs_f64() * 1e3),
                Ok(DrawnSticker::Later(_)) => Ended::Later,
                Err(error) if error.status() == Some(503) => Ended::Refused,
                Err(_) => Ended::Lost,
            }
        });
    }
    let mut load = Load {
        rate,
        seconds,
        drawn: 0,
        later: 0,
        refused: 0,
        lost: 0,
        waits_ms: Vec::new(),
        before_mb,
        after_mb: 0.0,
        peak_growth_mb: 0.0,
    };
    while let Some(ended) = requests.join_next().await {
        load.count(ended?);
    }
    load.after_mb = resident_mb(pid);
    load.peak_growth_mb = growth.grown_mb()?;
    load.waits_ms.sort_by(f64::total_cmp);
    server.stop().await;
    Ok(load)
}

/// Nine of ten are animated.
fn order(number: usize, word: &str) -> NewSticker {
    let format = if number.is_multiple_of(10) { "webp" } else { "tgs" };
    NewSticker {
        text: format!("{word} {number} 🎉"),
        format: Some(format.to_owned()),
        ..NewSticker::default()
    }
}

fn resident_mb(pid: u32) -> f64 {
    memory_of_tree(pid).resident as f64 / f64::from(1 << 20)
}

impl Load {
    fn count(&mut self, ended: Ended) {
        match ended {
            Ended::Drawn(ms) => {
                self.drawn += 1;
                self.waits_ms.push(ms);
            }
            Ended::Later => self.later += 1,
            Ended::Refused => self.refused += 1,
            Ended::Lost => self.lost += 1,
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "rate": self.rate,
            "seconds": self.seconds,
            "drawn": self.drawn,
            "later": self.later,
            "refused": self.refused,
            "lost": self.lost,
            "p50_ms": rounded(percentile(&self.waits_ms, 0.5)),
            "p99_ms": rounded(percentile(&self.waits_ms, 0.99)),
            "before_mb": rounded(self.before_mb),
            "after_mb": rounded(self.after_mb),
            "peak_growth_mb": rounded(self.peak_growth_mb),
        })
    }

    pub(super) fn print(&self) {
        println!(
            "a node with a pool of 2, {} requests a second for {} s, each for another sticker:",
            self.rate, self.seconds
        );
        println!(
            "  {} drawn, {} left to workers, {} refused, {} lost",
            self.drawn, self.later, self.refused, self.lost
        );
        println!(
            "  latency: p50 {:.1} ms, p99 {:.1} ms",
            percentile(&self.waits_ms, 0.5),
            percentile(&self.waits_ms, 0.99)
        );
        println!(
            "  memory: {:.0} MB before, {:.0} MB after, at most {:.0} MB more (64 MB of stickers are kept)",
            self.before_mb, self.after_mb, self.peak_growth_mb
        );
    }
}
