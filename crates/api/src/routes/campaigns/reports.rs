//! `GET /api/contracts/{id}/report` and `…/report.csv`: what has become of a campaign.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use futures::StreamExt;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use schemars::json_schema;
use stampede_model::CampaignId;
use stampede_wire::campaigns::Report;

use super::{find, not_found};
use crate::app::App;
use crate::auth::Caller;
use crate::describe::{Kind, Operation, Sent};
use crate::input::Id;
use crate::problem::Problem;
use crate::ranges::set;

/// One row for each recipient.
pub(crate) struct ReportTable;

impl Kind for ReportTable {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({ "type": "string" });
        operation.answers(200, "One row for each recipient.", Some(("text/csv", schema)));
    }
}

pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<CampaignId>,
) -> Result<Json<Report>, Problem> {
    find(&app, &caller.0, id).await?;
    app.campaigns.report(id).await?.map(Json).ok_or_else(|| not_found(id))
}

/// A row for each recipient as CSV, read while it is sent. A file that breaks off ends the connection.
pub(crate) async fn table(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<CampaignId>,
) -> Result<Sent<ReportTable>, Problem> {
    find(&app, &caller.0, id).await?;
    let pieces = app.campaigns.report_csv(id).await?.ok_or_else(|| not_found(id))?;
    let pieces = futures::stream::unfold(pieces, async |mut pieces| {
        pieces.next().await.map(|piece| (piece, pieces))
    });
    // Compression asks for more after the end.
    let mut response = Response::new(Body::from_stream(pieces.fuse()));
    set(&mut response, CONTENT_TYPE, "text/csv; charset=utf-8; header=present");
    let name = format!("attachment; filename=\"contract-{id}.csv\"");
    set(&mut response, CONTENT_DISPOSITION, &name);
    set(&mut response, CACHE_CONTROL, "private, no-store");
    Ok(Sent::new(response))
}
