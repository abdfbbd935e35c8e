//! `stampede bench tickets`: the whole way from order to ready PDFs.
//!
//! Starts a server of its own, places one order and measures it from outside; `processes.rs` reads what
//! each process used.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};
use stampede_model::Timestamp;

use crate::figures::{percentile, rounded};
use crate::guests::{event, guest};
use crate::processes::CpuTimes;
use crate::server::{Server, Size};

/// Tickets made before measuring, so that fonts, caches and connections are warm.
const WARM_UP: u32 = 64;
const POLL: Duration = Duration::from_millis(20);
/// Most jobs whose steps are looked at.
const STEP_SAMPLE: usize = 2_000;
/// The queue of ticket jobs, a name older software relies on (docs/compatibility.md).
const QUEUE: &str = "tickets";

/// Options of `bench tickets`.
#[derive(Debug, Args)]
pub struct BenchTickets {
    /// How many tickets to order
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    tickets: u32,
    /// Worker processes [default: one per core]
    #[arg(long)]
    workers: Option<u32>,
    /// Jobs a worker runs at a time [default: as the server's]
    #[arg(long)]
    slots: Option<u32>,
    /// Print one JSON object instead of a report
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(options: BenchTickets) -> Result<()> {
    let size = Size { workers: options.workers, slots: options.slots };
    let server = Server::start(size).await?;
    let event = server.post("/api/events", &event()).await?;
    order(&server, &event, WARM_UP).await?;

    let cpu_before = CpuTimes::of_tree(server.pid()?);
    let started = Instant::now();
    let batch_id = order(&server, &event, options.tickets).await?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu = CpuTimes::of_tree(server.pid()?).since(&cpu_before);

    let waits_ms = waits_ms(&server, &batch_id).await?;
    let steps = steps(&server, options.tickets as usize).await?;
    server.stop().await;

    let report = Report { tickets: options.tickets, seconds, waits_ms, cpu, steps };
    if options.json {
        println!("{}", report.json())
    } else {
        report.print()
    }
    Ok(())
}

/// Places an order and waits until all its tickets are ready; returns the batch id.
async fn order(server: &Server, event: &Value, tickets: u32) -> Result<String> {
    let holders: Vec<Value> = (0..tickets).map(guest).collect();
    let order = json!({ "target": event["id"], "holders": holders });
    let order = server.post("/api/tickets", &order).await?;
    let batch_id = order["batchId"].as_str().context("the answer has no batchId")?.to_owned();
    loop {
        let batch = server.get(&format!("/api/batches/{batch_id}")).await?;
        match batch["status"].as_str() {
            Some("processing") => tokio::time::sleep(POLL).await,
            Some("completed") => return Ok(batch_id),
            status => bail!("the batch ended as {status:?}: {batch}"),
        }
    }
}

/// For each ticket, milliseconds from order to ready; sorted.
async fn waits_ms(server: &Server, batch_id: &str) -> Result<Vec<f64>> {
    let mut waits = Vec::new();
    let mut after = String::new();
    loop {
        let path = format!("/api/tickets?batch={batch_id}&limit=1000{after}");
        let page = server.get(&path).await?;
        for ticket in page["tickets"].as_array().into_iter().flatten() {
            let time = |field: &str| -> Option<Timestamp> { ticket[field].as_str()?.parse().ok() };
            let (ordered, ready) =
                time("createdAt").zip(time("processedAt")).context("a ticket lacks its times")?;
            waits.push(ready.duration_since(ordered).as_secs_f64() * 1000.0);
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    waits.sort_by(f64::total_cmp);
    Ok(waits)
}

/// Mean microseconds of each step inside the jobs, as the workers measured them.
async fn steps(server: &Server, tickets: usize) -> Result<BTreeMap<String, f64>> {
    let queue = server.broker().await?.queue(QUEUE).await?;
    let results = queue.latest_results(tickets.min(STEP_SAMPLE)).await?;
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for result in &results {
        for (step, us) in result["steps_us"].as_object().into_iter().flatten() {
            *sums.entry(step.clone()).or_default() += us.as_f64().unwrap_or(0.0);
        }
    }
    sums.values_mut().for_each(|sum| *sum /= results.len().max(1) as f64);
    Ok(sums)
}

struct Report {
    tickets: u32,
    seconds: f64,
    waits_ms: Vec<f64>,
    cpu: CpuTimes,
    steps: BTreeMap<String, f64>,
}

impl Report {
    fn tickets_per_s(&self) -> f64 {
        f64::from(self.tickets) / self.seconds
    }

    fn percentile_ms(&self, share: f64) -> f64 {
        percentile(&self.waits_ms, share)
    }

    fn json(&self) -> Value {
        json!({
            "tickets": self.tickets,
            "seconds": rounded(self.seconds),
            "tickets_per_s": rounded(self.tickets_per_s()),
            "p50_ms": rounded(self.percentile_ms(0.5)),
            "p99_ms": rounded(self.percentile_ms(0.99)),
            "cpu_ms_per_ticket": self.cpu.by_kind().iter()
                .map(|(kind, seconds)| (kind.clone(), json!(rounded(seconds * 1000.0 / f64::from(self.tickets)))))
                .collect::<serde_json::Map<_, _>>(),
            "step_us": self.steps.iter()
                .map(|(step, us)| (step.clone(), json!(us.round())))
                .collect::<serde_json::Map<_, _>>(),
        })
    }

    fn print(&self) {
        println!(
            "{} tickets in {:.2} s: {:.0} tickets a second",
            self.tickets,
            self.seconds,
            self.tickets_per_s()
        );
        println!(
            "from order to ready: p50 {:.0} ms, p99 {:.0} ms",
            self.percentile_ms(0.5),
            self.percentile_ms(0.99)
        );
        println!("\nCPU during the order");
        for process in self.cpu.processes() {
            println!(
                "  {:<28} {:>7.2} s  {:>4.0} % of a core",
                process.name,
                process.seconds,
                process.seconds / self.seconds * 100.0
            );
        }
        println!("\nWhere the time of a job goes (mean, waiting included)");
        for (step, us) in &self.steps {
            println!("  {step:<8} {us:>8.0} µs");
        }
    }
}
