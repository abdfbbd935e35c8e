//! `/api/events`: create, list, read, update, delete.

use axum::Json;
use axum::extract::State;
use stampede_model::{
    Branding, Currency, Event, EventDetails, EventId, HexColor, Lang, Limit, Principal,
    TemplateChoice, Timestamp, time_zone,
};
use stampede_store::{Slice, Sorted};
use stampede_ticketing::EventDeletion;
use stampede_wire::ticketing::events::{Event as Shown, EventPage};

use crate::app::{App, now};
use crate::auth::{Caller, Writer};
use crate::body::Body;
use crate::describe::{Created, Located, NoContent};
use crate::forms::{Changes, Form, Given, Line, Mistakes, Parsed, Text, form};
use crate::input::Id;
use crate::page::Part;
use crate::problem::{Code, Problem};
use crate::query::{FromQuery, Params, Query};
use crate::routes::CHANGE_TRIES;
use crate::routes::templates::choice::{Choice, read_choice};
use crate::trace::{Audited, Change};
use crate::version::{Fresh, IfMatch, IfNoneMatch, Tagged};
use stampede_audit::{Kind, Subject};

form! {
    /// The fields of an event that POST and PATCH read.
    pub(crate) struct EventForm {
        /// The event's name.
        name: Line<{ Limit::NAME.0 }> = "name" required,
        /// Where it happens.
        location: Line<{ Limit::LOCATION.0 }> = "location",
        /// When it begins (RFC 3339).
        starts_at: Parsed<Timestamp> = "startsAt",
        /// IANA name of the zone its times are printed in.
        time_zone: Text<200> = "timeZone",
        /// Currency of its prices (ISO 4217).
        currency: Parsed<Currency> = "currency",
        /// The colours of its tickets.
        branding: BrandingForm = "branding",
        /// The language of its tickets.
        lang: Parsed<Lang> = "lang",
        /// The template of its tickets; `null` is the default design.
        template: Choice = "template",
    }
}

form! {
    /// The colours of an event's tickets.
    pub(crate) struct BrandingForm {
        /// The first colour, such as `#1a2b3c`.
        primary: Parsed<HexColor> = "primary",
        /// The second colour.
        secondary: Parsed<HexColor> = "secondary",
    }
}

/// All other fields of an event.
pub(crate) const FIXED: [&str; 4] = ["id", "owner", "createdAt", "updatedAt"];

pub(crate) async fn create(
    State(app): State<App>,
    caller: Writer,
    Body(form, _held): Body<EventForm>,
) -> Result<Audited<Tagged<Located<Created<Shown>>>>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    if !form.name.has_value() {
        mistakes.wrong("name", "is missing");
    }
    let blank = EventDetails {
        name: String::new(),
        location: String::new(),
        starts_at: None,
        time_zone: "UTC".to_owned(),
        currency: Currency::USD,
        branding: Branding::default(),
        lang: None,
        template: None,
    };
    let mut details = read_details(&mut mistakes, form.clone(), blank);
    read_template(&app, &caller.0, &mut mistakes, &form.template, &mut details).await;
    let details = mistakes.finish(Some(details))?;
    let now = now();
    let event = Event {
        id: EventId::generate(),
        owner: caller.0.user.clone(),
        details,
        created_at: now,
        updated_at: now,
    };
    check_template(&app, &event).await?;
    let change = caller.begin_new(&app, subject(event.id)).await?;
    app.store.insert_event(&event).await?;
    let (version, shown) = (event.updated_at, Shown::from(event));
    let path = format!("/api/events/{}", shown.id);
    Ok(change.after(&shown).answer(Tagged::new(version, Located(path, Created(shown)))))
}

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(part): Params<Part>,
) -> Result<Json<EventPage>, Problem> {
    let owner = caller.0.visible_owner();
    let slice = part.slice(Sorted::NewestFirst)?;
    let events = match caller.0.scope.event {
        Some(only) => only_event(&app, &caller, only, &slice).await?,
        None => app.store.events_slice(owner, &slice).await?,
    };
    let next = part.page.next(&events, |event| event.id);
    Ok(Json(EventPage { events: events.into_iter().map(Shown::from).collect(), next }))
}

/// The list for a key that is limited to one event.
async fn only_event(
    app: &App,
    caller: &Caller,
    id: EventId,
    slice: &Slice<EventId>,
) -> Result<Vec<Event>, Problem> {
    let event = app.store.event(id).await?.filter(|event| caller.0.may_read(&event.owner));
    let is_beyond = |after: EventId| match slice.sorted {
        Sorted::NewestFirst => id < after,
        Sorted::OldestFirst => id > after,
    };
    let is_in = |event: &Event| {
        slice.after.is_none_or(is_beyond)
            && slice.from.is_none_or(|from| event.created_at >= from)
            && slice.to.is_none_or(|to| event.created_at < to)
    };
    Ok(event.into_iter().filter(is_in).collect())
}

pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
    known: IfNoneMatch,
) -> Result<Fresh<Json<Shown>>, Problem> {
    let event = find(&app, id).await?;
    caller.must_read(&event.owner)?;
    Ok(known.answer(event.updated_at, Json(event.into())))
}

/// Changes the fields that are given. PDFs made before are stale then; they are made again when they are
/// downloaded.
pub(crate) async fn update(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<EventId>,
    wanted: IfMatch,
    Body(Changes(form), _held): Body<Changes<EventForm>>,
) -> Result<Audited<Tagged<Json<Shown>>>, Problem> {
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let mut event = find(&app, id).await?;
        caller.must_change(&event.owner)?;
        wanted.check(&event.updated_at.into())?;
        let before = Shown::from(event.clone());
        let mut mistakes = Mistakes::default();
        mistakes.only_or_fixed(&form, &FIXED);
        mistakes.must_name_one_of(form.names_any(), EventForm::NAMES);
        if form.name.is_cleared() {
            mistakes.wrong("name", "is missing");
        }
        let mut details = read_details(&mut mistakes, form.clone(), event.details);
        read_template(&app, &caller.0, &mut mistakes, &form.template, &mut details).await;
        event.details = mistakes.finish(Some(details))?;
        check_template(&app, &event).await?;
        let seen = std::mem::replace(&mut event.updated_at, now());
        let change = match begun.take() {
            Some(change) => change.rebased(&before),
            None => caller.begin(&app, subject(id), &before).await?,
        };
        // Another request may have changed it since it was read; that change must not be undone.
        if app.store.update_event(&event, seen).await? {
            let event = find(&app, id).await?;
            let (version, shown) = (event.updated_at, Shown::from(event));
            return Ok(change.after(&shown).answer(Tagged::new(version, Json(shown))));
        }
        begun = Some(change);
    }
    Err(Problem::busy("the event"))
}

/// The event as the audit log names it.
fn subject(id: EventId) -> Subject {
    Subject::of(Kind::Event, id).at(id)
}

pub(crate) struct DeleteOptions {
    force: bool,
}

impl FromQuery for DeleteOptions {
    fn from_query(query: &mut Query) -> Self {
        Self { force: query.about("Deletes the event's tickets, too.").flag("force") }
    }
}

/// Deletes an event; one with tickets only with `?force=true`, and then with all of them.
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<EventId>,
    wanted: IfMatch,
    Params(options): Params<DeleteOptions>,
) -> Result<Audited<NoContent>, Problem> {
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let event = find(&app, id).await?;
        caller.must_change(&event.owner)?;
        let seen = wanted.demand(event.updated_at)?;
        let before = Shown::from(event);
        let change = match begun.take() {
            Some(change) => change.rebased(&before),
            None => caller.begin(&app, subject(id), &before).await?,
        };
        let deletion = match options.force {
            true => app.ticketing.delete_event_with_tickets(id, seen).await?,
            false => app.ticketing.delete_event(id, seen).await?,
        };
        match deletion {
            EventDeletion::Gone => return Ok(change.gone().answer(NoContent)),
            EventDeletion::NotFound => return Err(Problem::not_found("Event", &id)),
            EventDeletion::HasTickets(count) => {
                let detail = format!(
                    "the event has {count} tickets; add ?force=true to delete them with it"
                );
                return Err(Problem::new(Code::InUse, detail));
            }
            EventDeletion::ChangedMeanwhile => begun = Some(change),
        }
    }
    Err(Problem::busy("the event"))
}

/// An event of any owner.
pub(crate) async fn find(app: &App, id: EventId) -> Result<Event, Problem> {
    app.ticketing.event(id).await?.ok_or_else(|| Problem::not_found("Event", &id))
}

/// Puts the template that the form names into `details`; `null` is the default design.
async fn read_template(
    app: &App,
    caller: &Principal,
    mistakes: &mut Mistakes,
    template: &Given<Choice>,
    details: &mut EventDetails,
) {
    if template.is_cleared() {
        details.template = None;
    } else if let Some(choice) = template.value() {
        match read_choice(app, caller, choice).await {
            Ok(choice) => details.template = Some(choice),
            Err(message) => mistakes.wrong("template", message),
        }
    }
}

/// Refuses an event whose template does not work, before the first of its tickets is made.
async fn check_template(app: &App, event: &Event) -> Result<(), Problem> {
    match &event.details.template {
        Some(TemplateChoice::Own { .. }) => {
            let _turn = app.turns.take(&event.owner).await;
            app.press.ready(event).await.map(drop).map_err(Into::into)
        }
        Some(TemplateChoice::Shipped(_)) | None => Ok(()),
    }
}

/// `details` with the given fields changed; of the template, only mistakes are noted.
pub(crate) fn read_details(
    mistakes: &mut Mistakes,
    form: EventForm,
    details: EventDetails,
) -> EventDetails {
    const TIME: &str = "must be a time such as 2026-11-21T19:30:00+03:00";
    mistakes.value(form.template);
    let cleared_location = form.location.is_cleared().then(String::new);
    let (no_start, no_lang) = (form.starts_at.is_cleared(), form.lang.is_cleared());
    let starts_at = mistakes.ruled(form.starts_at, TIME, |Parsed(time)| Some(time));
    let location = mistakes.value(form.location).map(|Line(location)| location);
    let lang = mistakes.value(form.lang).map(|Parsed(lang)| lang);
    let currency = mistakes.value(form.currency).map(|Parsed(currency)| currency);
    let name = mistakes.value(form.name).map(|Line(name)| name);
    EventDetails {
        name: name.unwrap_or(details.name),
        location: location.or(cleared_location).unwrap_or(details.location),
        starts_at: starts_at.or(details.starts_at.filter(|_| !no_start)),
        time_zone: mistakes.read(form.time_zone, read_time_zone).unwrap_or(details.time_zone),
        currency: currency.unwrap_or(details.currency),
        branding: read_branding(mistakes, form.branding, &details.branding),
        lang: lang.or(details.lang.filter(|_| !no_lang)),
        template: details.template,
    }
}

fn read_branding(mistakes: &mut Mistakes, given: Given<BrandingForm>, now: &Branding) -> Branding {
    const EXPECTED: &str = "must be an object with primary and secondary";
    let Some(form) = mistakes.ruled(given, EXPECTED, Some) else { return now.clone() };
    let mut colours = Mistakes::nested("branding.");
    colours.only(&form);
    let mut colour =
        |given: Given<Parsed<HexColor>>| colours.value(given).map(|Parsed(colour)| colour);
    let branding = Branding {
        primary: colour(form.primary).unwrap_or(now.primary),
        secondary: colour(form.secondary).unwrap_or(now.secondary),
    };
    mistakes.absorb(colours);
    branding
}

fn read_time_zone(Text(name): Text<200>) -> Result<String, &'static str> {
    match time_zone(&name) {
        Some(zone) => Ok(zone.iana_name().unwrap_or(&name).to_owned()),
        None => Err("must be an IANA time zone such as Europe/Berlin"),
    }
}
