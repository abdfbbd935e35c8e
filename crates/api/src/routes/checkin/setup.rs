//! Lists and gates of events.

use axum::Json;
use axum::extract::State;
use stampede_checkin::{ListChange, Written};
use stampede_model::{BatchId, Event, EventId, GateId, Limit, ListId, Timestamp};
use stampede_wire::Paged;
use stampede_wire::checkin::setup::{Gate, Gates, List as ShownList, Lists};

use super::A_TIME;
use crate::app::App;
use crate::auth::{Caller, Writer};
use crate::body::Body;
use crate::describe::{Created, Located, NoContent};
use crate::forms::{
    Changes, Flag, Form, Given, IdOf, Line, List, Mistakes, Parsed, Part, Whole, form,
};
use crate::input::Id;
use crate::page::Page;
use crate::problem::{Code, Problem};
use crate::query::Params;
use crate::routes::{CHANGE_TRIES, events};
use crate::trace::{Audited, Change};
use crate::version::{Fresh, IfMatch, IfNoneMatch, Tagged};
use stampede_audit::{Kind, Subject};

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
    Params(page): Params<Page>,
) -> Result<Json<Paged<Lists>>, Problem> {
    readable(&app, &caller, id).await?;
    let lists = app.checkin.lists(id).await?.lists;
    // The built-in list has the id of its event, which is older than all other lists.
    Ok(Json(page.cut(lists, |list| list.id.to_string(), |lists| Lists { lists })))
}

pub(crate) async fn create_list(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<EventId>,
    Body(form, _held): Body<ListForm>,
) -> Result<Audited<Tagged<Located<Created<ShownList>>>>, Problem> {
    managed(&app, &caller, id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    if !form.name.has_value() {
        mistakes.wrong("name", "is missing");
    }
    let change = read_list(&mut mistakes, form);
    let change = mistakes.finish(Some(change))?;
    let begun = caller.begin_new(&app, Subject::new(Kind::List).at(id)).await?;
    let list = written(app.checkin.create_list(id, change).await?, "Event", &id)?;
    let path = format!("/api/lists/{}", list.id);
    Ok(begun.after(&list).answer(Tagged::new(list.updated_at, Located(path, Created(list)))))
}

pub(crate) async fn read_one_list(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<ListId>,
    known: IfNoneMatch,
) -> Result<Fresh<Json<ShownList>>, Problem> {
    let list = app.checkin.list(id).await?.ok_or_else(|| Problem::not_found("List", &id))?;
    let read = readable(&app, &caller, list.target).await;
    read.map_err(|refused| refused.hiding("List", &id))?;
    Ok(known.answer(list.updated_at, Json(list)))
}

/// Changes the fields that are given; changing the built-in list is what makes a record of it.
pub(crate) async fn update_list(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<ListId>,
    wanted: IfMatch,
    Body(Changes(form), _held): Body<Changes<ListForm>>,
) -> Result<Audited<Tagged<Json<ShownList>>>, Problem> {
    managed_list(&app, &caller, id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only_or_fixed(&form, &FIXED);
    mistakes.must_name_one_of(form.names_any(), ListForm::NAMES);
    let change = read_list(&mut mistakes, form);
    let change = mistakes.finish(Some(change))?;
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let before = managed_list(&app, &caller, id).await?;
        let seen = wanted.demand(before.updated_at)?;
        let subject = Subject::of(Kind::List, id).at(before.target);
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, subject, &before).await?,
        };
        match app.checkin.change_list(id, &change, seen).await? {
            Written::ChangedMeanwhile => begun = Some(noted),
            changed => {
                let list = written(changed, "List", &id)?;
                return Ok(noted.after(&list).answer(Tagged::new(list.updated_at, Json(list))));
            }
        }
    }
    Err(Problem::busy("the list"))
}

/// The list, if the caller may change its event's check-in.
async fn managed_list(app: &App, caller: &Writer, id: ListId) -> Result<ShownList, Problem> {
    let list = app.checkin.list(id).await?.ok_or_else(|| Problem::not_found("List", &id))?;
    let may = managed(app, caller, list.target).await;
    may.map_err(|refused| refused.hiding("List", &id))?;
    Ok(list)
}

/// Deletes a list with the state of its tickets. The built-in list stays.
pub(crate) async fn delete_list(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<ListId>,
    wanted: IfMatch,
) -> Result<Audited<NoContent>, Problem> {
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let before = managed_list(&app, &caller, id).await?;
        if id.is_main_of(before.target) {
            let detail =
                format!("list {id} is built in and stays; PATCH /api/lists/{id} changes it");
            return Err(Problem::new(Code::BuiltIn, detail));
        }
        let seen = wanted.demand(before.updated_at)?;
        let subject = Subject::of(Kind::List, id).at(before.target);
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, subject, &before).await?,
        };
        match app.checkin.delete_list(id, seen).await? {
            Written::ChangedMeanwhile => begun = Some(noted),
            deleted => {
                written(deleted, "List", &id)?;
                return Ok(noted.gone().answer(NoContent));
            }
        }
    }
    Err(Problem::busy("the list"))
}

pub(crate) async fn gates(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
    Params(page): Params<Page>,
) -> Result<Json<Paged<Gates>>, Problem> {
    readable(&app, &caller, id).await?;
    let gates = app.checkin.gates(id).await?.gates;
    Ok(Json(page.cut(gates, |gate| gate.id.to_string(), |gates| Gates { gates })))
}

pub(crate) async fn create_gate(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<EventId>,
    Body(form, _held): Body<GateForm>,
) -> Result<Audited<Tagged<Located<Created<Gate>>>>, Problem> {
    managed(&app, &caller, id).await?;
    let name = read_gate(form)?;
    let begun = caller.begin_new(&app, Subject::new(Kind::Gate).at(id)).await?;
    let gate = app.checkin.create_gate(id, name).await?;
    let gate = gate.ok_or_else(|| Problem::not_found("Event", &id))?;
    let path = format!("/api/gates/{}", gate.id);
    Ok(begun.after(&gate).answer(Tagged::new(gate.updated_at, Located(path, Created(gate)))))
}

pub(crate) async fn update_gate(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<GateId>,
    wanted: IfMatch,
    Body(form, _held): Body<GateForm>,
) -> Result<Audited<Tagged<Json<Gate>>>, Problem> {
    managed_gate(&app, &caller, id).await?;
    let name = read_gate(form)?;
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let before = managed_gate(&app, &caller, id).await?;
        let seen = wanted.demand(before.updated_at)?;
        let subject = Subject::of(Kind::Gate, id).at(before.target);
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, subject, &before).await?,
        };
        match app.checkin.rename_gate(id, name.clone(), seen).await? {
            Written::ChangedMeanwhile => begun = Some(noted),
            renamed => {
                let gate = written(renamed, "Gate", &id)?;
                return Ok(noted.after(&gate).answer(Tagged::new(gate.updated_at, Json(gate))));
            }
        }
    }
    Err(Problem::busy("the gate"))
}

/// The gate, if the caller may change its event's check-in.
async fn managed_gate(app: &App, caller: &Writer, id: GateId) -> Result<Gate, Problem> {
    let gate = app.checkin.gate(id).await?.ok_or_else(|| Problem::not_found("Gate", &id))?;
    let may = managed(app, caller, gate.target).await;
    may.map_err(|refused| refused.hiding("Gate", &id))?;
    Ok(gate)
}

pub(crate) async fn read_one_gate(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<GateId>,
    known: IfNoneMatch,
) -> Result<Fresh<Json<Gate>>, Problem> {
    let gate = app.checkin.gate(id).await?.ok_or_else(|| Problem::not_found("Gate", &id))?;
    let read = readable(&app, &caller, gate.target).await;
    read.map_err(|refused| refused.hiding("Gate", &id))?;
    Ok(known.answer(gate.updated_at, Json(gate)))
}

pub(crate) async fn delete_gate(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<GateId>,
    wanted: IfMatch,
) -> Result<Audited<NoContent>, Problem> {
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let before = managed_gate(&app, &caller, id).await?;
        let seen = wanted.demand(before.updated_at)?;
        let subject = Subject::of(Kind::Gate, id).at(before.target);
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, subject, &before).await?,
        };
        match app.checkin.delete_gate(id, seen).await? {
            Written::ChangedMeanwhile => begun = Some(noted),
            deleted => {
                written(deleted, "Gate", &id)?;
                return Ok(noted.gone().answer(NoContent));
            }
        }
    }
    Err(Problem::busy("the gate"))
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

pub(super) fn written<T>(
    written: Written<T>,
    what: &str,
    id: &dyn std::fmt::Display,
) -> Result<T, Problem> {
    match written {
        Written::Done(value) => Ok(value),
        Written::NotFound => Err(Problem::not_found(what, id)),
        Written::Busy | Written::ChangedMeanwhile => Err(Problem::busy("the record")),
        Written::ClosesBeforeItOpens => {
            let mut mistakes = Mistakes::default();
            mistakes.wrong("closesAt", "must be after opensAt");
            mistakes.finish(None)
        }
    }
}
