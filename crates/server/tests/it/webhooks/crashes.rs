//! Processes die: every message still comes, under the same id.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use stampede_testkit::{Behaviour, Receiver, eventually};

use super::{start_here, webhook_to};
use crate::{PATIENCE, text};

#[tokio::test]
async fn a_server_that_is_killed_loses_no_message_and_makes_none_twice() {
    let mut app = start_here().await;
    let receiver = Receiver::start().await;
    let (id, secret) = webhook_to(&app.admin(), &receiver).await;
    let mut events = BTreeSet::new();
    for round in 0..3 {
        for n in 0..15 {
            let body = json!({ "name": format!("{round}-{n}") });
            events.insert(text(&app.admin().post("/api/events", &body).await.expect(201)["id"]));
        }
        // In the middle of relaying, queueing and sending.
        receiver.has(1 + round * 16).await;
        if round == 1 {
            receiver.behaves(Behaviour::Hangs);
        }
        app.kill_everything();
        receiver.behaves(Behaviour::Answers(200, String::new()));
        app.start_again(&[]).await;
    }
    let all = receiver
        .until(|received| {
            let told: BTreeSet<String> =
                received.iter().map(|m| text(&m.json()["eventId"])).collect();
            told == events
        })
        .await;
    let mut ids: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for message in &all {
        assert!(message.is_signed_with(&secret));
        ids.entry(text(&message.json()["eventId"])).or_default().insert(message.id().to_owned());
    }
    assert!(ids.values().all(|ids| ids.len() == 1), "an event has one message: {ids:?}");
    let admin = app.admin();
    let path = format!("/api/webhooks/{id}/deliveries?limit=1000");
    let page = eventually(PATIENCE, || async {
        let page = admin.try_get(&path).await?.body;
        let open =
            page["deliveries"].as_array().unwrap().iter().find(|one| one["state"] != "delivered");
        match open {
            Some(one) => Err(one.to_string()),
            None => Ok(page),
        }
    });
    let page = page.await;
    assert_eq!(page["deliveries"].as_array().unwrap().len(), events.len(), "one delivery each");
}
