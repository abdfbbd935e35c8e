//! Live streams with the real binary: what happens is seen as it happens, by those who may see it.

mod limits;
mod resume;
pub(crate) mod sockets;
mod visible;

use std::time::Duration;

use serde_json::{Value, json};
use stampede_client::{Client, Message, Stream};
use stampede_testkit::{ADMIN_KEY, App};

use crate::{PATIENCE, create_event, start, text};

/// A client of a server that reads streams.
pub(crate) fn reader(app: &App, key: &str) -> Client {
    Client::new(&app.url(), key).unwrap()
}

/// The next message that is no heartbeat; `None`: the stream has ended, or broke off.
pub(crate) async fn next(stream: &mut Stream) -> Option<Message> {
    loop {
        let message = tokio::time::timeout(PATIENCE, stream.next()).await.expect("a message");
        match message {
            Ok(Some(message)) if message.name.is_empty() => {}
            Ok(message) => return message,
            Err(_) => return None,
        }
    }
}

/// All messages until the stream ends.
pub(crate) async fn all(stream: &mut Stream) -> Vec<Message> {
    let mut messages = Vec::new();
    while let Some(message) = next(stream).await {
        messages.push(message);
    }
    messages
}

fn parsed(message: &Message) -> Value {
    serde_json::from_str(&message.data).unwrap()
}

#[tokio::test]
async fn an_order_is_seen_from_its_beginning_to_its_end() {
    let app = start(&[("WORKER_COUNT", "1")]).await;
    let client = reader(&app, ADMIN_KEY);
    let mut everything = client.stream("/api/events/stream?target=", None).await.unwrap();
    let hello = next(&mut everything).await.unwrap();
    assert_eq!(hello.name, "hello");
    assert!(hello.id.is_some());
    let event = create_event(&app).await;
    let holders: Vec<Value> = (0..30).map(|n| json!({ "name": format!("Guest {n}") })).collect();
    let order = app.order(json!({ "target": event, "holders": holders })).await;
    let batch = text(&order["batchId"]);

    // The stream of the order ends by itself.
    let path = format!("/api/batches/{batch}/events?until=completed&after={}", hello.id.unwrap());
    let mut own = client.stream(&path, None).await.unwrap();
    let messages = all(&mut own).await;
    let names: Vec<&str> = messages.iter().map(|message| message.name.as_str()).collect();
    assert_eq!(&names[..3], ["hello", "state", "batch.created"], "{names:?}");
    assert_eq!(&names[names.len() - 2..], ["batch.completed", "end"], "{names:?}");
    let state = parsed(&messages[1]);
    assert_eq!((&state["id"], &state["total"]), (&json!(batch), &json!(30)));
    let mut tickets: Vec<String> = messages
        .iter()
        .filter(|message| message.name == "tickets.completed")
        .flat_map(|message| parsed(message)["data"]["tickets"].as_array().unwrap().clone())
        .map(|ticket| text(&ticket["id"]))
        .collect();
    let mut wanted: Vec<String> = order["tickets"].as_array().unwrap().iter().map(text).collect();
    tickets.sort();
    wanted.sort();
    assert_eq!(tickets, wanted);

    // A client that resumes gets what it has missed first, also of an order that has ended meanwhile.
    let path = format!("/api/batches/{batch}/events?until=completed");
    let hello = messages[0].id.clone();
    let resumed = all(&mut client.stream(&path, hello.as_deref()).await.unwrap()).await;
    let again: Vec<&str> = resumed.iter().map(|message| message.name.as_str()).collect();
    assert_eq!(again, names);
    let gone = all(&mut client.stream(&path, Some("5-0")).await.unwrap()).await;
    let gone: Vec<&str> = gone.iter().map(|message| message.name.as_str()).collect();
    assert_eq!(gone, ["hello", "state", "reset", "end"]);

    // The other stream saw the same.
    let mut seen = Vec::new();
    while !seen.contains(&"batch.completed".to_owned()) {
        let message = next(&mut everything).await.unwrap();
        assert_eq!(parsed(&message)["kind"], message.name);
        if message.name.starts_with("event.") || message.name.starts_with("batch.") {
            seen.push(message.name);
        }
    }
    assert_eq!(&seen[..2], ["event.created", "batch.created"], "{seen:?}");

    // An order that has ended says so at once.
    let path = format!("/api/batches/{batch}/events?until=completed");
    let messages = all(&mut client.stream(&path, None).await.unwrap()).await;
    let names: Vec<&str> = messages.iter().map(|message| message.name.as_str()).collect();
    assert_eq!(names, ["hello", "state", "end"]);
}

#[tokio::test]
async fn streams_end_at_once_when_the_node_stops() {
    let mut app = start(&[("WORKER_MODE", "api")]).await;
    let mut stream = reader(&app, ADMIN_KEY).stream("/api/events/stream", None).await.unwrap();
    assert_eq!(next(&mut stream).await.unwrap().name, "hello");
    app.signal(stampede_testkit::Signal::TERM);
    let ended = tokio::time::timeout(Duration::from_secs(4), async {
        // The last message asks to come back.
        while let Ok(Some(_)) = stream.next().await {}
    });
    ended.await.expect("the stream ends");
    assert!(app.ended().await.success());
    assert!(!app.log().contains("cut off"), "{}", app.log());
}

#[tokio::test]
async fn the_command_line_watches() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    create_event(&app).await;
    let arguments = ["watch", "--kinds", "event.created", "--after", "0", "--count", "2", "--json"];
    let (done, output) = app.command(&arguments);
    assert!(done, "{output}");
    let lines: Vec<Value> =
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[0]["data"]["eventId"]), (2, &json!(event)));
    let (done, output) = app.command(&["watch", "--after", "0", "--count", "1", "--event", &event]);
    assert!(done && output.contains("  event.created  "), "{output}");
    let (done, output) = app.command(&["watch", "--kinds", "event.craeted"]);
    assert!(!done && output.contains("did you mean event.created?"), "{output}");
}
