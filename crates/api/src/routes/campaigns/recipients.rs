//! `/api/contracts/{id}/recipients` and `…/guests`: recipients come in, and are looked at one by one.

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use schemars::json_schema;
use serde_json::json;
use stampede_broker::kept;
use stampede_campaign::{
    Delimiter, Format, Guests, ImportFile, Imported, MOST_RECIPIENTS, Purpose,
};
use stampede_model::campaign::RecipientState;
use stampede_model::{BatchId, CampaignId, EventId, RecipientId};
use stampede_store::RecipientFilter;
use stampede_wire::campaigns::{ImportReport, RecipientLog, RecipientPage, RowMistake};
use stampede_wire::ticketing::uploads::UploadFormat;

use super::entry::RecipientEntry;
use super::{find, not_found, subject};
use crate::app::App;
use crate::auth::{Caller, Writer};
use crate::body::{Body, UPLOAD_TYPES, Upload};
use crate::describe::{Input, Operation};
use crate::forms::{Flag, IdOf, List, Mistakes, form};
use crate::input::{Id, Ids};
use crate::problem::{Code, FieldError, Problem};
use crate::query::{FromQuery, Params, Query};
use crate::routes::{Paging, invalid_param};
use crate::trace::Audited;

/// The words for delimiters.
const DELIMITERS: [&str; 6] = ["comma", "semicolon", "tab", ",", ";", "\t"];

form! {
    /// Recipients as JSON.
    pub(crate) struct RecipientsForm {
        /// The recipients. A list without an object around it does as well.
        recipients: List<RecipientEntry, { usize::MAX }> = "recipients" required,
    }
}

form! {
    /// `POST /api/contracts/{id}/guests`.
    pub(crate) struct GuestsForm {
        /// The event whose guests become recipients: one for each ticket, at the address of its holder.
        event_id: IdOf<EventId> = "eventId",
        /// The order whose guests become recipients, instead of an event.
        batch_id: IdOf<BatchId> = "batchId",
        /// Whether nothing is written, and the answer tells what would be.
        dry_run: Flag = "dryRun",
    }
}

/// Which recipients to list.
pub(crate) struct RecipientListing {
    filter: RecipientFilter,
    paging: Paging,
}

impl FromQuery for RecipientListing {
    fn from_query(query: &mut Query) -> Self {
        const RIGHT: &str =
            "must be pending, queued, sending, sent, delivered, read, failed, unknown or skipped";
        let state = query.about("Their state.").word("state", RecipientState::WORDS, RIGHT);
        let code = query.about("Exactly this code of a failure, or reason.").text("code");
        let address = query.about("A text that their addresses contain.").text("address");
        let state = state.and_then(RecipientState::from_word);
        let filter = RecipientFilter { state, code, address };
        Self { filter, paging: Paging::from_query(query) }
    }
}

/// How a file of recipients is read.
pub(crate) struct ImportOptions {
    delimiter: Option<Delimiter>,
    purpose: Purpose,
}

impl FromQuery for ImportOptions {
    fn from_query(query: &mut Query) -> Self {
        const RIGHT: &str = "must be comma, semicolon or tab";
        let delimiter = query.about("The delimiter of a CSV file; found by looking if absent.");
        let delimiter = delimiter.word("delimiter", &DELIMITERS, RIGHT);
        query.about("Tells what would be added, and writes nothing.");
        let is_dry = query.is_bare("dryRun") | query.flag("dryRun");
        let purpose = if is_dry { Purpose::DryRun } else { Purpose::Import };
        Self { delimiter: delimiter.and_then(Delimiter::from_word), purpose }
    }
}

/// A file of recipients of which nothing was read yet.
pub(crate) struct RecipientUpload(Upload);

impl FromRequest<App> for RecipientUpload {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        Upload::from_request(request, app).await.map(Self)
    }
}

impl Input for RecipientUpload {
    fn describe(operation: &mut Operation<'_>) {
        let form = operation.schema::<RecipientsForm>();
        let entries = operation.schema::<RecipientEntry>();
        let json = json_schema!({ "anyOf": [form, { "type": "array", "items": entries }] });
        let text = json_schema!({ "type": "string" });
        let schema =
            |kind: &str| if kind == "application/json" { json.clone() } else { text.clone() };
        operation.bodies(UPLOAD_TYPES.iter().map(|(kind, _)| (*kind, schema(kind))));
        operation.may_refuse_body();
        operation.may_refuse(&[Code::UnreadableFile]);
    }
}

/// Adds the recipients of a file: CSV, NDJSON or JSON.
pub(crate) async fn import(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<CampaignId>,
    Params(options): Params<ImportOptions>,
    RecipientUpload(upload): RecipientUpload,
) -> Result<Audited<Json<ImportReport>>, Problem> {
    // Before the file arrives: who may not add recipients need not send them.
    find(&app, &caller.0, id).await?;
    let (format, charset, credentials) =
        (upload.format, upload.charset, upload.credentials.clone());
    let received = upload.receive(&app).await?;
    // A file may take long to arrive: meanwhile the key may be revoked.
    credentials.check_again(&app, &caller).await?;
    let before = find(&app, &caller.0, id).await?;
    let format = match format {
        UploadFormat::Csv => Format::Csv(options.delimiter),
        UploadFormat::Ndjson => Format::Ndjson,
        UploadFormat::Json => Format::Json,
    };
    let file = ImportFile { file: received.file, format, charset, purpose: options.purpose };
    let noted = match options.purpose {
        Purpose::DryRun => None,
        Purpose::Import => Some(caller.begin(&app, subject(&before), &before.counts).await?),
    };
    let (campaigns, place) = (app.campaigns.clone(), received.place);
    // The file is read to its end, also if the client hangs up; so long it keeps its place.
    let importing = tokio::spawn(kept(async move {
        let _place = place;
        campaigns.import_file(id, file).await
    }));
    let imported = importing.await.map_err(|error| Problem::internal(&error))??;
    let report = told(imported, id)?;
    tracing::info!(user = caller.0.user, campaign = %id, added = report.added, dry_run = report.dry_run, "recipients read");
    Ok(match noted {
        Some(noted) => noted.after(&noted_of(&report)).answer(Json(report)),
        None => Audited::without_change(Json(report)),
    })
}

/// Adds the guests of an event or an order.
pub(crate) async fn guests(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<CampaignId>,
    Body(form, _held): Body<GuestsForm>,
) -> Result<Audited<Json<ImportReport>>, Problem> {
    let before = find(&app, &caller.0, id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let is_dry = mistakes.value(form.dry_run).is_some_and(|Flag(flag)| flag);
    match (form.event_id.has_value(), form.batch_id.has_value()) {
        (false, false) => mistakes.wrong("eventId", "is missing: give eventId or batchId"),
        (true, true) => mistakes.wrong("batchId", "cannot be given together with eventId"),
        _ => {}
    }
    let event = mistakes.ruled(form.event_id, "must be the id of an event", |IdOf(id)| id);
    let batch = mistakes.ruled(form.batch_id, "must be the id of an order", |IdOf(id)| id);
    let guests = event.map(Guests::OfEvent).or(batch.map(Guests::OfBatch));
    let guests = mistakes.finish(guests)?;
    let noted = match is_dry {
        true => None,
        false => Some(caller.begin(&app, subject(&before), &before.counts).await?),
    };
    let purpose = if is_dry { Purpose::DryRun } else { Purpose::Import };
    let campaigns = app.campaigns.clone();
    // Read to their end, also if the client hangs up.
    let importing =
        tokio::spawn(kept(async move { campaigns.import_guests(id, guests, purpose).await }));
    let report = match importing.await.map_err(|error| Problem::internal(&error))?? {
        Imported::NoSuchGuests => {
            let field = if event.is_some() { "eventId" } else { "batchId" };
            let wrong = FieldError::new(field, "is none of the campaign's owner");
            return Err(Problem::invalid(vec![wrong]));
        }
        imported => told(imported, id)?,
    };
    tracing::info!(user = caller.0.user, campaign = %id, added = report.added, "guests added");
    Ok(match noted {
        Some(noted) => noted.after(&noted_of(&report)).answer(Json(report)),
        None => Audited::without_change(Json(report)),
    })
}

/// What the audit log keeps of an import: numbers, no addresses.
fn noted_of(report: &ImportReport) -> serde_json::Value {
    json!({
        "rows": report.rows, "added": report.added, "invalid": report.invalid,
        "duplicates": report.duplicates, "suppressed": report.suppressed, "void": report.void,
    })
}

/// The report, or why there is none.
fn told(imported: Imported, id: CampaignId) -> Result<ImportReport, Problem> {
    match imported {
        Imported::Done(report) => Ok(*report),
        Imported::Unreadable(why) => Err(Problem::new(Code::UnreadableFile, why)),
        Imported::Mistaken(report) => Err(mistaken(*report)),
        Imported::Busy => Err(Problem::importing()),
        Imported::WrongState(contract) => Err(Problem::campaign_state(
            &contract,
            "take recipients; pause it, or make another one",
        )),
        Imported::NotFound => Err(not_found(id)),
        Imported::NoSuchGuests => {
            Err(Problem::new(Code::Invalid, "there are no such guests of the campaign's owner"))
        }
        Imported::TooMany => {
            let detail =
                format!("a campaign has at most {MOST_RECIPIENTS} recipients; nothing was added");
            Err(Problem::new(Code::TooMany, detail))
        }
    }
}

/// 422 with the first thousand mistakes, and the number of all.
fn mistaken(report: ImportReport) -> Problem {
    let told = |mistake: RowMistake| FieldError {
        line: mistake.line,
        ..FieldError::new(mistake.field.unwrap_or_default(), mistake.message)
    };
    let errors: Vec<FieldError> = report.mistakes.into_iter().map(told).collect();
    let problem = Problem::listing(Code::UnreadableFile, "nothing was added: ", errors);
    problem.with("errorCount", report.mistakes_total.into())
}

/// Recipients by position.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    Params(RecipientListing { filter, paging }): Params<RecipientListing>,
) -> Result<Json<RecipientPage>, Problem> {
    find(&app, &caller.0, id).await?;
    let after = paging.chosen_after().map(str::parse).transpose();
    let after = after.map_err(|_| invalid_param("after"))?;
    Ok(Json(app.campaigns.recipients(id, &filter, after, paging.limit()).await?))
}

/// A recipient with every attempt.
pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Ids(id, recipient): Ids<CampaignId, RecipientId>,
) -> Result<Json<RecipientLog>, Problem> {
    find(&app, &caller.0, id).await?;
    let found = app.campaigns.recipient(id, recipient).await?;
    found.map(Json).ok_or_else(|| Problem::not_found("Recipient", &recipient))
}
