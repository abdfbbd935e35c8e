//! `stampede demo`: an order to a running server, watched until the PDFs are there.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use stampede_client::{Client, Guest, NewOrder, sample};
use stampede_model::{BatchId, Role, TicketId};
use stampede_wire::ticketing::batches::{BatchCounters, BatchState, BatchStatus};

use crate::cli::Demo;
use crate::commands::session::Session;
use crate::settings::Settings;

const POLL: Duration = Duration::from_millis(100);
/// Without progress for this long, no worker seems to run.
const STUCK_AFTER: Duration = Duration::from_secs(60);

pub(crate) async fn run(settings: Settings, options: Demo) -> Result<()> {
    let session = Session::open(&settings, &options.server, Role::Organiser).await?;
    // Ctrl-C ends the demo, not the order; the temporary key must be revoked.
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
    let event = client.create_event(&sample::event()).await?;
    let holders: Vec<Guest> = (0..options.tickets).map(sample::guest).collect();
    let started = Instant::now();
    let order = NewOrder { target: event.id, quantity: holders.len(), holders };
    let order = client.order(&order).await?;
    println!(
        "Ordered {} tickets for \"{}\" in {:.0?}",
        options.tickets,
        event.name,
        started.elapsed()
    );
    let batch_id = order.batch_id;

    let batch = watch(client, batch_id, options.tickets).await?;
    let took = started.elapsed();
    let BatchCounters { completed, failed, .. } = batch.counters;
    println!(
        "{completed} ready, {failed} failed in {took:.2?}: {:.0} tickets a second",
        completed as f64 / took.as_secs_f64()
    );

    if let Some(folder) = &options.out {
        download(client, &order.tickets, folder).await?;
        println!("Downloaded to {}", folder.display());
    }
    let local = settings.public_path.join("tickets");
    if let Some(first) = order.tickets.first()
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
async fn watch(client: &Client, batch_id: BatchId, total: u32) -> Result<BatchStatus> {
    let bar = ProgressBar::new(u64::from(total));
    let style = "{bar:40.cyan/blue} {pos}/{len} tickets  {per_sec}  {eta} left";
    bar.set_style(ProgressStyle::with_template(style)?);
    let mut last = (0, Instant::now());
    loop {
        let batch = client.batch(batch_id).await?;
        let done = batch.counters.completed + batch.counters.failed;
        bar.set_position(done);
        if batch.counters.status != BatchState::Processing {
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

async fn download(client: &Client, tickets: &[TicketId], folder: &std::path::Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for id in tickets {
        let bytes = client.ticket_pdf(*id).await?;
        let path = folder.join(format!("ticket-{id}.pdf"));
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
