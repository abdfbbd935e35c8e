//! `/api/tickets`: list, read, edit, reissue, void, delete. Ordering is in `orders.rs`.

use axum::Json;
use axum::extract::State;
use stampede_model::{BatchId, Currency, EventId, Limit, Ticket, TicketId, TicketStatus};
use stampede_store::{Sorted, TicketFilter, Versioned};
use stampede_ticketing::{Edit, Reissue, Strictness, TicketPatch};
use stampede_wire::ticketing::orders::TicketWarnings;
use stampede_wire::ticketing::tickets::{EditedTicket, Ticket as Shown, TicketPage};

use crate::app::App;
use crate::auth::{Caller, Writer};
use crate::body::Body;
use crate::describe::NoContent;
use crate::forms::{Amount, Changes, Contact, Email, Flag, Line, Mistakes, Text, form};
use crate::input::Id;
use crate::page::Part;
use crate::problem::Problem;
use crate::query::{FromQuery, Params, Query};
use crate::routes::orders::strictness;
use crate::routes::{CHANGE_TRIES, events};
use crate::scope::must_reach;
use crate::trace::{Audited, Change as Begun};
use crate::version::{Fresh, IfMatch, IfNoneMatch, Tagged};
use stampede_audit::{Kind, Subject};

form! {
    /// `PATCH /api/tickets/{id}`; `null` clears what may be absent.
    pub(crate) struct TicketForm {
        /// The holder's name.
        name: Line<{ Limit::NAME.0 }> = "name" required,
        /// The holder's address.
        email: Email = "email",
        /// The holder's telephone number.
        phone: Contact = "phoneNumber",
        /// The holder's chat of Telegram.
        chat: Contact = "chatId",
        /// Seat, row or class.
        seat: Line<{ Limit::SEAT.0 }> = "seat",
        /// The price in the event's currency.
        price: Amount = "price",
        /// `void`, alone.
        status: Text<200> = "status",
        /// Whether warnings refuse the change.
        strict: Flag = "strict",
    }
}

/// Fields that PATCH can change.
pub(crate) const CHANGEABLE: [&str; 7] =
    ["name", "email", "phoneNumber", "chatId", "seat", "price", "status"];

/// All other fields of a ticket.
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

/// The words of a ticket's states.
const STATUSES: [&str; 4] = ["pending", "completed", "failed", "void"];

/// Which tickets to list.
pub(crate) struct Listing {
    target: Option<EventId>,
    batch: Option<BatchId>,
    status: Option<TicketStatus>,
    part: Part,
}

impl FromQuery for Listing {
    fn from_query(query: &mut Query) -> Self {
        const RIGHT: &str = "must be pending, completed, failed or void";
        let status = query.about("The state of their PDFs.").word("status", &STATUSES, RIGHT);
        let (event, batch) = ("must be the id of an event", "must be the id of a batch");
        Self {
            target: query.about("The event.").parsed("target", event),
            batch: query.about("The order they came with.").parsed("batch", batch),
            status: status.and_then(TicketStatus::from_word),
            part: Part::from_query(query),
        }
    }
}

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(listing): Params<Listing>,
) -> Result<Json<TicketPage>, Problem> {
    let Listing { target, batch, status, part } = listing;
    let owner = caller.0.visible_owner().map(str::to_owned);
    if let Some(target) = target {
        must_reach(&caller.0, target)?;
    }
    let event = target.or(caller.0.scope.event);
    let filter = TicketFilter { owner, event, batch, status };
    let slice = part.slice(Sorted::OldestFirst)?;
    let tickets = app.ticketing.tickets_slice(&filter, &slice).await?;
    let next = part.page.next(&tickets, |ticket| ticket.id);
    Ok(Json(TicketPage { tickets: tickets.iter().map(Shown::from).collect(), next }))
}

pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<TicketId>,
    known: IfNoneMatch,
) -> Result<Fresh<Json<Shown>>, Problem> {
    let ticket = find(&app, id).await?;
    caller.must_read(&ticket.owner)?;
    Ok(known.answer(ticket.updated_at, Json(Shown::from(&ticket))))
}

/// Edits a ticket, with warnings as for orders (its PDF is made again); `{"status": "void"}` withdraws it.
pub(crate) async fn update(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<TicketId>,
    wanted: IfMatch,
    Body(Changes(form), _held): Body<Changes<TicketForm>>,
) -> Result<Audited<Tagged<Json<EditedTicket>>>, Problem> {
    let ticket = find(&app, id).await?;
    caller.must_change(&ticket.owner)?;
    let event = events::find(&app, ticket.event_id).await?;
    let wish = read_change(form, event.details.currency)?;
    let mut begun: Option<Begun> = None;
    for _ in 0..CHANGE_TRIES {
        let ticket = find(&app, id).await?;
        let seen = wanted.demand(ticket.updated_at)?;
        let before = Shown::from(&ticket);
        let change = match begun.take() {
            Some(change) => change.rebased(&before),
            None => caller.begin(&app, subject(&ticket), &before).await?,
        };
        let edit = match &wish {
            Change::Void => match app.ticketing.void(id, seen).await? {
                Versioned::Done(ticket) => Edit::Same(Box::new(ticket)),
                Versioned::NotFound => Edit::NotFound,
                Versioned::ChangedMeanwhile => Edit::ChangedMeanwhile,
            },
            Change::Edit(patch, strictness) => {
                app.ticketing.edit(id, patch, *strictness, seen).await?
            }
        };
        if !matches!(edit, Edit::ChangedMeanwhile) {
            let Tagged(version, Json(ticket)) = edited(id, edit)?;
            return Ok(change.after(&ticket.ticket).answer(Tagged(version, Json(ticket))));
        }
        begun = Some(change);
    }
    Err(Problem::busy("the ticket"))
}

/// The ticket as the audit log names it.
fn subject(ticket: &Ticket) -> Subject {
    Subject::of(Kind::Ticket, ticket.id).at(ticket.event_id)
}

/// A ticket about which there is nothing to say.
fn without_warnings(ticket: &Ticket) -> Tagged<Json<EditedTicket>> {
    let warnings = TicketWarnings::default();
    Tagged::new(ticket.updated_at, Json(EditedTicket { ticket: Shown::from(ticket), warnings }))
}

fn edited(id: TicketId, edit: Edit) -> Result<Tagged<Json<EditedTicket>>, Problem> {
    match edit {
        Edit::Done(ticket, warnings) => {
            let (version, warnings) = (ticket.updated_at, warnings.listed(&[id]));
            let ticket = Shown::from(&*ticket);
            Ok(Tagged::new(version, Json(EditedTicket { ticket, warnings })))
        }
        Edit::Same(ticket) => Ok(without_warnings(&ticket)),
        Edit::RefusedByWarnings(warnings) => Err(Problem::warnings(&warnings)),
        Edit::Void => Err(Problem::void("changed")),
        Edit::NotFound => Err(Problem::not_found("Ticket", &id)),
        Edit::Busy | Edit::ChangedMeanwhile => Err(Problem::busy("the ticket")),
    }
}

/// Issues a ticket again because its paper was lost or stolen: the old paper is refused from now on.
pub(crate) async fn reissue(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<TicketId>,
) -> Result<Audited<Tagged<Json<Shown>>>, Problem> {
    let ticket = find(&app, id).await?;
    caller.must_change(&ticket.owner)?;
    let change = caller.begin(&app, subject(&ticket), &Shown::from(&ticket)).await?;
    match app.ticketing.reissue(id).await? {
        Reissue::Done(ticket) => {
            let (version, shown) = (ticket.updated_at, Shown::from(&*ticket));
            Ok(change.after(&shown).answer(Tagged::new(version, Json(shown))))
        }
        Reissue::Void => Err(Problem::void("issued anew")),
        Reissue::NotFound => Err(Problem::not_found("Ticket", &id)),
    }
}

pub(crate) async fn delete(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<TicketId>,
    wanted: IfMatch,
) -> Result<Audited<NoContent>, Problem> {
    let mut begun: Option<Begun> = None;
    for _ in 0..CHANGE_TRIES {
        let ticket = find(&app, id).await?;
        caller.must_change(&ticket.owner)?;
        let seen = wanted.demand(ticket.updated_at)?;
        let before = Shown::from(&ticket);
        let change = match begun.take() {
            Some(change) => change.rebased(&before),
            None => caller.begin(&app, subject(&ticket), &before).await?,
        };
        if app.ticketing.delete_ticket(id, seen).await? != Versioned::ChangedMeanwhile {
            return Ok(change.gone().answer(NoContent));
        }
        begun = Some(change);
    }
    Err(Problem::busy("the ticket"))
}

/// What a PATCH asks for.
enum Change {
    Edit(TicketPatch, Strictness),
    Void,
}

/// Reads a PATCH; `null` clears what may be absent.
fn read_change(form: TicketForm, currency: Currency) -> Result<Change, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only_or_fixed(&form, &FIXED);
    let has_status = form.status.is_named();
    let has_others = form.name.is_named()
        || form.email.is_named()
        || form.phone.is_named()
        || form.chat.is_named()
        || form.seat.is_named()
        || form.price.is_named();
    mistakes.must_name_one_of(has_status || has_others, &CHANGEABLE);
    if form.status.has_value() {
        let void = mistakes.read(form.status, |Text(status)| match status.as_str() {
            "void" => Ok(Change::Void),
            _ => Err("can only be changed to \"void\""),
        });
        if has_others {
            mistakes.wrong("status", "cannot be changed together with other fields");
        }
        return mistakes.finish(void);
    }
    let has_name = form.name.is_named();
    let (has_email, has_seat) = (form.email.is_named(), form.seat.is_named());
    let (has_phone, has_chat) = (form.phone.is_named(), form.chat.is_named());
    let has_price = form.price.is_named();
    let name = has_name.then(|| mistakes.required(form.name).map(|Line(name)| name));
    let email = mistakes.value(form.email).map(|Email(email)| email);
    let phone = mistakes.value(form.phone).map(|Contact(phone)| phone);
    let chat = mistakes.value(form.chat).map(|Contact(chat)| chat);
    let seat = mistakes.value(form.seat).map(|Line(seat)| seat);
    let price = mistakes.money(form.price, currency);
    let patch = TicketPatch {
        name: name.map(Option::unwrap_or_default),
        email: has_email.then_some(email),
        phone: has_phone.then_some(phone),
        chat: has_chat.then_some(chat),
        seat: has_seat.then_some(seat),
        price: has_price.then_some(price),
    };
    let strictness = strictness(&mut mistakes, form.strict);
    mistakes.finish(Some(Change::Edit(patch, strictness)))
}

async fn find(app: &App, id: TicketId) -> Result<Ticket, Problem> {
    app.ticketing.ticket(id).await?.ok_or_else(|| Problem::not_found("Ticket", &id))
}
