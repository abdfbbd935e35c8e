//! Links for people without a key: `POST /api/tickets/{id}/links`, `POST /api/batches/{id}/links`, `GET /api/links/{token}`.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use http::HeaderName;
use http::header::REFERRER_POLICY;
use schemars::json_schema;
use serde_json::json;
use stampede_audit::{Kind as Record, Subject};
use stampede_model::{BatchId, Ticket, TicketId, Timestamp};
use stampede_ticketing::{BatchFormat, CodeFormat, Extent, Linked, OpenedLink};
use stampede_wire::ticketing::links::Link;

use crate::app::App;
use crate::auth::{Anyone, Writer};
use crate::body::MaybeBody;
use crate::describe::{Created, Kind, Located, Operation, Sent};
use crate::forms::{Mistakes, Parsed, Text, Whole, form};
use crate::input::Id;
use crate::problem::{Code, Problem};
use crate::ranges::{Wanted, set};
use crate::routes::{batch_files, batches, codes, pdf};
use crate::trace::Audited;

/// A link ends after this time, unless the request says otherwise.
const USUAL: Duration = Duration::from_secs(7 * 24 * 3600);
/// The longest life of a link: a ticket is bought a year before.
const LONGEST_S: u64 = 400 * 24 * 3600;
/// May be kept by caches in between, which must ask each time whether it is still the same.
const CACHE: &str = "no-cache";
/// Search engines must not list it.
const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");

form! {
    /// A link to be made.
    pub(crate) struct LinkForm {
        /// The file: of a ticket `pdf`, `qr.svg` or `qr.png`, of a batch `pdf` or `zip`; `pdf` if absent.
        format: Text<20> = "format",
        /// Seconds until it ends; 7 days if absent, at most 400 days.
        expires_in: Whole<1, LONGEST_S> = "expiresIn",
        /// When it ends, instead of `expiresIn`.
        expires_at: Parsed<Timestamp> = "expiresAt",
    }
}

/// Makes a link to the PDF or QR code of a ticket.
pub(crate) async fn of_ticket(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<TicketId>,
    MaybeBody(form): MaybeBody<LinkForm>,
) -> Result<Audited<Located<Created<Link>>>, Problem> {
    let ticket = app.ticketing.ticket(id).await?;
    let ticket = ticket.ok_or_else(|| Problem::not_found("Ticket", &id))?;
    caller.must_change(&ticket.owner)?;
    let generation = ticket.generation;
    let linked = |format: &str| match format {
        "pdf" => Ok(Linked::Pdf(id, generation)),
        "qr.svg" => Ok(Linked::CodeSvg(id, generation)),
        "qr.png" => Ok(Linked::CodePng(id, generation)),
        _ => Err("must be pdf, qr.svg or qr.png"),
    };
    let about = Subject::of(Record::Ticket, id).at(ticket.event_id);
    make(&app, &caller, about, form, linked).await
}

/// Makes a link to all tickets of a batch.
pub(crate) async fn of_batch(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<BatchId>,
    MaybeBody(form): MaybeBody<LinkForm>,
) -> Result<Audited<Located<Created<Link>>>, Problem> {
    let batch = batches::find_to_change(&app, &caller, id).await?;
    let mark = app.ticketing.reissue_mark(id).await?;
    let linked = |format: &str| match format {
        "pdf" => Ok(Linked::BatchPdf(id, mark)),
        "zip" => Ok(Linked::BatchZip(id, mark)),
        _ => Err("must be pdf or zip"),
    };
    make(&app, &caller, batches::subject(&batch), form, linked).await
}

/// Makes a link. The audit log has its file and its end, not the link.
async fn make(
    app: &App,
    caller: &Writer,
    about: Subject,
    form: LinkForm,
    linked: impl FnOnce(&str) -> Result<Linked, &'static str>,
) -> Result<Audited<Located<Created<Link>>>, Problem> {
    let (mut mistakes, now) = (Mistakes::default(), Timestamp::now());
    mistakes.only(&form);
    let format = form.format.value().map_or("pdf".to_owned(), |Text(format)| format.clone());
    let found = match form.format.has_value() {
        true => mistakes.read(form.format, |Text(format)| linked(&format)),
        false => linked(&format).ok(),
    };
    if form.expires_in.has_value() && form.expires_at.has_value() {
        mistakes.wrong("expiresAt", "cannot be given together with expiresIn");
    }
    let after = mistakes.value(form.expires_in).map(|Whole(seconds)| Duration::from_secs(seconds));
    let end = mistakes.read(form.expires_at, |Parsed(end)| {
        let left_s = end.as_second().saturating_sub(now.as_second());
        match u64::try_from(left_s) {
            Ok(1..=LONGEST_S) => Ok(end),
            Ok(0) | Err(_) => Err("must be in the future"),
            Ok(_) => Err("must be within 400 days"),
        }
    });
    let end = end.unwrap_or_else(|| now + after.unwrap_or(USUAL));
    // Links count whole seconds.
    let end = Timestamp::from_second(end.as_second()).unwrap_or(end);
    let linked = mistakes.finish(found)?;
    let change = caller.begin_new(app, about).await?;
    let token = app.ticketing.link(linked, end)?;
    let url = format!("{}/api/links/{token}", app.links.base());
    let noted = json!({ "format": format, "expiresAt": end });
    let link = Created(Link { url: url.clone(), format, expires_at: end });
    Ok(change.after(&noted).answer(Located(url, link)))
}

/// The file that a link opens.
pub(crate) struct LinkedFile;

impl Kind for LinkedFile {
    fn describe(operation: &mut Operation<'_>) {
        let file = || json_schema!({ "type": "string", "format": "binary" });
        for kind in ["application/pdf", "application/zip", "image/png", "image/svg+xml"] {
            operation.answers_file("The file.", kind, file());
        }
        operation.answers_with_header("X-Left-Out", "Tickets that are not in a merged PDF.");
        operation.may_refuse(&[Code::Unavailable]);
    }
}

/// Opens a link. Neither a record nor its owner is told of one that this server did not make.
pub(crate) async fn open(
    State(app): State<App>,
    _: Anyone,
    Id(token): Id<String>,
    wanted: Wanted,
) -> Result<Sent<LinkedFile>, Problem> {
    let linked = match app.ticketing.open_link(&token, Timestamp::now())? {
        OpenedLink::Valid(linked) => linked,
        OpenedLink::Expired => {
            return Err(Problem::new(Code::LinkExpired, "this link has ended; ask for a new one"));
        }
        OpenedLink::Forged => return Err(no_such_link()),
    };
    let mut response = opened(&app, linked, &wanted).await?;
    // The address is the key to the file.
    set(&mut response, REFERRER_POLICY, "no-referrer");
    set(&mut response, X_ROBOTS_TAG, "noindex");
    Ok(Sent::new(response))
}

async fn opened(app: &App, linked: Linked, wanted: &Wanted) -> Result<Response, Problem> {
    match linked {
        Linked::Pdf(id, generation) => {
            let found = app.ticketing.ticket_with_event(id).await?;
            let (ticket, event) = found.ok_or_else(no_such_link)?;
            must_be(&ticket, generation)?;
            pdf::answer(app, ticket, &event, wanted, CACHE).await
        }
        Linked::CodeSvg(id, generation) | Linked::CodePng(id, generation) => {
            let ticket = app.ticketing.ticket(id).await?.ok_or_else(no_such_link)?;
            must_be(&ticket, generation)?;
            let format = match linked {
                Linked::CodeSvg(..) => CodeFormat::Svg,
                _ => CodeFormat::Png,
            };
            codes::answer(app, &ticket, format, codes::SHAPE, wanted, CACHE).await
        }
        Linked::BatchPdf(id, mark) | Linked::BatchZip(id, mark) => {
            let batch = app.ticketing.batch(id).await?.ok_or_else(no_such_link)?;
            if app.ticketing.reissue_mark(id).await? != mark {
                let detail = "a ticket of this order was issued anew; ask for a new link";
                return Err(Problem::new(Code::Gone, detail));
            }
            let format = match linked {
                Linked::BatchPdf(..) => BatchFormat::MergedPdf,
                _ => BatchFormat::Zip,
            };
            batch_files::answer(app, batch, format, Extent::Whole, wanted, CACHE).await
        }
    }
}

/// 410 if the ticket was issued anew since the link was made: the link may be why.
fn must_be(ticket: &Ticket, generation: u32) -> Result<(), Problem> {
    match ticket.generation == generation {
        true => Ok(()),
        false => Err(Problem::new(Code::Gone, "the ticket was issued anew; ask for a new link")),
    }
}

fn no_such_link() -> Problem {
    Problem::new(Code::NotFound, "there is no such link")
}
