//! `/api/tickets`: list, read, update, withdraw, delete. Ordering is in `orders.rs`.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use stampede_model::{Limit, Ticket, TicketId, TicketStatus, Timestamp};
use stampede_store::{Edited, TicketEdit, TicketFilter};

use crate::app::App;
use crate::auth::Caller;
use crate::input::{Body, Fields, Id, Params, as_text};
use crate::problem::Problem;
use crate::routes::{Paging, events};

#[derive(Deserialize)]
pub(crate) struct Filter {
    target: Option<String>,
    batch: Option<String>,
    status: Option<String>,
}

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(filter): Params<Filter>,
    Params(paging): Params<Paging>,
) -> Result<Json<Value>, Problem> {
    let unknown = |name: &str| {
        Problem::new(StatusCode::BAD_REQUEST, format!("{name} in the query is not valid"))
    };
    let filter = TicketFilter {
        owner: caller.0.visible_owner().map(str::to_owned),
        event: parse(filter.target).map_err(|()| unknown("target"))?,
        batch: parse(filter.batch).map_err(|()| unknown("batch"))?,
        status: match filter.status {
            Some(word) => Some(TicketStatus::from_word(&word).ok_or_else(|| unknown("status"))?),
            None => None,
        },
    };
    let tickets = app.store.tickets(&filter, paging.after(), paging.limit()).await?;
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

/// Changes what is printed (its PDF is then made anew), or withdraws it with `{"status": "void"}`.
pub(crate) async fn update(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TicketId>,
    Body(body): Body,
) -> Result<Json<Value>, Problem> {
    let ticket = find(&app, id).await?;
    caller.must_change(&ticket.owner)?;
    let event = events::find(&app, ticket.event_id).await?;

    let mut fields = Fields::new(&body);
    let void = fields.read("status", |value| match as_text(value)? {
        "void" => Ok(()),
        _ => Err("can only be changed to \"void\"".to_owned()),
    });
    let mut holder = ticket.holder.clone();
    if let Some(name) = fields.text("name", Limit::NAME) {
        holder.name = name;
    }
    holder.email = fields.email("email").or(holder.email);
    holder.seat = fields.text("seat", Limit::SEAT).or(holder.seat);
    let price = fields.money("price", event.details.currency).or(ticket.price);
    fields.finish(Some(()))?;

    let now = Timestamp::now();
    let gone = || Problem::not_found("Ticket");
    if void.is_some() {
        let (ticket, batch) = app.store.void_ticket(id, now).await?.ok_or_else(gone)?;
        app.mirror(&batch).await;
        return Ok(Json(shown(&ticket)));
    }
    if holder == ticket.holder && price == ticket.price && ticket.status == TicketStatus::Completed
    {
        return Ok(Json(shown(&ticket)));
    }
    match app.store.edit_ticket(id, &TicketEdit { holder, price }, now).await? {
        Edited::Changed(ticket, batch) => {
            app.mirror(&batch).await;
            app.enqueue_again(&ticket).await;
            Ok(Json(shown(&ticket)))
        }
        Edited::Void => {
            Err(Problem::new(StatusCode::CONFLICT, "the ticket is void and cannot be changed"))
        }
        Edited::NotFound => Err(gone()),
    }
}

pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TicketId>,
) -> Result<StatusCode, Problem> {
    let ticket = find(&app, id).await?;
    caller.must_change(&ticket.owner)?;
    if let Some(batch) = app.store.delete_ticket(id, Timestamp::now()).await? {
        app.mirror(&batch).await;
    }
    // A job without its ticket ends by itself; taking it off the queue only saves the trip.
    let _ = app.tickets.remove(&id.to_string()).await;
    app.files.delete(&Ticket::pdf_path(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn find(app: &App, id: TicketId) -> Result<Ticket, Problem> {
    app.store.ticket(id).await?.ok_or_else(|| Problem::not_found("Ticket"))
}

fn parse<T: std::str::FromStr>(text: Option<String>) -> Result<Option<T>, ()> {
    text.map(|text| text.parse().map_err(|_| ())).transpose()
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
