//! `GET /api/batches/{id}`: the status of an order.

use axum::Json;
use axum::extract::State;
use stampede_model::{Batch, BatchId};
use stampede_wire::ticketing::batches::BatchStatus;

use crate::app::App;
use crate::auth::Caller;
use crate::input::Id;
use crate::problem::Problem;

pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<BatchId>,
) -> Result<Json<BatchStatus>, Problem> {
    let batch = find(&app, &caller, id).await?;
    Ok(Json(app.ticketing.batch_status(&batch).await?))
}

/// A batch that the caller may read.
pub(crate) async fn find(app: &App, caller: &Caller, id: BatchId) -> Result<Batch, Problem> {
    let batch = app.ticketing.batch(id).await?.ok_or_else(|| Problem::not_found("Batch", &id))?;
    caller.must_read(&batch.owner)?;
    Ok(batch)
}
