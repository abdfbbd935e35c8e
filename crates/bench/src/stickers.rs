//! `stampede bench stickers`: what a sticker costs, five at once, and a node under load.
//!
//! | part | measures |
//! |---|---|
//! | drawing | CPU time and bytes of one sticker in each format, in one thread, over all variants that ship |
//! | five at once | from the order to the last of five stickers, on four threads: the headline of the former software |
//! | `load.rs` | a node with a pool of two under a steady stream of different texts: what is lost, latency, memory |

mod load;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use stampede_pool::{Config, Pool, Priority};
use stampede_sticker::{Format, Studio, Text, shipped};

use self::load::Load;
use crate::figures::{median, rounded};
use crate::render::thread_cpu;

/// Five stickers on four threads, in milliseconds, as the former software told them.
const FORMER_MS: (u32, u32) = (4_000, 5_000);
/// Threads and stickers of that headline.
const THREADS: usize = 4;
const AT_ONCE: usize = 5;

/// Texts in several scripts and of several lengths, with emoji.
const TEXTS: [&str; 8] = [
    "Hello",
    "Привет, мир!",
    "Good morning ☀️",
    "שלום",
    "مرحبا 👋🏽",
    "See you at eight,\ndon't be late",
    "🎉🥳🎂",
    "The quick brown fox jumps over the lazy dog",
];

/// Options of `bench stickers`.
#[derive(Debug, Args)]
pub struct BenchStickers {
    /// Stickers to draw in each format and round
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(8..=100_000))]
    stickers: u32,
    /// Rounds, of which the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Requests a second that the node under load gets; 0 leaves this part out
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    rate: u32,
    /// Seconds that the load lasts
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Print one JSON object instead of a report
    #[arg(long)]
    json: bool,
}

/// What one sticker of a format costs.
struct Cost {
    format: Format,
    cpu_ms: f64,
    bytes: f64,
}

pub(crate) async fn run(options: BenchStickers) -> Result<()> {
    let studio = Arc::new(Studio::new()?);
    let mut costs = Vec::new();
    for format in [Format::Webp, Format::Png, Format::Tgs] {
        costs.push(drawing(&studio, format, &options)?);
    }
    let five_ms = five_at_once(&studio, options.rounds).await?;
    let load = match options.rate {
        0 => None,
        rate => Some(load::measure(rate, options.seconds).await?),
    };
    let report = Report { costs, five_ms, load };
    if options.json {
        println!("{}", report.json());
    } else {
        report.print();
    }
    Ok(())
}

/// The cost of a sticker in one format: the median of the rounds.
fn drawing(studio: &Studio, format: Format, options: &BenchStickers) -> Result<Cost> {
    let texts = TEXTS.iter().map(|text| Text::new(text)).collect::<Result<Vec<_>, _>>()?;
    let mut bytes = 0;
    let mut round = |count: u32| -> Result<f64> {
        let before = thread_cpu()?;
        for index in 0..count as usize {
            let variant = &shipped()[index % shipped().len()].variant;
            // Another text for each variant in every turn.
            let text = &texts[(index + index / texts.len()) % texts.len()];
            bytes += black_box(studio.draw(text, variant, format)?).len();
        }
        Ok((thread_cpu()? - before) * 1_000.0 / f64::from(count))
    };
    round(8)?;
    let rounds = (0..options.rounds).map(|_| round(options.stickers));
    let cpu_ms = median(rounds.collect::<Result<Vec<_>>>()?);
    let drawn = f64::from(options.rounds * options.stickers + 8);
    Ok(Cost { format, cpu_ms, bytes: bytes as f64 / drawn })
}

/// Milliseconds from the order to the last of five animated stickers on four threads: the median of the rounds.
async fn five_at_once(studio: &Arc<Studio>, rounds: u32) -> Result<f64> {
    let config = Config { name: "bench", threads: THREADS, ..Config::default() };
    let studio = studio.clone();
    let pool = Pool::start(&config, move || studio.clone())?;
    pool.ready().await?;
    let mut times = Vec::new();
    for round in 0..rounds as usize {
        let task = |index: usize| {
            let text = TEXTS[(round + index) % TEXTS.len()];
            move |studio: &mut Arc<Studio>| -> Result<usize> {
                let variant = &shipped()[index].variant;
                Ok(studio.draw(&Text::new(text)?, variant, Format::Tgs)?.len())
            }
        };
        let started = Instant::now();
        let batch = pool.submit_batch(Priority::Normal, (0..AT_ONCE).map(task).collect())?;
        for drawn in batch.all().await {
            drawn?.context("a sticker of five")?;
        }
        times.push(started.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(median(times))
}

struct Report {
    costs: Vec<Cost>,
    five_ms: f64,
    load: Option<Load>,
}

impl Report {
    fn json(&self) -> Value {
        let cost =
            |cost: &Cost| json!({ "cpu_ms": rounded(cost.cpu_ms), "bytes": cost.bytes.round() });
        let named = self.costs.iter().map(|of| (of.format.extension().to_owned(), cost(of)));
        let drawing: serde_json::Map<String, Value> = named.collect();
        json!({
            "drawing": drawing,
            "five_at_once_ms": rounded(self.five_ms),
            "five_at_once_formerly_ms": [FORMER_MS.0, FORMER_MS.1],
            "load": self.load.as_ref().map(Load::json),
        })
    }

    fn print(&self) {
        println!("one sticker, in one thread:");
        for Cost { format, cpu_ms, bytes } in &self.costs {
            println!("  {:<4} {cpu_ms:8.3} ms of CPU, {bytes:8.0} bytes", format.extension());
        }
        println!("{AT_ONCE} animated stickers on {THREADS} threads:");
        println!("  Stampede {:12.3} ms", self.five_ms);
        println!(
            "  formerly {:>12} ms, as its document says",
            format!("{}–{}", FORMER_MS.0, FORMER_MS.1)
        );
        if let Some(load) = &self.load {
            load.print();
        }
    }
}
