//! `/api/tickets/{id}/block`: a ticket is refused at every door until the block is lifted.

use axum::Json;
use axum::extract::State;
use stampede_checkin::Written;
use stampede_model::{EventId, Ticket, TicketId};
use stampede_wire::Paged;
use stampede_wire::checkin::blocks::{Block, Blocks};

use super::LONGEST_REASON;
use super::setup::{managed, readable, written};
use crate::app::App;
use crate::auth::{Caller, Writer};
use crate::body::Body;
use crate::describe::NoContent;
use crate::forms::{Line, Mistakes, form};
use crate::input::Id;
use crate::page::Page;
use crate::problem::Problem;
use crate::query::Params;
use crate::routes::CHANGE_TRIES;
use crate::trace::{Audited, Change};
use crate::version::{Fresh, IfMatch, IfNoneMatch, Tagged};
use stampede_audit::{Kind, Subject};

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
    let may = managed(app, caller, ticket.event_id).await;
    may.map_err(|refused| refused.hiding("Ticket", &id))?;
    Ok(ticket)
}

pub(crate) async fn block(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<TicketId>,
    wanted: IfMatch,
    Body(form, _held): Body<BlockForm>,
) -> Result<Audited<Tagged<Json<Block>>>, Problem> {
    let ticket = managed_ticket(&app, &caller, id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let reason = mistakes.value(form.reason).map(|Line(reason)| reason);
    let reason: Option<String> = mistakes.finish(Some(reason))?;
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let before = app.checkin.block_of(id).await?;
        let seen = match &before {
            Some(before) => wanted.demand(before.updated_at)?,
            None => wanted.check_missing().map(|()| None)?,
        };
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, subject(&ticket), &before).await?,
        };
        match app.checkin.block(ticket.event_id, id, reason.as_deref(), seen).await? {
            Written::ChangedMeanwhile => begun = Some(noted),
            blocked => {
                let block = written(blocked, "Ticket", &id)?;
                let version = block.updated_at;
                return Ok(noted.after(&block).answer(Tagged::new(version, Json(block))));
            }
        }
    }
    Err(Problem::busy("the block"))
}

/// The block as the audit log names it.
fn subject(ticket: &Ticket) -> Subject {
    Subject::of(Kind::Block, ticket.id).at(ticket.event_id)
}

/// The block of a ticket.
pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TicketId>,
    known: IfNoneMatch,
) -> Result<Fresh<Json<Block>>, Problem> {
    let ticket = app.ticketing.ticket(id).await?;
    let ticket = ticket.ok_or_else(|| Problem::not_found("Ticket", &id))?;
    let read = readable(&app, &caller, ticket.event_id).await;
    read.map_err(|refused| refused.hiding("Ticket", &id))?;
    let block = app.checkin.block_of(id).await?;
    let block = block.ok_or_else(|| Problem::not_found("Block", &id))?;
    Ok(known.answer(block.updated_at, Json(block)))
}

pub(crate) async fn unblock(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<TicketId>,
    wanted: IfMatch,
) -> Result<Audited<NoContent>, Problem> {
    let ticket = managed_ticket(&app, &caller, id).await?;
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        // To lift a block that is not there changes nothing.
        let before = app.checkin.block_of(id).await?;
        let seen = match &before {
            Some(before) => wanted.demand(before.updated_at)?,
            None => wanted.check_missing().map(|()| None)?,
        };
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, subject(&ticket), &before).await?,
        };
        let lifted = app.checkin.unblock(ticket.event_id, id, seen).await?;
        if lifted != Written::ChangedMeanwhile {
            return Ok(noted.gone().answer(NoContent));
        }
        begun = Some(noted);
    }
    Err(Problem::busy("the block"))
}

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
    Params(page): Params<Page>,
) -> Result<Json<Paged<Blocks>>, Problem> {
    readable(&app, &caller, id).await?;
    let blocks = app.checkin.blocks(id).await?.blocks;
    let key = |block: &Block| format!("{:010}", block.number);
    Ok(Json(page.cut(blocks, key, |blocks| Blocks { blocks })))
}
