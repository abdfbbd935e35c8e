//! Validation and previews of templates: `POST /api/templates/validate`, `…/preview` for files that are not
//! kept, `…/{id}/preview` for a template or design.
//!
//! The ticket of a preview admits nobody: its code is signed with a key that is no event's.

use axum::Json;
use axum::body::Body as Bytes;
use axum::extract::State;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::{Map, Value};
use stampede_model::{Event, EventId, Limit, TemplateFiles, TicketDocument};
use stampede_press::{Picture, preflight, sample};
use stampede_wire::ticketing::orders::Warning;
use stampede_wire::ticketing::templates::ValidatedTemplate;

use super::{Named, compiled, files};
use crate::app::App;
use crate::auth::Writer;
use crate::input::{Body, Fields, Id, as_text};
use crate::problem::Problem;
use crate::query::{FromQuery, Params, Query};
use crate::routes::{events, tickets};

/// Resolution of a picture, unless the request says otherwise.
const DPI: f32 = 144.0;
/// Resolutions that a request can ask for.
const DPI_RANGE: std::ops::RangeInclusive<f32> = 20.0..=300.0;

/// The form of a preview: `?format=`, for pictures with `page` and `dpi`.
pub(crate) enum Format {
    Pdf,
    Png(Picture),
}

impl FromQuery for Format {
    fn from_query(query: &mut Query) -> Self {
        let format = query.text("format");
        // People count pages from 1.
        let page = query.whole("page", 1..=u32::MAX).unwrap_or(1) - 1;
        let right = format!("must be a number from {} to {}", DPI_RANGE.start(), DPI_RANGE.end());
        let dpi = query.parsed("dpi", &right).unwrap_or(DPI);
        if !DPI_RANGE.contains(&dpi) {
            query.wrong("dpi", &right);
        }
        match format.as_deref() {
            Some("png") => Self::Png(Picture { page, dpi }),
            Some(other) if other != "pdf" => {
                query.wrong("format", "must be pdf or png");
                Self::Pdf
            }
            _ => Self::Pdf,
        }
    }
}

/// Compiles files that are not kept; a problem lists all of their mistakes.
pub(crate) async fn validate(
    State(app): State<App>,
    caller: Writer,
    Body(body): Body,
) -> Result<Json<ValidatedTemplate>, Problem> {
    let (files, event, document) = read(&app, &caller, &body, None).await?;
    let _turn = app.turns.take(&caller.0.user).await;
    let (published, ready) = app.press.try_out(&files, &event).await?;
    let compiled = compiled(&published, &ready);
    if ready.slow_because().is_some() {
        // A template that looks at its ticket shows its mistakes only with one.
        app.press.pdf(&ready, &document).await?;
    }
    let flagged = preflight(app.press.compiler(), &ready, std::iter::once(document));
    let warnings = flagged.into_iter().flat_map(|(_, warnings)| warnings);
    let warnings = warnings.map(|warning| Warning {
        kind: warning.kind.to_owned(),
        field: warning.field,
        message: warning.message,
        index: None,
        ticket: None,
    });
    let (hash, warnings) = (files.hash(), warnings.collect());
    Ok(Json(ValidatedTemplate { valid: true, hash, compiled, warnings }))
}

/// A ticket made with files that are not kept.
pub(crate) async fn preview_files(
    State(app): State<App>,
    caller: Writer,
    Params(format): Params<Format>,
    Body(body): Body,
) -> Result<Response, Problem> {
    preview(&app, &caller, format, &body, None).await
}

/// A ticket made with a template or design, or with the files in the body as if they were its next
/// revision.
pub(crate) async fn preview_template(
    State(app): State<App>,
    caller: Writer,
    Id(named): Id<Named>,
    Params(format): Params<Format>,
    Body(body): Body,
) -> Result<Response, Problem> {
    let kept = match named {
        Named::Shipped(name) => {
            let design = app.press.design(&name).ok_or_else(|| Problem::not_found("Template"))?;
            design.files.clone()
        }
        Named::Own(id) => {
            caller.must_read(&super::find(&app, id).await?.owner)?;
            let mut fields = Fields::new(&body);
            let number = fields.read("revision", |value| {
                let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
                number.ok_or("must be a number")
            });
            let number = fields.finish(Some(number))?;
            let found = app.store.template_files(id, number).await?;
            found.ok_or_else(|| Problem::not_found("Revision"))?.1
        }
    };
    preview(&app, &caller, format, &body, Some(kept)).await
}

async fn preview(
    app: &App,
    caller: &Writer,
    format: Format,
    body: &Map<String, Value>,
    kept: Option<TemplateFiles>,
) -> Result<Response, Problem> {
    let (files, event, document) = read(app, caller, body, kept).await?;
    let _turn = app.turns.take(&caller.0.user).await;
    let (_, ready) = app.press.try_out(&files, &event).await?;
    let pdf = app.press.pdf(&ready, &document).await?;
    let (kind, bytes) = match format {
        Format::Pdf => ("application/pdf", pdf),
        Format::Png(picture) => {
            ("image/png", app.press.picture(&pdf, picture, &caller.0.user).await?)
        }
    };
    Ok(Response::builder()
        .header(CONTENT_TYPE, kind)
        .header(CACHE_CONTROL, "private, no-store")
        .body(Bytes::from(bytes))
        .unwrap_or_else(|_| Response::new(Bytes::empty())))
}

/// Files, event and ticket of a preview: those of the request, or else the kept files and samples.
async fn read(
    app: &App,
    caller: &Writer,
    body: &Map<String, Value>,
    kept: Option<TemplateFiles>,
) -> Result<(TemplateFiles, Event, TicketDocument), Problem> {
    let mut fields = Fields::new(body);
    match kept {
        Some(_) => fields.only(&["files", "design", "event", "ticket", "revision"]),
        None => fields.only(&["files", "design", "event", "ticket"]),
    }
    let given = files::read(&mut fields, app);
    if given.is_none() && kept.is_none() && fields.mistakes() == 0 {
        fields.wrong("files", "is missing: an object with file names and contents");
    }
    let files = fields.finish(given.or(kept))?;
    // Work on a preview counts as the caller's, whoever owns the event.
    let event = Event { owner: caller.0.user.clone(), ..read_event(app, caller, body).await? };
    let document = read_ticket(body, &event)?;
    Ok((files, event, document))
}

/// `event` is the id of one of the caller's, or an object with the fields of one.
async fn read_event(
    app: &App,
    caller: &Writer,
    body: &Map<String, Value>,
) -> Result<Event, Problem> {
    let mut fields = Fields::new(body);
    match fields.get("event") {
        None => Ok(sample::event()),
        Some(Value::Object(object)) => described_event(object),
        Some(_) => {
            let id = fields.read("event", |value| {
                let id: Result<EventId, _> = as_text(value)?.parse();
                id.map_err(|_| "must be the id of an event, or an object".to_owned())
            });
            let event = events::find(app, fields.finish(id)?).await?;
            caller.must_read(&event.owner)?;
            Ok(event)
        }
    }
}

/// Event and ticket of a preview on the command line: objects with the fields of `POST /api/events` and
/// `POST /api/tickets`, or samples.
pub fn preview_values(
    event: Option<Value>,
    ticket: Option<Value>,
) -> Result<(Event, TicketDocument), String> {
    let given = [("event", event), ("ticket", ticket)];
    let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let body: Map<String, Value> = given.collect();
    let event = match body.get("event") {
        None => sample::event(),
        Some(Value::Object(object)) => described_event(object).map_err(Problem::into_detail)?,
        Some(_) => return Err("event must be an object".to_owned()),
    };
    let document = read_ticket(&body, &event).map_err(Problem::into_detail)?;
    Ok((event, document))
}

/// An event with the fields of a sample where they are not given.
fn described_event(object: &Map<String, Value>) -> Result<Event, Problem> {
    let mut own = Fields::nested(object, "event.".to_owned());
    // Also one as GET answers it.
    own.only(&[&events::CHANGEABLE[..], &events::FIXED].concat());
    let sample = sample::event();
    let details = events::read_details(&mut own, sample.details.clone());
    own.finish(Some(Event { details, ..sample }))
}

/// `ticket` is an object with name, seat and price; what is not given is a sample's, `null` is absent.
fn read_ticket(body: &Map<String, Value>, event: &Event) -> Result<TicketDocument, Problem> {
    let mut holder = sample::holder();
    let mut price = sample::price(event);
    let mut fields = Fields::new(body);
    match fields.get("ticket") {
        None => {}
        Some(Value::Object(object)) => {
            let mut own = Fields::nested(object, "ticket.".to_owned());
            // Also one as GET answers it.
            own.only(&[&tickets::CHANGEABLE[..], &tickets::FIXED].concat());
            if let Some(name) = own.text("name", Limit::NAME) {
                holder.name = name;
            }
            if object.contains_key("seat") {
                holder.seat = own.text("seat", Limit::SEAT);
            }
            if object.contains_key("price") {
                price = own.money("price", event.details.currency);
            }
            fields.absorb(own);
        }
        Some(_) => fields.wrong("ticket", "must be an object with name, seat and price"),
    }
    fields.finish(Some(sample::document(event, holder, price)))
}
