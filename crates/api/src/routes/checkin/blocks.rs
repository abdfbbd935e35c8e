//! `/api/tickets/{id}/block`: a ticket is refused at every door until the block is lifted.

use axum::Json;
use axum::extract::State;
use stampede_model::{EventId, Ticket, TicketId};
use stampede_wire::checkin::blocks::{Block, Blocks};

use super::LONGEST_REASON;
use super::setup::{managed, readable};
use crate::app::App;
use crate::auth::{Caller, Writer};
use crate::body::Body;
use crate::describe::NoContent;
use crate::forms::{Line, Mistakes, form};
use crate::input::Id;
use crate::problem::Problem;

form! {
    /// `PUT /api/tickets/{id}/block`.
    pub(crate) struct BlockForm {
        /// Why, for people.
        reason: Line<LONGEST_REASON> = "reason",
    }
}

/// The ticket, if the caller may change its check-in.
async fn managed_ticket(app: &App, caller: &Writer, id: TicketId) -> Result<Ticket, Problem> {
    let ticket = app.ticketing.ticket(id).await?;
    let ticket = ticket.ok_or_else(|| Problem::not_found("Ticket", &id))?;
    managed(app, caller, ticket.event_id).await?;
    Ok(ticket)
}

pub(crate) async fn block(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<TicketId>,
    Body(form, _held): Body<BlockForm>,
) -> Result<Json<Block>, Problem> {
    let ticket = managed_ticket(&app, &caller, id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let reason = mistakes.value(form.reason).map(|Line(reason)| reason);
    let reason: Option<String> = mistakes.finish(Some(reason))?;
    let block = app.checkin.block(ticket.event_id, id, reason.as_deref()).await?;
    block.map(Json).ok_or_else(|| Problem::not_found("Ticket", &id))
}

pub(crate) async fn unblock(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<TicketId>,
) -> Result<NoContent, Problem> {
    let ticket = managed_ticket(&app, &caller, id).await?;
    app.checkin.unblock(ticket.event_id, id).await?;
    Ok(NoContent)
}

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
) -> Result<Json<Blocks>, Problem> {
    readable(&app, &caller, id).await?;
    Ok(Json(app.checkin.blocks(id).await?))
}
