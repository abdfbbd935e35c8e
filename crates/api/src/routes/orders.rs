//! `POST /api/tickets`: an order becomes a batch of tickets, at once.

mod ignored;
mod request;

use axum::Json;
use axum::extract::State;
use stampede_broker::kept;
use stampede_model::{Currency, Event, EventId, Holder, Idempotency, Money};
use stampede_ticketing::{OrderLine, OrderRequest, Placement, Strictness};
use stampede_wire::ticketing::orders::OrderAccepted;

use self::ignored::Ignored;
pub(crate) use self::request::Holders;
use self::request::OrderForm;
use crate::app::App;
use crate::auth::Writer;
use crate::body::ComparedBody;
use crate::forms::{Contact, Email, Flag, Given, IdOf, Line, Mistakes, Quantity};
use crate::headers::IdempotencyKey;
use crate::problem::{Code, Problem};
use crate::routes::events;
use crate::scope::must_reach;
use crate::trace::Audited;
use http::StatusCode;
use stampede_audit::{Kind, Subject};

pub(crate) async fn create(
    State(app): State<App>,
    caller: Writer,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    ComparedBody(form, content, _held): ComparedBody<OrderForm>,
) -> Result<Audited<Json<OrderAccepted>>, Problem> {
    let event = find_target(&app, &form.target).await?;
    must_reach(&caller.0, event.id)?;
    caller.must_change(&event.owner)?;
    let content = content.map(|hash| hash.as_str().to_owned());
    let idempotency =
        idempotency_key.zip(content).map(|(key, request)| Idempotency { key, request });
    let mut mistakes = Mistakes::default();
    let strictness = strictness(&mut mistakes, form.strict.clone());
    let quantity = app.ticketing.limits().quantity;
    let place = app.orders.wait(tickets_in(&form)).await;
    let (lines, ignored) = read_lines(&mut mistakes, form, event.details.currency, quantity);
    if strictness == Strictness::Strict {
        ignored.refuse(&mut mistakes);
    } else if mistakes.count() > 0 {
        ignored.refuse_typos(&mut mistakes);
    }
    let lines = mistakes.finish(lines)?;
    let event_id = event.id;
    let request = OrderRequest { event, lines, idempotency, strictness };
    let subject = Subject::new(Kind::Batch).at(event_id);
    let entry = caller.trace().entry_of_transaction(&subject, StatusCode::OK);
    let ticketing = app.ticketing.clone();
    // The order is placed to its end, also if the client hangs up; so long it keeps its place.
    let placing = tokio::spawn(kept(async move {
        let _place = place;
        ticketing.place_noted(request, entry).await
    }));
    match placing.await.map_err(|error| Problem::internal(&error))?? {
        Placement::Accepted { batch_id, tickets, warnings } => {
            let mut warnings = warnings.listed(&tickets);
            warnings.warnings.splice(0..0, ignored.warnings());
            let accepted = OrderAccepted { success: true, batch_id, tickets, warnings };
            Ok(Audited::by_transaction(Json(accepted)))
        }
        Placement::RefusedByWarnings(warnings) => Err(Problem::warnings(&warnings)),
        Placement::KeyOfAnotherOrder => Err(Problem::new(
            Code::KeyReused,
            "this Idempotency-Key was used for another order; a new order needs a new key",
        )),
        Placement::NoSuchEvent => Err(Problem::not_found("Event", &event_id)),
    }
}

/// The number of tickets that an order asks for, as far as it can be told before its mistakes are known.
fn tickets_in(form: &OrderForm) -> usize {
    match (form.holders.value(), form.quantity.value()) {
        (Some(holders), _) => holders.all.len(),
        (None, Some(Quantity(quantity))) => usize::try_from(*quantity).unwrap_or(usize::MAX),
        (None, None) => 1,
    }
}

/// `strict`: true or false.
pub(crate) fn strictness(mistakes: &mut Mistakes, strict: Given<Flag>) -> Strictness {
    match mistakes.value(strict) {
        Some(Flag(true)) => Strictness::Strict,
        Some(Flag(false)) => Strictness::Lenient,
        None => Strictness::default(),
    }
}

/// The event an order is for: 422 when it is not named, 404 when there is no such event.
async fn find_target(app: &App, target: &Given<IdOf<EventId>>) -> Result<Event, Problem> {
    let mut mistakes = Mistakes::default();
    if !target.has_value() {
        mistakes.wrong("target", "is missing: the id of an event");
        return mistakes.finish(None);
    }
    match mistakes.ruled(target.clone(), "must be the id of an event", Some) {
        None => mistakes.finish(None),
        Some(IdOf(Some(id))) => events::find(app, id).await,
        Some(IdOf(None)) => Err(Problem::not_found("Event", &"target is not the id of an event")),
    }
}

/// One line for each ticket: either `quantity` times the same, or one for each of `holders`.
fn read_lines(
    mistakes: &mut Mistakes,
    form: OrderForm,
    currency: Currency,
    limit: u32,
) -> (Option<Vec<OrderLine>>, Ignored) {
    let quantity = read_quantity(mistakes, form.quantity, limit);
    let common = Common {
        email: mistakes.value(form.email).map(|Email(email)| email),
        phone: mistakes.value(form.phone).map(|Contact(phone)| phone),
        chat: mistakes.value(form.chat).map(|Contact(chat)| chat),
        seat: mistakes.value(form.seat).map(|Line(seat)| seat),
        price: mistakes.money(form.price, currency),
    };
    if !form.holders.has_value() {
        let name = mistakes.required(form.name).map(|Line(name)| name);
        let Common { email, phone, chat, seat, price } = common;
        let holder = name.map(|name| Holder { name, email, phone, chat, seat });
        let line = holder.map(|holder| OrderLine { holder, price });
        let lines = line.map(|line| vec![line; quantity.unwrap_or(1) as usize]);
        return (lines, Ignored::of_order(&form.unknown, Ignored::default()));
    }
    let Some(mut holders) = mistakes.value(form.holders) else {
        return (None, Ignored::of_order(&form.unknown, Ignored::default()));
    };
    let count = holders.all.len();
    if quantity.is_some_and(|quantity| quantity as usize != count) {
        mistakes.wrong("quantity", format!("does not match the {count} holders"));
    }
    let ignored = Ignored::of_order(&form.unknown, std::mem::take(&mut holders.ignored));
    (Some(lines_of(mistakes, holders, &common, currency)), ignored)
}

/// One line for each holder; what the order says applies to every holder who does not say otherwise.
fn lines_of(
    mistakes: &mut Mistakes,
    mut holders: Holders,
    common: &Common,
    currency: Currency,
) -> Vec<OrderLine> {
    let all = std::mem::take(&mut holders.all);
    let mut lines = Vec::with_capacity(all.len());
    for (index, line) in all.into_iter().enumerate() {
        let mut own = Mistakes::nested(format!("holders[{index}]."));
        holders.tell(index, &mut own, mistakes);
        let price = line.price.and_then(|price| match Money::parse(&price, currency) {
            Ok(price) => Some(price),
            Err(error) => {
                own.wrong("price", error);
                None
            }
        });
        mistakes.absorb(own);
        let holder = Holder {
            name: line.name.map(String::from).unwrap_or_default(),
            email: line.email.map(String::from).or_else(|| common.email.clone()),
            phone: line.phone.map(String::from).or_else(|| common.phone.clone()),
            chat: line.chat.map(String::from).or_else(|| common.chat.clone()),
            seat: line.seat.map(String::from).or_else(|| common.seat.clone()),
        };
        lines.push(OrderLine { holder, price: price.or(common.price) });
    }
    lines
}

fn read_quantity(mistakes: &mut Mistakes, quantity: Given<Quantity>, limit: u32) -> Option<u32> {
    let rule = format!("must be a whole number from 1 to {limit}");
    mistakes.ruled(quantity, &rule, |Quantity(n)| {
        u32::try_from(n).ok().filter(|n| (1..=limit).contains(n))
    })
}

/// What an order says for all of its tickets.
struct Common {
    email: Option<String>,
    phone: Option<String>,
    chat: Option<String>,
    seat: Option<String>,
    price: Option<Money>,
}
