//! A WebSocket: the same events as JSON messages, for several subscriptions.
//!
//! | the client sends | the server sends |
//! |---|---|
//! | `{"type":"auth","key":"…"}` first, unless the request had a key | `{"type":"hello","position":"…"}` |
//! | `{"type":"subscribe","id":"a","kinds":[…],"target":"…","batch":"…","queue":"…","after":"…"}` | `{"type":"subscribed","id":"a"}` |
//! | `{"type":"unsubscribe","id":"a"}` | `{"type":"unsubscribed","id":"a"}` |
//! | | `{"type":"event","position":"…","subscriptions":["a"],"event":{…}}` |
//! | | `{"type":"position","position":"…"}`, `{"type":"reset","position":"…"}` |
//! | | `{"type":"error","code":"…","detail":"…"}` |
//!
//! A client that sends nothing for [`SILENCE`], not even the answer to a ping, or takes nothing for [`WRITE_PATIENCE`], is
//! cut off. Browsers cannot send headers, so their key is the first message: never a part of the address, which is logged.

mod messages;

pub(crate) use self::messages::kind;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use serde_json::{Value, json};
use stampede_feed::{Filter, Seen};
use stampede_model::Principal;
use tokio::time::{Instant, timeout, timeout_at};

use self::messages::{Asked, Wish};
use super::{Connection, Live, Place, Step, WRITE_PATIENCE, Watch};
use crate::app::App;
use crate::auth::known;
use crate::problem::Problem;

/// Longest message of a client, in bytes.
pub(crate) const LONGEST: usize = 16 << 10;
/// The buffer of a socket for what comes, in bytes: clients say little.
pub(crate) const READ_BUFFER: usize = 4 << 10;
/// Subscriptions of one socket.
const SUBSCRIPTIONS: usize = 32;
/// Time for the key.
const AUTH_PATIENCE: Duration = Duration::from_secs(10);
/// A client that is silent for this long is gone: every ping is answered.
const SILENCE: Duration = Duration::from_secs(50);

/// How long a client has to close its side after it was told why the node closes.
const LINGER: Duration = Duration::from_secs(2);

/// Close codes (RFC 6455, 7.4): the server goes away; a rule was broken; try again later.
const GOING_AWAY: u16 = 1001;
const POLICY: u16 = 1008;
const TRY_LATER: u16 = 1013;

/// Why a socket is closed; `None`: the connection is gone, or must be cut off.
type Closing = Option<(u16, &'static str)>;

/// The node stops.
const STOPPED: Closing = Some((GOING_AWAY, "the node stops; resume on another one"));

/// A client that has asked for a WebSocket.
pub(crate) enum Asker {
    /// The request had a key.
    Known(Principal),
    /// The first message will have it. The place is free again when the key is known.
    Stranger(Place),
}

/// Serves a socket until one side ends it.
pub(crate) async fn serve(mut socket: WebSocket, app: &App, connection: Connection, asker: Asker) {
    let closing = match open(&mut socket, app, connection, asker).await {
        Ok((watch, _place)) => run(&mut socket, &app.live, watch).await,
        Err(closing) => closing,
    };
    if let Some((code, reason)) = closing {
        let frame = CloseFrame { code, reason: reason.into() };
        let told = timeout(WRITE_PATIENCE, socket.send(Message::Close(Some(frame)))).await;
        if matches!(told, Ok(Ok(()))) {
            // A connection that is closed while something of the client is unread is reset, and the reason may be lost.
            let rest = async { while let Some(Ok(_)) = socket.recv().await {} };
            let _ = timeout(LINGER, rest).await;
        }
    }
}

async fn open(
    socket: &mut WebSocket,
    app: &App,
    connection: Connection,
    asker: Asker,
) -> Result<(Watch, Place), Closing> {
    let from = connection.from;
    let (caller, credential) = match asker {
        Asker::Known(caller) => (caller, connection.credential.unwrap_or_default()),
        Asker::Stranger(_place) => {
            let credential = tokio::select! {
                first = first_message(socket) => first?,
                () = app.live.hub.stop().cancelled() => return Err(STOPPED),
            };
            match known(&app.identity, &app.rates, &credential, from).await {
                Ok(caller) => (caller, credential),
                Err(problem) => return Err(refuse(socket, problem).await),
            }
        }
    };
    let place = match app.live.take_place(&caller) {
        Ok(place) => place,
        Err(problem) => return Err(refuse(socket, problem).await),
    };
    let Ok(reader) = app.live.hub.follow(None).await else {
        return Err(refuse(socket, Problem::unavailable("Redis")).await);
    };
    let watch = Watch::new(reader, caller, app.identity.clone(), credential, from);
    let hello = json!({ "type": "hello", "position": watch.position().to_string() });
    send(socket, hello).await?;
    Ok((watch, place))
}

/// The key that a browser sends first.
async fn first_message(socket: &mut WebSocket) -> Result<String, Closing> {
    let needed = Some((POLICY, "the first message must be {\"type\":\"auth\",\"key\":\"…\"}"));
    match timeout(AUTH_PATIENCE, socket.recv()).await {
        Ok(Some(Ok(Message::Text(text)))) => match messages::read(&text) {
            Ok(Asked::Auth(key)) => Ok(key),
            _ => Err(needed),
        },
        Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => Err(None),
        Ok(Some(Ok(_))) | Err(_) => Err(needed),
    }
}

async fn refuse(socket: &mut WebSocket, problem: Problem) -> Closing {
    let (code, detail) = problem.told();
    let told = json!({ "type": "error", "code": code.as_str(), "detail": detail });
    if send(socket, told).await.is_err() {
        return None;
    }
    match code.status() {
        401 | 403 => Some((POLICY, "the key is not valid")),
        _ => Some((TRY_LATER, "try again later")),
    }
}

/// Passes events on until the end.
async fn run(socket: &mut WebSocket, live: &Live, mut watch: Watch) -> Closing {
    let mut subscriptions: BTreeMap<String, Filter> = BTreeMap::new();
    let mut heard = Instant::now();
    loop {
        let step = tokio::select! {
            message = timeout_at(heard + SILENCE, socket.recv()) => {
                heard = Instant::now();
                let answered = match message {
                    Ok(Some(Ok(Message::Text(text)))) => {
                        answer(socket, live, &mut watch, &mut subscriptions, &text).await
                    }
                    Ok(Some(Ok(Message::Binary(_)))) => {
                        Err(Some((POLICY, "messages are JSON texts")))
                    }
                    Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => Ok(()),
                    Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) | Err(_) => Err(None),
                };
                match answered {
                    Ok(()) => continue,
                    Err(closing) => return closing,
                }
            }
            step = watch.next() => step,
        };
        let sent = match step {
            Step::Event(event) => pass_on(socket, &subscriptions, &event).await,
            Step::Reset(position) => {
                send(socket, json!({ "type": "reset", "position": position.to_string() })).await
            }
            Step::Beat(position) => {
                let told = json!({ "type": "position", "position": position.to_string() });
                match send(socket, told).await {
                    Ok(()) => send_raw(socket, Message::Ping(Default::default())).await,
                    closing => closing,
                }
            }
            Step::CaughtUp => Ok(()),
            Step::KeyEnded => return Some((POLICY, "the key is not valid any more")),
            Step::Stopped => return STOPPED,
            Step::Lagged => return None,
        };
        if let Err(closing) = sent {
            return closing;
        }
    }
}

/// Sends an event to a socket that subscribed to it.
async fn pass_on(
    socket: &mut WebSocket,
    subscriptions: &BTreeMap<String, Filter>,
    event: &Seen,
) -> Result<(), Closing> {
    let ids: Vec<&str> = subscriptions
        .iter()
        .filter(|(_, filter)| filter.admits(event))
        .map(|(id, _)| id.as_str())
        .collect();
    if ids.is_empty() {
        return Ok(());
    }
    // The event is JSON already.
    let (position, ids, event) = (event.position, json!(ids), &event.text);
    let text = format!(
        r#"{{"type":"event","position":"{position}","subscriptions":{ids},"event":{event}}}"#
    );
    send_raw(socket, Message::Text(text.into())).await
}

/// Does what a client asks for.
async fn answer(
    socket: &mut WebSocket,
    live: &Live,
    watch: &mut Watch,
    subscriptions: &mut BTreeMap<String, Filter>,
    text: &str,
) -> Result<(), Closing> {
    let wish = match messages::read(text) {
        Ok(Asked::Wish(wish)) => wish,
        Ok(Asked::Auth(_)) => return error(socket, "the key is known already").await,
        Err(mistake) => return error(socket, &mistake).await,
    };
    match wish {
        Wish::Subscribe { id, .. }
            if subscriptions.len() >= SUBSCRIPTIONS && !subscriptions.contains_key(&id) =>
        {
            error(socket, &format!("a socket has at most {SUBSCRIPTIONS} subscriptions")).await
        }
        Wish::Subscribe { after: Some(_), .. } if !subscriptions.is_empty() => {
            error(socket, "after belongs to the first subscription of a socket").await
        }
        Wish::Subscribe { id, filter, after } => {
            if let Some(after) = after {
                match live.hub.follow(Some(after)).await {
                    Ok(reader) => watch.read_with(reader),
                    Err(_) => {
                        return Err(refuse(socket, Problem::unavailable("Redis")).await);
                    }
                }
            }
            let told = json!({ "type": "subscribed", "id": id });
            subscriptions.insert(id, filter);
            send(socket, told).await
        }
        Wish::Unsubscribe { id } => match subscriptions.remove(&id) {
            Some(_) => send(socket, json!({ "type": "unsubscribed", "id": id })).await,
            None => error(socket, "there is no such subscription").await,
        },
    }
}

async fn error(socket: &mut WebSocket, detail: &str) -> Result<(), Closing> {
    send(socket, json!({ "type": "error", "code": "invalid", "detail": detail })).await
}

async fn send(socket: &mut WebSocket, message: Value) -> Result<(), Closing> {
    send_raw(socket, Message::Text(message.to_string().into())).await
}

async fn send_raw(socket: &mut WebSocket, message: Message) -> Result<(), Closing> {
    match timeout(WRITE_PATIENCE, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(None),
    }
}
