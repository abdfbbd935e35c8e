//! `/api/tickets`: list, read, update, issue anew, withdraw, delete. Ordering is in `orders.rs`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde_json::{Map, Value, json};
use stampede_model::{BatchId, Currency, EventId, Limit, Ticket, TicketId, TicketStatus};
use stampede_store::{Edited, TicketEdit, TicketFilter};

use crate::app::{App, now};
use crate::auth::Caller;
use crate::input::{Body, Fields, Id, as_text};
use crate::problem::Problem;
use crate::query::{FromQuery, Params, Query};
use crate::routes::preflight::{self, Strictness};
use crate::routes::{CHANGE_TRIES, Paging, events, extended};

/// What PATCH can change.
pub(crate) const CHANGEABLE: [&str; 5] = ["name", "email", "seat", "price", "status"];

/// What else a ticket has.
pub(crate) const FIXED: [&str; 15] = [
    "id",
    "target",
    "batchId",
    "owner",
    "index",
    "number",
    "generation",
    "currency",
    "error",
    "image",
    "pdf",
    "processedBy",
    "processedAt",
    "createdAt",
    "updatedAt",
];

/// Which tickets to list.
pub(crate) struct Listing {
    target: Option<EventId>,
    batch: Option<BatchId>,
    status: Option<TicketStatus>,
    paging: Paging,
}

impl FromQuery for Listing {
    fn from_query(query: &mut Query) -> Self {
        let status = query.text("status").and_then(|word| {
            let status = TicketStatus::from_word(&word);
            if status.is_none() {
                query.wrong("status", "must be pending, completed, failed or void");
            }
            status
        });
        Self {
            target: query.parsed("target", "must be the id of an event"),
            batch: query.parsed("batch", "must be the id of a batch"),
            status,
            paging: Paging::from_query(query),
        }
    }
}

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(listing): Params<Listing>,
) -> Result<Json<Value>, Problem> {
    let Listing { target, batch, status, paging } = listing;
    let owner = caller.0.visible_owner().map(str::to_owned);
    let filter = TicketFilter { owner, event: target, batch, status };
    let tickets = app.store.tickets(&filter, paging.after()?, paging.limit()).await?;
    let next = paging.next(&tickets, |ticket| ticket.id);
    let tickets: Vec<Value> = tickets.iter().map(shown).collect();
    Ok(Json(json!({ "tickets": tickets, "next": next })))
}

pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TicketId>,
) -> Result<Json<Value>, Problem> {
    let ticket = find(&app, id).await?;
    caller.must_read(&ticket.owner)?;
    Ok(Json(shown(&ticket)))
}

/// Changes what is printed (its PDF is then made anew; with warnings as for orders), or withdraws it with `{"status": "void"}`.
pub(crate) async fn update(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TicketId>,
    Body(body): Body,
) -> Result<Json<Value>, Problem> {
    for _ in 0..CHANGE_TRIES {
        let ticket = find(&app, id).await?;
        caller.must_change(&ticket.owner)?;
        let event = events::find(&app, ticket.event_id).await?;
        let (edit, strictness) = match read_change(&body, &ticket, event.details.currency)? {
            Change::Void => return void(&app, id).await,
            Change::Edit(edit, strictness) => (edit, strictness),
        };
        let same = edit.holder == ticket.holder && edit.price == ticket.price;
        if same && ticket.status == TicketStatus::Completed {
            return Ok(Json(shown(&ticket)));
        }
        let edited = Ticket { holder: edit.holder.clone(), price: edit.price, ..ticket.clone() };
        let warnings = preflight::check(&app, event, &Arc::new([edited]), strictness).await?;
        match app.store.edit_ticket(id, &edit, ticket.updated_at, now()).await? {
            Edited::Changed(ticket, batch) => {
                app.mirror(&batch).await;
                app.enqueue_again(&ticket).await;
                return Ok(Json(extended(shown(&ticket), warnings.shown(&[id]))));
            }
            Edited::Void => {
                let detail = "the ticket is void and cannot be changed";
                return Err(Problem::new(StatusCode::CONFLICT, detail));
            }
            Edited::NotFound => return Err(Problem::not_found("Ticket")),
            // Their change must not be undone by ours.
            Edited::ChangedMeanwhile => {}
        }
    }
    Err(Problem::busy("the ticket"))
}

/// Issues a ticket anew because its paper was lost or stolen: the old paper is refused from now on.
pub(crate) async fn reissue(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TicketId>,
) -> Result<Json<Value>, Problem> {
    caller.must_change(&find(&app, id).await?.owner)?;
    let issued = app.store.reissue_ticket(id, now()).await?;
    let (ticket, batch) = issued.ok_or_else(|| Problem::not_found("Ticket"))?;
    if ticket.status == TicketStatus::Void {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "the ticket is void and cannot be issued anew",
        ));
    }
    app.mirror(&batch).await;
    app.enqueue_again(&ticket).await;
    Ok(Json(shown(&ticket)))
}

enum Change {
    Edit(TicketEdit, Strictness),
    Void,
}

/// What a PATCH makes of a ticket; `null` clears what may be absent.
fn read_change(
    body: &Map<String, Value>,
    ticket: &Ticket,
    currency: Currency,
) -> Result<Change, Problem> {
    let mut fields = Fields::new(body);
    fields.only_or_fixed(&[&CHANGEABLE[..], &["strict"]].concat(), &FIXED);
    fields.must_name_one_of(&CHANGEABLE);
    if fields.get("status").is_some() {
        let void = fields.read("status", |value| match as_text(value)? {
            "void" => Ok(Change::Void),
            _ => Err("can only be changed to \"void\"".to_owned()),
        });
        if CHANGEABLE.iter().any(|name| *name != "status" && body.contains_key(*name)) {
            fields.wrong("status", "cannot be changed together with other fields");
        }
        return fields.finish(void);
    }
    let mut holder = ticket.holder.clone();
    let mut price = ticket.price;
    if body.contains_key("name") {
        holder.name = fields.required_text("name", Limit::NAME).unwrap_or_default();
    }
    if body.contains_key("email") {
        holder.email = fields.email("email");
    }
    if body.contains_key("seat") {
        holder.seat = fields.text("seat", Limit::SEAT);
    }
    if body.contains_key("price") {
        price = fields.money("price", currency);
    }
    let strictness = Strictness::read(&mut fields);
    fields.finish(Some(Change::Edit(TicketEdit { holder, price }, strictness)))
}

async fn void(app: &App, id: TicketId) -> Result<Json<Value>, Problem> {
    let voided = app.store.void_ticket(id, now()).await?;
    let (ticket, batch) = voided.ok_or_else(|| Problem::not_found("Ticket"))?;
    app.files.delete(&Ticket::pdf_path(id)).await?;
    app.mirror(&batch).await;
    app.forget_job(id).await;
    Ok(Json(shown(&ticket)))
}

pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TicketId>,
) -> Result<StatusCode, Problem> {
    let ticket = find(&app, id).await?;
    caller.must_change(&ticket.owner)?;
    let shrunk = app.store.delete_ticket(id, now()).await?;
    app.files.delete(&Ticket::pdf_path(id)).await?;
    if let Some(batch) = shrunk {
        app.mirror_shrunk(&batch).await;
    }
    app.forget_job(id).await;
    Ok(StatusCode::NO_CONTENT)
}

async fn find(app: &App, id: TicketId) -> Result<Ticket, Problem> {
    app.store.ticket(id).await?.ok_or_else(|| Problem::not_found("Ticket"))
}

/// A ticket as clients see it; the names are those of seed 000.
fn shown(ticket: &Ticket) -> Value {
    let ready = ticket.status == TicketStatus::Completed;
    json!({
        "id": ticket.id,
        "target": ticket.event_id,
        "batchId": ticket.batch_id,
        "owner": ticket.owner,
        "index": ticket.index,
        "number": ticket.serial,
        "generation": ticket.generation,
        "name": ticket.holder.name,
        "email": ticket.holder.email,
        "seat": ticket.holder.seat,
        "price": ticket.price.map(|price| price.amount()),
        "currency": ticket.price.map(|price| price.currency()),
        "status": ticket.status,
        "error": ticket.error,
        "image": ready.then(|| format!("/{}", Ticket::pdf_path(ticket.id))),
        "pdf": format!("/api/tickets/{}/pdf", ticket.id),
        "processedBy": ticket.processed_by,
        "processedAt": ticket.processed_at,
        "createdAt": ticket.created_at,
        "updatedAt": ticket.updated_at,
    })
}
