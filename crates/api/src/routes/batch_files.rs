//! `GET /api/batches/{id}/pdf` and `…/zip`: all tickets of an order in one file.
//!
//! The file is written while it is sent, a page of tickets at a time (`outlet.rs`): neither the size
//! of the batch nor the patience of the client shows in the server's memory. The tickets that are not
//! in it (void, failed, with `?partial=1` also those not made yet) are named: in a header for the PDF,
//! in `left-out.txt` for the ZIP.

mod archive;
mod merged;
mod zipped;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use stampede_model::{Batch, BatchId, Event, Ticket, TicketId, TicketStatus};
use stampede_store::TicketFilter;
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::auth::Caller;
use crate::input::Id;
use crate::outlet::{Gone, Outlet};
use crate::problem::Problem;
use crate::query::{FromQuery, Params, Query};

/// Tickets read from the store at a time.
const PAGE: u32 = 100;
/// What Retry-After says at most while tickets are being made.
const LONGEST_RETRY_S: f64 = 60.0;
/// Tickets named in a header; more are only counted.
const NAMED: u32 = 50;

pub(crate) struct Options {
    extent: Extent,
}

impl FromQuery for Options {
    fn from_query(query: &mut Query) -> Self {
        let partial = query.is_bare("partial") || query.flag("partial");
        Self { extent: if partial { Extent::Partial } else { Extent::Whole } }
    }
}

/// Which tickets a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All of the batch; the ones that are being made anew are waited for.
    Whole,
    /// Those that are made by now.
    Partial,
}

/// Why the rest of a file does not come.
enum Broken {
    /// Nobody is there to read it.
    Gone,
    /// Something is wrong here.
    Failed(Problem),
}

impl From<Gone> for Broken {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl<E: Into<Problem>> From<E> for Broken {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// One PDF with the pages of all tickets.
pub(crate) async fn pdf(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<BatchId>,
    Params(options): Params<Options>,
) -> Result<Response, Problem> {
    let (batch, extent, place) = admit(&app, &caller, id, &options).await?;
    let left_out = named_left_out(&app, &batch, extent).await?;
    let event = super::events::find(&app, batch.event_id).await?;
    // A template that does not work is told here, where it still can be.
    app.press.ready(&event).await?;
    let (outlet, body) = Outlet::new();
    let title = format!("{} – {id}", event.details.name);
    tokio::spawn(async move {
        let written = merged::write(&app, &batch, extent, &title, &outlet).await;
        end(written, outlet, &batch, place).await;
    });
    let mut response = attachment("application/pdf", &format!("batch-{id}.pdf"), body);
    if let Ok(value) = left_out.parse() {
        response.headers_mut().insert("x-left-out", value);
    }
    Ok(response)
}

/// A ZIP with one PDF for each ticket.
pub(crate) async fn zip(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<BatchId>,
    Params(options): Params<Options>,
) -> Result<Response, Problem> {
    let (batch, extent, place) = admit(&app, &caller, id, &options).await?;
    let (outlet, body) = Outlet::new();
    tokio::spawn(async move {
        let written = zipped::write(&app, &batch, extent, &outlet).await;
        end(written, outlet, &batch, place).await;
    });
    Ok(attachment("application/zip", &format!("batch-{id}.zip"), body))
}

/// Whether this caller gets a file of the batch now.
async fn admit(
    app: &App,
    caller: &Caller,
    id: BatchId,
    options: &Options,
) -> Result<(Batch, Extent, OwnedSemaphorePermit), Problem> {
    let batch = app.store.batch(id).await?.ok_or_else(|| Problem::not_found("Batch"))?;
    caller.must_read(&batch.owner)?;
    let extent = options.extent;
    if extent == Extent::Whole && batch.pending() > 0 {
        let left = batch.seconds_left(crate::app::now()).unwrap_or(1.0);
        let retry_after_s = left.clamp(1.0, LONGEST_RETRY_S).ceil() as u32;
        return Err(Problem::batch_not_ready(batch.pending(), batch.total, retry_after_s));
    }
    if batch.completed == 0 {
        let detail = "no ticket of this batch is ready: all failed, are void, or are not made yet";
        return Err(Problem::new(StatusCode::CONFLICT, detail).retry_after(1));
    }
    let place = Arc::clone(&app.downloads).try_acquire_owned().map_err(|_| {
        let detail = "too many batches are being downloaded at the same time; try again";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(5)
    })?;
    Ok((batch, extent, place))
}

/// The next tickets of a batch with its event, in the order they were ordered.
async fn page(
    app: &App,
    batch: &Batch,
    after: Option<TicketId>,
) -> Result<Option<(Event, Vec<Ticket>)>, Problem> {
    let filter = TicketFilter { batch: Some(batch.id), ..TicketFilter::default() };
    // Ids grow in the order in which the tickets of an order were numbered.
    let tickets = app.store.tickets(&filter, after, PAGE).await?;
    if tickets.is_empty() {
        return Ok(None);
    }
    let event = super::events::find(app, batch.event_id).await?;
    Ok(Some((event, tickets)))
}

/// `void: id, id; failed: id; 3 pending`, of what will not be in the file.
async fn named_left_out(app: &App, batch: &Batch, extent: Extent) -> Result<String, Problem> {
    let mut parts = Vec::new();
    for (status, count) in
        [(TicketStatus::Void, batch.voided), (TicketStatus::Failed, batch.failed)]
    {
        if count == 0 {
            continue;
        }
        let filter =
            TicketFilter { batch: Some(batch.id), status: Some(status), ..TicketFilter::default() };
        let tickets = app.store.tickets(&filter, None, NAMED).await?;
        let ids: Vec<String> = tickets.iter().map(|ticket| ticket.id.to_string()).collect();
        let more = count.saturating_sub(ids.len() as u64);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!("{}: {}{more}", status.as_str(), ids.join(", ")));
    }
    if extent == Extent::Partial && batch.pending() > 0 {
        parts.push(format!("pending: {} tickets", batch.pending()));
    }
    Ok(if parts.is_empty() { "none".to_owned() } else { parts.join("; ") })
}

fn attachment(kind: &'static str, name: &str, body: Body) -> Response {
    Response::builder()
        .header(CONTENT_TYPE, kind)
        .header(CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\""))
        .header(CACHE_CONTROL, "private, no-store")
        .body(body)
        .unwrap_or_else(|_| Response::new(Body::empty()))
}

/// A file that could not be finished must not look finished.
async fn end(
    written: Result<(), Broken>,
    outlet: Outlet,
    batch: &Batch,
    place: OwnedSemaphorePermit,
) {
    match written {
        Ok(()) => {}
        Err(Broken::Gone) => tracing::debug!(batch = %batch.id, "a client went away"),
        Err(Broken::Failed(problem)) => {
            tracing::error!(batch = %batch.id, %problem, "a download was broken off");
            outlet.break_off("the rest of the file could not be made").await;
        }
    }
    drop(place);
}
