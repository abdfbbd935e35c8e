//! Two nodes with the API: a client of one sees what a worker of the other did, and resumes on the other when its node
//! is killed.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stampede_store::{Config, Store};
use stampede_testkit::{ADMIN_KEY, eventually};

use super::{Cluster, NOTICED, event_at};
use crate::live::sockets::Socket;
use crate::live::{next, reader};
use crate::text;

const TICKETS: usize = 2_000;

/// Waits until the outbox is empty.
async fn drained(cluster: &Cluster) {
    let config = Config { url: cluster.database.clone(), ..Config::default() };
    let store = Store::connect(&config).await.unwrap();
    eventually(NOTICED, async || match store.outbox_size().await.unwrap().rows {
        0 => Ok(()),
        rows => Err(format!("{rows} rows are in the outbox")),
    })
    .await;
    store.close().await;
}

/// The ids of all events of these kinds in the stream, in order.
fn in_the_stream(cluster: &Cluster, kinds: &[&str]) -> Vec<String> {
    let told = cluster.redis_cli(&["XRANGE", "stampede:{feed}", "-", "+"]);
    let events = told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let events = events.filter(|event| kinds.iter().any(|kind| event["kind"] == *kind));
    events.map(|event| text(&event["id"])).collect()
}

#[tokio::test]
async fn a_client_of_a_killed_node_resumes_on_another_and_misses_nothing() {
    let cluster = Cluster::start().await;
    let (mut first, second) =
        tokio::join!(cluster.node("a", "api", &[]), cluster.node("b", "api", &[]));
    let _worker = cluster.node("w", "worker", &[]).await;
    let path = "/api/events/stream?kinds=tickets.completed,batch.completed";
    let mut stream = reader(&first, ADMIN_KEY).stream(path, None).await.unwrap();
    let mut last = next(&mut stream).await.unwrap().id;
    let event = event_at(&second.admin()).await;
    let holders: Vec<Value> =
        (0..TICKETS).map(|n| json!({ "name": format!("Guest {n}") })).collect();
    let order = second.order(json!({ "target": event, "holders": holders })).await;

    let (mut tickets, mut ids) = (Vec::new(), Vec::new());
    let mut on_first = 0;
    loop {
        let Some(message) = next(&mut stream).await else {
            assert_eq!(on_first, 0, "only one node is killed");
            on_first = tickets.len();
            stream = reader(&second, ADMIN_KEY).stream(path, last.as_deref()).await.unwrap();
            continue;
        };
        if message.id.is_some() {
            last.clone_from(&message.id);
        }
        let event: Value = serde_json::from_str(&message.data).unwrap();
        match message.name.as_str() {
            "hello" => continue,
            "tickets.completed" => {
                let made = event["data"]["tickets"].as_array().unwrap();
                tickets.extend(made.iter().map(|ticket| text(&ticket["id"])));
            }
            "batch.completed" => assert_eq!(event["data"]["completed"], TICKETS),
            other => panic!("{other}"),
        }
        ids.push(text(&event["id"]));
        if message.name == "batch.completed" {
            break;
        }
        if tickets.len() >= 200 && on_first == 0 && !first.has_ended() {
            first.kill();
        }
    }
    assert!((200..TICKETS).contains(&on_first), "{on_first} tickets came from the first node");
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "no event came twice");
    let wanted: BTreeSet<String> = match order["tickets"].as_array() {
        Some(tickets) => tickets.iter().map(text).collect(),
        None => panic!("{order}"),
    };
    assert_eq!(tickets.len(), TICKETS, "every ticket was told once");
    assert_eq!(tickets.into_iter().collect::<BTreeSet<_>>(), wanted);
    drained(&cluster).await;
    assert_eq!(in_the_stream(&cluster, &["tickets.completed", "batch.completed"]), ids);
}

#[tokio::test]
async fn a_socket_of_one_node_hears_what_another_did_and_resumes_there() {
    let cluster = Cluster::start().await;
    let (mut first, second) =
        tokio::join!(cluster.node("a", "api", &[]), cluster.node("b", "api", &[]));
    let bearer = format!("Bearer {ADMIN_KEY}");
    let headers = [("authorization", bearer.as_str())];
    let subscribe =
        |after: &Value| json!({ "type": "subscribe", "kinds": ["event.created"], "after": after });
    let mut socket = Socket::open(&first, &headers).await.unwrap();
    let begin = socket.next().await.unwrap()["position"].clone();
    socket.say(subscribe(&begin)).await;
    assert_eq!(socket.next().await.unwrap()["type"], "subscribed");
    let event = event_at(&second.admin()).await;
    let told = socket.next().await.unwrap();
    assert_eq!(told["event"]["data"]["eventId"], json!(event), "{told}");
    first.kill();
    assert_eq!(socket.next().await, None);
    let missed = event_at(&second.admin()).await;
    let mut socket = Socket::open(&second, &headers).await.unwrap();
    assert_eq!(socket.next().await.unwrap()["type"], "hello");
    socket.say(subscribe(&told["position"])).await;
    assert_eq!(socket.next().await.unwrap()["type"], "subscribed");
    assert_eq!(socket.next().await.unwrap()["event"]["data"]["eventId"], json!(missed));
}

#[tokio::test]
async fn a_relay_that_dies_between_append_and_settle_tells_every_event_once() {
    let cluster = Cluster::start().await;
    let hanging = [("STAMPEDE_HANG_AT", "feed-appended")];
    let mut first = cluster.node("a", "api", &hanging).await;
    let event = event_at(&first.admin()).await;
    eventually(NOTICED, async || {
        let told = in_the_stream(&cluster, &["event.created"]);
        (told.len() == 1).then_some(())
    })
    .await;
    first.kill();
    // Its lease expires, and the next node finds the row.
    let second = cluster.node("b", "api", &[]).await;
    let other = event_at(&second.admin()).await;
    drained(&cluster).await;
    assert_eq!(in_the_stream(&cluster, &["event.created"]).len(), 2);
    let path = "/api/events/stream?after=0&kinds=event.created";
    let mut stream = reader(&second, ADMIN_KEY).stream(path, None).await.unwrap();
    next(&mut stream).await.unwrap();
    for wanted in [event, other] {
        let told: Value = serde_json::from_str(&next(&mut stream).await.unwrap().data).unwrap();
        assert_eq!(told["data"]["eventId"], json!(wanted));
    }
}
