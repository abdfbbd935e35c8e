//! `/api/webhooks`: endpoints are made, listed, changed, rotated, tested and deleted. Their deliveries are in `deliveries.rs`.

pub(crate) mod deliveries;

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use stampede_audit::{Kind, Subject};
use stampede_model::{EventId, WebhookId};
use stampede_store::{Sorted, WebhookFilter};
use stampede_webhook::{
    Change, Deleted, LONGEST_GRACE, MOST_ENDPOINTS, Made, NewWebhook, Tested, Written,
};
use stampede_wire::webhooks::{
    Delivery, IssuedWebhook, MessageKind, Webhook, WebhookPage, WebhookState,
};

use crate::app::App;
use crate::auth::{Caller, Writer};
use crate::body::{Body, MaybeBody};
use crate::describe::{Accepted, Created, Located, NoContent};
use crate::forms::{Changes, Form, Given, IdOf, List, Mistakes, Parsed, Text, Whole, form};
use crate::input::Id;
use crate::page::Part;
use crate::problem::{Code, Problem};
use crate::query::{FromQuery, Params, Query};
use crate::routes::CHANGE_TRIES;
use crate::scope::must_reach;
use crate::trace::Audited;
use crate::version::{Fresh, IfMatch, IfNoneMatch, Tagged, Version};

/// Longest URL and longest description, in bytes.
const LONGEST_URL: usize = 2_000;
const LONGEST_DESCRIPTION: usize = 500;
/// Most kinds in one request; there are fewer.
const MOST_KINDS: usize = 100;

const AN_EVENT: &str = "must be the id of an event";

form! {
    /// `POST /api/webhooks`.
    pub(crate) struct WebhookForm {
        /// Where messages are sent: https or http, without a user, at a public address.
        url: Text<LONGEST_URL> = "url" required,
        /// Words for people.
        description: Text<LONGEST_DESCRIPTION> = "description",
        /// The kinds of messages it gets; all if absent or `null`.
        kinds: List<Parsed<MessageKind>, MOST_KINDS> = "kinds",
        /// The only event whose messages it gets.
        event: IdOf<EventId> = "event",
    }
}

form! {
    /// `PATCH /api/webhooks/{id}`.
    pub(crate) struct WebhookChangesForm {
        /// Where messages are sent.
        url: Text<LONGEST_URL> = "url",
        /// Words for people.
        description: Text<LONGEST_DESCRIPTION> = "description",
        /// The kinds of messages it gets; `null`: all.
        kinds: List<Parsed<MessageKind>, MOST_KINDS> = "kinds",
        /// Whether it gets messages. What was pending is cancelled when it is disabled.
        state: Parsed<WebhookState> = "state",
    }
}

form! {
    /// `POST /api/webhooks/{id}/rotate`.
    pub(crate) struct RotateWebhookForm {
        /// For how many seconds messages are signed with the former secret, too.
        grace_seconds: Whole<0, { LONGEST_GRACE.as_secs() }> = "graceSeconds",
    }
}

/// All other fields of a webhook.
const FIXED: [&str; 11] = [
    "id",
    "owner",
    "event",
    "disabledReason",
    "disabledAt",
    "failingSince",
    "lastSuccessAt",
    "formerSecretUntil",
    "version",
    "createdAt",
    "updatedAt",
];

/// Which webhooks to list.
pub(crate) struct WebhookListing {
    event: Option<EventId>,
    state: Option<WebhookState>,
    part: Part,
}

impl FromQuery for WebhookListing {
    fn from_query(query: &mut Query) -> Self {
        const STATES: [&str; 2] = ["active", "disabled"];
        let state = query
            .about("Whether they get messages.")
            .word("state", &STATES, "must be active or disabled")
            .and_then(|word| word.parse().ok());
        let event = query.about("Those of this event alone.").parsed("event", AN_EVENT);
        Self { event, state, part: Part::from_query(query) }
    }
}

/// Makes a webhook. Its secret is shown once.
pub(crate) async fn create(
    State(app): State<App>,
    caller: Writer,
    Body(form, _held): Body<WebhookForm>,
) -> Result<Audited<Tagged<Located<Created<IssuedWebhook>>>>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    if !form.url.has_value() {
        mistakes.wrong("url", "is missing");
    }
    let url = mistakes.read(form.url, |Text(url)| app.webhooks.check_url(&url));
    let description = mistakes.value(form.description).map(|Text(text)| text);
    let kinds = read_kinds(&mut mistakes, form.kinds);
    let event = mistakes.ruled(form.event, AN_EVENT, |IdOf(id)| id);
    let url = mistakes.finish(url)?;
    // A key that is limited to an event makes webhooks of that event.
    let event = event.or(caller.0.scope.event);
    let owner = match event {
        Some(event) => owner_of(&app, &caller, event).await?,
        None => caller.0.user.clone(),
    };
    let description = description.unwrap_or_default();
    let subject = Subject { event, ..Subject::new(Kind::Webhook) };
    let noted = caller.begin_new(&app, subject).await?;
    match app.webhooks.create(NewWebhook { owner, url, description, kinds, event }).await? {
        Made::Done(made) => {
            let (webhook, owner) = (made.webhook.id, &made.webhook.owner);
            tracing::info!(user = caller.0.user, %webhook, owner, "webhook made");
            let (entry, version) = (noted.after(&made.webhook), version(&made.webhook));
            let path = format!("/api/webhooks/{webhook}");
            Ok(entry.answer(Tagged::new(version, Located(path, Created(*made)))))
        }
        Made::TooMany => {
            let detail = format!(
                "a user has at most {MOST_ENDPOINTS} webhooks; delete one, or let one get several kinds"
            );
            Err(Problem::new(Code::TooMany, detail))
        }
    }
}

/// The owner of the event, whose messages a webhook of that event gets.
async fn owner_of(app: &App, caller: &Writer, event: EventId) -> Result<String, Problem> {
    must_reach(&caller.0, event)?;
    let found = app.ticketing.event(event).await?.filter(|found| caller.0.may_read(&found.owner));
    let mut mistakes = Mistakes::default();
    if found.is_none() {
        mistakes.wrong("event", "is no event of yours");
    }
    mistakes.finish(found.map(|event| event.owner))
}

/// The names of kinds, each once; at least one.
fn read_kinds(
    mistakes: &mut Mistakes,
    given: Given<List<Parsed<MessageKind>, MOST_KINDS>>,
) -> Option<Vec<String>> {
    let List(entries) = mistakes.value(given)?;
    if entries.is_empty() {
        mistakes.wrong("kinds", "must name a kind; leave it out for all kinds");
    }
    let mut kinds = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        match entry {
            Ok(Parsed(kind)) => kinds.push(kind),
            Err(message) => mistakes.wrong_entry(&format!("kinds[{index}]"), message),
        }
    }
    kinds.sort_unstable();
    kinds.dedup();
    Some(kinds.into_iter().map(|kind| kind.as_str().to_owned()).collect())
}

/// Webhooks that the caller may see, newest first.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(WebhookListing { event, state, part }): Params<WebhookListing>,
) -> Result<Json<WebhookPage>, Problem> {
    let only = caller.0.scope.event;
    let next_to_nothing = only.is_some() && event.is_some() && only != event;
    let filter = WebhookFilter {
        owner: caller.0.visible_owner().map(str::to_owned),
        event: only.or(event),
        is_active: state.map(|state| state == WebhookState::Active),
    };
    let webhooks = match next_to_nothing {
        true => Vec::new(),
        false => app.webhooks.list(&filter, &part.slice(Sorted::NewestFirst)?).await?,
    };
    let next = part.page.next(&webhooks, |webhook| webhook.id);
    Ok(Json(WebhookPage { webhooks, next }))
}

pub(crate) async fn read(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<WebhookId>,
    known: IfNoneMatch,
) -> Result<Fresh<Json<Webhook>>, Problem> {
    let webhook = readable(&app, &caller, id).await?;
    Ok(known.answer(version(&webhook), Json(webhook)))
}

/// The version of a webhook. Whether it accepts messages changes by itself.
fn version(webhook: &Webhook) -> Version {
    Version::from(webhook.version).showing(webhook)
}

/// The webhook as the audit log names it.
fn subject(webhook: &Webhook) -> Subject {
    Subject { event: webhook.event, ..Subject::of(Kind::Webhook, webhook.id) }
}

/// Changes the fields that are given.
pub(crate) async fn update(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<WebhookId>,
    seen: IfMatch,
    Body(Changes(form), _held): Body<Changes<WebhookChangesForm>>,
) -> Result<Audited<Tagged<Json<Webhook>>>, Problem> {
    managed(&app, &caller, id).await?;
    let change = read_change(&app, form)?;
    let mut begun: Option<crate::trace::Change> = None;
    for _ in 0..CHANGE_TRIES {
        let before = managed(&app, &caller, id).await?;
        seen.check(&before.version.into())?;
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, subject(&before), &before).await?,
        };
        match app.webhooks.change(id, before.version, &change).await? {
            Written::Done(webhook) => {
                let state = webhook.state.as_str();
                tracing::info!(user = caller.0.user, webhook = %id, state, "webhook changed");
                let (entry, version) = (noted.after(&*webhook), version(&webhook));
                return Ok(entry.answer(Tagged::new(version, Json(*webhook))));
            }
            Written::SecretLost => {
                let detail = "its secret is lost; rotate the webhook, then make it active";
                return Err(Problem::new(Code::Conflict, detail));
            }
            Written::Changed => begun = Some(noted),
        }
    }
    Err(Problem::busy("the webhook"))
}

fn read_change(app: &App, form: WebhookChangesForm) -> Result<Change, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only_or_fixed(&form, &FIXED);
    mistakes.must_name_one_of(form.names_any(), WebhookChangesForm::NAMES);
    for (name, is_cleared) in [("url", form.url.is_cleared()), ("state", form.state.is_cleared())] {
        if is_cleared {
            mistakes.wrong(name, "is missing");
        }
    }
    let url = mistakes.read(form.url, |Text(url)| app.webhooks.check_url(&url));
    let no_description = form.description.is_cleared().then(String::new);
    let description = mistakes.value(form.description).map(|Text(text)| text).or(no_description);
    let all_kinds = form.kinds.is_cleared().then_some(None);
    let kinds = read_kinds(&mut mistakes, form.kinds).map(Some).or(all_kinds);
    let state = mistakes.value(form.state).map(|Parsed(state)| state);
    mistakes.finish(Some(Change { url, description, kinds, state }))
}

/// Gives a webhook another secret, which is shown once.
pub(crate) async fn rotate(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<WebhookId>,
    MaybeBody(form): MaybeBody<RotateWebhookForm>,
) -> Result<Audited<Tagged<Json<IssuedWebhook>>>, Problem> {
    let before = managed(&app, &caller, id).await?;
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let grace = mistakes.value(form.grace_seconds).map_or(0, |Whole(seconds)| seconds);
    let grace = mistakes.finish(Some(Duration::from_secs(grace)))?;
    let noted = caller.begin(&app, subject(&before), &before).await?;
    let issued = app.webhooks.rotate(id, grace).await?;
    let issued = issued.ok_or_else(|| Problem::not_found("Webhook", &id))?;
    tracing::info!(user = caller.0.user, webhook = %id, ?grace, "webhook rotated");
    let (made, version) = (noted.after(&issued.webhook), version(&issued.webhook));
    Ok(made.answer(Tagged::new(version, Json(issued))))
}

/// Deletes a webhook: it gets nothing any more.
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<WebhookId>,
    seen: IfMatch,
) -> Result<Audited<NoContent>, Problem> {
    let mut begun: Option<crate::trace::Change> = None;
    for _ in 0..CHANGE_TRIES {
        let before = managed(&app, &caller, id).await?;
        seen.check(&before.version.into())?;
        let noted = match begun.take() {
            Some(noted) => noted.rebased(&before),
            None => caller.begin(&app, subject(&before), &before).await?,
        };
        let version = seen.names_versions().then_some(before.version);
        match app.webhooks.delete(id, version).await? {
            Deleted::Changed => begun = Some(noted),
            Deleted::Done | Deleted::NotFound => {
                tracing::info!(user = caller.0.user, webhook = %id, "webhook deleted");
                return Ok(noted.gone().answer(NoContent));
            }
        }
    }
    Err(Problem::busy("the webhook"))
}

/// Sends a message of the kind `webhook.test`.
pub(crate) async fn test(
    State(app): State<App>,
    caller: Writer,
    Id(id): Id<WebhookId>,
) -> Result<Audited<Located<Accepted<Delivery>>>, Problem> {
    let webhook = managed(&app, &caller, id).await?;
    let noted = caller.begin_new(&app, subject(&webhook)).await?;
    match app.webhooks.test(id).await? {
        Tested::Sent(delivery) => {
            let path = format!("/api/webhooks/{id}/deliveries/{}", delivery.id);
            let made = noted.after(&serde_json::json!({ "delivery": delivery.id }));
            Ok(made.answer(Located(path, Accepted(*delivery))))
        }
        Tested::Disabled => Err(disabled()),
    }
}

/// 409: the webhook gets nothing.
fn disabled() -> Problem {
    Problem::new(
        Code::Conflict,
        "the webhook is disabled; PATCH it with {\"state\": \"active\"} first",
    )
}

/// The webhook, if the caller may read it.
async fn readable(app: &App, caller: &Caller, id: WebhookId) -> Result<Webhook, Problem> {
    let webhook = find(app, id).await?;
    caller.must_read(&webhook.owner).map_err(|refused| refused.hiding("Webhook", &id))?;
    Ok(webhook)
}

/// The webhook, if the caller may change it.
async fn managed(app: &App, caller: &Writer, id: WebhookId) -> Result<Webhook, Problem> {
    let webhook = find(app, id).await?;
    caller.must_change(&webhook.owner).map_err(|refused| refused.hiding("Webhook", &id))?;
    Ok(webhook)
}

async fn find(app: &App, id: WebhookId) -> Result<Webhook, Problem> {
    app.webhooks.webhook(id).await?.ok_or_else(|| Problem::not_found("Webhook", &id))
}
