//! `/api/batches`: lists of orders, the status of one, cancelling it, trying its failed tickets again.

use axum::Json;
use axum::extract::State;
use stampede_audit::{Kind, Subject};
use stampede_model::{Batch, BatchId, EventId};
use stampede_store::{BatchFilter, MadeTickets, Sorted};
use stampede_wire::ticketing::batches::{
    BatchCancelled, BatchCounters, BatchPage, BatchRetried, BatchStatus,
};

use crate::app::App;
use crate::auth::{Caller, Writer};
use crate::body::MaybeBody;
use crate::describe::{Accepted, Located};
use crate::forms::{Mistakes, Text, form};
use crate::input::Id;
use crate::page::Part;
use crate::problem::Problem;
use crate::query::Params;
use crate::routes::events;
use crate::trace::Audited;
use crate::version::{Fresh, IfNoneMatch, Version};

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(part): Params<Part>,
) -> Result<Json<BatchPage>, Problem> {
    let owner = caller.0.visible_owner().map(str::to_owned);
    page(&app, BatchFilter { owner, event: caller.0.scope.event }, &part).await
}

pub(crate) async fn list_of_event(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
    Params(part): Params<Part>,
) -> Result<Json<BatchPage>, Problem> {
    caller.must_read(&events::find(&app, id).await?.owner)?;
    page(&app, BatchFilter { owner: None, event: Some(id) }, &part).await
}

async fn page(app: &App, filter: BatchFilter, part: &Part) -> Result<Json<BatchPage>, Problem> {
    let batches = app.ticketing.batches(&filter, &part.slice(Sorted::NewestFirst)?).await?;
    let next = part.page.next(&batches, |batch| batch.id);
    Ok(Json(BatchPage { batches: batches.iter().map(BatchCounters::from).collect(), next }))
}

pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<BatchId>,
    known: IfNoneMatch,
) -> Result<Fresh<Json<BatchStatus>>, Problem> {
    let batch = find(&app, &caller, id).await?;
    let status = app.ticketing.batch_status(&batch).await?;
    // It also shows what the queue holds.
    let version = Version::from(batch.updated_at).showing(&status);
    Ok(known.answer(version, Json(status)))
}

form! {
    /// `POST /api/batches/{id}/cancel`.
    pub(crate) struct CancelForm {
        /// Tickets that are made: `keep` (they stay) or `void`.
        made: Text<20> = "made",
    }
}

/// Makes tickets void that are not made yet; with `{"made": "void"}` all tickets.
pub(crate) async fn cancel(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<BatchId>,
    MaybeBody(form): MaybeBody<CancelForm>,
) -> Result<Audited<Json<BatchCancelled>>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let made = mistakes.read(form.made, |Text(made)| match made.as_str() {
        "keep" => Ok(MadeTickets::Keep),
        "void" => Ok(MadeTickets::Void),
        _ => Err("must be keep or void"),
    });
    let made = mistakes.finish(Some(made.unwrap_or_default()))?;
    let batch = find_to_change(&app, &caller, id).await?;
    let change = caller.begin(&app, subject(&batch), &BatchCounters::from(&batch)).await?;
    let cancelled = app.ticketing.cancel_batch(id, made).await?;
    let cancelled = cancelled.ok_or_else(|| Problem::not_found("Batch", &id))?;
    let made = change.after(&BatchCounters::from(&cancelled.batch));
    Ok(made.answer(Json(BatchCancelled {
        success: true,
        batch_id: id,
        cancelled: cancelled.unmade,
        made_voided: cancelled.made,
        kept: cancelled.batch.total.saturating_sub(cancelled.batch.voided),
        voided: cancelled.batch.voided,
    })))
}

/// Tries failed tickets again.
pub(crate) async fn retry(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<BatchId>,
) -> Result<Audited<Located<Accepted<BatchRetried>>>, Problem> {
    let batch = find_to_change(&app, &caller, id).await?;
    let change = caller.begin(&app, subject(&batch), &BatchCounters::from(&batch)).await?;
    let retried = app.ticketing.retry_batch(id).await?;
    let (batch, retried) = retried.ok_or_else(|| Problem::not_found("Batch", &id))?;
    let answer = BatchRetried { success: true, batch_id: id, retried, pending: batch.pending() };
    let made = change.after(&BatchCounters::from(&batch));
    Ok(made.answer(Located(format!("/api/batches/{id}"), Accepted(answer))))
}

/// A batch in the audit log.
pub(crate) fn subject(batch: &Batch) -> Subject {
    Subject::of(Kind::Batch, batch.id).at(batch.event_id)
}

/// A batch that the caller may change.
pub(crate) async fn find_to_change(
    app: &App,
    caller: &Writer,
    id: BatchId,
) -> Result<Batch, Problem> {
    let batch = app.ticketing.batch(id).await?.ok_or_else(|| Problem::not_found("Batch", &id))?;
    caller.must_change(&batch.owner)?;
    Ok(batch)
}

/// A batch that the caller may read.
pub(crate) async fn find(app: &App, caller: &Caller, id: BatchId) -> Result<Batch, Problem> {
    let batch = app.ticketing.batch(id).await?.ok_or_else(|| Problem::not_found("Batch", &id))?;
    caller.must_read(&batch.owner)?;
    Ok(batch)
}
