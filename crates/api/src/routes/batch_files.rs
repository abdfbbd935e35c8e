//! `GET /api/batches/{id}/pdf` and `…/zip`: all tickets of an order in one file, written while it is sent.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use schemars::json_schema;
use stampede_model::BatchId;
use stampede_ticketing::{BatchDownload, BatchFile, BatchFormat, Extent};

use super::batches;
use crate::app::App;
use crate::auth::Caller;
use crate::describe::{Kind, Operation, Sent};
use crate::input::Id;
use crate::problem::{Code, Problem};
use crate::query::{FromQuery, Params, Query};

pub(crate) struct Options {
    extent: Extent,
}

impl FromQuery for Options {
    fn from_query(query: &mut Query) -> Self {
        query.about("Delivers the tickets that are made, and does not wait for the others.");
        let partial = query.is_bare("partial") || query.flag("partial");
        Self { extent: if partial { Extent::Partial } else { Extent::Whole } }
    }
}

/// The tickets of a batch as one PDF.
pub(crate) struct MergedPdf;

impl Kind for MergedPdf {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({ "type": "string", "format": "binary" });
        operation.answers(200, "The pages of all tickets.", Some(("application/pdf", schema)));
        operation.answers_with_header("X-Left-Out", "Tickets that are not in the file.");
    }
}

/// The tickets of a batch as a ZIP.
pub(crate) struct Zip;

impl Kind for Zip {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({ "type": "string", "format": "binary" });
        operation.answers(200, "One PDF for each ticket.", Some(("application/zip", schema)));
    }
}

/// One PDF with the pages of all tickets; the header `X-Left-Out` names those that are not in it.
pub(crate) async fn pdf(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<BatchId>,
    Params(options): Params<Options>,
) -> Result<Sent<MergedPdf>, Problem> {
    let file = file(&app, &caller, id, BatchFormat::MergedPdf, options.extent).await?;
    let body = Body::from_stream(file.pieces);
    let mut response = attachment("application/pdf", &format!("batch-{id}.pdf"), body);
    if let Some(Ok(value)) = file.left_out.map(|left_out| left_out.parse()) {
        response.headers_mut().insert("x-left-out", value);
    }
    Ok(Sent::new(response))
}

/// A ZIP with one PDF for each ticket.
pub(crate) async fn zip(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<BatchId>,
    Params(options): Params<Options>,
) -> Result<Sent<Zip>, Problem> {
    let file = file(&app, &caller, id, BatchFormat::Zip, options.extent).await?;
    let body = Body::from_stream(file.pieces);
    Ok(Sent::new(attachment("application/zip", &format!("batch-{id}.zip"), body)))
}

async fn file(
    app: &App,
    caller: &Caller,
    id: BatchId,
    format: BatchFormat,
    extent: Extent,
) -> Result<BatchFile, Problem> {
    let batch = batches::find(app, caller, id).await?;
    let event = batch.event_id;
    match app.ticketing.download_batch(batch, format, extent).await? {
        BatchDownload::Ready(file) => Ok(file),
        BatchDownload::NotReady { missing, total, retry_after_s } => {
            Err(Problem::batch_not_ready(missing, total, retry_after_s))
        }
        BatchDownload::Nothing => {
            let detail =
                "no ticket of this batch is ready: all failed, are void, or are not made yet";
            Err(Problem::new(Code::NotReady, detail).retry_after(1))
        }
        BatchDownload::TooMany => {
            let detail = "too many batches are being downloaded at the same time; try again";
            Err(Problem::new(Code::Overloaded, detail).retry_after(5))
        }
        BatchDownload::NoSuchEvent => Err(Problem::not_found("Event", &event)),
    }
}

fn attachment(kind: &'static str, name: &str, body: Body) -> Response {
    Response::builder()
        .header(CONTENT_TYPE, kind)
        .header(CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\""))
        .header(CACHE_CONTROL, "private, no-store")
        .body(body)
        .unwrap_or_else(|_| Response::new(Body::empty()))
}
