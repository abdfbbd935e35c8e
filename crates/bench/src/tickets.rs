//! `stampede bench tickets`: the whole way from order to ready PDFs.
//!
//! Starts a server of its own, places one order and measures it from outside; `processes.rs` reads what
//! each process used.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};
use stampede_client::{Client, Guest, NewOrder, sample};
use stampede_model::{BatchId, EventId};
use stampede_wire::ticketing::batches::BatchState;

use crate::figures::{percentile, rounded};
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
    let event = server.client.create_event(&sample::event()).await?;
    order(&server.client, event.id, WARM_UP).await?;

    let cpu_before = CpuTimes::of_tree(server.pid()?);
    let started = Instant::now();
    let batch_id = order(&server.client, event.id, options.tickets).await?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu = CpuTimes::of_tree(server.pid()?).since(&cpu_before);

    let waits_ms = waits_ms(&server.client, batch_id).await?;
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

/// Places an order and waits until all its tickets are ready.
async fn order(client: &Client, event: EventId, tickets: u32) -> Result<BatchId> {
    let holders: Vec<Guest> = (0..tickets).map(sample::guest).collect();
    let order = NewOrder { target: event, quantity: holders.len(), holders };
    let batch_id = client.order(&order).await?.batch_id;
    loop {
        let batch = client.batch(batch_id).await?;
        match batch.counters.status {
            BatchState::Processing => tokio::time::sleep(POLL).await,
            BatchState::Completed => return Ok(batch_id),
            BatchState::CompletedWithErrors => bail!("tickets failed: {batch:?}"),
        }
    }
}

/// For each ticket, milliseconds from order to ready; sorted.
async fn waits_ms(client: &Client, batch_id: BatchId) -> Result<Vec<f64>> {
    let mut waits = Vec::new();
    let mut after = None;
    loop {
        let page = client.batch_tickets(batch_id, after).await?;
        for ticket in page.tickets {
            let ready = ticket.processed_at.context("a ticket lacks its times")?;
            waits.push(ready.duration_since(ticket.created_at).as_secs_f64() * 1000.0);
        }
        after = page.next;
        if after.is_none() {
            break;
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
