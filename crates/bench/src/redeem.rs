//! `stampede bench redeem`: tickets are redeemed at the door, over HTTP, each once.
//!
//! Starts a server of its own without workers (PDFs are not what is measured), orders tickets, makes the phones a
//! device, and lets many connections redeem one ticket after the other. The connections are plain sockets, because
//! a client with more comfort would take more of the processor than the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};
use stampede_client::{Guest, NewOrder, sample};
use stampede_model::EventId;
use stampede_store::{Config, Store, TicketFilter, TicketSecret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::figures::{percentile, rounded};
use crate::processes::CpuTimes;
use crate::server::{Server, Size};

/// The ticket secret of the server that is measured; it lives as long as the benchmark.
const SECRET: &str = "a-secret-for-a-benchmark-that-is-thrown-away-afterwards";
/// Redeems before measuring, so that caches and connections are warm.
const WARM_UP: usize = 500;
/// Tickets read from the database in one step.
const PAGE: u32 = 1_000;
/// Writes by which the speed of the disk is measured.
const SYNCS: u32 = 50;

/// Options of `bench redeem`.
#[derive(Debug, Args)]
pub struct BenchRedeem {
    /// How many tickets to redeem
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=99_000))]
    tickets: u32,
    /// Connections that redeem at the same time
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    clients: u16,
    /// Print one JSON object instead of a report
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(options: BenchRedeem) -> Result<()> {
    let settings = [("WORKER_MODE", "api"), ("TICKET_KEY_SECRET", SECRET)];
    let server = Server::start_with(Size { workers: Some(1), slots: None }, &settings).await?;
    let event = server.client.create_event(&sample::event()).await?.id;
    let total = options.tickets as usize + WARM_UP;
    let holders: Vec<Guest> = (0..total as u32).map(sample::guest).collect();
    server.client.order(&NewOrder { target: event, quantity: total, holders }).await?;
    let key = server.client.create_device(event, "bench").await?.key;
    let mut tokens = tokens(&server, event).await?;
    let sync_ms = sync_ms(&server).await?;

    let warm = tokens.split_off(options.tickets as usize);
    redeem_all(&server, &key, warm, options.clients).await?;
    let (pid, own) = (server.pid()?, std::process::id());
    let before = (CpuTimes::of_tree(pid), CpuTimes::of_tree(own));
    let started = Instant::now();
    let mut waits_ms = redeem_all(&server, &key, tokens, options.clients).await?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu_s = CpuTimes::of_tree(pid).since(&before.0);
    let all_s = CpuTimes::of_tree(own).since(&before.1);
    let sum = |times: &CpuTimes| times.processes().map(|process| process.seconds).sum::<f64>();
    let (server_cpu_s, all_cpu_s) = (sum(&cpu_s), sum(&all_s));
    server.stop().await;

    waits_ms.sort_by(f64::total_cmp);
    let report = Report {
        options,
        seconds,
        waits_ms,
        server_cores: server_cpu_s / seconds,
        client_cores: (all_cpu_s - server_cpu_s).max(0.0) / seconds,
        sync_ms,
    };
    if report.options.json {
        println!("{}", report.json());
    } else {
        report.print();
    }
    Ok(())
}

/// The tokens of all tickets, as their QR codes say them: signed here, because no PDFs are made.
async fn tokens(server: &Server, event: EventId) -> Result<Vec<String>> {
    let url = format!("sqlite:{}/stampede.db", server.data_dir().display());
    let store = Store::connect(&Config { url, ..Config::default() }).await?;
    let store = store.with_ticket_secret(&TicketSecret::new(SECRET));
    let filter = TicketFilter { event: Some(event), ..TicketFilter::default() };
    let (mut tokens, mut after) = (Vec::new(), None);
    loop {
        let page = store.tickets(&filter, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        for ticket in &page {
            tokens.push(store.token(ticket).await?.to_string());
        }
    }
    store.close().await;
    Ok(tokens)
}

/// Milliseconds that the disk takes to keep a few bytes: no commit is faster.
async fn sync_ms(server: &Server) -> Result<f64> {
    let path = server.data_dir().join("sync-test");
    tokio::task::spawn_blocking(move || -> Result<f64> {
        use std::io::Write;
        let mut file = std::fs::File::create(&path)?;
        let started = Instant::now();
        for _ in 0..SYNCS {
            file.write_all(&[0; 4096])?;
            file.sync_data()?;
        }
        Ok(started.elapsed().as_secs_f64() * 1000.0 / f64::from(SYNCS))
    })
    .await?
}

/// Redeems every token once; returns how long each took, in milliseconds.
async fn redeem_all(
    server: &Server,
    key: &str,
    tokens: Vec<String>,
    clients: u16,
) -> Result<Vec<f64>> {
    let (tokens, next) = (Arc::new(tokens), Arc::new(AtomicUsize::new(0)));
    let mut connections = JoinSet::new();
    for _ in 0..clients {
        let (tokens, next, key, port) = (tokens.clone(), next.clone(), key.to_owned(), server.port);
        connections.spawn(async move {
            let mut connection = Connection::open(port, &key).await?;
            let mut waits = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(token) = tokens.get(number) else { return Ok(waits) };
                let started = Instant::now();
                let answer =
                    connection.redeem(token, &format!("{number}-{}", tokens.len())).await?;
                waits.push(started.elapsed().as_secs_f64() * 1000.0);
                if answer["result"] != "ok" {
                    bail!("a ticket was not let in: {answer}");
                }
            }
        });
    }
    let mut waits = Vec::new();
    while let Some(ended) = connections.join_next().await {
        waits.extend(ended??);
    }
    Ok(waits)
}

/// One connection that is kept open.
struct Connection {
    socket: TcpStream,
    head: String,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(port: u16, key: &str) -> Result<Self> {
        let socket = TcpStream::connect(("127.0.0.1", port)).await?;
        socket.set_nodelay(true)?;
        let head = format!(
            "POST /api/checkin/redeem HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\
             Authorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: "
        );
        Ok(Self { socket, head, buffer: Vec::with_capacity(4_096) })
    }

    async fn redeem(&mut self, token: &str, nonce: &str) -> Result<Value> {
        let body = format!(r#"{{"token":"{token}","nonce":"{nonce}"}}"#);
        let request = format!("{}{}\r\n\r\n{body}", self.head, body.len());
        self.socket.write_all(request.as_bytes()).await?;
        tokio::time::timeout(Duration::from_secs(30), self.answer()).await?
    }

    async fn answer(&mut self) -> Result<Value> {
        loop {
            if let Some((status, body, end)) = parsed(&self.buffer)? {
                if status != 200 {
                    bail!("the server answered {status}: {}", String::from_utf8_lossy(body));
                }
                let answer = serde_json::from_slice(body)?;
                self.buffer.drain(..end);
                return Ok(answer);
            }
            if self.socket.read_buf(&mut self.buffer).await? == 0 {
                bail!("the server closed a connection");
            }
        }
    }
}

/// Status, body and length of the answer at the beginning of the bytes, if it is all there.
fn parsed(bytes: &[u8]) -> Result<Option<(u16, &[u8], usize)>> {
    let Some(head) = bytes.windows(4).position(|end| end == b"\r\n\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(&bytes[..head])?.to_ascii_lowercase();
    let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.context("an answer without a status")?;
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.context("an answer without a length")?.trim().parse()?;
    let end = head + 4 + length;
    Ok(bytes.get(head + 4..end).map(|body| (status, body, end)))
}

struct Report {
    options: BenchRedeem,
    seconds: f64,
    waits_ms: Vec<f64>,
    server_cores: f64,
    client_cores: f64,
    sync_ms: f64,
}

impl Report {
    fn per_second(&self) -> f64 {
        f64::from(self.options.tickets) / self.seconds
    }

    /// What the figures say: the processor is the limit if hardly any of it was left.
    fn limit(&self) -> &'static str {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        match self.server_cores + self.client_cores > 0.85 * cores {
            true => "the processor, which server and clients share",
            false => "waiting: for the disk, and for each group's turn",
        }
    }

    fn json(&self) -> Value {
        json!({
            "tickets": self.options.tickets,
            "clients": self.options.clients,
            "seconds": rounded(self.seconds),
            "redeems_per_s": rounded(self.per_second()),
            "p50_ms": rounded(percentile(&self.waits_ms, 0.5)),
            "p99_ms": rounded(percentile(&self.waits_ms, 0.99)),
            "server_cores": rounded(self.server_cores),
            "client_cores": rounded(self.client_cores),
            "sync_ms": rounded(self.sync_ms),
            "limit": self.limit(),
        })
    }

    fn print(&self) {
        println!(
            "{} tickets redeemed by {} connections in {:.2} s: {:.0} redeems a second",
            self.options.tickets,
            self.options.clients,
            self.seconds,
            self.per_second()
        );
        println!(
            "latency: p50 {:.1} ms, p99 {:.1} ms",
            percentile(&self.waits_ms, 0.5),
            percentile(&self.waits_ms, 0.99)
        );
        println!(
            "processor: the server {:.2} cores, the clients {:.2}; the disk keeps a page in {:.2} ms",
            self.server_cores, self.client_cores, self.sync_ms
        );
        println!("limited by {}", self.limit());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_when_they_are_whole() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP";
        for cut in 0..answer.len() - 5 {
            assert!(parsed(&answer[..cut]).unwrap().is_none(), "{cut}");
        }
        let (status, body, end) = parsed(answer).unwrap().unwrap();
        assert_eq!((status, body, end), (200, b"{}".as_slice(), answer.len() - 4));
        assert!(parsed(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
