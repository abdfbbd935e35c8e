//! Who sees what: owners, roles and the scopes of keys.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stampede_testkit::{ADMIN_KEY, App};

use super::{all, next, parsed, reader};
use crate::access::client;
use crate::{create_event, start, text};

/// The kinds, and the owners, of everything that a key sees of the past.
async fn seen(app: &App, key: &str, query: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let path = format!("/api/events/stream?after=0&seconds=1{query}");
    let mut stream = reader(app, key).stream(&path, None).await.unwrap();
    assert_eq!(next(&mut stream).await.unwrap().name, "hello");
    let messages = all(&mut stream).await;
    assert_eq!(messages.last().unwrap().name, "end", "{messages:?}");
    let events = || messages.iter().filter(|message| message.name != "end");
    let owner = |message| parsed(message)["userId"].as_str().unwrap_or("nobody").to_owned();
    (events().map(|message| message.name.clone()).collect(), events().map(owner).collect())
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn everybody_sees_what_they_may_and_nothing_else() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let (admin, ann) = (app.admin(), client(&app, "organiser", "ann"));
    let bob = client(&app, "organiser", "bob");
    let key = |role: &str, user: &str, event: Option<&str>| {
        let mut key =
            json!({ "name": format!("{role} {user} {event:?}"), "role": role, "user": user });
        if let Some(event) = event {
            key["event"] = json!(event);
        }
        key
    };
    let make = async |body| text(&admin.post("/api/keys", &body).await.expect(201)["secret"]);
    let mut events = Vec::new();
    for organiser in [&ann, &bob, &ann] {
        let event = json!({ "name": "Night" });
        let event = text(&organiser.post("/api/events", &event).await.expect(201)["id"]);
        let order = json!({ "target": event, "name": "Guest" });
        let order = organiser.post("/api/tickets", &order).await.expect(200);
        let scan = json!({ "ticketId": order["tickets"][0], "target": event, "nonce": event });
        organiser.post("/api/checkin/redeem", &scan).await.expect(200);
        events.push(event);
    }
    admin.post("/api/queues/mails/jobs", &json!({ "name": "send" })).await.expect(200);
    admin.post("/api/queues/mails/pause", &json!({})).await.expect(200);
    // The last stored event is told: the rest came before it.
    let mut stream = reader(&app, ADMIN_KEY)
        .stream(
            &format!("/api/events/stream?after=0&kinds=scan.recorded&target={}", events[2]),
            None,
        )
        .await
        .unwrap();
    next(&mut stream).await.unwrap();
    assert_eq!(next(&mut stream).await.unwrap().name, "scan.recorded");
    drop(stream);

    let records = ["event.created", "batch.created", "scan.recorded"];
    let (kinds, owners) = seen(&app, ADMIN_KEY, "").await;
    assert!(kinds.is_superset(&set(&records)) && kinds.contains("queue.paused"), "{kinds:?}");
    assert!(kinds.contains("node.started"), "{kinds:?}");
    assert_eq!(owners, set(&["ann", "bob", "nobody"]));
    let (kinds, owners) = seen(&app, &make(key("viewer", "*", None)).await, "").await;
    assert!(kinds.contains("queue.paused") && owners.len() == 3, "{kinds:?}");
    for role in ["organiser", "viewer"] {
        let (kinds, owners) = seen(&app, &make(key(role, "ann", None)).await, "").await;
        assert_eq!((kinds, owners), (set(&records), set(&["ann"])), "{role}");
    }
    let (kinds, owners) = seen(&app, &make(key("scanner", "ann", None)).await, "").await;
    assert_eq!((kinds, owners), (set(&["scan.recorded"]), set(&["ann"])));
    for (role, wanted) in [("scanner", &records[2..]), ("organiser", &records[..])] {
        let limited = make(key(role, "ann", Some(&events[0]))).await;
        let (kinds, _) = seen(&app, &limited, "").await;
        assert_eq!(kinds, set(wanted), "{role} of one event");
        let (kinds, _) = seen(&app, &limited, &format!("&target={}", events[2])).await;
        assert_eq!(kinds, set(&[]), "{role} of one event, another event");
    }
    let carl = make(key("organiser", "carl", None)).await;
    assert_eq!(seen(&app, &carl, "").await.0, set(&[]));
    let queues = json!({ "name": "q", "role": "admin", "user": "op", "queues": ["mails"] });
    assert_eq!(seen(&app, &make(queues).await, "").await.0, set(&["queue.paused"]));
    // Filters.
    let (kinds, _) = seen(&app, ADMIN_KEY, "&kinds=batch.created,queue.paused").await;
    assert_eq!(kinds, set(&["batch.created", "queue.paused"]));
    assert_eq!(seen(&app, ADMIN_KEY, "&queue=mails").await.0, set(&["queue.paused"]));
    // A scan has no name of a guest.
    let scan = app.admin().get(&format!("/api/events/{}/scans", events[0])).await.expect(200);
    assert!(scan.to_string().contains("Guest"), "{scan}");
}

#[tokio::test]
async fn mistakes_of_a_request_are_named() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    create_event(&app).await;
    for (path, told) in [
        ("/api/events/stream?kinds=batch.craeted", "did you mean batch.created?"),
        ("/api/events/stream?after=yesterday", "must be the id of an event"),
        ("/api/events/stream?target=x&batch=y", "must be the id of a batch"),
        ("/api/events/stream?seconds=-1", "must be a whole number"),
        ("/api/events/stream?kind=x", "did you mean kinds?"),
    ] {
        let problem = admin.get(path).await.expect(400);
        assert_eq!(problem["code"], "invalid_query", "{path}");
        assert!(problem["detail"].as_str().unwrap().contains(told), "{path}: {problem}");
    }
    app.stranger().get("/api/events/stream").await.expect(401);
    let unknown = "/api/batches/01890a5d-ac96-774b-bcce-b302099a8057/events";
    admin.get(unknown).await.expect(404);
}

#[tokio::test]
async fn a_campaign_is_followed_by_its_owner_and_by_those_who_see_everything() {
    let app = start(&[("WORKER_COUNT", "1")]).await;
    let ann = client(&app, "organiser", "ann");
    let recipients = json!([{ "phoneNumber": "+4915100000001", "message": "Hello" }]);
    let news = json!({ "accountId": "console", "name": "News", "recipients": recipients });
    let id = text(&ann.post("/api/contracts", &news).await.expect(201)["id"]);
    ann.post(&format!("/api/contracts/{id}/start"), &json!({})).await.expect(200);
    let kinds = "&kinds=campaign.created,campaign.changed,campaign.progressed";
    let path = format!("/api/events/stream?after=0{kinds}");
    let mut stream = reader(&app, ADMIN_KEY).stream(&path, None).await.unwrap();
    assert_eq!(next(&mut stream).await.unwrap().name, "hello");
    let mut told = Vec::new();
    while told.last().is_none_or(|last: &Value| last["data"]["status"] != "completed") {
        told.push(parsed(&next(&mut stream).await.unwrap()));
    }
    assert_eq!(told[0]["kind"], "campaign.created", "{told:?}");
    assert!(told.iter().any(|event| event["data"]["status"] == "running"), "{told:?}");
    assert_eq!(told.last().unwrap()["data"]["sent"], 1, "{told:?}");
    let revision = |event: &Value| event["data"]["revision"].as_u64().unwrap();
    assert!(told.iter().map(revision).is_sorted(), "{told:?}");
    for event in &told {
        assert_eq!((&event["userId"], &event["data"]["campaignId"]), (&json!("ann"), &json!(id)));
        assert!(!event.to_string().contains("+49151"), "no address: {event}");
    }

    let event = ann.post("/api/events", &json!({ "name": "Night" })).await.expect(201);
    let event = text(&event["id"]);
    for (user, event, owners) in
        [("ann", None, set(&["ann"])), ("bob", None, set(&[])), ("ann", Some(event), set(&[]))]
    {
        let mut key =
            json!({ "name": format!("{user} {event:?}"), "role": "organiser", "user": user });
        if let Some(event) = event {
            key["event"] = json!(event);
        }
        let key = text(&app.admin().post("/api/keys", &key).await.expect(201)["secret"]);
        assert_eq!(seen(&app, &key, kinds).await.1, owners, "{user}");
    }
}
