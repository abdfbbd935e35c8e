//! `GET /api/batches/{id}/pdf` and `…/zip`: all tickets of an order in one file, written while it is sent.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use stampede_model::BatchId;
use stampede_ticketing::{BatchDownload, BatchFile, BatchFormat, Extent};

use super::batches;
use crate::app::App;
use crate::auth::Caller;
use crate::input::Id;
use crate::problem::Problem;
use crate::query::{FromQuery, Params, Query};

pub(crate) struct Options {
    extent: Extent,
}

impl FromQuery for Options {
    fn from_query(query: &mut Query) -> Self {
        let partial = query.is_bare("partial") || query.flag("partial");
        Self { extent: if partial { Extent::Partial } else { Extent::Whole } }
    }
}

/// One PDF with the pages of all tickets; the header `X-Left-Out` names those that are not in it.
pub(crate) async fn pdf(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<BatchId>,
    Params(options): Params<Options>,
) -> Result<Response, Problem> {
    let file = file(&app, &caller, id, BatchFormat::MergedPdf, options.extent).await?;
    let body = Body::from_stream(file.pieces);
    let mut response = attachment("application/pdf", &format!("batch-{id}.pdf"), body);
    if let Some(Ok(value)) = file.left_out.map(|left_out| left_out.parse()) {
        response.headers_mut().insert("x-left-out", value);
    }
    Ok(response)
}

/// A ZIP with one PDF for each ticket.
pub(crate) async fn zip(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<BatchId>,
    Params(options): Params<Options>,
) -> Result<Response, Problem> {
    let file = file(&app, &caller, id, BatchFormat::Zip, options.extent).await?;
    let body = Body::from_stream(file.pieces);
    Ok(attachment("application/zip", &format!("batch-{id}.zip"), body))
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
            Err(Problem::new(StatusCode::CONFLICT, detail).retry_after(1))
        }
        BatchDownload::TooMany => {
            let detail = "too many batches are being downloaded at the same time; try again";
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(5))
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
