//! A stream of server-sent events.
//!
//! ```text
//!   retry: 1000                    how long a client waits before it connects again
//!   id: 1763459200000-0            from here a client resumes (Last-Event-ID)
//!   event: tickets.completed       the kind; or hello, state, reset, end
//!   data: {"id":"0198…",…}         the event, on one line
//! ```
//!
//! A task for each stream passes messages to the connection through a short queue. A connection that takes nothing for
//! [`WRITE_PATIENCE`] is cut off, and so is a reader that falls behind the ring of the hub. A heartbeat moves the id on: a
//! reader that asks for rare events must not resume from a place that is long gone.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::json;
use stampede_feed::{Filter, Position};
use stampede_model::feed::Kind;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::{CutOff, Live, Place, RETRY_MS, Step, WRITE_PATIENCE, Watch};

/// Messages that wait for the connection.
const QUEUE: usize = 16;
/// The longest that a stream may be asked to last.
pub(crate) const LONGEST_S: u32 = 86_400;

/// What a stream sends, and when it ends.
pub(crate) struct Plan {
    /// Messages before the first event.
    pub(crate) first: Vec<Bytes>,
    /// The events that are asked for.
    pub(crate) filter: Filter,
    /// Whether the stream ends when the order is completed.
    pub(crate) until_completed: bool,
    /// Whether the order is completed already.
    pub(crate) is_completed: bool,
    /// Whether the client resumes: it gets what it has missed before the stream may end.
    pub(crate) resumes: bool,
    /// How long it lasts.
    pub(crate) lasts: Option<Duration>,
}

/// One message: an id to resume from, a name and data on one line.
pub(crate) fn message(id: Option<Position>, name: &str, data: &str) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}event: {name}\ndata: {data}\n\n").into()
}

/// The first message of every stream.
pub(crate) fn hello(position: Position) -> Bytes {
    let data = json!({ "position": position.to_string() });
    let hello = message(Some(position), "hello", &data.to_string());
    [format!("retry: {RETRY_MS}\n").as_bytes(), &hello].concat().into()
}

fn end(reason: &str) -> Bytes {
    message(None, "end", &json!({ "reason": reason }).to_string())
}

/// Why a stream ended.
enum Ended {
    /// All was said.
    Orderly,
    /// The client went away.
    Gone,
    /// The client reads too slowly, or not at all.
    Slow,
}

/// The answer, and the task that fills it.
pub(crate) fn answer(
    live: &Live,
    watch: Watch,
    plan: Plan,
    place: Place,
    cut_off: CutOff,
) -> Response {
    let (sender, receiver) = mpsc::channel::<Bytes>(QUEUE);
    live.tasks.spawn(async move {
        if let Ended::Slow = fill(watch, plan, &sender).await {
            tracing::debug!("a stream whose reader is too slow is cut off");
            cut_off.0.cancel();
        }
        drop(place);
    });
    let messages = futures::stream::unfold(receiver, async |mut receiver| {
        let message = receiver.recv().await?;
        Some((Ok::<Bytes, Infallible>(message), receiver))
    });
    let mut response = Response::new(Body::from_stream(messages.fuse()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx passes every message on at once.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

async fn fill(mut watch: Watch, plan: Plan, sender: &mpsc::Sender<Bytes>) -> Ended {
    let until = plan.lasts.map(|lasts| Instant::now() + lasts);
    for message in &plan.first {
        if let Some(ended) = send(sender, message.clone()).await {
            return ended;
        }
    }
    let mut told = watch.position();
    // What a client has missed may tell of an earlier completion: tickets can be made again.
    let (mut is_completed, mut is_behind) = (plan.is_completed, plan.resumes);
    loop {
        if plan.until_completed && is_completed && !is_behind {
            return last(sender, end("completed")).await;
        }
        let step = tokio::select! {
            step = watch.next() => step,
            () = sender.closed() => return Ended::Gone,
            () = over(until) => return last(sender, end("time")).await,
        };
        let message = match step {
            Step::Event(event) if plan.filter.admits(&event) => {
                told = event.position;
                match event.kind {
                    Some(Kind::BatchCompleted) => is_completed = true,
                    Some(Kind::BatchCreated | Kind::BatchProgressed) => is_completed = false,
                    _ => {}
                }
                message(Some(event.position), &event.kind_name, &event.text)
            }
            Step::Event(_) => continue,
            Step::CaughtUp => {
                is_behind = false;
                continue;
            }
            Step::Reset(position) => {
                (told, is_completed) = (position, plan.is_completed);
                let data = json!({ "position": position.to_string() });
                message(Some(position), "reset", &data.to_string())
            }
            Step::Beat(position) if position > told => {
                told = position;
                format!(":\nid: {position}\n\n").into()
            }
            Step::Beat(_) => Bytes::from_static(b":\n\n"),
            Step::KeyEnded => return last(sender, end("key")).await,
            Step::Stopped => return last(sender, format!("retry: {RETRY_MS}\n\n").into()).await,
            Step::Lagged => return Ended::Slow,
        };
        if let Some(ended) = send(sender, message).await {
            return ended;
        }
    }
}

async fn over(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Passes a message on; `Some`: the stream has ended.
async fn send(sender: &mpsc::Sender<Bytes>, message: Bytes) -> Option<Ended> {
    match timeout(WRITE_PATIENCE, sender.send(message)).await {
        Ok(Ok(())) => None,
        Ok(Err(_)) => Some(Ended::Gone),
        Err(_) => Some(Ended::Slow),
    }
}

async fn last(sender: &mpsc::Sender<Bytes>, message: Bytes) -> Ended {
    send(sender, message).await.unwrap_or(Ended::Orderly)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_an_id_a_name_and_one_line_of_data() {
        let position: Position = "5-1".parse().unwrap();
        let told = message(Some(position), "batch.created", "{}");
        assert_eq!(told, "id: 5-1\nevent: batch.created\ndata: {}\n\n");
        let hello = String::from_utf8(hello(position).to_vec()).unwrap();
        assert!(hello.starts_with("retry: 1000\nid: 5-1\nevent: hello\ndata: {"), "{hello}");
        assert_eq!(end("key"), "event: end\ndata: {\"reason\":\"key\"}\n\n");
    }
}
