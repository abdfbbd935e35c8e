//! `stampede bench tickets`: the whole way from order to ready PDFs.
//!
//! Starts a server of its own (same binary, temporary folder, embedded engine, SQLite), places one
//! order and measures it from outside; `processes.rs` reads what each process used.

pub(crate) mod engine;
pub(crate) mod idle;
mod processes;
pub(crate) mod queue;
pub(crate) mod render;

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use stampede_broker::{Broker, Work as _};
use stampede_client::{Client, NewOrder, sample};
use stampede_model::{BatchId, EventId};
use stampede_ticketing::GenerateTicket;
use stampede_wire::ticketing::batches::BatchState;
use tokio::process::{Child, Command};

use self::processes::CpuTimes;
use crate::cli::BenchTickets;
use crate::local_engine::{LocalEngine, free_port};

/// Tickets made before measuring, so that fonts, caches and connections are warm.
const WARM_UP: u32 = 64;
const POLL: Duration = Duration::from_millis(20);
const START_PATIENCE: Duration = Duration::from_secs(60);
const STEP_SAMPLE: usize = 2_000;

pub(crate) async fn run(options: BenchTickets) -> Result<()> {
    let server = Server::start(options.workers, options.slots).await?;
    let event = server.client.create_event(&sample::event()).await?;
    server.order(event.id, WARM_UP).await?;

    let cpu_before = CpuTimes::of_tree(server.pid()?);
    let started = Instant::now();
    let batch_id = server.order(event.id, options.tickets).await?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu = CpuTimes::of_tree(server.pid()?).since(&cpu_before);

    let waits_ms = server.waits_ms(batch_id).await?;
    let steps = server.steps(options.tickets as usize).await?;
    server.stop().await;

    let report = Report { tickets: options.tickets, seconds, waits_ms, cpu, steps };
    if options.json {
        println!("{}", report.json())
    } else {
        report.print()
    }
    Ok(())
}

struct Server {
    child: Child,
    client: Client,
    folder: tempfile::TempDir,
}

impl Server {
    async fn start(workers: Option<u32>, slots: Option<u32>) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("stampede-bench-").tempdir()?;
        let (port, key) = (free_port()?, hex::encode(rand::random::<[u8; 16]>()));
        let mut command = Command::new(std::env::current_exe()?);
        // None of the surrounding settings: a benchmark must not touch somebody's database.
        command.env_clear();
        for name in ["PATH", "HOME", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .arg("serve")
            .env("DATA_DIR", folder.path())
            .env("PORT", port.to_string())
            .env("ADMIN_KEY", &key)
            .env("LOG_LEVEL", "warn")
            .stdout(Stdio::null())
            .kill_on_drop(true);
        // Always set: their number must not change while it is measured.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = workers.map_or(cores, |workers| workers as usize);
        command.env("WORKER_COUNT", workers.to_string());
        if let Some(slots) = slots {
            command.env("JOB_CONCURRENCY", slots.to_string());
        }
        let mut child = command.spawn()?;
        let client = Client::new(&format!("http://127.0.0.1:{port}"), &key)?;
        let give_up = Instant::now() + START_PATIENCE;
        while client.readiness().await.is_err() {
            if let Some(status) = child.try_wait()? {
                bail!("the server to be measured ended at once: {status}");
            }
            if Instant::now() > give_up {
                bail!("the server to be measured is not ready after {START_PATIENCE:?}");
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(Self { child, client, folder })
    }

    /// Places an order and waits until all of it is ready.
    async fn order(&self, event: EventId, tickets: u32) -> Result<BatchId> {
        let holders: Vec<_> = (0..tickets).map(sample::guest).collect();
        let order = NewOrder { target: event, quantity: holders.len(), holders };
        let batch_id = self.client.order(&order).await?.batch_id;
        loop {
            let batch = self.client.batch(batch_id).await?;
            match batch.counters.status {
                BatchState::Processing => tokio::time::sleep(POLL).await,
                BatchState::Completed => return Ok(batch_id),
                BatchState::CompletedWithErrors => bail!("tickets failed: {batch:?}"),
            }
        }
    }

    /// For each ticket, milliseconds from order to ready; sorted.
    async fn waits_ms(&self, batch_id: BatchId) -> Result<Vec<f64>> {
        let mut waits = Vec::new();
        let mut after = None;
        loop {
            let page = self.client.batch_tickets(batch_id, after).await?;
            for ticket in page.tickets {
                let ready = ticket.processed_at.context("a ticket lacks its times")?;
                waits.push(ready.duration_since(ticket.created_at).as_secs_f64() * 1000.0);
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        waits.sort_by(f64::total_cmp);
        Ok(waits)
    }

    /// Mean microseconds of each step inside the jobs, as the workers measured them.
    async fn steps(&self, tickets: usize) -> Result<BTreeMap<String, f64>> {
        let url =
            LocalEngine::known_url(self.folder.path()).context("the engine left no address")?;
        let broker = Broker::connect(&stampede_broker::Config::new(url)).await?;
        let results = broker
            .queue(GenerateTicket::QUEUE)
            .await?
            .latest_results(tickets.min(STEP_SAMPLE))
            .await?;
        let mut sums: BTreeMap<String, f64> = BTreeMap::new();
        for result in &results {
            for (step, us) in result["steps_us"].as_object().into_iter().flatten() {
                *sums.entry(step.clone()).or_default() += us.as_f64().unwrap_or(0.0);
            }
        }
        sums.values_mut().for_each(|sum| *sum /= results.len().max(1) as f64);
        Ok(sums)
    }

    fn pid(&self) -> Result<u32> {
        self.child.id().context("the server to be measured has ended")
    }

    async fn stop(mut self) {
        if let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(pid as i32)) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait().await;
    }
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
        let last = self.waits_ms.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        self.waits_ms.get(index).copied().unwrap_or(0.0)
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

pub(super) fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
