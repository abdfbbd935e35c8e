//! `stampede demo`: an order to a running server, watched until the PDFs are there.

use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use stampede_client::{Client, Guest, NewOrder, sample};
use stampede_model::{Role, TicketId};
use stampede_wire::ticketing::batches::BatchCounters;

use crate::cli::Demo;
use crate::commands::progress::watch;
use crate::commands::session::Session;
use crate::settings::Settings;

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

    let batch = watch(client, batch_id, u64::from(options.tickets)).await?;
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

async fn download(client: &Client, tickets: &[TicketId], folder: &std::path::Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for id in tickets {
        let bytes = client.ticket_pdf(*id).await?;
        let path = folder.join(format!("ticket-{id}.pdf"));
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
