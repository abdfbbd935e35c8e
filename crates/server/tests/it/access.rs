//! Keys, roles and owners: nothing is open, nobody reaches into the records of others.

use serde_json::json;
use stampede_testkit::{App, Client, Redis, free_port, temp_dir};

use crate::{STAMPEDE, create_event, start, text};

fn key(app: &App, role: &str, user: &str) -> String {
    let (made, output) = app.command(&["token", "create", "--role", role, "--user", user]);
    assert!(made, "{output}");
    let key = output.trim().to_owned();
    assert!(!key.contains(char::is_whitespace), "only the key is printed: {output}");
    key
}

pub(crate) fn client(app: &App, role: &str, user: &str) -> Client {
    app.client(&key(app, role, user))
}

#[tokio::test]
async fn strangers_learn_nothing_about_the_node() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    app.stranger().get("/ready").await.expect(200);
    let health = app.stranger().get("/health").await.expect(200);
    assert_eq!(health, json!({ "status": "ok" }), "strangers learn nothing about the node");
    let viewer = client(&app, "viewer", "ann");
    assert_eq!(viewer.get("/health").await.expect(200), json!({ "status": "ok" }));
    app.client("stp_wrong").get("/health").await.expect(401);
    for told in [app.admin(), client(&app, "viewer", "*")] {
        let health = told.get("/health").await.expect(200);
        assert!(health["node"].is_string() && health["workers"].is_object(), "{health}");
    }
}

#[tokio::test]
async fn organisers_see_and_change_only_their_own() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let (ann, bob) = (client(&app, "organiser", "ann"), client(&app, "organiser", "bob"));
    let event = ann.post("/api/events", &json!({ "name": "Ann's night" })).await.expect(201);
    assert_eq!(event["owner"], "ann");
    let event = text(&event["id"]);
    let order =
        ann.post("/api/tickets", &json!({ "target": event, "name": "Guest" })).await.expect(200);
    let (batch, ticket) = (text(&order["batchId"]), text(&order["tickets"][0]));

    for path in [
        format!("/api/events/{event}"),
        format!("/api/tickets/{ticket}"),
        format!("/api/tickets/{ticket}/pdf"),
        format!("/api/batches/{batch}"),
    ] {
        bob.get(&path).await.expect(403);
        assert_ne!(app.admin().get(&path).await.status, 403, "{path}");
    }
    bob.patch(&format!("/api/events/{event}"), &json!({ "name": "Mine" })).await.expect(403);
    bob.delete(&format!("/api/events/{event}")).await.expect(403);
    bob.patch(&format!("/api/tickets/{ticket}"), &json!({ "name": "Mine" })).await.expect(403);
    bob.delete(&format!("/api/tickets/{ticket}")).await.expect(403);
    bob.post("/api/tickets", &json!({ "target": event, "name": "Mine" })).await.expect(403);
    assert_eq!(bob.get("/api/events").await.expect(200)["events"], json!([]));
    assert_eq!(bob.get("/api/tickets").await.expect(200)["tickets"], json!([]));

    let viewer = client(&app, "viewer", "ann");
    viewer.get(&format!("/api/batches/{batch}")).await.expect(200);
    viewer.post("/api/events", &json!({ "name": "x" })).await.expect(403);
    viewer.post("/api/tickets", &json!({ "target": event, "name": "x" })).await.expect(403);
    viewer.delete(&format!("/api/tickets/{ticket}")).await.expect(403);
}

#[tokio::test]
async fn a_revoked_key_opens_nothing() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let key = key(&app, "admin", "root");
    app.client(&key).get("/api/events").await.expect(200);
    assert!(app.command(&["token", "revoke", &key]).0);
    app.client(&key).get("/api/events").await.expect(401);
    assert!(!app.command(&["token", "revoke", &key]).0, "there is nothing left to revoke");
}

#[tokio::test]
async fn the_first_start_shows_an_admin_key_once() {
    let mut app = start(&[("WORKER_MODE", "api"), ("ADMIN_KEY", "")]).await;
    let log = app.log();
    let key = log
        .split_whitespace()
        .find(|word| word.starts_with("stp_"))
        .expect("a key is shown")
        .to_owned();
    app.client(&key).get("/api/events").await.expect(200);
    app.stop().await;
    app.start_again(&[]).await;
    assert!(!app.log().contains("stp_"), "it is not shown again: {}", app.log());
    app.client(&key).get("/api/events").await.expect(200);
}

#[tokio::test]
async fn a_changed_admin_key_replaces_the_former() {
    let mut app =
        start(&[("WORKER_MODE", "api"), ("ADMIN_KEY", "first-key-of-the-operator")]).await;
    let event =
        app.client("first-key-of-the-operator").post("/api/events", &json!({ "name": "x" })).await;
    event.expect(201);
    app.stop().await;
    app.start_again(&[("ADMIN_KEY", "second-key-of-the-operator")]).await;
    app.client("first-key-of-the-operator").get("/api/events").await.expect(401);
    app.client("second-key-of-the-operator").get("/api/events").await.expect(200);
}

#[tokio::test]
async fn a_first_start_that_fails_does_not_swallow_the_admin_key() {
    let mut redis = Redis::start().await;
    let url = redis.url();
    redis.stop().await;
    let folder = temp_dir();
    let failed = std::process::Command::new(STAMPEDE)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs([("REDIS_URL", url.as_str()), ("PORT", &free_port().to_string())])
        .env("DATA_DIR", folder.path())
        .output()
        .unwrap();
    assert!(!failed.status.success());
    redis.start_again().await;
    let database = format!("sqlite:{}", folder.path().join("stampede.db").display());
    let settings = [
        ("REDIS_URL", url.as_str()),
        ("DATABASE_URL", &database),
        ("ADMIN_KEY", ""),
        ("WORKER_MODE", "api"),
    ];
    let app = start(&settings).await;
    assert!(app.log().contains("stp_"), "{}", app.log());
}

#[tokio::test]
async fn an_order_belongs_to_the_owner_of_its_event() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = client(&app, "organiser", "ann");
    let event = ann.post("/api/events", &json!({ "name": "Ann's night" })).await.expect(201);
    let order = app.order(json!({ "target": event["id"], "name": "Guest" })).await;
    assert_eq!(
        ann.get(&format!("/api/batches/{}", text(&order["batchId"]))).await.expect(200)["userId"],
        "ann"
    );
    ann.get(&format!("/api/tickets/{}", text(&order["tickets"][0]))).await.expect(200);
}

#[tokio::test]
async fn lists_are_paged() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    app.order(json!({ "target": event, "quantity": 5, "name": "Ann" })).await;
    let mut indexes = Vec::new();
    let mut path = "/api/tickets?limit=2".to_owned();
    loop {
        let page = app.admin().get(&path).await.expect(200);
        indexes.extend(
            page["tickets"].as_array().unwrap().iter().map(|ticket| ticket["index"].clone()),
        );
        match page["next"].as_str() {
            Some(next) => path = format!("/api/tickets?limit=2&after={next}"),
            None => break,
        }
    }
    assert_eq!(indexes, [1, 2, 3, 4, 5]);
}
