//! `stampede bench upload`: a large guest list is uploaded, made and downloaded, and the server's memory is watched.
//!
//! Starts a server of its own, uploads guests as NDJSON, follows the order live until the PDFs are made, and downloads them as a
//! ZIP, which `unzip` tests. Fails if the server needs [`MOST_MB`] for the order or for the ZIP, or if the live stream is incomplete.
//! The memory is that of the server's process alone. The embedded engine is in it, with a job for every ticket ([`JOB_KB`]);
//! `--queue-url` puts the queue elsewhere, so that only the API is measured. Meanwhile another client writes: it tells how long
//! others wait for the database.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;
use stampede_client::{GuestFile, sample};
use stampede_model::BatchId;
use stampede_wire::ticketing::batches::BatchState;
use tokio_util::sync::CancellationToken;

use crate::figures::rounded;
use crate::processes::Growth;
use crate::server::{Server, Size};

/// Guests of a first upload, after which what is kept for good is there: connections, the template, reserves.
const WARM_UP: u32 = 2_000;
/// Pause between two looks at a batch.
const POLL: Duration = Duration::from_millis(250);
/// Pause between two writes of the other client.
const PAUSE: Duration = Duration::from_millis(20);

/// The server must grow by less, in MB, whatever the number of guests.
const MOST_MB: f64 = 100.0;
/// What a waiting job may take in the engine, in KB: without `--queue-url`, jobs are kept in the server's process.
const JOB_KB: f64 = 1.0;

/// Options of `bench upload`.
#[derive(Debug, Args)]
pub struct BenchUpload {
    /// How many guests the file has
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    tickets: u32,
    /// A Redis for the queue, instead of the engine in the server's process
    #[arg(long, value_name = "URL")]
    queue_url: Option<String>,
    /// Ends after the order was accepted: no PDFs, no ZIP
    #[arg(long)]
    only_order: bool,
    /// Print one JSON object instead of a report
    #[arg(long)]
    json: bool,
}

/// What was measured; memory is that of the server's process, in MB more than before.
#[derive(Debug, Default)]
struct Figures {
    file_mb: f64,
    accepted_s: f64,
    others_waited_s: f64,
    order_mb: f64,
    made_s: f64,
    made_mb: f64,
    live: Live,
    zip_mb: f64,
    zip_s: f64,
    zip_memory_mb: f64,
}

/// What the live stream of the order told.
#[derive(Debug, Default)]
struct Live {
    events: u64,
    tickets: u64,
    longest_gap: Duration,
}

pub(crate) async fn run(options: BenchUpload) -> Result<()> {
    let most = options.tickets.max(WARM_UP).to_string();
    let mut settings = vec![("MAX_QUANTITY", most.as_str())];
    settings.extend(options.queue_url.as_deref().map(|url| ("REDIS_URL", url)));
    if options.only_order {
        settings.push(("WORKER_MODE", "api"));
    }
    let server = Server::start_with(Size::default(), &settings).await?;
    let event = server.client.create_event(&sample::event()).await?.id.to_string();
    let warm = server.client.upload_guests(&event, guests(WARM_UP)).await?.batch_id;
    if !options.only_order {
        made(&server, warm).await?;
        download(&server, warm, &server.data_dir().join("warm.zip")).await?;
    }
    let mut figures = Figures::default();
    let file = guests(options.tickets);
    figures.file_mb = file.bytes.len() as f64 / 1e6;
    let memory = Growth::begin(server.pid()?)?;
    let done = CancellationToken::new();
    let started = Instant::now();
    let uploading = async {
        let accepted = server.client.upload_guests(&event, file).await;
        done.cancel();
        accepted
    };
    let (accepted, waited) = tokio::join!(uploading, others(&server, &done));
    let (batch, waited) = (accepted?.batch_id, waited?);
    figures.accepted_s = started.elapsed().as_secs_f64();
    figures.others_waited_s = waited.as_secs_f64();
    figures.order_mb = memory.grown_mb()?;
    if !options.only_order {
        let (made, live) = tokio::join!(made(&server, batch), follow(&server, batch));
        made?;
        figures.live = live?;
        figures.made_s = started.elapsed().as_secs_f64();
        figures.made_mb = memory.grown_mb()?;
        let (zip, memory) = (server.data_dir().join("all.zip"), Growth::begin(server.pid()?)?);
        let started = Instant::now();
        figures.zip_mb = download(&server, batch, &zip).await? as f64 / 1e6;
        figures.zip_s = started.elapsed().as_secs_f64();
        figures.zip_memory_mb = memory.grown_mb()?;
        let tested = Command::new("unzip").arg("-tqq").arg(&zip).status();
        if !tested.context("install unzip")?.success() {
            bail!("unzip -t finds the ZIP broken");
        }
    }
    server.stop().await;
    figures.tell(&options);
    figures.check(&options)
}

/// A guest list.
fn guests(count: u32) -> GuestFile {
    let mut lines = String::new();
    for n in 0..count {
        let guest = sample::guest(n);
        let line = json!({ "name": guest.name, "email": guest.email, "seat": guest.seat, "price": guest.price });
        // Writing to a text does not fail.
        let _ = writeln!(lines, "{line}");
    }
    GuestFile {
        kind: "application/x-ndjson".to_owned(),
        query: Vec::new(),
        idempotency_key: None,
        bytes: lines.into_bytes(),
    }
}

/// Waits until all tickets of a batch are made.
async fn made(server: &Server, batch: BatchId) -> Result<()> {
    loop {
        let status = server.client.batch(batch).await?.counters;
        match status.status {
            BatchState::Processing => tokio::time::sleep(POLL).await,
            BatchState::Completed => return Ok(()),
            BatchState::CompletedWithErrors => bail!("{} tickets failed", status.failed),
        }
    }
}

/// Follows an order live until its end, and counts. A stream that breaks off is resumed.
async fn follow(server: &Server, batch: BatchId) -> Result<Live> {
    let path = format!("/api/batches/{batch}/events?until=completed");
    let (mut live, mut last, mut heard) = (Live::default(), None::<String>, Instant::now());
    loop {
        let mut stream = server.client.stream(&path, last.as_deref()).await?;
        while let Some(message) = stream.next().await? {
            last = message.id.or(last);
            match message.name.as_str() {
                "" | "hello" | "state" => continue,
                "reset" => bail!("the live stream of the order has missed events"),
                "end" => return Ok(live),
                "tickets.completed" => live.tickets += tickets_in(&message.data)?,
                _ => {}
            }
            live.events += 1;
            live.longest_gap = live.longest_gap.max(heard.elapsed());
            heard = Instant::now();
        }
    }
}

/// How many tickets an event tells of.
fn tickets_in(event: &str) -> Result<u64> {
    let event: serde_json::Value = serde_json::from_str(event)?;
    let tickets = event["data"]["tickets"].as_array();
    Ok(tickets.context("an event without tickets")?.len() as u64)
}

/// Writes until it is told to stop; returns the longest time that a write took.
async fn others(server: &Server, done: &CancellationToken) -> Result<Duration> {
    let mut longest = Duration::ZERO;
    while !done.is_cancelled() {
        let started = Instant::now();
        server.client.create_event(&sample::event()).await?;
        longest = longest.max(started.elapsed());
        tokio::time::sleep(PAUSE).await;
    }
    Ok(longest)
}

/// Downloads a batch; returns the size of the file.
async fn download(server: &Server, batch: BatchId, zip: &Path) -> Result<u64> {
    let mut file = std::fs::File::create(zip)?;
    let (mut pieces, mut size) = (server.client.batch_zip(batch).await?, 0);
    while let Some(piece) = pieces.next().await? {
        file.write_all(&piece)?;
        size += piece.len() as u64;
    }
    Ok(size)
}

impl Figures {
    /// What the figures must show.
    fn check(&self, options: &BenchUpload) -> Result<()> {
        let jobs_mb = match options.queue_url {
            None => f64::from(options.tickets) * JOB_KB / 1024.0,
            Some(_) => 0.0,
        };
        let measured = [
            ("the order", self.order_mb, MOST_MB + jobs_mb),
            ("the ZIP", self.zip_memory_mb, MOST_MB),
        ];
        for (what, mb, most) in measured {
            if mb >= most {
                bail!(
                    "the server grew by {mb:.1} MB for {what}; less than {most:.1} MB are allowed"
                );
            }
        }
        let (told, all) = (self.live.tickets, u64::from(options.tickets));
        // The first ones may be made before the stream is open.
        if !options.only_order && (self.live.events == 0 || told > all) {
            bail!("the live stream told of {told} of {all} tickets");
        }
        Ok(())
    }

    fn tell(&self, options: &BenchUpload) {
        if options.json {
            println!(
                "{}",
                json!({
                    "tickets": options.tickets,
                    "fileMb": rounded(self.file_mb), "acceptedSeconds": rounded(self.accepted_s),
                    "othersWaitedSeconds": rounded(self.others_waited_s), "orderMb": rounded(self.order_mb),
                    "madeSeconds": rounded(self.made_s), "madeMb": rounded(self.made_mb),
                    "liveEvents": self.live.events, "liveTickets": self.live.tickets,
                    "longestLiveGapSeconds": rounded(self.live.longest_gap.as_secs_f64()),
                    "zipMb": rounded(self.zip_mb), "zipSeconds": rounded(self.zip_s),
                    "zipMemoryMb": rounded(self.zip_memory_mb),
                })
            );
            return;
        }
        println!(
            "{} guests, {:.1} MB of NDJSON: accepted in {:.2} s; the server grew by {:.1} MB",
            options.tickets, self.file_mb, self.accepted_s, self.order_mb
        );
        println!(
            "Another client that wrote meanwhile waited at most {:.2} s",
            self.others_waited_s
        );
        if !options.only_order {
            println!(
                "All PDFs after {:.1} s ({:.0} a second); the server had grown by {:.1} MB",
                self.made_s,
                f64::from(options.tickets) / self.made_s,
                self.made_mb
            );
            println!(
                "Live: {} events told of {} tickets; the longest time without one was {:.2} s",
                self.live.events,
                self.live.tickets,
                self.live.longest_gap.as_secs_f64()
            );
            println!(
                "ZIP of {:.0} MB in {:.1} s, tested by unzip; the server grew by {:.1} MB",
                self.zip_mb, self.zip_s, self.zip_memory_mb
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_grows_too_much_or_tells_nothing_fails_the_benchmark() {
        let options = |only_order| BenchUpload {
            tickets: 10,
            queue_url: Some("redis://elsewhere".to_owned()),
            only_order,
            json: false,
        };
        let live = || Live { events: 2, tickets: 10, longest_gap: Duration::ZERO };
        let fine =
            Figures { order_mb: 99.9, zip_memory_mb: 99.9, live: live(), ..Figures::default() };
        fine.check(&options(false)).unwrap();
        for wrong in [
            Figures { order_mb: 100.0, live: live(), ..Figures::default() },
            Figures { zip_memory_mb: 100.0, live: live(), ..Figures::default() },
            Figures::default(),
            Figures { live: Live { tickets: 11, ..live() }, ..Figures::default() },
        ] {
            wrong.check(&options(false)).unwrap_err();
        }
        Figures::default().check(&options(true)).unwrap();
        let with_jobs = BenchUpload { tickets: 10_240, queue_url: None, ..options(true) };
        Figures { order_mb: 109.9, ..Figures::default() }.check(&with_jobs).unwrap();
        Figures { order_mb: 110.0, ..Figures::default() }.check(&with_jobs).unwrap_err();
        assert_eq!(tickets_in(r#"{"data":{"tickets":[{},{}]}}"#).unwrap(), 2);
    }
}
