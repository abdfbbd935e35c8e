//! `GET /api/tickets/{id}/pdf`: never a stale, short or missing file.
//!
//! The store keeps the fingerprint and size of the PDF that was made. When the ticket, its event or
//! the template has changed since, or the file is not what was written, the ticket goes back to the
//! queue, and the client gets the new PDF if it is quick, or 409 with Retry-After.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode};
use stampede_model::{Event, Pdf, Ticket, TicketDocument, TicketId, TicketStatus};
use tokio::time::Instant;

use crate::app::{App, now};
use crate::auth::Caller;
use crate::input::Id;
use crate::problem::Problem;

/// How long a request waits for a PDF that is being made anew.
const REMAKE_PATIENCE: Duration = Duration::from_secs(3);
const REMAKE_POLL: Duration = Duration::from_millis(50);
/// What Retry-After says while a ticket waits for its first PDF.
const RETRY_AFTER_S: u32 = 1;

pub(crate) async fn download(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TicketId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (ticket, event) = load(&app, id).await?;
    caller.must_read(&ticket.owner)?;
    match ticket.status {
        TicketStatus::Completed => {}
        TicketStatus::Pending => return Err(Problem::not_ready(id, RETRY_AFTER_S)),
        TicketStatus::Void => return Err(Problem::new(StatusCode::GONE, "the ticket is void")),
        TicketStatus::Failed => {
            let reason = ticket.error.as_deref().unwrap_or("unknown reason");
            let detail = format!("the PDF could not be made: {reason}");
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
    }
    if let Some((pdf, bytes)) = current_pdf(&app, &ticket, &event).await? {
        return Ok(answer(id, &pdf, bytes, &headers));
    }
    tracing::info!(ticket = %id, "its PDF is stale, short or missing and is made anew");
    make_anew(&app, &[ticket]).await?;

    let give_up = Instant::now() + REMAKE_PATIENCE;
    while Instant::now() < give_up {
        tokio::time::sleep(REMAKE_POLL).await;
        let (ticket, event) = load(&app, id).await?;
        if ticket.status != TicketStatus::Completed {
            continue;
        }
        return match current_pdf(&app, &ticket, &event).await? {
            Some((pdf, bytes)) => Ok(answer(id, &pdf, bytes, &headers)),
            // Just made, and yet not what we expect: making it again would not change that.
            None => Err(Problem::internal(&format!(
                "workers make another PDF of ticket {id} than this server expects; do all nodes run \
                 the same version and TICKET_TEMPLATE, and write to the same folder (PUBLIC_PATH, NFS_PATH)?"
            ))),
        };
    }
    Err(Problem::not_ready(id, RETRY_AFTER_S))
}

async fn load(app: &App, id: TicketId) -> Result<(Ticket, Event), Problem> {
    let row = app.store.tickets_with_events(&[id]).await?.pop();
    row.ok_or_else(|| Problem::not_found("Ticket"))
}

/// Puts tickets back on the queue whose PDFs are not what they should be.
pub(crate) async fn make_anew(app: &App, tickets: &[Ticket]) -> Result<(), Problem> {
    for ticket in tickets {
        if let Some(batch) = app.store.mark_stale(ticket.id, now()).await? {
            app.mirror(&batch).await;
        }
    }
    app.enqueue_all_again(tickets).await;
    Ok(())
}

/// The PDF, if it says what the ticket says now and is as it was written.
async fn current_pdf(
    app: &App,
    ticket: &Ticket,
    event: &Event,
) -> Result<Option<(Pdf, Vec<u8>)>, Problem> {
    let revision = app.press.revision_of(event).await?;
    let Some(pdf) = wanted_pdf(app, ticket, event, &revision).await? else { return Ok(None) };
    Ok(stored_pdf(app, ticket, &pdf).await?.map(|bytes| (pdf, bytes)))
}

/// The PDF that was made last, if it was made from what the ticket says now.
pub(crate) async fn wanted_pdf(
    app: &App,
    ticket: &Ticket,
    event: &Event,
    revision: &str,
) -> Result<Option<Pdf>, Problem> {
    let token = app.store.token(ticket).await?;
    let wanted = TicketDocument::new(event, ticket, &token).fingerprint(revision);
    Ok(ticket.pdf.clone().filter(|pdf| pdf.fingerprint == wanted.as_str()))
}

/// The bytes of a PDF, if they are in the files as they were written.
pub(crate) async fn stored_pdf(
    app: &App,
    ticket: &Ticket,
    pdf: &Pdf,
) -> Result<Option<Vec<u8>>, Problem> {
    let bytes = app.files.get(&Ticket::pdf_path(ticket.id)).await?;
    Ok(bytes.filter(|bytes| pdf.matches(bytes)))
}

fn answer(id: TicketId, pdf: &Pdf, bytes: Vec<u8>, headers: &HeaderMap) -> Response {
    let etag = format!("\"{}\"", pdf.fingerprint);
    let listed =
        headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let known = listed
        .split(',')
        .map(str::trim)
        .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag);
    let (status, body) = if known {
        (StatusCode::NOT_MODIFIED, Body::empty())
    } else {
        (StatusCode::OK, bytes.into())
    };
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "application/pdf")
        .header(CONTENT_DISPOSITION, format!("inline; filename=\"ticket-{id}.pdf\""))
        .header(CACHE_CONTROL, "private, no-cache")
        .header(ETAG, etag)
        .body(body)
        .unwrap_or_else(|_| Response::new(Body::empty()))
}
