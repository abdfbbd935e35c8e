//! `POST /api/tickets`: an order becomes a batch of tickets, at once.

mod ignored;

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};
use stampede_model::{Currency, Event, EventId, Holder, Idempotency, KeyHash, Limit, Money};
use stampede_ticketing::{OrderLine, OrderRequest, Placement, Strictness};
use stampede_wire::ticketing::orders::OrderAccepted;

use self::ignored::Ignored;
use crate::app::App;
use crate::auth::Writer;
use crate::input::{Body, Fields};
use crate::problem::Problem;
use crate::routes::events;

/// Mistakes in one answer.
const MAX_MISTAKES: usize = 100;
/// Longest `Idempotency-Key`.
const MAX_KEY: usize = 200;

pub(crate) async fn create(
    State(app): State<App>,
    caller: Writer,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Json<OrderAccepted>, Problem> {
    let event = find_target(&app, &body).await?;
    caller.must_change(&event.owner)?;
    let idempotency_key = read_idempotency_key(&headers)?;
    let mut fields = Fields::new(&body);
    let quantity = app.ticketing.limits().quantity;
    let lines = read_lines(&mut fields, event.details.currency, quantity);
    let strictness = read_strictness(&mut fields);
    let ignored = Ignored::find(&body);
    if strictness == Strictness::Strict {
        ignored.refuse(&mut fields);
    }
    let lines = fields.finish(lines)?;
    let idempotency = idempotency_key.map(|key| Idempotency { key, request: request_hash(&body) });
    let request = OrderRequest { event, lines, idempotency, strictness };
    match app.ticketing.place(request).await? {
        Placement::Accepted { batch_id, tickets, warnings } => {
            let mut warnings = warnings.listed(&tickets);
            warnings.warnings.splice(0..0, ignored.warnings());
            Ok(Json(OrderAccepted { success: true, batch_id, tickets, warnings }))
        }
        Placement::RefusedByWarnings(warnings) => Err(Problem::warnings(&warnings)),
        Placement::KeyOfAnotherOrder => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "this Idempotency-Key was used for another order; a new order needs a new key",
        )),
        Placement::NoSuchEvent => Err(Problem::not_found("Event")),
    }
}

/// `strict`: true or false.
pub(crate) fn read_strictness(fields: &mut Fields<'_>) -> Strictness {
    let strict = fields.read("strict", |value| match value.as_bool() {
        Some(true) => Ok(Strictness::Strict),
        Some(false) => Ok(Strictness::Lenient),
        None => Err("must be true or false"),
    });
    strict.unwrap_or_default()
}

/// Two requests with the same content have the same hash, whatever the order of their fields.
fn request_hash(body: &Map<String, Value>) -> String {
    let sorted: BTreeMap<&String, &Value> = body.iter().collect();
    KeyHash::of(&json!(sorted).to_string()).as_str().to_owned()
}

/// The event an order is for: 422 when it is not named, 404 when there is no such event.
async fn find_target(app: &App, body: &Map<String, Value>) -> Result<Event, Problem> {
    let mut fields = Fields::new(body);
    let id: Result<EventId, _> = match fields.get("target") {
        Some(Value::String(text)) => text.parse(),
        Some(_) => {
            fields.wrong("target", "must be the id of an event");
            return fields.finish(None);
        }
        None => {
            fields.wrong("target", "is missing: the id of an event");
            return fields.finish(None);
        }
    };
    match id {
        Ok(id) => events::find(app, id).await,
        Err(_) => Err(Problem::not_found("Event")),
    }
}

/// One line for each ticket: either `quantity` times the same, or one for each of `holders`.
fn read_lines(fields: &mut Fields<'_>, currency: Currency, limit: u32) -> Option<Vec<OrderLine>> {
    let quantity = read_quantity(fields, limit);
    let Some(holders) = fields.get("holders") else {
        let line = read_line(fields, currency, None)?;
        return Some(vec![line; quantity.unwrap_or(1) as usize]);
    };
    let Some(holders) = holders.as_array().filter(|holders| !holders.is_empty()) else {
        fields.wrong("holders", "must be a list of objects with name, email, seat and price");
        return None;
    };
    if holders.len() > limit as usize {
        fields.wrong("holders", format!("may have at most {limit} entries, has {}", holders.len()));
        return None;
    }
    if quantity.is_some_and(|quantity| quantity as usize != holders.len()) {
        fields.wrong("quantity", format!("does not match the {} holders", holders.len()));
    }
    // What the order says applies to every holder who does not say otherwise.
    let common = read_common(fields, currency);
    let mut lines = Vec::with_capacity(holders.len());
    for (index, holder) in holders.iter().enumerate() {
        let Some(object) = holder.as_object() else {
            fields.wrong(&format!("holders[{index}]"), "must be an object");
            continue;
        };
        let mut own = Fields::nested(object, format!("holders[{index}]."));
        lines.extend(read_line(&mut own, currency, Some(&common)));
        fields.absorb(own);
        if fields.mistakes() >= MAX_MISTAKES {
            break;
        }
    }
    Some(lines)
}

fn read_quantity(fields: &mut Fields<'_>, limit: u32) -> Option<u32> {
    fields.read("quantity", |value| {
        value
            .as_u64()
            .or_else(|| value.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0).map(|n| n as u64))
            .and_then(|n| u32::try_from(n).ok())
            .filter(|n| (1..=limit).contains(n))
            .ok_or_else(|| format!("must be a whole number from 1 to {limit}"))
    })
}

/// What an order with `holders` says for all of them.
struct Common {
    email: Option<String>,
    seat: Option<String>,
    price: Option<Money>,
}

fn read_common(fields: &mut Fields<'_>, currency: Currency) -> Common {
    Common {
        email: fields.email("email"),
        seat: fields.text("seat", Limit::SEAT),
        price: fields.money("price", currency),
    }
}

fn read_line(
    fields: &mut Fields<'_>,
    currency: Currency,
    common: Option<&Common>,
) -> Option<OrderLine> {
    let name = fields.required_text("name", Limit::NAME);
    let own = read_common(fields, currency);
    let holder = Holder {
        name: name?,
        email: own.email.or_else(|| common?.email.clone()),
        seat: own.seat.or_else(|| common?.seat.clone()),
    };
    Some(OrderLine { holder, price: own.price.or_else(|| common?.price) })
}

fn read_idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    match value.to_str() {
        Ok(key) if (1..=MAX_KEY).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            format!("Idempotency-Key must be 1 to {MAX_KEY} visible characters"),
        )),
    }
}
