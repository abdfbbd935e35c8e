//! `GET /api/batches/{id}/pdf`, `…/zip` and `…/tickets.csv`: all tickets of an order in one file, written while it is sent.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::HeaderName;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use schemars::json_schema;
use stampede_guests::Mark;
use stampede_model::{Batch, BatchId};
use stampede_ticketing::{BatchDownload, BatchFile, BatchFormat, Extent};

use super::batches;
use crate::app::App;
use crate::auth::Caller;
use crate::describe::{Kind, Operation, Sent};
use crate::input::Id;
use crate::problem::{Code, Problem};
use crate::query::{FromQuery, Params, Query};
use crate::ranges::{Part, Sendable, Wanted, set};

/// Tickets that are not in a merged PDF.
const X_LEFT_OUT: HeaderName = HeaderName::from_static("x-left-out");

pub(crate) struct Options {
    extent: Extent,
}

impl FromQuery for Options {
    fn from_query(query: &mut Query) -> Self {
        query.about("Delivers the tickets that are made, and does not wait for the others.");
        let partial = query.is_bare("partial") | query.flag("partial");
        Self { extent: if partial { Extent::Partial } else { Extent::Whole } }
    }
}

/// The tickets of a batch as one PDF.
pub(crate) struct MergedPdf;

impl Kind for MergedPdf {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({ "type": "string", "format": "binary" });
        operation.answers_file("The pages of all tickets.", "application/pdf", schema);
        operation.answers_with_header("X-Left-Out", "Tickets that are not in the file.");
    }
}

/// The tickets of a batch as a ZIP.
pub(crate) struct Zip;

impl Kind for Zip {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({ "type": "string", "format": "binary" });
        operation.answers_file("One PDF for each ticket.", "application/zip", schema);
    }
}

/// The tickets of a batch as a table.
pub(crate) struct Table;

impl Kind for Table {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({ "type": "string" });
        let about = "One row for each ticket, with a header that an upload understands.";
        operation.answers(200, about, Some(("text/csv", schema)));
    }
}

/// One PDF with the pages of all tickets; the header `X-Left-Out` names those that are not in it.
pub(crate) async fn pdf(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<BatchId>,
    Params(options): Params<Options>,
    wanted: Wanted,
) -> Result<Sent<MergedPdf>, Problem> {
    let batch = batches::find(&app, &caller, id).await?;
    let format = BatchFormat::MergedPdf;
    answer(&app, batch, format, options.extent, &wanted, PRIVATE).await.map(Sent::new)
}

/// A ZIP with one PDF for each ticket.
pub(crate) async fn zip(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<BatchId>,
    Params(options): Params<Options>,
    wanted: Wanted,
) -> Result<Sent<Zip>, Problem> {
    let batch = batches::find(&app, &caller, id).await?;
    let format = BatchFormat::Zip;
    answer(&app, batch, format, options.extent, &wanted, PRIVATE).await.map(Sent::new)
}

/// Kept by nobody but the client, who asks whether it is still the same.
const PRIVATE: &str = "private, no-cache";

/// The file of a batch, or what refuses it. `cache`: how it may be cached.
pub(crate) async fn answer(
    app: &App,
    batch: Batch,
    format: BatchFormat,
    extent: Extent,
    wanted: &Wanted,
    cache: &'static str,
) -> Result<Response, Problem> {
    let (id, event) = (batch.id, batch.event_id);
    let file = match app.ticketing.download_batch(batch, format, extent).await? {
        BatchDownload::Ready(file) => *file,
        BatchDownload::NotReady { missing, total, retry_after_s } => {
            return Err(Problem::batch_not_ready(missing, total, retry_after_s));
        }
        BatchDownload::Nothing => {
            let detail =
                "no ticket of this batch is ready: all failed, are void, or are not made yet";
            return Err(Problem::new(Code::NotReady, detail).retry_after(1));
        }
        BatchDownload::TooMany => return Err(too_many()),
        BatchDownload::NoSuchEvent => return Err(Problem::not_found("Event", &event)),
    };
    let (kind, name) = match format {
        BatchFormat::MergedPdf => ("application/pdf", format!("batch-{id}.pdf")),
        BatchFormat::Zip => ("application/zip", format!("batch-{id}.zip")),
    };
    let left_out = file.left_out().map(str::to_owned);
    let mut response = sent(file, kind, &name, wanted, cache).await?;
    if let Some(left_out) = left_out.filter(|_| response.status().is_success()) {
        set(&mut response, X_LEFT_OUT, &left_out);
    }
    Ok(response)
}

/// Answers with a file, or a part of it.
async fn sent(
    file: BatchFile,
    kind: &'static str,
    name: &str,
    wanted: &Wanted,
    cache: &'static str,
) -> Result<Response, Problem> {
    let tag = file.version().map(|version| format!("\"{version}\""));
    let wants_part = wanted.is_part(tag.as_deref()) && wanted.part(u64::MAX) != Part::Whole;
    // A part needs the length of the whole, for which a merged PDF may have to be made.
    let length = if wants_part { file.measured().await? } else { file.length() };
    let sendable = Sendable {
        kind,
        disposition: &format!("attachment; filename=\"{name}\""),
        cache,
        tag: tag.as_deref(),
        length,
    };
    Ok(sendable.answer(wanted, |part| Body::from_stream(file.into_pieces(part))))
}

fn too_many() -> Problem {
    let detail = "too many batches are being downloaded at the same time; try again";
    Problem::new(Code::Overloaded, detail).retry_after(5)
}

/// How a table is written.
pub(crate) struct TableOptions {
    mark: Mark,
}

impl FromQuery for TableOptions {
    fn from_query(query: &mut Query) -> Self {
        query.about("Begins with a byte order mark, by which Excel recognises UTF-8.");
        let is_marked = query.is_bare("bom") | query.flag("bom");
        Self { mark: if is_marked { Mark::Written } else { Mark::Absent } }
    }
}

/// The tickets of a batch as CSV.
pub(crate) async fn table(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<BatchId>,
    Params(options): Params<TableOptions>,
) -> Result<Sent<Table>, Problem> {
    let batch = batches::find(&app, &caller, id).await?;
    let pieces = app.ticketing.batch_as_csv(batch, options.mark).ok_or_else(too_many)?;
    let mut response = Response::new(Body::from_stream(pieces));
    set(&mut response, CONTENT_TYPE, "text/csv; charset=utf-8; header=present");
    let name = format!("attachment; filename=\"batch-{id}.csv\"");
    set(&mut response, CONTENT_DISPOSITION, &name);
    set(&mut response, CACHE_CONTROL, "private, no-store");
    Ok(Sent::new(response))
}
