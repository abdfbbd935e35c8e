//! Trying out a template before anybody's ticket is made with it: `POST /api/templates/validate`,
//! `…/preview` for files that are not kept, `…/{id}/preview` for a template or design.
//!
//! A preview shows a ticket that opens no door: its code is signed with a key that everybody knows.

use axum::Json;
use axum::body::Body as Bytes;
use axum::extract::State;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::{Map, Value, json};
use stampede_model::{Event, EventId, Limit, TemplateFiles, TicketDocument};
use stampede_press::{Picture, preflight, sample};

use super::{Named, files, outcome};
use crate::app::App;
use crate::auth::Caller;
use crate::input::{Body, Fields, Id, as_text};
use crate::problem::Problem;
use crate::query::{FromQuery, Params, Query};
use crate::routes::{events, tickets};

/// Resolution of a picture unless told otherwise, and what can be asked for.
const DPI: (f32, std::ops::RangeInclusive<f32>) = (144.0, 20.0..=300.0);

/// As what to show a ticket: `?format=`, for pictures with `page` and `dpi`.
pub(crate) enum Format {
    Pdf,
    Png(Picture),
}

impl FromQuery for Format {
    fn from_query(query: &mut Query) -> Self {
        let format = query.text("format");
        // People count pages from 1.
        let page = query.whole("page", 1..=u32::MAX).unwrap_or(1) - 1;
        let right = format!("must be a number from {} to {}", DPI.1.start(), DPI.1.end());
        let dpi = query.parsed("dpi", &right).unwrap_or(DPI.0);
        if !DPI.1.contains(&dpi) {
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

/// Says whether files would make a template, and all that is wrong if not.
pub(crate) async fn validate(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body,
) -> Result<Json<Value>, Problem> {
    caller.must_write()?;
    let (files, event, document) = read(&app, &caller, &body, None).await?;
    let _turn = app.turns.take(&caller.0.user).await;
    let (published, ready) = app.press.try_out(&files, &event).await?;
    let slow = ready.slow_because().is_some();
    let mut answer = outcome(&published, &ready);
    answer.insert("valid".to_owned(), json!(true));
    answer.insert("hash".to_owned(), json!(files.hash()));
    if slow {
        // A template that looks at its ticket shows its mistakes only with one.
        app.press.pdf(&ready, &document).await?;
    }
    let flagged = preflight(app.press.compiler(), &ready, std::iter::once(document));
    let warnings: Vec<_> = flagged.into_iter().flat_map(|(_, warnings)| warnings).collect();
    answer.insert("warnings".to_owned(), json!(warnings));
    Ok(Json(Value::Object(answer)))
}

/// A ticket made with files that are not kept.
pub(crate) async fn preview_files(
    State(app): State<App>,
    caller: Caller,
    Params(format): Params<Format>,
    Body(body): Body,
) -> Result<Response, Problem> {
    caller.must_write()?;
    preview(&app, &caller, format, &body, None).await
}

/// A ticket made with a template or design, or with the files in the body as if they were its next
/// revision.
pub(crate) async fn preview_template(
    State(app): State<App>,
    caller: Caller,
    Id(named): Id<Named>,
    Params(format): Params<Format>,
    Body(body): Body,
) -> Result<Response, Problem> {
    caller.must_write()?;
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
    caller: &Caller,
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
        Format::Png(picture) => ("image/png", app.press.picture(&pdf, picture).await?),
    };
    Ok(Response::builder()
        .header(CONTENT_TYPE, kind)
        .header(CACHE_CONTROL, "private, no-store")
        .body(Bytes::from(bytes))
        .unwrap_or_else(|_| Response::new(Bytes::empty())))
}

/// What to print: files (those given, or else those kept), an event and a ticket (those given, or
/// samples).
async fn read(
    app: &App,
    caller: &Caller,
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
    let event = read_event(app, caller, body).await?;
    let document = read_ticket(body, &event)?;
    Ok((files, event, document))
}

/// `event` is the id of one of the caller's, or an object with the fields of one.
async fn read_event(
    app: &App,
    caller: &Caller,
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

/// The event and ticket of a preview outside of the API, by the same rules: objects with the fields of
/// `POST /api/events` and `POST /api/tickets`, or samples.
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
