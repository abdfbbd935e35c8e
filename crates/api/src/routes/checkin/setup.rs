//! Lists and gates of events.

use axum::Json;
use axum::extract::State;
use stampede_checkin::{ListChange, Written};
use stampede_model::{BatchId, Event, EventId, GateId, Limit, ListId, Timestamp};
use stampede_wire::checkin::setup::{Gate, Gates, List as ShownList, Lists};

use super::A_TIME;
use crate::app::App;
use crate::auth::{Caller, Writer};
use crate::body::Body;
use crate::describe::{Created, NoContent};
use crate::forms::{
    Changes, Flag, Form, Given, IdOf, Line, List, Mistakes, Parsed, Part, Whole, form,
};
use crate::input::Id;
use crate::problem::{Code, Problem};
use crate::routes::events;

/// Most orders or seat patterns of one list.
const MOST_CONDITIONS: usize = 1_000;

form! {
    /// The fields of a list that POST and PATCH read.
    pub(crate) struct ListForm {
        /// The list's name.
        name: Line<{ Limit::NAME.0 }> = "name" required,
        /// From when it admits.
        opens_at: Parsed<Timestamp> = "opensAt",
        /// Until when it admits.
        closes_at: Parsed<Timestamp> = "closesAt",
        /// How often a ticket may enter; 0: any number of times.
        entries: Whole = "entries",
        /// Whether an exit gives the entry back.
        reentry: Flag = "reentry",
        /// Only tickets of these orders.
        batches: List<IdOf<BatchId>, MOST_CONDITIONS> = "batches",
        /// Only tickets whose seat matches one of these patterns.
        seats: List<Line<{ Limit::SEAT.0 }>, MOST_CONDITIONS> = "seats",
    }
}

form! {
    /// The fields of a gate.
    pub(crate) struct GateForm {
        /// The gate's name.
        name: Line<{ Limit::NAME.0 }> = "name" required,
    }
}

/// All other fields of a list.
const FIXED: [&str; 4] = ["id", "target", "createdAt", "updatedAt"];

/// The event, if the caller may change its check-in.
pub(super) async fn managed(app: &App, caller: &Writer, id: EventId) -> Result<Event, Problem> {
    let event = events::find(app, id).await?;
    caller.must_change(&event.owner)?;
    if caller.0.scope.event.is_some_and(|only| only != id) {
        return Err(Problem::not_yours());
    }
    Ok(event)
}

/// The event, if the caller may read its check-in.
pub(super) async fn readable(app: &App, caller: &Caller, id: EventId) -> Result<Event, Problem> {
    let event = events::find(app, id).await?;
    caller.must_read(&event.owner)?;
    if caller.0.scope.event.is_some_and(|only| only != id) {
        return Err(Problem::not_yours());
    }
    Ok(event)
}

pub(crate) async fn lists(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
) -> Result<Json<Lists>, Problem> {
    readable(&app, &caller, id).await?;
    Ok(Json(app.checkin.lists(id).await?))
}

pub(crate) async fn create_list(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<EventId>,
    Body(form, _held): Body<ListForm>,
) -> Result<Created<ShownList>, Problem> {
    managed(&app, &caller, id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    if !form.name.has_value() {
        mistakes.wrong("name", "is missing");
    }
    let change = read_list(&mut mistakes, form);
    let change = mistakes.finish(Some(change))?;
    let list = written(app.checkin.create_list(id, change).await?, "Event", &id)?;
    Ok(Created(list))
}

/// Changes the fields that are given; changing the built-in list is what makes a record of it.
pub(crate) async fn update_list(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<ListId>,
    Body(Changes(form), _held): Body<Changes<ListForm>>,
) -> Result<Json<ShownList>, Problem> {
    let event = app.checkin.event_of_list(id).await?;
    managed(&app, &caller, event.ok_or_else(|| Problem::not_found("List", &id))?).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only_or_fixed(&form, &FIXED);
    mistakes.must_name_one_of(form.names_any(), ListForm::NAMES);
    let change = read_list(&mut mistakes, form);
    let change = mistakes.finish(Some(change))?;
    written(app.checkin.change_list(id, &change).await?, "List", &id).map(Json)
}

/// Deletes a list with the state of its tickets. The built-in list stays.
pub(crate) async fn delete_list(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<ListId>,
) -> Result<NoContent, Problem> {
    let event = app.checkin.event_of_list(id).await?;
    let event = event.ok_or_else(|| Problem::not_found("List", &id))?;
    managed(&app, &caller, event).await?;
    if id.is_main_of(event) {
        let detail = format!("list {id} is built in and stays; PATCH /api/lists/{id} changes it");
        return Err(Problem::new(Code::BuiltIn, detail));
    }
    app.checkin.delete_list(id).await?;
    Ok(NoContent)
}

pub(crate) async fn gates(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
) -> Result<Json<Gates>, Problem> {
    readable(&app, &caller, id).await?;
    Ok(Json(app.checkin.gates(id).await?))
}

pub(crate) async fn create_gate(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<EventId>,
    Body(form, _held): Body<GateForm>,
) -> Result<Created<Gate>, Problem> {
    managed(&app, &caller, id).await?;
    let gate = app.checkin.create_gate(id, read_gate(form)?).await?;
    let gate = gate.ok_or_else(|| Problem::not_found("Event", &id))?;
    Ok(Created(gate))
}

pub(crate) async fn update_gate(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<GateId>,
    Body(form, _held): Body<GateForm>,
) -> Result<Json<Gate>, Problem> {
    let event = app.checkin.event_of_gate(id).await?;
    managed(&app, &caller, event.ok_or_else(|| Problem::not_found("Gate", &id))?).await?;
    let gate = app.checkin.rename_gate(id, read_gate(form)?).await?;
    gate.map(Json).ok_or_else(|| Problem::not_found("Gate", &id))
}

pub(crate) async fn delete_gate(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<GateId>,
) -> Result<NoContent, Problem> {
    let event = app.checkin.event_of_gate(id).await?;
    managed(&app, &caller, event.ok_or_else(|| Problem::not_found("Gate", &id))?).await?;
    app.checkin.delete_gate(id).await?;
    Ok(NoContent)
}

fn read_gate(form: GateForm) -> Result<String, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only_or_fixed(&form, &FIXED);
    let name = mistakes.required(form.name).map(|Line(name)| name);
    mistakes.finish(name)
}

fn read_list(mistakes: &mut Mistakes, form: ListForm) -> ListChange {
    ListChange {
        name: match form.name.is_named() {
            true => mistakes.required(form.name).map(|Line(name)| name),
            false => None,
        },
        opens_at: clearable(form.opens_at, |given| {
            mistakes.ruled(given, A_TIME, |Parsed(at)| Some(at))
        }),
        closes_at: clearable(form.closes_at, |given| {
            mistakes.ruled(given, A_TIME, |Parsed(at)| Some(at))
        }),
        entries: mistakes
            .ruled(form.entries, "must be a number of entries", |Whole(n)| u32::try_from(n).ok()),
        reentry: mistakes.value(form.reentry).map(|Flag(reentry)| reentry),
        batches: clearable(form.batches, |given| {
            read_entries(mistakes, given, |IdOf(id)| id.ok_or("must be the id of a batch"))
        }),
        seats: clearable(form.seats, |given| read_entries(mistakes, given, |Line(seat)| Ok(seat))),
    }
}

/// A field that `null` clears; `None`: it is not named.
fn clearable<T, V>(given: Given<T>, read: impl FnOnce(Given<T>) -> Option<V>) -> Option<Option<V>> {
    given.is_named().then(|| read(given))
}

/// The entries of a list, each with its mistake.
fn read_entries<T: Part, V, const MAX: usize>(
    mistakes: &mut Mistakes,
    given: Given<List<T, MAX>>,
    read: impl Fn(T) -> Result<V, &'static str>,
) -> Option<Vec<V>> {
    let (name, state) = given.into_parts();
    let entries = match state {
        crate::forms::State::Is(List(entries)) => entries,
        crate::forms::State::Wrong(message) => {
            mistakes.wrong(name, message);
            return None;
        }
        _ => return None,
    };
    let mut values = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        match entry.and_then(|entry| read(entry).map_err(str::to_owned)) {
            Ok(value) => values.push(value),
            Err(message) => mistakes.wrong(&format!("{name}[{index}]"), message),
        }
    }
    Some(values)
}

fn written<T>(written: Written<T>, what: &str, id: &dyn std::fmt::Display) -> Result<T, Problem> {
    match written {
        Written::Done(value) => Ok(value),
        Written::NotFound => Err(Problem::not_found(what, id)),
        Written::Busy => Err(Problem::busy("the list")),
        Written::ClosesBeforeItOpens => {
            let mut mistakes = Mistakes::default();
            mistakes.wrong("closesAt", "must be after opensAt");
            mistakes.finish(None)
        }
    }
}
