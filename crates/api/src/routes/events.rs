//! `/api/events`: create, list, read, update, delete.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde_json::{Map, Value};
use stampede_model::{
    Branding, Currency, Event, EventDetails, EventId, HexColor, Limit, Principal, TemplateChoice,
    time_zone,
};
use stampede_ticketing::EventDeletion;
use stampede_wire::ticketing::events::{Event as Shown, EventPage};

use crate::app::{App, now};
use crate::auth::{Caller, Writer};
use crate::input::{Body, Fields, Id, as_text};
use crate::problem::Problem;
use crate::query::{FromQuery, Params, Query};
use crate::routes::{CHANGE_TRIES, Paging, templates};

/// Fields of an event that POST and PATCH read.
pub(crate) const CHANGEABLE: [&str; 8] =
    ["name", "location", "startsAt", "timeZone", "currency", "branding", "lang", "template"];
/// All other fields of an event.
pub(crate) const FIXED: [&str; 4] = ["id", "owner", "createdAt", "updatedAt"];

pub(crate) async fn create(
    State(app): State<App>,
    caller: Writer,
    Body(body): Body,
) -> Result<(StatusCode, Json<Shown>), Problem> {
    let mut fields = Fields::new(&body);
    fields.only(&CHANGEABLE);
    if fields.get("name").is_none() {
        fields.wrong("name", "is missing");
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
    let mut details = read_details(&mut fields, blank);
    read_template(&app, &caller.0, &mut fields, &mut details).await;
    let details = fields.finish(Some(details))?;
    let now = now();
    let event = Event {
        id: EventId::generate(),
        owner: caller.0.user,
        details,
        created_at: now,
        updated_at: now,
    };
    check_template(&app, &event).await?;
    app.store.insert_event(&event).await?;
    Ok((StatusCode::CREATED, Json(event.into())))
}

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(paging): Params<Paging>,
) -> Result<Json<EventPage>, Problem> {
    let owner = caller.0.visible_owner();
    let events = app.store.events(owner, paging.after()?, paging.limit()).await?;
    let next = paging.next(&events, |event| event.id);
    Ok(Json(EventPage { events: events.into_iter().map(Shown::from).collect(), next }))
}

pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<EventId>,
) -> Result<Json<Shown>, Problem> {
    let event = find(&app, id).await?;
    caller.must_read(&event.owner)?;
    Ok(Json(event.into()))
}

/// Changes the fields that are given. PDFs made before are stale then; they are made again when they are
/// downloaded.
pub(crate) async fn update(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<EventId>,
    Body(body): Body,
) -> Result<Json<Shown>, Problem> {
    for _ in 0..CHANGE_TRIES {
        let mut event = find(&app, id).await?;
        caller.must_change(&event.owner)?;
        let mut fields = Fields::new(&body);
        fields.only_or_fixed(&CHANGEABLE, &FIXED);
        fields.must_name_one_of(&CHANGEABLE);
        let mut details = read_details(&mut fields, event.details);
        read_template(&app, &caller.0, &mut fields, &mut details).await;
        event.details = fields.finish(Some(details))?;
        check_template(&app, &event).await?;
        let seen = std::mem::replace(&mut event.updated_at, now());
        // Another request may have changed it since it was read; that change must not be undone.
        if app.store.update_event(&event, seen).await? {
            return Ok(Json(find(&app, id).await?.into()));
        }
    }
    Err(Problem::busy("the event"))
}

pub(crate) struct DeleteOptions {
    force: bool,
}

impl FromQuery for DeleteOptions {
    fn from_query(query: &mut Query) -> Self {
        Self { force: query.flag("force") }
    }
}

/// Deletes an event; one with tickets only with `?force=true`, and then with all of them.
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<EventId>,
    Params(options): Params<DeleteOptions>,
) -> Result<StatusCode, Problem> {
    let event = find(&app, id).await?;
    caller.must_change(&event.owner)?;
    if options.force {
        app.ticketing.delete_event_with_tickets(id).await?;
        return Ok(StatusCode::NO_CONTENT);
    }
    match app.ticketing.delete_event(id).await? {
        EventDeletion::Gone => Ok(StatusCode::NO_CONTENT),
        EventDeletion::NotFound => Err(Problem::not_found("Event")),
        EventDeletion::HasTickets(count) => Err(Problem::new(
            StatusCode::CONFLICT,
            format!("the event has {count} tickets; add ?force=true to delete them with it"),
        )),
    }
}

/// An event of any owner.
pub(crate) async fn find(app: &App, id: EventId) -> Result<Event, Problem> {
    app.ticketing.event(id).await?.ok_or_else(|| Problem::not_found("Event"))
}

/// `template`: an id, or `{"id", "revision"}`; `null` is the default design.
async fn read_template(
    app: &App,
    caller: &Principal,
    fields: &mut Fields<'_>,
    details: &mut EventDetails,
) {
    if fields.is_cleared("template") {
        details.template = None;
    } else if let Some(value) = fields.get("template") {
        match templates::read_choice(app, caller, value).await {
            Ok(choice) => details.template = Some(choice),
            Err(message) => fields.wrong("template", message),
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

/// `details` with the given fields changed; the template is not read here.
pub(crate) fn read_details(fields: &mut Fields<'_>, details: EventDetails) -> EventDetails {
    let branding = match fields.get("branding") {
        Some(Value::Object(object)) => read_branding(fields, object, &details.branding),
        Some(_) => {
            fields.wrong("branding", "must be an object with primary and secondary");
            details.branding
        }
        None => details.branding,
    };
    EventDetails {
        name: fields.text("name", Limit::NAME).unwrap_or(details.name),
        location: match fields.is_cleared("location") {
            true => String::new(),
            false => fields.text("location", Limit::LOCATION).unwrap_or(details.location),
        },
        starts_at: if fields.is_cleared("startsAt") {
            None
        } else {
            fields
                .read("startsAt", |value| {
                    let text = as_text(value)?;
                    text.parse()
                        .map_err(|_| "must be a time such as 2026-11-21T19:30:00+03:00".to_owned())
                })
                .or(details.starts_at)
        },
        time_zone: fields.read("timeZone", read_time_zone).unwrap_or(details.time_zone),
        currency: fields
            .read("currency", |value| as_text(value)?.parse().map_err(|e| format!("{e}")))
            .unwrap_or(details.currency),
        branding,
        lang: if fields.is_cleared("lang") {
            None
        } else {
            fields
                .read("lang", |value| as_text(value)?.parse().map_err(str::to_owned))
                .or(details.lang)
        },
        template: details.template,
    }
}

fn read_branding(fields: &mut Fields<'_>, object: &Map<String, Value>, now: &Branding) -> Branding {
    let mut colours = Fields::nested(object, "branding.".to_owned());
    colours.only(&["primary", "secondary"]);
    let mut colour = |name: &str, now: HexColor| {
        let read = |value: &Value| as_text(value)?.parse().map_err(str::to_owned);
        colours.read(name, read).unwrap_or(now)
    };
    let branding = Branding {
        primary: colour("primary", now.primary),
        secondary: colour("secondary", now.secondary),
    };
    fields.absorb(colours);
    branding
}

fn read_time_zone(value: &Value) -> Result<String, String> {
    let name = as_text(value)?;
    match time_zone(name) {
        Some(zone) => Ok(zone.iana_name().unwrap_or(name).to_owned()),
        None => Err("must be an IANA time zone such as Europe/Berlin".to_owned()),
    }
}
