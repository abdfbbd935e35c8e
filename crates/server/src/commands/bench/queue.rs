//! `stampede bench queue`: our broker beside Node's BullMQ, on the same Redis in the same run.
//!
//! Each measurement is made with one and at once with the other, in turns, on queues of their own in
//! one redis-server; a ratio is the median of the rounds' ratios. Node has two processes, one that
//! adds and one that works, which is how it is fastest; we have two threads. Both have one worker
//! with the same number of slots, the same payload and the same job options. Redis does not rewrite its
//! AOF meanwhile: that would hit one side or the other.
//!
//! - add: one by one, 16 at a time; in bulk, 500 at a time
//! - process: jobs that wait already, with 1, 8 and 100 slots, from the beginning of the first
//! - life: added in bulk and processed with 100 slots at the same time
//! - latency: from the call that adds a job to the beginning of its handler, at a fixed rate
//!
//! Processes and lives last until Redis has all jobs as completed. For both sides it is we who look, over
//! a third connection, and not before the last job has begun: looking costs neither of them anything.

mod node;
mod ours;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value, json};
use stampede_broker::{Broker, Queue};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use self::node::{Node, Process};
use super::engine::{median, percentile};
use super::rounded;
use crate::cli::BenchQueue;
use crate::commands::signals::stop_on_signal;
use crate::local_engine::socket_url;

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

pub(crate) async fn run(options: BenchQueue) -> Result<()> {
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    // Two, however many cores there are.
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let comparing = threads.spawn(compare(options));
    let result = tokio::select! {
        result = comparing => result?,
        () = stop.cancelled() => Err(anyhow!("interrupted")),
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
        results.insert(aof.name().to_owned(), summary(&rounds));
    }
    let on = results["on"].clone();
    let report = json!({
        "life_vs_node": on["ratios"][LIFE],
        "p99_vs_node": on["ratios"]["add to start p99 ms"],
        "jobs": options.jobs,
        "rate": options.rate,
        "rounds": options.rounds,
        "aof": results,
    });
    if options.json {
        println!("{report}");
    } else {
        print(&report);
    }
    Ok(())
}

/// Whether Redis writes an append-only file, every second.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aof {
    On,
    Off,
}

impl Aof {
    fn name(self) -> &'static str {
        if self == Self::On { "on" } else { "off" }
    }
}

/// A redis-server of our own.
struct Redis {
    _child: Child,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Redis {
    async fn start(aof: Aof) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("stampede-bench-").tempdir()?;
        let socket = folder.path().join("socket");
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--maxmemory-policy", "noeviction"])
            .args([
                "--auto-aof-rewrite-percentage",
                "0",
                "--appendfsync",
                "everysec",
                "--appendonly",
            ])
            .arg(if aof == Aof::On { "yes" } else { "no" })
            .arg("--unixsocket")
            .arg(&socket)
            .arg("--dir")
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("redis-server is not installed: apt-get install redis-server")?;
        let give_up = Instant::now() + Duration::from_secs(10);
        // The file is there a moment before anybody listens.
        while tokio::net::UnixStream::connect(&socket).await.is_err() {
            if Instant::now() > give_up {
                bail!("redis-server does not start");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(Self { _child: child, socket, _folder: folder })
    }
}

/// What one round found for each side.
struct Round {
    ours: Figures,
    node: Figures,
}

impl Round {
    async fn measure(node: &Node, aof: Aof, number: u32, options: &BenchQueue) -> Result<Self> {
        let redis = Redis::start(aof).await?;
        let url = socket_url(&redis.socket, None)?;
        let bench = Bench {
            observer: ours::connect(&url).await?,
            url,
            payload: payload(),
            adder: node.start(&redis.socket, &payload())?,
            worker: node.start(&redis.socket, &payload())?,
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
    /// Looks at the queues of both sides.
    observer: Broker,
    payload: Value,
    adder: Process,
    worker: Process,
    options: &'a BenchQueue,
}

/// What is measured, each with both sides one right after the other: a machine has moods.
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

fn summary(rounds: &[Round]) -> Value {
    let names: Vec<&String> =
        rounds.first().map(|round| round.ours.keys().collect()).unwrap_or_default();
    let figure = |pick: &dyn Fn(&Round, &str) -> f64| -> Map<String, Value> {
        names
            .iter()
            .map(|name| {
                let middle = median(rounds.iter().map(|round| pick(round, name)));
                ((*name).clone(), json!(rounded(middle)))
            })
            .collect()
    };
    json!({
        "ours": figure(&|round, name| round.ours[name]),
        "node": figure(&|round, name| round.node.get(name).copied().unwrap_or(f64::NAN)),
        "ratios": figure(&|round, name| round.ours[name] / round.node.get(name).copied().unwrap_or(f64::NAN)),
    })
}

fn print(report: &Value) {
    for aof in ["on", "off"] {
        let part = &report["aof"][aof];
        println!("\nRedis with AOF {aof}");
        println!("  {:<22} {:>12} {:>12} {:>8}", "", "ours", "Node", "ratio");
        for (name, ours) in part["ours"].as_object().into_iter().flatten() {
            let of = |side: &str| part[side][name].as_f64().unwrap_or(f64::NAN);
            let digits = if name.ends_with("ms") { 2 } else { 0 };
            println!(
                "  {:<22} {:>12.digits$} {:>12.digits$} {:>8.2}",
                name,
                ours.as_f64().unwrap_or(f64::NAN),
                of("node"),
                of("ratios")
            );
        }
    }
    println!("\nadd, process, life: jobs a second (more is better); add to start: milliseconds at");
    println!("{} jobs a second (less is better). Ratios are ours to Node's.", report["rate"]);
}
