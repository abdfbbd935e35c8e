//! `stampede bench queue`: our broker beside Node's BullMQ, on the same Redis in the same run.
//!
//! Each measurement is made with one side and right after it with the other, in turns, on queues of their
//! own in one redis-server. A ratio is the median of the rounds' ratios. Node has two processes, one that
//! adds and one that works, which is how it is fastest; we have two threads. Both have one worker with the
//! same number of slots, the same payload and the same job options. Redis does not rewrite its AOF
//! meanwhile: a rewrite would slow one side only.
//!
//! - add: one by one, 16 at a time; in bulk, 500 at a time
//! - process: jobs that wait already, with 1, 8 and 100 slots, from the beginning of the first
//! - life: added in bulk and processed with 100 slots at the same time
//! - latency: from the call that adds a job to the beginning of its handler, at a fixed rate
//!
//! "Process" and "life" end when Redis has all jobs as completed. For both sides this program asks for the
//! counts, over a third connection and only after the last job has begun: asking slows neither side.

mod node;
mod ours;
mod redis;
mod report;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use serde_json::{Map, Value, json};
use stampede_broker::{Broker, Queue};

use self::node::{Node, Process};
use self::redis::{Aof, Redis};
use crate::figures::percentile;
use crate::local::{interrupted, socket_url};

const PATIENCE: Duration = Duration::from_secs(300);
/// Jobs added in one go.
const CHUNK: u32 = 500;
/// Jobs that are being added one by one at the same time.
const LANES: u32 = 16;
/// Slots for whole lives and for latency.
const LIFE_SLOTS: usize = 100;
const LIFE: &str = "life 100";
const WARM_UP: u32 = 300;
/// Completed jobs that are kept, on both sides.
const KEPT: u32 = 10_000;

/// Figures by name, such as `life 100`; jobs a second, or milliseconds.
type Figures = BTreeMap<String, f64>;

/// Options of `bench queue`.
#[derive(Debug, Args)]
pub struct BenchQueue {
    /// Jobs in each measurement
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    jobs: u32,
    /// Rounds; each measures both, in turns, and medians are shown
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Jobs a second while latency is measured
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// How long latency is measured in each round, in seconds
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Print one JSON object instead of a report
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(options: BenchQueue) -> Result<()> {
    // Two threads on any machine, as Node has two processes.
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let comparing = threads.spawn(compare(options));
    let result = tokio::select! {
        result = comparing => result?,
        signal = interrupted() => signal.and(Err(anyhow!("interrupted"))),
    };
    threads.shutdown_background();
    result
}

async fn compare(options: BenchQueue) -> Result<()> {
    let node = Node::install().await?;
    let mut results = Map::new();
    for aof in [Aof::On, Aof::Off] {
        let mut rounds = Vec::new();
        for number in 0..options.rounds {
            let round = Round::measure(&node, aof, number, &options).await?;
            if !options.json {
                eprintln!(
                    "AOF {}: round {} of {}: life at 100 slots {:.0} jobs/s, Node {:.0}",
                    aof.name(),
                    number + 1,
                    options.rounds,
                    round.ours[LIFE],
                    round.node[LIFE],
                );
            }
            rounds.push(round);
        }
        results.insert(aof.name().to_owned(), report::summary(&rounds));
    }
    let on = results["on"].clone();
    let found = json!({
        "life_vs_node": on["ratios"][LIFE],
        "p99_vs_node": on["ratios"]["add to start p99 ms"],
        "jobs": options.jobs,
        "rate": options.rate,
        "rounds": options.rounds,
        "aof": results,
    });
    if options.json {
        println!("{found}");
    } else {
        report::print(&found);
    }
    Ok(())
}

/// The figures of one round for each side.
struct Round {
    ours: Figures,
    node: Figures,
}

impl Round {
    async fn measure(node: &Node, aof: Aof, number: u32, options: &BenchQueue) -> Result<Self> {
        let redis = Redis::start(aof).await?;
        let url = socket_url(redis.socket())?;
        let bench = Bench {
            observer: ours::connect(&url).await?,
            url,
            payload: payload(),
            adder: node.start(redis.socket(), &payload())?,
            worker: node.start(redis.socket(), &payload())?,
            options,
        };
        bench.run(number).await
    }
}

/// About 300 bytes, like a ticket's job.
fn payload() -> Value {
    json!({
        "v": 1,
        "ticketId": "0199aaaa-7000-7000-8000-000000000001",
        "batchId": "0199bbbb-7000-7000-8000-000000000001",
        "holder": { "name": "Anna Bērziņa", "email": "anna@example.com", "seat": "Row 7 · Seat 12" },
        "event": { "name": "Midsummer Night Festival", "location": "Riverside Gardens, Riga" },
    })
}

struct Bench<'a> {
    url: String,
    /// Counts the jobs of both sides.
    observer: Broker,
    payload: Value,
    adder: Process,
    worker: Process,
    options: &'a BenchQueue,
}

/// A measurement. Both sides are measured one right after the other, for the speed of a machine changes.
#[derive(Clone, Copy)]
enum Measure {
    Add,
    Process(usize),
    Life,
    Latency,
}

const MEASURES: [Measure; 6] = [
    Measure::Add,
    Measure::Process(1),
    Measure::Process(8),
    Measure::Process(100),
    Measure::Life,
    Measure::Latency,
];

impl Bench<'_> {
    async fn run(mut self, number: u32) -> Result<Round> {
        let mut round = Round { ours: Figures::new(), node: Figures::new() };
        self.ours_life("ours-warm", 8, WARM_UP).await?;
        self.node_life("node-warm", 8, WARM_UP).await?;
        for measure in MEASURES {
            if number.is_multiple_of(2) {
                self.ours(measure, &mut round.ours).await?;
                self.node(measure, &mut round.node).await?;
            } else {
                self.node(measure, &mut round.node).await?;
                self.ours(measure, &mut round.ours).await?;
            }
        }
        self.adder.stop().await?;
        self.worker.stop().await?;
        Ok(round)
    }

    async fn ours(&self, measure: Measure, figures: &mut Figures) -> Result<()> {
        let jobs = self.options.jobs;
        let per_second = |seconds: f64| f64::from(jobs) / seconds;
        let broker = ours::connect(&self.url).await?;
        match measure {
            Measure::Add => {
                let queue = broker.queue("ours-add").await?;
                let seconds = ours::add(&queue, jobs, LANES, &self.payload).await?;
                figures.insert("add".into(), per_second(seconds));
            }
            Measure::Process(slots) => {
                let queue = broker.queue(&format!("ours-work-{slots}")).await?;
                let seconds = ours::bulk(&queue, jobs, &self.payload).await?;
                figures.insert("add in bulk".into(), per_second(seconds));
                let observed = self.observer.queue(queue.name()).await?;
                let work = ours::Work::start(queue, slots, jobs);
                let first_ms = work.seen().await?.first_ms;
                let ms = completed_at(&observed, jobs).await? - first_ms;
                work.rest().await?;
                figures.insert(format!("process {slots}"), per_second(ms / 1000.0));
            }
            Measure::Life => {
                let life = self.ours_life("ours-life", LIFE_SLOTS, jobs).await?;
                figures.insert(LIFE.into(), life);
            }
            Measure::Latency => {
                let queue = broker.queue("ours-pace").await?;
                let (rate, seconds) = (self.options.rate, self.options.seconds);
                let consumer = ours::connect(&self.url).await?.queue("ours-pace").await?;
                let work = ours::Work::start(consumer, LIFE_SLOTS, rate * seconds);
                ours::pace(&queue, rate, seconds, &self.payload).await?;
                waits(figures, work.seen().await?.waits_ms);
                work.rest().await?;
            }
        }
        Ok(())
    }

    async fn node(&mut self, measure: Measure, figures: &mut Figures) -> Result<()> {
        let jobs = self.options.jobs;
        let per_second = |answer: &Value| -> Result<f64> {
            Ok(f64::from(jobs) / answer["seconds"].as_f64().context("node gives no time")?)
        };
        match measure {
            Measure::Add => {
                let add = json!({"do": "add", "name": "node-add", "jobs": jobs, "at_once": LANES});
                figures.insert("add".into(), per_second(&self.adder.ask(add).await?)?);
            }
            Measure::Process(slots) => {
                let name = format!("node-work-{slots}");
                let bulk = json!({"do": "bulk", "name": name, "jobs": jobs, "chunk": CHUNK});
                figures.insert("add in bulk".into(), per_second(&self.adder.ask(bulk).await?)?);
                let work = json!({"do": "work", "name": name, "slots": slots, "jobs": jobs});
                // The first answer says that it is ready.
                self.worker.ask(work).await?;
                let observed = self.observer.queue(&name).await?;
                let first_ms = number(&self.worker.answer().await?["first"])?;
                let ms = completed_at(&observed, jobs).await? - first_ms;
                self.worker.ask(json!({"do": "rest"})).await?;
                figures.insert(format!("process {slots}"), f64::from(jobs) * 1000.0 / ms);
            }
            Measure::Life => {
                let life = self.node_life("node-life", LIFE_SLOTS, jobs).await?;
                figures.insert(LIFE.into(), life);
            }
            Measure::Latency => {
                let (rate, seconds) = (self.options.rate, self.options.seconds);
                let (name, count) = ("node-pace", rate * seconds);
                let work = json!({"do": "work", "name": name, "slots": LIFE_SLOTS, "jobs": count});
                self.worker.ask(work).await?;
                let pace = json!({"do": "pace", "name": name, "rate": rate, "seconds": seconds});
                self.adder.ask(pace).await?;
                let seen = self.worker.answer().await?;
                self.worker.ask(json!({"do": "rest"})).await?;
                let list = seen["waits"].as_array().context("node gives no waits")?;
                waits(figures, list.iter().filter_map(Value::as_f64).collect());
            }
        }
        Ok(())
    }

    /// Jobs a second, added in bulk and processed at the same time.
    async fn ours_life(&self, name: &str, slots: usize, jobs: u32) -> Result<f64> {
        // As two processes would have it: one connection adds, another takes.
        let queue = ours::connect(&self.url).await?.queue(name).await?;
        let consumer = ours::connect(&self.url).await?.queue(name).await?;
        let observed = self.observer.queue(name).await?;
        let work = ours::Work::start(consumer, slots, jobs);
        let started = ours::now_ms();
        ours::bulk(&queue, jobs, &self.payload).await?;
        work.seen().await?;
        let ms = completed_at(&observed, jobs).await? - started;
        work.rest().await?;
        Ok(f64::from(jobs) * 1000.0 / ms)
    }

    async fn node_life(&mut self, name: &str, slots: usize, jobs: u32) -> Result<f64> {
        let work = json!({"do": "work", "name": name, "slots": slots, "jobs": jobs});
        let observed = self.observer.queue(name).await?;
        self.worker.ask(work).await?;
        let started = ours::now_ms();
        let bulk = json!({"do": "bulk", "name": name, "jobs": jobs, "chunk": CHUNK});
        self.adder.ask(bulk).await?;
        self.worker.answer().await?;
        let ms = completed_at(&observed, jobs).await? - started;
        self.worker.ask(json!({"do": "rest"})).await?;
        Ok(f64::from(jobs) * 1000.0 / ms)
    }
}

/// When Redis has all of so many jobs as completed, none of which waits any more.
async fn completed_at(queue: &Queue, jobs: u32) -> Result<f64> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let counts = queue.counts().await?;
        if counts.active == 0 && counts.completed >= u64::from(jobs.min(KEPT)) {
            return Ok(ours::now_ms());
        }
        if Instant::now() > give_up {
            bail!("{} of {jobs} jobs of {} are completed", counts.completed, queue.name());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().context("node's answer has no number where one belongs")
}

fn waits(figures: &mut Figures, mut waits_ms: Vec<f64>) {
    waits_ms.sort_by(f64::total_cmp);
    figures.insert("add to start p50 ms".into(), percentile(&waits_ms, 0.5));
    figures.insert("add to start p99 ms".into(), percentile(&waits_ms, 0.99));
}
