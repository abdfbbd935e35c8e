//! `GET /api/tickets/{id}/pdf`: the PDF of a ticket, or 409 with Retry-After until it is made.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode};
use stampede_model::{Pdf, TicketId};
use stampede_ticketing::Download;

use crate::app::App;
use crate::auth::Caller;
use crate::input::Id;
use crate::problem::Problem;

pub(crate) async fn download(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TicketId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let found = app.ticketing.ticket_with_event(id).await?;
    let (ticket, event) = found.ok_or_else(|| Problem::not_found("Ticket", &id))?;
    caller.must_read(&ticket.owner)?;
    match app.ticketing.download(ticket, &event).await? {
        Download::Ready(pdf, bytes) => Ok(answer(id, &pdf, bytes, &headers)),
        Download::NotReady => Err(Problem::pdf_not_ready(id)),
        Download::Void => Err(Problem::new(StatusCode::GONE, "the ticket is void")),
        Download::Failed(reason) => {
            let detail = format!("the PDF could not be made: {reason}");
            Err(Problem::new(StatusCode::CONFLICT, detail))
        }
        Download::NotFound => Err(Problem::not_found("Ticket", &id)),
    }
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
