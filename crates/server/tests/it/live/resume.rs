//! Resuming: after a server or its engine was killed, and from positions that are gone.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stampede_testkit::ADMIN_KEY;

use super::{next, parsed, reader};
use crate::{create_event, start, text};

#[tokio::test]
async fn a_client_misses_nothing_when_the_server_and_its_engine_are_killed() {
    let mut app = start(&[("WORKER_COUNT", "1"), ("STAMPEDE_SLOW_TICKETS", "20")]).await;
    let event = create_event(&app).await;
    let path = "/api/events/stream?kinds=tickets.completed,batch.completed";
    let mut stream = reader(&app, ADMIN_KEY).stream(path, None).await.unwrap();
    let mut last = next(&mut stream).await.unwrap().id;
    let holders: Vec<Value> = (0..300).map(|n| json!({ "name": format!("Guest {n}") })).collect();
    let order = app.order(json!({ "target": event, "holders": holders })).await;
    let wanted: BTreeSet<String> = order["tickets"].as_array().unwrap().iter().map(text).collect();

    let (mut tickets, mut ids) = (Vec::new(), BTreeSet::new());
    let mut killed = false;
    loop {
        let Some(message) = next(&mut stream).await else {
            // The server is gone; it comes back with its journal, and the client with its last id.
            app.start_again(&[]).await;
            stream = reader(&app, ADMIN_KEY).stream(path, last.as_deref()).await.unwrap();
            continue;
        };
        if message.id.is_some() {
            last.clone_from(&message.id);
        }
        match message.name.as_str() {
            "tickets.completed" => {
                let event = parsed(&message);
                assert!(ids.insert(text(&event["id"])), "an event came twice: {event}");
                let made = event["data"]["tickets"].as_array().unwrap();
                tickets.extend(made.iter().map(|ticket| text(&ticket["id"])));
            }
            "batch.completed" => break,
            "hello" => {}
            other => panic!("{other}"),
        }
        if tickets.len() > 60 && !killed {
            killed = true;
            app.kill_everything();
        }
    }
    assert!(killed);
    assert_eq!(tickets.len(), wanted.len(), "each ticket is told once");
    assert_eq!(tickets.into_iter().collect::<BTreeSet<_>>(), wanted);
}

#[tokio::test]
async fn a_position_that_is_gone_is_answered_with_a_reset() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    create_event(&app).await;
    let client = reader(&app, ADMIN_KEY);
    let mut stream =
        client.stream("/api/events/stream?kinds=event.created&after=0", None).await.unwrap();
    next(&mut stream).await.unwrap();
    assert_eq!(next(&mut stream).await.unwrap().name, "event.created");
    for gone in ["5-0", "99999999999999-0"] {
        let path = "/api/events/stream?kinds=event.created";
        let mut stream = client.stream(path, Some(gone)).await.unwrap();
        assert_eq!(next(&mut stream).await.unwrap().name, "hello");
        let reset = next(&mut stream).await.unwrap();
        assert_eq!(reset.name, "reset");
        let event = create_event(&app).await;
        let told = next(&mut stream).await.unwrap();
        assert_eq!(
            (told.name.as_str(), &parsed(&told)["data"]["eventId"]),
            ("event.created", &json!(event))
        );
    }
    let problem = app.admin().request(reqwest::Method::GET, "/api/events/stream");
    let problem = stampede_testkit::send(problem.header("last-event-id", "tomorrow")).await;
    assert_eq!(problem.expect(400)["code"], "invalid_header");
}
