//! Validation and previews of templates: `POST /api/templates/validate`, `…/preview` for files that are not
//! kept, `…/{id}/preview` for a template or design.
//!
//! The ticket of a preview admits nobody: its code is signed with a key that is no event's.

use axum::Json;
use axum::body::Body as Bytes;
use axum::extract::State;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use schemars::json_schema;
use serde_json::Value;
use stampede_model::{Event, TemplateFiles, TicketDocument};
use stampede_press::{Picture, preflight, sample};
use stampede_wire::ticketing::orders::Warning;
use stampede_wire::ticketing::templates::ValidatedTemplate;

use super::request::{EventGiven, PreviewForm, described_event, preview_ticket};
use super::{Named, compiled, files};
use crate::app::App;
use crate::auth::Writer;
use crate::body::LargeBody;
use crate::describe::{Kind, Operation, Sent};
use crate::forms::{Form, Given, Mistakes, Whole};
use crate::input::Id;
use crate::problem::Problem;
use crate::query::{FromQuery, Params, Query};
use crate::routes::events;
use crate::unknown;

/// Resolution of a picture, unless the request says otherwise.
const DPI: f32 = 144.0;
/// Resolutions that a request can ask for.
const DPI_RANGE: std::ops::RangeInclusive<f32> = 20.0..=300.0;

/// A sample ticket, as PDF or PNG.
pub(crate) struct Printed;

impl Kind for Printed {
    fn describe(operation: &mut Operation<'_>) {
        for kind in ["application/pdf", "image/png"] {
            let schema = json_schema!({ "type": "string", "format": "binary" });
            operation.answers(200, "The sample ticket.", Some((kind, schema)));
        }
    }
}

/// The form of a preview: `?format=`, for pictures with `page` and `dpi`.
pub(crate) enum Format {
    Pdf,
    Png(Picture),
}

impl FromQuery for Format {
    fn from_query(query: &mut Query) -> Self {
        query.about("`pdf` if absent.");
        let format = query.word("format", &["pdf", "png"], "must be pdf or png");
        // People count pages from 1.
        query.about("The page of a PNG, from 1.");
        let page = query.whole("page", 1..=u32::MAX).unwrap_or(1) - 1;
        let dpi = query.about("The resolution of a PNG (144).").number("dpi", DPI_RANGE);
        match format {
            Some("png") => Self::Png(Picture { page, dpi: dpi.unwrap_or(DPI) }),
            _ => Self::Pdf,
        }
    }
}

/// Compiles files that are not kept; a problem lists all of their mistakes.
pub(crate) async fn validate(
    State(app): State<App>,
    caller: Writer,
    LargeBody(form, _held): LargeBody<PreviewForm>,
) -> Result<Json<ValidatedTemplate>, Problem> {
    let (files, event, document) = read(&app, &caller, form, None).await?;
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
        line: None,
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
    LargeBody(form, _held): LargeBody<PreviewForm>,
) -> Result<Sent<Printed>, Problem> {
    preview(&app, &caller, format, form, None).await
}

/// A ticket made with a template or design, or with the files in the body as if they were its next
/// revision.
pub(crate) async fn preview_template(
    State(app): State<App>,
    caller: Writer,
    Id(named): Id<Named>,
    Params(format): Params<Format>,
    LargeBody(mut form, _held): LargeBody<PreviewForm>,
) -> Result<Sent<Printed>, Problem> {
    let kept = match named {
        Named::Shipped(name) => {
            let design =
                app.press.design(&name).ok_or_else(|| Problem::not_found("Template", &name))?;
            design.files.clone()
        }
        Named::Own(id) => {
            caller.must_read(&super::find(&app, id).await?.owner)?;
            let mut mistakes = Mistakes::default();
            let revision = std::mem::replace(&mut form.revision, Given::absent("revision"));
            let number = mistakes
                .ruled(revision, "must be a number", |Whole(number)| u32::try_from(number).ok());
            let number = mistakes.finish(Some(number))?;
            let found = app.store.template_files(id, number).await?;
            found.ok_or_else(|| Problem::not_found("Revision", &number.unwrap_or_default()))?.1
        }
    };
    preview(&app, &caller, format, form, Some(kept)).await
}

async fn preview(
    app: &App,
    caller: &Writer,
    format: Format,
    form: PreviewForm,
    kept: Option<TemplateFiles>,
) -> Result<Sent<Printed>, Problem> {
    let (files, event, document) = read(app, caller, form, kept).await?;
    let _turn = app.turns.take(&caller.0.user).await;
    let (_, ready) = app.press.try_out(&files, &event).await?;
    let (pdf, _room) = app.press.pdf(&ready, &document).await?;
    let (kind, bytes) = match format {
        Format::Pdf => ("application/pdf", pdf),
        Format::Png(picture) => {
            ("image/png", app.press.picture(&pdf, picture, &caller.0.user).await?)
        }
    };
    let response = Response::builder()
        .header(CONTENT_TYPE, kind)
        .header(CACHE_CONTROL, "private, no-store")
        .body(Bytes::from(bytes));
    Ok(Sent::new(response.unwrap_or_else(|_| Response::new(Bytes::empty()))))
}

/// Files, event and ticket of a preview: those of the request, or else the kept files and samples.
async fn read(
    app: &App,
    caller: &Writer,
    form: PreviewForm,
    kept: Option<TemplateFiles>,
) -> Result<(TemplateFiles, Event, TicketDocument), Problem> {
    let mut mistakes = Mistakes::default();
    let known = PreviewForm::NAMES;
    match kept {
        Some(_) => mistakes.only(&form),
        None => {
            let known: Vec<&str> = known.iter().copied().filter(|n| *n != "revision").collect();
            if form.revision.is_named() {
                mistakes.wrong("revision", unknown::remark("revision", &known));
            }
            mistakes.only_these(&form.unknown, &known, &[]);
        }
    }
    let given = files::read(&mut mistakes, form.files, form.design, app);
    if given.is_none() && kept.is_none() && mistakes.count() == 0 {
        mistakes.wrong("files", "is missing: an object with file names and contents");
    }
    let files = mistakes.finish(given.or(kept))?;
    // Work on a preview counts as the caller's, whoever owns the event.
    let event = read_event(app, caller, form.event).await?;
    let event = Event { owner: caller.0.user.clone(), ..event };
    let document = preview_ticket(form.ticket, &event)?;
    Ok((files, event, document))
}

/// `event` is the id of one of the caller's, or an object with the fields of one.
async fn read_event(
    app: &App,
    caller: &Writer,
    given: Given<EventGiven>,
) -> Result<Event, Problem> {
    let mut mistakes = Mistakes::default();
    let event = mistakes.value(given);
    match mistakes.finish(Some(event))? {
        None => Ok(sample::event()),
        Some(EventGiven::Described(form)) => described_event(*form),
        Some(EventGiven::Named(id)) => {
            let event = events::find(app, id).await?;
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
    super::request::values(event, ticket).map_err(Problem::into_detail)
}
