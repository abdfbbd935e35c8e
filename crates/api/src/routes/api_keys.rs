//! `/api/keys`: API keys are made, listed, changed, rotated and revoked.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use stampede_identity::{KeyChange, KeyRequest, LONGEST_GRACE, Listing, MOST_KEYS, Refused};
use stampede_model::{EventId, KeyId, Limit, Principal, Role, Timestamp};
use stampede_store::Sorted;
use stampede_wire::identity::{IssuedKey, Key, KeyPage, KeyState};

use crate::app::{App, now};
use crate::auth::{Caller, Writer};
use crate::body::{Body, MaybeBody};
use crate::describe::{Created, Located, NoContent};
use crate::forms::{Changes, Form, Given, IdOf, Line, List, Mistakes, Parsed, Text, Whole, form};
use crate::input::Id;
use crate::page::Part;
use crate::problem::{Code, FieldError, Problem};
use crate::query::{FromQuery, Params, Query};
use crate::routes::CHANGE_TRIES;
use crate::trace::{Audited, Change};
use crate::version::{Fresh, IfMatch, IfNoneMatch, Tagged, Version};
use stampede_audit::{Kind, Subject};

/// Most queues that one key can be limited to.
const MOST_QUEUES: usize = 100;
/// Longest time until a key ends, in seconds: a hundred years.
const LONGEST_LIFE: u64 = 100 * 366 * 24 * 60 * 60;

const A_TIME: &str = "must be a time such as 2026-11-21T19:30:00+03:00";

form! {
    /// `POST /api/keys`.
    pub(crate) struct KeyForm {
        /// The name by which people find the key. No other key of the user has it.
        name: Line<{ Limit::NAME.0 }> = "name" required,
        /// What the key allows.
        role: Parsed<Role> = "role" required,
        /// The user whose records it works on; yourself if absent.
        user: Line<{ Limit::NAME.0 }> = "user",
        /// The only event that it reaches.
        event: IdOf<EventId> = "event",
        /// The only queues that it reaches; for admins' keys.
        queues: List<Text<200>, MOST_QUEUES> = "queues",
        /// When it ends.
        expires_at: Parsed<Timestamp> = "expiresAt",
        /// In how many seconds it ends, instead of `expiresAt`.
        expires_in: Whole<1, LONGEST_LIFE> = "expiresIn",
    }
}

form! {
    /// `PATCH /api/keys/{id}`.
    pub(crate) struct KeyChangesForm {
        /// Another name.
        name: Line<{ Limit::NAME.0 }> = "name",
        /// Another end; `null`: never, or when your own key ends.
        expires_at: Parsed<Timestamp> = "expiresAt",
    }
}

form! {
    /// `POST /api/keys/{id}/rotate`.
    pub(crate) struct RotateForm {
        /// For how many seconds the former secret goes on working.
        grace_seconds: Whole<0, { LONGEST_GRACE.as_secs() }> = "graceSeconds",
    }
}

/// All other fields of a key.
const FIXED: [&str; 13] = [
    "id",
    "kind",
    "role",
    "user",
    "event",
    "queues",
    "state",
    "createdAt",
    "updatedAt",
    "revokedAt",
    "lastUsedAt",
    "lastUsedFrom",
    "graceUntil",
];

/// Which keys to list.
pub(crate) struct KeyListing {
    listing: Listing,
    part: Part,
}

impl FromQuery for KeyListing {
    fn from_query(query: &mut Query) -> Self {
        const STATES: [&str; 3] = ["active", "expired", "revoked"];
        let role = "must be admin, organiser, scanner or viewer";
        let state = query
            .about("Whether they work.")
            .word("state", &STATES, "must be active, expired or revoked")
            .map(|word| match word {
                "active" => KeyState::Active,
                "expired" => KeyState::Expired,
                _ => KeyState::Revoked,
            });
        let listing = Listing {
            user: query.about("The user.").text("user"),
            role: query.about("The role.").parsed("role", role),
            name: query.about("Exactly this name.").text("name"),
            state,
        };
        Self { listing, part: Part::from_query(query) }
    }
}

/// Makes a key. Its secret is shown once.
pub(crate) async fn create(
    State(app): State<App>,
    caller: Writer,
    Body(form, _held): Body<KeyForm>,
) -> Result<Audited<Tagged<Located<Created<IssuedKey>>>>, Problem> {
    let request = read_request(form)?;
    let noted = caller.begin_new(&app, Subject::new(Kind::Key)).await?;
    let issued = app.identity.create_key(&caller.0, &request).await?;
    let issued = issued.map_err(|refused| problem(refused, "", &caller.0))?;
    let key = &issued.key;
    tracing::info!(user = caller.0.user, key = %key.id, role = %key.role, of = key.user, "API key made");
    let (made, version) = (noted.after(&issued.key), version(&issued.key));
    let path = format!("/api/keys/{}", issued.key.id);
    Ok(made.answer(Tagged::new(version, Located(path, Created(issued)))))
}

fn read_request(form: KeyForm) -> Result<KeyRequest, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let name = mistakes.required(form.name).map(|Line(name)| name);
    let role = mistakes.required(form.role).map(|Parsed(role)| role);
    let user = mistakes.value(form.user).map(|Line(user)| user);
    let event = mistakes.ruled(form.event, "must be the id of an event", |IdOf(id)| id);
    let queues = read_queues(&mut mistakes, form.queues);
    if form.expires_at.has_value() && form.expires_in.has_value() {
        mistakes.wrong("expiresIn", "cannot be given together with expiresAt");
    }
    let after = mistakes.value(form.expires_in).map(|Whole(seconds)| seconds);
    let after = after.and_then(|seconds| now().checked_add(Duration::from_secs(seconds)).ok());
    let expires_at = read_end(&mut mistakes, form.expires_at).or(after);
    let (name, role) = mistakes.finish(name.zip(role))?;
    Ok(KeyRequest { name, role, user, event, queues, expires_at })
}

/// The names of queues, at least one.
fn read_queues(
    mistakes: &mut Mistakes,
    given: Given<List<Text<200>, MOST_QUEUES>>,
) -> Option<Vec<String>> {
    let List(entries) = mistakes.value(given)?;
    if entries.is_empty() {
        mistakes.wrong("queues", "must name a queue; leave it out for a key without this limit");
    }
    let mut names = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        match entry {
            Ok(Text(name)) if !name.is_empty() => names.push(name),
            Ok(_) => mistakes.wrong(&format!("queues[{index}]"), "must be the name of a queue"),
            Err(message) => mistakes.wrong(&format!("queues[{index}]"), message),
        }
    }
    Some(names)
}

/// When a key ends: a time to come.
fn read_end(mistakes: &mut Mistakes, given: Given<Parsed<Timestamp>>) -> Option<Timestamp> {
    let end = mistakes.ruled(given, A_TIME, |Parsed(at)| Some(at))?;
    if end <= now() {
        mistakes.wrong("expiresAt", "must be in the future; DELETE revokes a key now");
    }
    Some(end)
}

/// Keys that the caller may see, newest first.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(KeyListing { listing, part }): Params<KeyListing>,
) -> Result<Json<KeyPage>, Problem> {
    let slice = part.slice(Sorted::NewestFirst)?;
    let keys = app.identity.keys(&caller.0, listing, &slice).await?;
    let next = part.page.next(&keys, |key| key.id);
    Ok(Json(KeyPage { keys, next }))
}

pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<KeyId>,
    known: IfNoneMatch,
) -> Result<Fresh<Json<Key>>, Problem> {
    let key = app.identity.key(&caller.0, id).await?;
    let key = key.map_err(|refused| problem(refused, &id.to_string(), &caller.0))?;
    Ok(known.answer(version(&key), Json(key)))
}

/// The version of a key. Its last use and its state change by themselves.
fn version(key: &Key) -> Version {
    Version::from(key.updated_at).showing(key)
}

/// Changes a key's name or end.
pub(crate) async fn update(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<KeyId>,
    wanted: IfMatch,
    Body(Changes(form), _held): Body<Changes<KeyChangesForm>>,
) -> Result<Audited<Tagged<Json<Key>>>, Problem> {
    let change = read_change(form)?;
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let before = managed(&app, &caller, id).await?;
        let seen = wanted.demand(before.updated_at)?;
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, subject(&before), &before).await?,
        };
        match app.identity.change_key(&caller.0, id, change.clone(), seen).await? {
            Err(Refused::ChangedMeanwhile) => begun = Some(noted),
            changed => {
                let key =
                    changed.map_err(|refused| problem(refused, &id.to_string(), &caller.0))?;
                tracing::info!(user = caller.0.user, key = %id, "API key changed");
                let (made, version) = (noted.after(&key), version(&key));
                return Ok(made.answer(Tagged::new(version, Json(key))));
            }
        }
    }
    Err(Problem::busy("the key"))
}

/// The key as the audit log names it.
fn subject(key: &Key) -> Subject {
    Subject { event: key.event, ..Subject::of(Kind::Key, key.id) }
}

/// A key that the caller may manage.
async fn managed(app: &App, caller: &Writer, id: KeyId) -> Result<Key, Problem> {
    let key = app.identity.managed_key(&caller.0, id).await?;
    key.map_err(|refused| problem(refused, &id.to_string(), &caller.0))
}

fn read_change(form: KeyChangesForm) -> Result<KeyChange, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only_or_fixed(&form, &FIXED);
    mistakes.must_name_one_of(form.names_any(), KeyChangesForm::NAMES);
    let name = match form.name.is_named() {
        true => mistakes.required(form.name).map(|Line(name)| name),
        false => None,
    };
    let has_end = form.expires_at.is_named();
    let end = read_end(&mut mistakes, form.expires_at);
    mistakes.finish(Some(KeyChange { name, expires_at: has_end.then_some(end) }))
}

/// Gives a key another secret, which is shown once.
pub(crate) async fn rotate(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<KeyId>,
    MaybeBody(form): MaybeBody<RotateForm>,
) -> Result<Audited<Tagged<Json<IssuedKey>>>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let grace = mistakes.value(form.grace_seconds).map_or(0, |Whole(seconds)| seconds);
    let grace = mistakes.finish(Some(Duration::from_secs(grace)))?;
    let before = managed(&app, &caller, id).await?;
    let noted = caller.begin(&app, subject(&before), &before).await?;
    let issued = app.identity.rotate_key(&caller.0, id, grace).await?;
    let issued = issued.map_err(|refused| problem(refused, &id.to_string(), &caller.0))?;
    tracing::info!(user = caller.0.user, key = %id, ?grace, "API key rotated");
    let (made, version) = (noted.after(&issued.key), version(&issued.key));
    Ok(made.answer(Tagged::new(version, Json(issued))))
}

/// Revokes a key: it is refused from the next request on, by all nodes.
pub(crate) async fn revoke(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<KeyId>,
    wanted: IfMatch,
) -> Result<Audited<NoContent>, Problem> {
    let mut begun: Option<Change> = None;
    for _ in 0..CHANGE_TRIES {
        let before = managed(&app, &caller, id).await?;
        let seen = wanted.demand(before.updated_at)?;
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, subject(&before), &before).await?,
        };
        match app.identity.revoke_key(&caller.0, id, seen).await? {
            Err(Refused::ChangedMeanwhile) => begun = Some(noted),
            revoked => {
                revoked.map_err(|refused| problem(refused, &id.to_string(), &caller.0))?;
                tracing::info!(user = caller.0.user, key = %id, "API key revoked");
                let after = app.identity.key(&caller.0, id).await?.ok();
                return Ok(noted.after(&after).answer(NoContent));
            }
        }
    }
    Err(Problem::busy("the key"))
}

fn problem(refused: Refused, id: &str, caller: &Principal) -> Problem {
    match refused {
        Refused::NotFound | Refused::NotYours => Problem::not_found("Key", &id),
        Refused::NeedsAdmin => Problem::forbidden("such a key", &[Role::Admin]),
        Refused::OutOfScope => Problem::out_of_scope(&caller.scope),
        Refused::Outlives => {
            Problem::forbidden("the secret of a key that ends later than your own", &[Role::Admin])
        }
        Refused::NameTaken => Problem::new(
            Code::NameTaken,
            "another key of this user has the name; revoke or rename it, or choose another name",
        ),
        Refused::Preset => Problem::new(
            Code::PresetKey,
            "this key comes from the setting ADMIN_KEY; change it there and start again",
        ),
        Refused::ChangedMeanwhile => Problem::busy("the key"),
        Refused::Ended(KeyState::Expired) => Problem::new(
            Code::Conflict,
            "the key has expired; give it another expiresAt first, or make a new key",
        ),
        Refused::Ended(_) => {
            Problem::new(Code::Conflict, "the key is revoked; make a new key instead")
        }
        Refused::TooManyKeys => Problem::new(
            Code::TooMany,
            format!("the user has {MOST_KEYS} keys that work; revoke some that are not used"),
        ),
        Refused::TooManyFormer => Problem::new(
            Code::TooMany,
            "ten former secrets of this key still work; rotate with graceSeconds 0 to end them",
        ),
        Refused::Field(field, message) => Problem::invalid(vec![FieldError::new(field, message)]),
    }
}
