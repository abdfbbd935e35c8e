//! What receivers get: signed messages of the chosen kinds, under ids that stay the same.

use std::collections::BTreeMap;

use serde_json::json;
use stampede_testkit::{Received, Receiver};

use super::{becomes, sent_test, start_here, webhook, webhook_to};
use crate::access::client;
use crate::{batch_ended, text};

/// The kinds that came, each with how often.
fn kinds(received: &[Received]) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for message in received {
        *kinds.entry(message.kind()).or_default() += 1;
    }
    kinds
}

#[tokio::test]
async fn a_message_is_signed_and_its_log_shows_everything_but_secrets() {
    let app = start_here().await;
    let receiver = Receiver::start().await;
    let ann = client(&app, "organiser", "ann");
    let (id, secret) = webhook_to(&ann, &receiver).await;
    let path = sent_test(&ann, &id).await;
    let message = receiver.has(1).await.remove(0);
    assert!(message.is_signed_with(&secret), "{message:?}");
    assert!(!message.is_signed_with("whsec_AAAA"));
    assert_eq!(message.headers["content-type"], "application/json");
    assert!(message.headers["user-agent"].starts_with("Stampede-Webhooks/"));
    let body = message.json();
    assert_eq!((&body["type"], &body["id"]), (&json!("webhook.test"), &json!(message.id())));
    assert!(body["timestamp"].is_string() && body["data"]["webhookId"] == json!(id), "{body}");
    // A replayed request has an old time, which cannot be changed: it is signed.
    let mut replayed = message.clone();
    let newer = message.headers["webhook-timestamp"].parse::<u64>().unwrap() + 600;
    replayed.headers.insert("webhook-timestamp".to_owned(), newer.to_string());
    assert!(!replayed.is_signed_with(&secret));

    let log = becomes(&ann, &path, "state", "delivered").await;
    assert_eq!((&log["messageId"], &log["body"]), (&json!(message.id()), &json!(message.body)));
    let attempt = &log["log"][0];
    assert_eq!((&attempt["status"], &attempt["answer"]), (&json!(200), &json!("thanks")));
    assert_eq!(attempt["headers"]["webhook-id"], json!(message.id()));
    assert_eq!(
        attempt["headers"]["webhook-timestamp"],
        json!(message.headers["webhook-timestamp"])
    );
    assert_eq!(attempt["headers"].get("webhook-signature"), None);
    let shown =
        becomes(&ann, &format!("/api/webhooks/{id}"), "failingSince", serde_json::Value::Null)
            .await;
    assert!(shown["lastSuccessAt"].is_string(), "{shown}");
    assert!(!app.log().contains(&secret) && !log.to_string().contains("whsec_"));
}

#[tokio::test]
async fn during_a_rotation_both_secrets_sign() {
    let app = start_here().await;
    let receiver = Receiver::start().await;
    let admin = app.admin();
    let (id, first) = webhook_to(&admin, &receiver).await;
    let rotate = format!("/api/webhooks/{id}/rotate");
    let second = admin.post(&rotate, &json!({ "graceSeconds": 3600 })).await.expect(200);
    let second = text(&second["secret"]);
    sent_test(&admin, &id).await;
    let message = receiver.has(1).await.remove(0);
    assert!(message.is_signed_with(&first) && message.is_signed_with(&second));
    assert_eq!(message.headers["webhook-signature"].split(' ').count(), 2);
    let third = text(&admin.post(&rotate, &json!({})).await.expect(200)["secret"]);
    sent_test(&admin, &id).await;
    let message = receiver.has(2).await.remove(1);
    assert!(message.is_signed_with(&third));
    assert!(!message.is_signed_with(&first) && !message.is_signed_with(&second));
}

#[tokio::test]
async fn an_order_is_told_to_the_webhooks_that_chose_it() {
    let app = start_here().await;
    let (all, some, other, strange) = (
        Receiver::start().await,
        Receiver::start().await,
        Receiver::start().await,
        Receiver::start().await,
    );
    let (ann, bob) = (client(&app, "organiser", "ann"), client(&app, "organiser", "bob"));
    let event = text(&ann.post("/api/events", &json!({ "name": "Night" })).await.expect(201)["id"]);
    let elsewhere =
        text(&ann.post("/api/events", &json!({ "name": "Day" })).await.expect(201)["id"]);
    let (_, secret) = webhook_to(&ann, &all).await;
    let chosen = ["batch.completed", "ticket.voided"];
    webhook(&ann, json!({ "url": some.url("/hook"), "kinds": chosen, "event": event })).await;
    webhook(&ann, json!({ "url": other.url("/hook"), "event": elsewhere })).await;
    webhook_to(&bob, &strange).await;
    let order = json!({ "target": event, "name": "Guest", "quantity": 3 });
    let order = ann.post("/api/tickets", &order).await.expect(200);
    let batch = text(&order["batchId"]);
    batch_ended(&app, &batch).await;
    let ticket = format!("/api/tickets/{}", text(&order["tickets"][0]));
    ann.patch(&ticket, &json!({ "status": "void" })).await.expect(200);

    let is_all = |received: &[Received]| {
        let kinds = kinds(received);
        ["batch.created", "batch.completed", "tickets.completed", "ticket.voided"]
            .iter()
            .all(|kind| kinds.contains_key(*kind))
    };
    for message in all.until(is_all).await {
        assert!(message.is_signed_with(&secret));
        let body = message.json();
        assert!([json!(event), json!(elsewhere)].contains(&body["eventId"]), "{body}");
        assert_eq!(body["id"], json!(message.id()));
        assert!(!message.body.contains("Guest"), "no guest's name: {}", message.body);
    }
    let voided = |received: &[Received]| {
        let kinds = kinds(received);
        kinds.contains_key("ticket.voided") && kinds.contains_key("batch.completed")
    };
    let told = some.until(voided).await;
    assert!(told.iter().all(|message| chosen.contains(&message.kind().as_str())), "{told:?}");
    let completed = told.iter().find(|message| message.kind() == "batch.completed").unwrap();
    assert_eq!(completed.json()["batchId"], json!(batch));
    // A webhook may be told what happened right before it was made, and nothing of other events or users.
    let about = |message: &Received| message.json()["eventId"] == json!(elsewhere);
    assert!(other.received().iter().all(about) && strange.received().is_empty());
    // A message has one id at all endpoints.
    let same = all.received().iter().any(|message| message.id() == completed.id());
    assert!(same);
}

#[tokio::test]
async fn a_disabled_or_deleted_webhook_gets_nothing() {
    let app = start_here().await;
    let (disabled, deleted, active) =
        (Receiver::start().await, Receiver::start().await, Receiver::start().await);
    let admin = app.admin();
    let (off, _) = webhook_to(&admin, &disabled).await;
    let (gone, _) = webhook_to(&admin, &deleted).await;
    webhook_to(&admin, &active).await;
    admin.patch(&format!("/api/webhooks/{off}"), &json!({ "state": "disabled" })).await.expect(200);
    admin.delete(&format!("/api/webhooks/{gone}")).await.expect(204);
    let event = admin.post("/api/events", &json!({ "name": "Night" })).await.expect(201);
    let told = active.has(1).await.remove(0);
    assert_eq!((told.kind(), &told.json()["eventId"]), ("event.created".to_owned(), &event["id"]));
    admin.patch(&format!("/api/webhooks/{off}"), &json!({ "state": "active" })).await.expect(200);
    admin
        .patch(&format!("/api/events/{}", text(&event["id"])), &json!({ "name": "Late" }))
        .await
        .expect(200);
    let told = disabled.has(1).await.remove(0);
    assert_eq!(told.kind(), "event.changed", "what happened meanwhile is not told later");
    assert_eq!((disabled.received().len(), deleted.received().len()), (1, 0));
}
