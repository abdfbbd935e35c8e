//! What keys with a scope reach: the one place that says it, and that the guards call.
//!
//! A key may be limited to one event, to named queues, or to both. [`reach`] lists the routes that limited keys may use, and
//! how the event or queue of a request is found. A route that is not listed is refused to all of them.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams};
use http::Method;
use http::request::Parts;
use stampede_model::{EventId, Principal, Scope};

use crate::app::App;
use crate::problem::Problem;

/// How the event or the queue of a request is found, to be compared with the scope of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The path names an event, or a record of one.
    Of(Record),
    /// The handler compares the event of the request, or lists only what belongs to it.
    OfHandler,
    /// The path names a queue.
    Queue,
    /// The handler compares the queue, or lists only the queues of the scope.
    Queues,
    /// Live streams: the handler shows only what is within the scope.
    Feed,
    /// API keys: the handler's room compares the scope of the key that the request is about.
    Keys,
}

/// The kind of a record that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// An event.
    Event,
    /// A ticket.
    Ticket,
    /// The batch of an order.
    Batch,
    /// A check-in list.
    List,
    /// A gate.
    Gate,
    /// A scanning device.
    Device,
    /// A webhook.
    Webhook,
}

impl Record {
    /// The word for people.
    fn word(self) -> &'static str {
        match self {
            Self::Event => "Event",
            Self::Ticket => "Ticket",
            Self::Batch => "Batch",
            Self::List => "List",
            Self::Gate => "Gate",
            Self::Device => "Device",
            Self::Webhook => "Webhook",
        }
    }
}

impl Record {
    /// Whether strangers are not told that a record of this kind exists (docs/decisions/0034-foreign-records.md).
    fn is_hidden(self) -> bool {
        match self {
            Self::Event | Self::Ticket | Self::Batch => false,
            Self::List | Self::Gate | Self::Device | Self::Webhook => true,
        }
    }
}

/// How limited keys reach a route; `None`: they do not.
pub(crate) fn reach(method: &Method, path: &str) -> Option<Reach> {
    Some(match (method.as_str(), path) {
        ("GET", "/api/events" | "/api/tickets" | "/api/batches") => Reach::OfHandler,
        (_, "/api/webhooks") => Reach::OfHandler,
        ("POST", "/api/tickets" | "/api/verify") => Reach::OfHandler,
        (
            _,
            "/api/checkin/redeem"
            | "/api/checkin/undo"
            | "/api/checkin/scans"
            | "/api/checkin/bundle"
            | "/api/checkin/me",
        ) => Reach::OfHandler,
        (
            _,
            "/api/events/{id}"
            | "/api/events/{id}/keys"
            | "/api/events/{id}/keys/{kid}"
            | "/api/events/{id}/batches"
            | "/api/events/{id}/lists"
            | "/api/events/{id}/gates"
            | "/api/events/{id}/devices"
            | "/api/events/{id}/blocks"
            | "/api/events/{id}/scans"
            | "/api/events/{id}/conflicts"
            | "/api/events/{id}/checkin",
        ) => Reach::Of(Record::Event),
        (
            _,
            "/api/tickets/{id}"
            | "/api/tickets/{id}/pdf"
            | "/api/tickets/{id}/qr.svg"
            | "/api/tickets/{id}/qr.png"
            | "/api/tickets/{id}/links"
            | "/api/tickets/{id}/reissue"
            | "/api/tickets/{id}/block",
        ) => Reach::Of(Record::Ticket),
        // Every route below a batch's id is about that batch.
        (_, path) if path.starts_with("/api/batches/{id}") => Reach::Of(Record::Batch),
        ("GET", "/api/events/stream") => Reach::Feed,
        (_, "/api/lists/{id}") => Reach::Of(Record::List),
        (_, "/api/gates/{id}") => Reach::Of(Record::Gate),
        (_, "/api/devices/{id}") => Reach::Of(Record::Device),
        // Every route below a webhook's id is about that webhook.
        (_, path) if path.starts_with("/api/webhooks/{id}") => Reach::Of(Record::Webhook),
        (_, "/api/keys" | "/api/keys/{id}" | "/api/keys/{id}/rotate") => Reach::Keys,
        ("GET", "/api/queues/status") | ("POST", "/api/queues/clean") => Reach::Queues,
        // Every route below a queue's name is about that queue.
        (_, path) if path.starts_with("/api/queues/{name}/") => Reach::Queue,
        _ => return None,
    })
}

/// Refuses a request outside of the scope of its key.
pub(crate) async fn check(
    parts: &mut Parts,
    app: &App,
    principal: &Principal,
) -> Result<(), Problem> {
    let scope = &principal.scope;
    if !scope.is_limited() {
        return Ok(());
    }
    let path = parts.extensions.get::<MatchedPath>().cloned();
    let reach = path.and_then(|path| reach(&parts.method, path.as_str()));
    let is_within = match reach {
        None => false,
        Some(Reach::Keys | Reach::Feed) => true,
        Some(Reach::OfHandler) => scope.event.is_some(),
        Some(Reach::Queues) => scope.queues.is_some(),
        Some(Reach::Queue) => {
            let name = parameter(parts, "name").await;
            name.is_some_and(|name| scope.has_queue(&name))
        }
        Some(Reach::Of(record)) => {
            let id = parameter(parts, "id").await.unwrap_or_default();
            let (is_within, owner) = match event_of(app, record, &id).await? {
                Owner::Event(event) if scope.has_event(event) => (true, None),
                Owner::Event(event) if record.is_hidden() => {
                    (false, app.ticketing.event(event).await?.map(|event| event.owner))
                }
                Owner::Event(_) => (false, None),
                Owner::User(user) => (false, Some(user)),
                Owner::Nobody => return Err(Problem::not_found(record.word(), &id)),
            };
            // Only of records that the user could read with another key.
            if record.is_hidden() && owner.is_some_and(|owner| !principal.may_read(&owner)) {
                return Err(Problem::not_found(record.word(), &id));
            }
            is_within
        }
    };
    if is_within { Ok(()) } else { Err(Problem::out_of_scope(scope)) }
}

/// A parameter of the path.
async fn parameter(parts: &mut Parts, wanted: &str) -> Option<String> {
    let parameters = RawPathParams::from_request_parts(parts, &()).await.ok()?;
    let found = parameters.iter().find(|(name, _)| *name == wanted);
    found.map(|(_, value)| value.to_owned())
}

/// What a record belongs to.
enum Owner {
    /// An event.
    Event(EventId),
    /// This user, and no event: such as a webhook that gets the messages of all events.
    User(String),
    /// There is no such record.
    Nobody,
}

impl From<Option<EventId>> for Owner {
    fn from(event: Option<EventId>) -> Self {
        event.map_or(Self::Nobody, Self::Event)
    }
}

/// What a record belongs to.
async fn event_of(app: &App, record: Record, id: &str) -> Result<Owner, Problem> {
    let event = match record {
        Record::Event => parsed(id),
        Record::Ticket => match parsed(id) {
            Some(id) => app.ticketing.ticket(id).await?.map(|ticket| ticket.event_id),
            None => None,
        },
        Record::Batch => match parsed(id) {
            Some(id) => app.ticketing.batch(id).await?.map(|batch| batch.event_id),
            None => None,
        },
        Record::List => match parsed(id) {
            Some(id) => app.checkin.event_of_list(id).await?,
            None => None,
        },
        Record::Gate => match parsed(id) {
            Some(id) => app.checkin.event_of_gate(id).await?,
            None => None,
        },
        Record::Device => match parsed(id) {
            Some(id) => app.checkin.device(id).await?.map(|device| device.target),
            None => None,
        },
        Record::Webhook => match parsed(id) {
            Some(id) => match app.webhooks.webhook(id).await? {
                Some(webhook) => {
                    let owner = webhook.owner;
                    return Ok(webhook.event.map_or_else(|| Owner::User(owner), Owner::Event));
                }
                None => None,
            },
            None => None,
        },
    };
    Ok(event.into())
}

fn parsed<T: FromStr<Err: Display>>(id: &str) -> Option<T> {
    id.parse().ok()
}

/// Refuses an event outside of the scope of a caller's key.
pub(crate) fn must_reach(principal: &Principal, event: EventId) -> Result<(), Problem> {
    match principal.scope.has_event(event) {
        true => Ok(()),
        false => Err(Problem::out_of_scope(&principal.scope)),
    }
}

/// The queues of a scope that are among these.
pub(crate) fn reached_queues(scope: &Scope, mut names: BTreeSet<String>) -> BTreeSet<String> {
    names.retain(|name| scope.has_queue(name));
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Right;
    use crate::router::routes;

    #[test]
    fn limited_keys_reach_no_templates_nodes_limits_and_new_events() {
        for route in routes() {
            let reach = reach(&route.method, route.path);
            let closed = ["/api/templates", "/api/nodes", "/api/limits", "/api/cluster"]
                .iter()
                .chain(&["/api/breakers", "/api/suspects", "/api/scaling"])
                .any(|room| route.path.starts_with(room));
            let makes_events = route.path == "/api/events" && route.method == "POST";
            assert!(reach.is_none() || !(closed || makes_events), "{route:?}");
            if matches!(reach, Some(Reach::Queue | Reach::Queues)) {
                let rights = [Right::Oversee, Right::Administer];
                assert!(rights.contains(&route.right), "{route:?}");
            }
            if matches!(reach, Some(Reach::Of(_))) {
                assert!(route.path.contains("{id}"), "{route:?}");
            }
            assert_eq!(route.reach, reach);
        }
    }
}
