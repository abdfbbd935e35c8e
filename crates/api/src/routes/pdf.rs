//! `GET /api/tickets/{id}/pdf`: the PDF of a ticket, or 409 with Retry-After until it is made.

use std::ops::Range;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use schemars::json_schema;
use stampede_model::{Event, Ticket, TicketId};
use stampede_ticketing::Download;

use crate::app::App;
use crate::auth::Caller;
use crate::describe::{Kind, Operation, Sent};
use crate::input::Id;
use crate::problem::{Code, Problem};
use crate::ranges::{Sendable, Wanted};

/// A ticket as PDF.
pub(crate) struct PdfFile;

impl Kind for PdfFile {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({ "type": "string", "format": "binary" });
        operation.answers_file("The PDF.", "application/pdf", schema);
    }
}

pub(crate) async fn download(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TicketId>,
    wanted: Wanted,
) -> Result<Sent<PdfFile>, Problem> {
    let found = app.ticketing.ticket_with_event(id).await?;
    let (ticket, event) = found.ok_or_else(|| Problem::not_found("Ticket", &id))?;
    caller.must_read(&ticket.owner)?;
    answer(&app, ticket, &event, &wanted, "private, no-cache").await.map(Sent::new)
}

/// The PDF of a ticket, or what refuses it. `cache`: how it may be cached.
pub(crate) async fn answer(
    app: &App,
    ticket: Ticket,
    event: &Event,
    wanted: &Wanted,
    cache: &'static str,
) -> Result<Response, Problem> {
    let id = ticket.id;
    match app.ticketing.download(ticket, event).await? {
        Download::Ready(pdf, bytes) => {
            let file = Sendable {
                kind: "application/pdf",
                disposition: &format!("inline; filename=\"ticket-{id}.pdf\""),
                cache,
                tag: Some(&format!("\"{}\"", pdf.fingerprint)),
                length: Some(bytes.len() as u64),
            };
            Ok(file.answer(wanted, |part| part_of(bytes, part)))
        }
        Download::NotReady => Err(Problem::pdf_not_ready(id)),
        Download::Void => Err(Problem::new(Code::Gone, "the ticket is void")),
        Download::Failed(reason) => {
            let detail = format!("the PDF could not be made: {reason}");
            Err(Problem::new(Code::Failed, detail))
        }
        Download::NotFound => Err(Problem::not_found("Ticket", &id)),
    }
}

/// A part of bytes.
pub(crate) fn part_of(bytes: Vec<u8>, part: Range<u64>) -> Body {
    let within = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let (from, to) = (within(part.start), within(part.end));
    Body::from(Bytes::from(bytes).slice(from..to))
}
