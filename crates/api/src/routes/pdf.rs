//! `GET /api/tickets/{id}/pdf`: the PDF of a ticket, or 409 with Retry-After until it is made.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG};
use schemars::json_schema;
use stampede_model::{Pdf, TicketId};
use stampede_ticketing::Download;

use crate::app::App;
use crate::auth::Caller;
use crate::describe::{Kind, Operation, Sent};
use crate::headers::IfNoneMatch;
use crate::input::Id;
use crate::problem::{Code, Problem};

/// A ticket as PDF.
pub(crate) struct PdfFile;

impl Kind for PdfFile {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({ "type": "string", "format": "binary" });
        operation.answers(200, "The PDF.", Some(("application/pdf", schema)));
        operation.answers_with_header("ETag", "The version of the PDF, for `If-None-Match`.");
    }
}

pub(crate) async fn download(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TicketId>,
    known: IfNoneMatch,
) -> Result<Sent<PdfFile>, Problem> {
    let found = app.ticketing.ticket_with_event(id).await?;
    let (ticket, event) = found.ok_or_else(|| Problem::not_found("Ticket", &id))?;
    caller.must_read(&ticket.owner)?;
    match app.ticketing.download(ticket, &event).await? {
        Download::Ready(pdf, bytes) => Ok(Sent::new(answer(id, &pdf, bytes, &known))),
        Download::NotReady => Err(Problem::pdf_not_ready(id)),
        Download::Void => Err(Problem::new(Code::Gone, "the ticket is void")),
        Download::Failed(reason) => {
            let detail = format!("the PDF could not be made: {reason}");
            Err(Problem::new(Code::Failed, detail))
        }
        Download::NotFound => Err(Problem::not_found("Ticket", &id)),
    }
}

fn answer(id: TicketId, pdf: &Pdf, bytes: Vec<u8>, known: &IfNoneMatch) -> Response {
    let etag = format!("\"{}\"", pdf.fingerprint);
    let (status, body) = if known.has(&etag) {
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
