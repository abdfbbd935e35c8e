//! Endpoints: their fields, owners, versions and commands.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stampede_testkit::{ADMIN_KEY, Receiver, eventually, send};

use super::{sent_test, start_here, webhook, webhook_to};
use crate::access::client;
use crate::{PATIENCE, start, text};

#[tokio::test]
async fn all_mistakes_of_a_webhook_are_named_at_once() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = client(&app, "organiser", "ann");
    let wrong = json!({
        "url": "http://127.0.0.1:3000/", "kinds": ["batch.completed", "batch.finished", 7],
        "event": "x", "secret": "mine",
    });
    let problem = ann.post("/api/webhooks", &wrong).await.expect(422);
    let fields: Vec<&str> = problem["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["secret", "url", "kinds[1]", "kinds[2]", "event"], "{problem}");
    for (body, told) in [
        (json!({}), "url is missing"),
        (json!({ "url": "ftp://example.com" }), "https:// or http://"),
        (json!({ "url": "https://me:pw@example.com" }), "no user"),
        (json!({ "url": "https://example.com:22" }), "port 22"),
        (json!({ "url": "http://0x7f.1/" }), "not public"),
        (json!({ "url": "https://example.com", "kinds": [] }), "must name a kind"),
        (json!({ "url": "https://example.com", "kinds": ["node.started"] }), "must be one of"),
    ] {
        let problem = ann.post("/api/webhooks", &body).await.expect(422);
        assert!(text(&problem["detail"]).contains(told), "{body}: {problem}");
    }
    let event = client(&app, "organiser", "bob").post("/api/events", &json!({ "name": "B" })).await;
    let of_bob = json!({ "url": "https://example.com", "event": event.expect(201)["id"] });
    let problem = ann.post("/api/webhooks", &of_bob).await.expect(422);
    assert!(text(&problem["detail"]).contains("no event of yours"), "{problem}");
    let made = app.admin().post("/api/webhooks", &of_bob).await.expect(201);
    assert_eq!(made["owner"], "bob", "the messages are bob's");
}

/// The version in the `ETag` of an answer, without the mark of what changes by itself.
fn version(answer: &stampede_testkit::Answer) -> &str {
    let tag = answer.headers["etag"].to_str().unwrap();
    tag.trim_matches('"').split('.').next().unwrap()
}

#[tokio::test]
async fn the_secret_is_shown_once_and_a_version_guards_changes() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = client(&app, "organiser", "ann");
    let body = json!({ "url": "https://example.com/x", "kinds": ["ticket.voided", "batch.created", "ticket.voided"] });
    let answer = ann.post("/api/webhooks", &body).await;
    assert_eq!(version(&answer), "1");
    let made = answer.expect(201);
    assert!(text(&made["secret"]).starts_with("whsec_"), "{made}");
    assert_eq!(made["kinds"], json!(["batch.created", "ticket.voided"]));
    let path = format!("/api/webhooks/{}", text(&made["id"]));
    let read = ann.get(&path).await;
    assert_eq!(version(&read), "1");
    assert_eq!(read.expect(200).get("secret"), None);
    let patch = |tag: &'static str, body: Value| {
        let request = ann.request(reqwest::Method::PATCH, &path).header("if-match", tag);
        send(request.json(&body))
    };
    let changed = patch("\"1\"", json!({ "kinds": null, "description": "mine" })).await;
    assert_eq!(version(&changed), "2");
    assert_eq!(changed.expect(200)["kinds"], Value::Null);
    let refused = patch("\"1\"", json!({ "state": "disabled" })).await.expect(412);
    assert_eq!(refused["code"], "precondition_failed");
    let disabled = patch("\"2\"", json!({ "state": "disabled" })).await.expect(200);
    assert_eq!(
        (&disabled["state"], &disabled["disabledReason"]),
        (&json!("disabled"), &json!("by_hand"))
    );
    for verb in ["test", "redeliver"] {
        let body = json!({ "since": "2026-01-01T00:00:00Z" });
        let body = if verb == "test" { json!({}) } else { body };
        let problem = ann.post(&format!("{path}/{verb}"), &body).await.expect(409);
        assert_eq!(problem["code"], "conflict");
    }
    let active = ann.patch(&path, &json!({ "state": "active" })).await.expect(200);
    assert_eq!((&active["state"], &active["disabledAt"]), (&json!("active"), &Value::Null));
    let fixed = ann.patch(&path, &json!({ "owner": "bob" })).await.expect(422);
    assert!(text(&fixed["detail"]).contains("owner cannot be changed"), "{fixed}");
    let rotated =
        ann.post(&format!("{path}/rotate"), &json!({ "graceSeconds": 60 })).await.expect(200);
    assert_ne!(rotated["secret"], made["secret"]);
    assert!(rotated["formerSecretUntil"].is_string(), "{rotated}");
    ann.post(&format!("{path}/rotate"), &json!({ "graceSeconds": 604_801 })).await.expect(422);
    ann.delete(&path).await.expect(204);
    ann.get(&path).await.expect(404);
    assert_eq!(ann.get("/api/webhooks").await.expect(200)["webhooks"], json!([]));
}

#[tokio::test]
async fn a_user_has_fifty_webhooks_and_lists_them_by_pages() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let (ann, bob) = (client(&app, "organiser", "ann"), client(&app, "organiser", "bob"));
    for n in 0..50 {
        webhook(&ann, json!({ "url": format!("https://example.com/{n}") })).await;
    }
    let problem =
        ann.post("/api/webhooks", &json!({ "url": "https://example.com/" })).await.expect(409);
    assert_eq!(problem["code"], "too_many");
    webhook(&bob, json!({ "url": "https://example.com/" })).await;
    let page = ann.get("/api/webhooks?limit=20").await.expect(200);
    assert_eq!(page["webhooks"].as_array().unwrap().len(), 20);
    let next = text(&page["next"]);
    let rest = ann.get(&format!("/api/webhooks?after={next}&limit=1000")).await.expect(200);
    assert_eq!(rest["webhooks"].as_array().unwrap().len(), 30);
    assert_eq!(bob.get("/api/webhooks").await.expect(200)["webhooks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_of_one_event_reaches_only_webhooks_of_that_event() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = client(&app, "organiser", "ann");
    let event = text(&ann.post("/api/events", &json!({ "name": "Night" })).await.expect(201)["id"]);
    let (all, _) = webhook(&ann, json!({ "url": "https://example.com/all" })).await;
    let key = json!({ "name": "door", "role": "organiser", "event": event });
    let limited = app.client(&text(&ann.post("/api/keys", &key).await.expect(201)["secret"]));
    let problem = limited.get(&format!("/api/webhooks/{all}")).await.expect(403);
    assert_eq!(problem["code"], "out_of_scope");
    let made = limited
        .post("/api/webhooks", &json!({ "url": "https://example.com/one" }))
        .await
        .expect(201);
    assert_eq!(made["event"], json!(event), "what it makes has its limits");
    let listed = limited.get("/api/webhooks").await.expect(200);
    assert_eq!(listed["webhooks"].as_array().unwrap().len(), 1);
    assert_eq!(listed["webhooks"][0]["id"], made["id"]);
    assert_eq!(ann.get("/api/webhooks").await.expect(200)["webhooks"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_command_line_looks_after_webhooks() {
    let app = start_here().await;
    let receiver = Receiver::start().await;
    let run = |arguments: &[&str]| {
        let (done, output) = app.command(&[&["webhooks"], arguments].concat());
        assert!(done, "{arguments:?}: {output}");
        output
    };
    let (done, refused) = app.command(&["webhooks", "create", &receiver.url("/hook")]);
    assert!(!done && refused.contains("whose messages"), "{refused}");
    let made = run(&[
        "create",
        &receiver.url("/hook"),
        "--key",
        ADMIN_KEY,
        "--kind",
        "batch.completed",
        "--description",
        "mine",
    ]);
    let (id, secret) = made.trim().split_once('\n').unwrap();
    assert!(secret.starts_with("whsec_"), "{made}");
    assert!(run(&["list"]).contains(id));
    assert!(run(&["show", id]).contains("batch.completed"));
    run(&["test", id]);
    assert!(receiver.has(1).await[0].is_signed_with(secret));
    let delivered = format!("/api/webhooks/{id}/deliveries?state=delivered");
    let delivery = eventually(PATIENCE, || async {
        let page = app.admin().get(&delivered).await.expect(200);
        page["deliveries"][0]["id"].as_str().map(str::to_owned)
    })
    .await;
    assert!(run(&["deliveries", id]).contains("delivered"));
    assert!(run(&["deliveries", id, "--delivery", &delivery]).contains("webhook.test"));
    run(&["redeliver", id, &delivery]);
    receiver.has(2).await;
    assert!(run(&["redeliver", id, "--last", "1h"]).contains("0 messages"));
    let rotated = run(&["rotate", id, "--grace", "1h"]);
    assert!(!rotated.contains(secret) && rotated.contains("whsec_"));
    assert!(run(&["disable", id]).contains("disabled: by_hand"));
    assert!(run(&["enable", id]).contains("active"));
    assert!(run(&["delete", id, "--json"]).contains("\"deleted\":true"));
    assert!(run(&["list"]).contains("there are no webhooks"));
}

#[tokio::test]
async fn a_stranger_sees_no_delivery() {
    let app = start_here().await;
    let receiver = Receiver::start().await;
    let (ann, bob) = (client(&app, "organiser", "ann"), client(&app, "organiser", "bob"));
    let (of_ann, _) = webhook_to(&ann, &receiver).await;
    let (of_bob, _) = webhook_to(&bob, &receiver).await;
    let path = sent_test(&ann, &of_ann).await;
    ann.get(&path).await.expect(200);
    bob.get(&path).await.expect(404);
    // A delivery is found only at its own webhook.
    bob.get(&path.replace(&of_ann, &of_bob)).await.expect(404);
    bob.post(&format!("{}/redeliver", path.replace(&of_ann, &of_bob)), &json!({}))
        .await
        .expect(404);
}

#[test]
fn the_guide_lists_every_kind_of_message() {
    let guide = include_str!("../../../../../docs/webhooks.md");
    let section =
        guide.split("## Kinds").nth(1).unwrap().split("A webhook without").next().unwrap();
    let listed: BTreeSet<&str> = section.split('`').skip(1).step_by(2).collect();
    let kinds: BTreeSet<&str> =
        stampede_wire::webhooks::MessageKind::all().map(|kind| kind.as_str()).collect();
    assert_eq!(listed, kinds);
}
