//! `GET /api/events/stream`, `GET /api/batches/{id}/events` and `/ws`: what happens, as it happens.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, State};
use axum::response::IntoResponse;
use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use http::request::Parts;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use stampede_feed::{Filter, Position};
use stampede_model::feed::Kind;
use stampede_model::{BatchId, EventId};
use stampede_wire::feed::Event;
use stampede_wire::ticketing::batches::BatchStatus;
use url::Url;

use super::batches;
use crate::app::App;
use crate::auth::{Caller, MaybeCaller, Watcher, principal};
use crate::cors::Origins;
use crate::describe::{self, Input, Operation, Place, Sent};
use crate::input::Id;
use crate::live::socket::Asker;
use crate::live::sse::{self, Plan};
use crate::live::{Connection, Watch, socket};
use crate::problem::{Code, Problem};
use crate::query::{FromQuery, Params, Query};

/// A position in the stream.
#[derive(Clone, Copy)]
pub(crate) struct After(Position);

impl FromStr for After {
    type Err = <Position as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl JsonSchema for After {
    fn schema_name() -> Cow<'static, str> {
        "FeedPosition".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]+(-[0-9]+)?$" })
    }
}

/// `Last-Event-ID`: the last event that a client has heard.
pub(crate) struct LastEventId(Option<Position>);

impl<S: Sync> FromRequestParts<S> for LastEventId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get("last-event-id") else { return Ok(Self(None)) };
        // A client that has heard nothing yet may send an empty one.
        match value.to_str().map(str::parse) {
            _ if value.is_empty() => Ok(Self(None)),
            Ok(Ok(position)) => Ok(Self(Some(position))),
            _ => {
                let detail = "Last-Event-ID must be the id of an event, like 1763459200000-0";
                Err(Problem::new(Code::InvalidHeader, detail))
            }
        }
    }
}

impl Input for LastEventId {
    fn describe(operation: &mut Operation<'_>) {
        let about = "The last event that the client has heard: the stream goes on after it.";
        let schema = json_schema!({ "type": "string", "examples": ["1763459200000-0"] });
        operation.parameter(Place::Header, "Last-Event-ID", about, schema);
        operation.may_refuse(&[Code::InvalidHeader]);
    }
}

/// A stream of server-sent events.
pub(crate) struct EventStream;

impl describe::Kind for EventStream {
    fn describe(operation: &mut Operation<'_>) {
        let (event, state) = (operation.schema::<Event>(), operation.schema::<BatchStatus>());
        // One message of the stream.
        let message = json_schema!({
            "type": "object",
            "required": ["data"],
            "properties": {
                "id": {
                    "type": "string",
                    "description": "The place from which a client resumes (`Last-Event-ID`).",
                },
                "event": {
                    "type": "string",
                    "description": "The kind of an event; or `hello`, `state`, `reset`, `end`.",
                },
                "retry": {
                    "type": "integer",
                    "description": "The pause before a client connects again, in milliseconds.",
                },
                "data": {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": { "anyOf": [event, state, of_text("position"), of_text("reason")] },
                },
            },
        });
        let about = "A stream of server-sent events; the schema is that of one message. `data` is JSON: an event, the \
            state of the order (`state`), a place (`hello`, `reset`) or a reason (`end`). See docs/live.md.";
        operation.answers(200, about, Some(("text/event-stream", message)));
        operation.may_refuse(&[Code::RateLimited, Code::Overloaded, Code::Unavailable]);
    }
}

/// An object with one text.
fn of_text(name: &str) -> Schema {
    json_schema!({
        "type": "object", "required": [name], "properties": { name: { "type": "string" } },
    })
}

/// The query of `GET /api/events/stream`.
pub(crate) struct StreamQuery {
    filter: Filter,
    after: Option<After>,
    lasts: Option<Duration>,
}

impl FromQuery for StreamQuery {
    fn from_query(query: &mut Query) -> Self {
        let kinds = query
            .about("Only events of these kinds, separated by commas, such as `batch.completed,ticket.failed`.")
            .text("kinds");
        let kinds = kinds.and_then(|names| {
            let kinds: Result<Vec<Kind>, String> =
                names.split(',').map(|name| socket::kind(name.trim())).collect();
            kinds
                .map_err(|mistake| query.wrong("kinds", mistake.trim_start_matches("kinds: ")))
                .ok()
        });
        let filter = Filter {
            kinds,
            target: query
                .about("Only events about this event.")
                .parsed::<EventId>("target", "must be the id of an event"),
            batch: query
                .about("Only events about this order.")
                .parsed::<BatchId>("batch", "must be the id of a batch"),
            queue: query.about("Only events about this queue.").text("queue"),
        };
        let (after, lasts) = (after(query), lasts(query));
        Self { filter, after, lasts }
    }
}

fn after(query: &mut Query) -> Option<After> {
    query
        .about("The id of the last event that the client has heard; `Last-Event-ID` wins. `0`: everything that is kept.")
        .parsed("after", "must be the id of an event, like 1763459200000-0")
}

fn lasts(query: &mut Query) -> Option<Duration> {
    let seconds =
        query.about("The stream ends after so many seconds.").whole("seconds", 0..=sse::LONGEST_S);
    seconds.map(|seconds| Duration::from_secs(seconds.into()))
}

/// Everything that happens and that the caller may see.
pub(crate) async fn stream(
    State(app): State<App>,
    Watcher(caller): Watcher,
    connection: Connection,
    LastEventId(last): LastEventId,
    Params(asked): Params<StreamQuery>,
) -> Result<Sent<EventStream>, Problem> {
    let place = app.live.take_place(&caller)?;
    let after = last.or(asked.after.map(|After(after)| after));
    let reader = app.live.hub.follow(after).await.map_err(|_| Problem::unavailable("Redis"))?;
    let credential = connection.credential.unwrap_or_default();
    let watch = Watch::new(reader, caller, app.identity.clone(), credential, connection.from);
    let plan = Plan {
        first: vec![sse::hello(watch.position())],
        filter: asked.filter,
        until_completed: false,
        is_completed: false,
        resumes: false,
        lasts: asked.lasts,
    };
    Ok(Sent::new(sse::answer(&app.live, watch, plan, place, connection.cut_off)))
}

/// The query of `GET /api/batches/{id}/events`.
pub(crate) struct BatchQuery {
    until_completed: bool,
    after: Option<After>,
    lasts: Option<Duration>,
}

impl FromQuery for BatchQuery {
    fn from_query(query: &mut Query) -> Self {
        let until = query
            .about("`completed`: the stream ends when no ticket is left to be made.")
            .word("until", &["completed"], "must be completed");
        Self { until_completed: until.is_some(), after: after(query), lasts: lasts(query) }
    }
}

/// The state of an order, then what happens to it.
pub(crate) async fn batch(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<BatchId>,
    connection: Connection,
    LastEventId(last): LastEventId,
    Params(asked): Params<BatchQuery>,
) -> Result<Sent<EventStream>, Problem> {
    batches::find(&app, &caller, id).await?;
    let place = app.live.take_place(&caller.0)?;
    let after = last.or(asked.after.map(|After(after)| after));
    let reader = app.live.hub.follow(after).await.map_err(|_| Problem::unavailable("Redis"))?;
    // After the position is taken: what happens from now on is in the state, in the stream, or in both.
    let batch = batches::find(&app, &caller, id).await?;
    let status = app.ticketing.batch_status(&batch).await?;
    let state = serde_json::to_string(&status).map_err(|error| Problem::internal(&error))?;
    let credential = connection.credential.unwrap_or_default();
    let watch = Watch::new(reader, caller.0, app.identity.clone(), credential, connection.from);
    let plan = Plan {
        first: vec![sse::hello(watch.position()), sse::message(None, "state", &state)],
        filter: Filter { batch: Some(id), ..Filter::default() },
        until_completed: asked.until_completed,
        is_completed: batch.pending() == 0,
        resumes: after.is_some(),
        lasts: asked.lasts,
    };
    Ok(Sent::new(sse::answer(&app.live, watch, plan, place, connection.cut_off)))
}

/// A request that becomes a WebSocket.
pub(crate) struct Upgrade(WebSocketUpgrade);

impl<S: Sync + Send> FromRequestParts<S> for Upgrade {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        WebSocketUpgrade::from_request_parts(parts, state).await.map(Self).map_err(|refusal| {
            let detail = format!("this route is a WebSocket (docs/live.md): {refusal}");
            Problem::new(Code::BadRequest, detail)
        })
    }
}

impl Input for Upgrade {
    fn describe(operation: &mut Operation<'_>) {
        operation.may_refuse(&[Code::BadRequest]);
    }
}

/// A WebSocket.
pub(crate) struct Switched;

impl describe::Kind for Switched {
    fn describe(operation: &mut Operation<'_>) {
        let about = "The connection is a WebSocket now. Send `{\"type\":\"auth\",\"key\":\"…\"}` first, unless the request had a \
            key, then `{\"type\":\"subscribe\",\"id\":\"a\",\"kinds\":[…]}`. Events come as \
            `{\"type\":\"event\",\"position\":\"…\",\"subscriptions\":[\"a\"],\"event\":{…}}` (docs/live.md).";
        operation.answers(101, about, None);
        operation.may_refuse(&[
            Code::Forbidden,
            Code::RateLimited,
            Code::Overloaded,
            Code::Unavailable,
        ]);
    }
}

/// The WebSocket: the same events, with subscriptions that change while it lasts.
pub(crate) async fn web_socket(
    State(app): State<App>,
    MaybeCaller(headers, from): MaybeCaller,
    connection: Connection,
    Upgrade(upgrade): Upgrade,
) -> Result<Sent<Switched>, Problem> {
    if !is_welcome(&app.live.origins, &headers) {
        let detail = "pages of this origin may not use the API; see CORS_ORIGINS";
        return Err(Problem::new(Code::Forbidden, detail));
    }
    let asker = match principal(&app.identity, &app.rates, &headers, from).await? {
        Some(caller) => Asker::Known(caller),
        // Before the connection is a socket: strangers must not fill the node.
        None => Asker::Stranger(app.live.take_place_as_stranger(from)?),
    };
    let upgrade = upgrade.max_message_size(socket::LONGEST).max_frame_size(socket::LONGEST);
    let upgrade = upgrade.read_buffer_size(socket::READ_BUFFER);
    let tasks = app.live.tasks.clone();
    let response = upgrade.on_upgrade(move |socket| {
        tasks.track_future(async move { socket::serve(socket, &app, connection, asker).await })
    });
    Ok(Sent::new(response.into_response()))
}

/// Whether a page may open a socket: one of this server, or of an origin that the operator has named. Programs that are no
/// pages send no origin.
fn is_welcome(origins: &Origins, headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let Some(origin) = origin.to_str().ok() else { return false };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let is_own = || Url::parse(origin).is_ok_and(|url| authority(&url).as_deref() == host);
    match origins {
        Origins::Any => true,
        Origins::Own => is_own(),
        Origins::These(named) => named.iter().any(|named| named == origin) || is_own(),
    }
}

/// Host and port of an address, as browsers write them in `Host`.
fn authority(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn pages_of_this_server_and_of_named_origins_are_welcome() {
        let named = Origins::These(vec!["https://app.example".to_owned()]);
        for (origins, origin, host, welcome) in [
            (Origins::Own, None, "a:3000", true),
            (Origins::Own, Some("http://a:3000"), "a:3000", true),
            (Origins::Own, Some("https://a.example"), "a.example", true),
            (Origins::Own, Some("http://a:3001"), "a:3000", false),
            (Origins::Own, Some("https://evil.example"), "a:3000", false),
            (Origins::Own, Some("null"), "a:3000", false),
            (named.clone(), Some("https://app.example"), "a:3000", true),
            (named.clone(), Some("http://a:3000"), "a:3000", true),
            (named, Some("https://app.example.evil.com"), "a:3000", false),
            (Origins::Any, Some("https://evil.example"), "a:3000", true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_static(origin));
            }
            assert_eq!(is_welcome(&origins, &headers), welcome, "{origin:?} at {host}");
        }
    }
}
