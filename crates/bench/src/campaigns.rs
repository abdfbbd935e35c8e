//! `stampede bench campaigns`: a campaign through the webhook channel, as fast as it goes.
//!
//! Starts a server of its own and an endpoint that answers at once, imports recipients, and lets the campaign run without a
//! limit that matters. At the end every recipient must have got exactly one message. Every message is claimed with a sync of the
//! disk before it leaves, and its outcome recorded with another.
//!
//! With `--least` it fails below that many messages a second.
//!
//! With `--only-import` nothing is sent: the list is uploaded to a server without workers, whose memory is watched. Fails if it
//! grows by [`MOST_MB`], or if a list of [`LARGE`] recipients or more takes [`MOST_TIME`] or more for each [`LARGE`] of them.

mod recorder;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::json;
use stampede_client::{NewAccount, NewContract, RecipientFile};
use stampede_model::CampaignId;
use stampede_model::campaign::{CampaignState, Channel, Content, Pacing, Rate, Template};

use self::recorder::{Arrived, Recorder};
use crate::figures::rounded;
use crate::processes::{CpuTimes, Growth};
use crate::server::{Server, Size};

/// Recipients of a first campaign, after which connections and caches are warm.
const WARM_UP: u32 = 500;
/// A server must grow by less during an import, in MB, whatever the number of recipients.
const MOST_MB: f64 = 150.0;
/// Recipients of a list whose import has a limit of time.
const LARGE: u32 = 200_000;
/// The import of so many must take less.
const MOST_TIME: Duration = Duration::from_secs(60);
/// Pause between two looks at a campaign.
const POLL: Duration = Duration::from_millis(100);
/// More than any machine sends.
const NO_LIMIT: Rate = Rate { max: 1_000_000, per_ms: 1_000 };

/// Options of `bench campaigns`.
#[derive(Debug, Args)]
pub struct BenchCampaigns {
    /// How many recipients the campaign has
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    recipients: u32,
    /// How many milliseconds the endpoint takes to answer
    #[arg(long, default_value_t = 0)]
    latency_ms: u64,
    /// Worker processes; one per core if not given
    #[arg(long)]
    workers: Option<u32>,
    /// Messages that a worker sends at a time; the server's default if not given
    #[arg(long)]
    slots: Option<u32>,
    /// Fails if fewer messages a second are sent
    #[arg(long, value_name = "RATE", value_parser = clap::value_parser!(u32).range(1..))]
    least: Option<u32>,
    /// Ends after the recipients were imported: the time, and the memory of the server
    #[arg(long, conflicts_with_all = ["latency_ms", "workers", "slots", "least"])]
    only_import: bool,
    /// Print one JSON object instead of a report
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(options: BenchCampaigns) -> Result<()> {
    if options.only_import {
        return import(&options).await;
    }
    let recorder = Recorder::start(Duration::from_millis(options.latency_ms)).await?;
    let size = Size { workers: options.workers, slots: options.slots };
    let server = Server::start_with(size, &[("WEBHOOK_ALLOW_PRIVATE", "127.0.0.1")]).await?;
    account(&server, &recorder.url()).await?;
    let (warm, _) = campaign(&server, WARM_UP).await?;
    finished(&server, warm).await?;
    check(&recorder.take().await, WARM_UP)?;

    let (id, import_s) = campaign(&server, options.recipients).await?;
    let pid = server.pid()?;
    let (before, started) = (CpuTimes::of_tree(pid), Instant::now());
    finished(&server, id).await?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu = CpuTimes::of_tree(pid).since(&before);
    let cores = cpu.processes().map(|process| process.seconds).sum::<f64>() / seconds;
    let arrived = recorder.take().await;
    server.stop().await;
    check(&arrived, options.recipients)?;
    tell(&options, import_s, seconds, cores, &arrived);
    is_fast(options.recipients, seconds, options.least)
}

fn is_fast(recipients: u32, seconds: f64, least: Option<u32>) -> Result<()> {
    let rate = f64::from(recipients) / seconds;
    match least {
        Some(least) if rate < f64::from(least) => {
            bail!("{rate:.0} messages a second were sent; --least wants {least}")
        }
        _ => Ok(()),
    }
}

/// Imports recipients; nothing is sent.
async fn import(options: &BenchCampaigns) -> Result<()> {
    let settings = [("WORKER_MODE", "api"), ("WEBHOOK_ALLOW_PRIVATE", "127.0.0.1")];
    let server = Server::start_with(Size::default(), &settings).await?;
    account(&server, "http://127.0.0.1:1024/messages").await?;
    campaign(&server, WARM_UP).await?;
    let growth = Growth::begin(server.pid()?)?;
    let (_, seconds) = campaign(&server, options.recipients).await?;
    let grown_mb = growth.grown_mb()?;
    server.stop().await;
    let (recipients, rate) = (options.recipients, f64::from(options.recipients) / seconds);
    if options.json {
        let figures = json!({
            "recipients": recipients,
            "importSeconds": rounded(seconds),
            "recipientsPerSecond": rounded(rate),
            "serverMb": rounded(grown_mb),
        });
        println!("{figures}");
    } else {
        println!("imported    {recipients} recipients in {seconds:.1} s: {rate:.0} a second");
        println!("the server  grew by {grown_mb:.1} MB");
    }
    is_small(grown_mb)?;
    is_quick(recipients, seconds)
}

fn is_quick(recipients: u32, seconds: f64) -> Result<()> {
    let most_s = f64::from(recipients) / f64::from(LARGE) * MOST_TIME.as_secs_f64();
    if recipients >= LARGE && seconds >= most_s {
        bail!(
            "the import of {recipients} recipients took {seconds:.1} s; less than {most_s:.1} s are allowed"
        );
    }
    Ok(())
}

fn is_small(grown_mb: f64) -> Result<()> {
    if grown_mb >= MOST_MB {
        bail!("the server grew by {grown_mb:.1} MB; less than {MOST_MB} MB are allowed");
    }
    Ok(())
}

async fn account(server: &Server, url: &str) -> Result<()> {
    let secret = format!("whsec_{}", STANDARD.encode(rand::random::<[u8; 32]>()));
    let account = NewAccount {
        id: Some("bench".parse()?),
        name: None,
        channel: Channel::Webhook,
        settings: Some(json!({ "url": url })),
        credentials: Some(json!({ "secret": secret })),
        pacing: Some(Pacing { limit: Some(NO_LIMIT), ..Pacing::default() }),
        country: None,
        time_zone: None,
    };
    server.client.create_account(&account).await?;
    Ok(())
}

/// Makes a campaign; returns how many seconds the import of its recipients took.
async fn campaign(server: &Server, recipients: u32) -> Result<(CampaignId, f64)> {
    let text = Some("Hello {{ name }}, your seat is {{ seat }}.".to_owned());
    let contract = NewContract {
        account_id: Some("bench".parse()?),
        name: format!("{recipients} recipients"),
        content: Some(Content::Template(Template { text, ..Template::default() })),
        ..NewContract::default()
    };
    let id = server.client.create_contract(&contract).await?.contract_id;
    let mut csv = String::from("email,name,seat\n");
    for n in 0..recipients {
        csv += &format!("guest-{n}@example.com,Guest {n},Row {} Seat {}\n", n / 50, n % 50);
    }
    let file =
        RecipientFile { kind: "text/csv".to_owned(), query: Vec::new(), bytes: csv.into_bytes() };
    let started = Instant::now();
    let report = server.client.upload_recipients(id, file, false).await?;
    if report.added != u64::from(recipients) {
        bail!("{} of {recipients} recipients were added", report.added);
    }
    Ok((id, started.elapsed().as_secs_f64()))
}

/// Starts a campaign and waits until it is completed.
async fn finished(server: &Server, id: CampaignId) -> Result<()> {
    server.client.start_contract(id, None).await?;
    loop {
        let contract = server.client.contract(id).await?;
        match contract.status {
            CampaignState::Completed => return Ok(()),
            CampaignState::Running => tokio::time::sleep(POLL).await,
            state => bail!("the campaign is {}: {:?}", state.as_str(), contract.status_reason),
        }
    }
}

/// Every recipient has got one message.
fn check(arrived: &Arrived, recipients: u32) -> Result<()> {
    let twice = arrived.times.values().filter(|times| **times > 1).count();
    if arrived.times.len() != recipients as usize || twice > 0 {
        bail!(
            "{} of {recipients} recipients got a message, {twice} more than one",
            arrived.times.len()
        );
    }
    Ok(())
}

fn tell(options: &BenchCampaigns, import_s: f64, seconds: f64, cores: f64, arrived: &Arrived) {
    let recipients = options.recipients;
    let rate = f64::from(recipients) / seconds;
    let sending = arrived.at.iter().max().zip(arrived.at.iter().min());
    let sending_s = sending.map_or(0.0, |(last, first)| (*last - *first).as_secs_f64());
    if options.json {
        let figures = json!({
            "recipients": recipients,
            "latencyMs": options.latency_ms,
            "importSeconds": rounded(import_s),
            "seconds": rounded(seconds),
            "messagesPerSecond": rounded(rate),
            "sendingSeconds": rounded(sending_s),
            "serverCores": rounded(cores),
        });
        println!("{figures}");
        return;
    }
    println!("imported    {recipients} recipients in {import_s:.1} s");
    println!("completed   after {seconds:.1} s: {rate:.0} messages a second, each recipient once");
    println!("            {sending_s:.1} s from the first message to the last");
    println!("the server  used {cores:.1} cores, its workers included");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_grows_too_much_fails_the_benchmark() {
        is_small(149.9).unwrap();
        is_small(150.0).unwrap_err();
    }

    #[test]
    fn an_import_of_a_large_list_that_takes_too_long_fails_the_benchmark() {
        is_quick(200_000, 59.9).unwrap();
        is_quick(200_000, 60.0).unwrap_err();
        is_quick(1_000_000, 299.9).unwrap();
        is_quick(1_000_000, 300.0).unwrap_err();
        is_quick(199_999, 300.0).unwrap();
    }

    #[test]
    fn a_campaign_that_is_slower_than_asked_for_fails_the_benchmark() {
        is_fast(20_000, 20.0, Some(1_000)).unwrap();
        is_fast(20_000, 20.1, Some(1_000)).unwrap_err();
        is_fast(20_000, 2_000.0, None).unwrap();
    }
}
