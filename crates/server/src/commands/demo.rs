//! `stampede demo`: an order to a running server, watched until the PDFs are there.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use stampede_model::Role;

use crate::cli::Demo;
use crate::commands::client::Client;
use crate::commands::session::Session;
use crate::settings::Settings;

const POLL: Duration = Duration::from_millis(100);
/// No progress for this long means that nobody works.
const STUCK_AFTER: Duration = Duration::from_secs(60);

pub(crate) async fn run(settings: Settings, options: Demo) -> Result<()> {
    let session = Session::open(&settings, &options.server, Role::Organiser).await?;
    // Ctrl-C ends the demo, not the order; the temporary key must not stay behind.
    let result = tokio::select! {
        result = order_and_watch(&settings, &options, &session) => result,
        _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted")),
    };
    session.close().await?;
    result
}

async fn order_and_watch(settings: &Settings, options: &Demo, session: &Session) -> Result<()> {
    session.must_be_ready().await?;
    let (client, url) = (&session.client, &session.url);
    let event = client.post("/api/events", &sample_event()).await?;
    let holders: Vec<Value> = (0..options.tickets).map(sample_holder).collect();
    let started = Instant::now();
    let order = json!({ "target": event["id"], "quantity": options.tickets, "holders": holders });
    let order = client.post("/api/tickets", &order).await?;
    println!(
        "Ordered {} tickets for \"{}\" in {:.0?}",
        options.tickets,
        text(&event["name"]),
        started.elapsed()
    );
    let batch_id = text(&order["batchId"]);

    let batch = watch(client, batch_id, options.tickets).await?;
    let took = started.elapsed();
    let (completed, failed) =
        (batch["completed"].as_u64().unwrap_or(0), batch["failed"].as_u64().unwrap_or(0));
    println!(
        "{completed} ready, {failed} failed in {took:.2?}: {:.0} tickets a second",
        completed as f64 / took.as_secs_f64()
    );

    let tickets = order["tickets"].as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(folder) = &options.out {
        download(client, tickets, folder).await?;
        println!("Downloaded to {}", folder.display());
    }
    let local = settings.public_path.join("tickets");
    if let Some(first) = tickets.first().map(text)
        && let Ok(path) = std::fs::canonicalize(local.join(format!("ticket-{first}.pdf")))
    {
        println!("The PDFs are in {}", path.parent().unwrap_or(&path).display());
        println!("The first one is {}", path.display());
    }
    println!(
        "Over HTTP: curl -H \"Authorization: Bearer <key>\" \"{url}/api/tickets?batch={batch_id}\""
    );
    if failed > 0 {
        bail!("{failed} tickets failed; GET /api/tickets?batch={batch_id}&status=failed says why");
    }
    Ok(())
}

/// Shows a progress bar until the batch has ended.
async fn watch(client: &Client, batch_id: &str, total: u32) -> Result<Value> {
    let bar = ProgressBar::new(u64::from(total));
    let style = "{bar:40.cyan/blue} {pos}/{len} tickets  {per_sec}  {eta} left";
    bar.set_style(ProgressStyle::with_template(style)?);
    let mut last = (0, Instant::now());
    loop {
        let batch: Value = client.get(&format!("/api/batches/{batch_id}")).await?;
        let done = batch["completed"].as_u64().unwrap_or(0) + batch["failed"].as_u64().unwrap_or(0);
        bar.set_position(done);
        if batch["status"] != "processing" {
            bar.finish();
            return Ok(batch);
        }
        if done != last.0 {
            last = (done, Instant::now());
        }
        if last.1.elapsed() > STUCK_AFTER {
            bar.abandon();
            bail!(
                "no ticket was made for {STUCK_AFTER:?}; are workers running? The server's log tells"
            );
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn download(client: &Client, tickets: &[Value], folder: &std::path::Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for id in tickets.iter().map(text) {
        let bytes = client.bytes(&format!("/api/tickets/{id}/pdf")).await?;
        let path = folder.join(format!("ticket-{id}.pdf"));
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

pub(crate) fn sample_event() -> Value {
    json!({
        "name": "Midsummer Night Festival",
        "location": "Riverside Gardens, Riga",
        "startsAt": "2027-06-23T19:30:00+03:00",
        "timeZone": "Europe/Riga",
        "currency": "EUR",
    })
}

/// People from several countries; every tenth sits among the VIPs.
pub(crate) fn sample_holder(number: u32) -> Value {
    const FIRST: [&str; 12] = [
        "Anna",
        "Иван",
        "Zoë",
        "Дарья",
        "Łukasz",
        "Ελένη",
        "José",
        "Ольга",
        "Søren",
        "Márta",
        "יעל",
        "ليلى",
    ];
    const LAST: [&str; 7] =
        ["Bērziņa", "Петров", "O’Connor", "Ковальчук", "Müller", "García", "Lindqvist"];
    let n = number as usize;
    let (row, place) = (number / 20, number % 20 + 1);
    let seat = if number.is_multiple_of(10) {
        "VIP".to_owned()
    } else {
        format!("Row {} · Seat {place}", row + 1)
    };
    json!({
        "name": format!("{} {}", FIRST[n % FIRST.len()], LAST[n % LAST.len()]),
        "email": format!("guest{number}@example.com"),
        "seat": seat,
        "price": if number.is_multiple_of(10) { "120.00" } else { "49.90" },
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
