//! `GET /api/tickets/{id}/qr.svg` and `…/qr.png`: the QR code of a ticket alone.

use axum::extract::State;
use axum::response::Response;
use schemars::json_schema;
use sha2::{Digest, Sha256};
use stampede_model::{Ticket, TicketId};
use stampede_press::CodeShape;
use stampede_ticketing::{CodeFormat, CodePicture};

use crate::app::App;
use crate::auth::Caller;
use crate::describe::{Kind, Operation, Sent};
use crate::input::Id;
use crate::problem::{Code, Problem};
use crate::query::{FromQuery, Params, Query};
use crate::ranges::{Sendable, Wanted};
use crate::routes::pdf::part_of;

/// The shape of the picture.
pub(crate) struct Shape(pub(crate) CodeShape);

/// The shape unless the request says otherwise; four light modules are what scanners need.
pub(crate) const SHAPE: CodeShape = CodeShape { size: 400, margin: 4 };

impl FromQuery for Shape {
    fn from_query(query: &mut Query) -> Self {
        let size = query.about("Width and height, in pixels (400).").whole("size", 32..=4_000);
        let margin = query.about("Light modules on each side (4).").whole("margin", 0..=50);
        Self(CodeShape { size: size.unwrap_or(SHAPE.size), margin: margin.unwrap_or(SHAPE.margin) })
    }
}

/// A QR code as a drawing.
pub(crate) struct Drawing;

impl Kind for Drawing {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({ "type": "string" });
        operation.answers_file("The QR code.", "image/svg+xml", schema);
    }
}

/// A QR code as pixels.
pub(crate) struct Picture;

impl Kind for Picture {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({ "type": "string", "format": "binary" });
        operation.answers_file("The QR code.", "image/png", schema);
    }
}

pub(crate) async fn svg(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TicketId>,
    Params(Shape(shape)): Params<Shape>,
    wanted: Wanted,
) -> Result<Sent<Drawing>, Problem> {
    let ticket = find(&app, &caller, id).await?;
    let cache = "private, no-cache";
    answer(&app, &ticket, CodeFormat::Svg, shape, &wanted, cache).await.map(Sent::new)
}

pub(crate) async fn png(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TicketId>,
    Params(Shape(shape)): Params<Shape>,
    wanted: Wanted,
) -> Result<Sent<Picture>, Problem> {
    let ticket = find(&app, &caller, id).await?;
    let cache = "private, no-cache";
    answer(&app, &ticket, CodeFormat::Png, shape, &wanted, cache).await.map(Sent::new)
}

async fn find(app: &App, caller: &Caller, id: TicketId) -> Result<Ticket, Problem> {
    let found = app.ticketing.ticket(id).await?;
    let ticket = found.ok_or_else(|| Problem::not_found("Ticket", &id))?;
    caller.must_read(&ticket.owner)?;
    Ok(ticket)
}

/// The QR code of a ticket, or 410. `cache`: how it may be cached.
pub(crate) async fn answer(
    app: &App,
    ticket: &Ticket,
    format: CodeFormat,
    shape: CodeShape,
    wanted: &Wanted,
    cache: &'static str,
) -> Result<Response, Problem> {
    let picture = match app.ticketing.code_picture(ticket, format, shape).await? {
        CodePicture::Ready(picture) => picture,
        CodePicture::Void => return Err(Problem::new(Code::Gone, "the ticket is void")),
    };
    let (kind, end) = match format {
        CodeFormat::Svg => ("image/svg+xml", "svg"),
        CodeFormat::Png => ("image/png", "png"),
    };
    let hash: String =
        Sha256::digest(&picture)[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let file = Sendable {
        kind,
        disposition: &format!("inline; filename=\"ticket-{}-qr.{end}\"", ticket.id),
        cache,
        tag: Some(&format!("\"{hash}\"")),
        length: Some(picture.len() as u64),
    };
    Ok(file.answer(wanted, |part| part_of(picture, part)))
}
