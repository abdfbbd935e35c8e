//! API keys: made, found, rotated and ended by name, over HTTP and on the command line.

use std::time::Duration;

use serde_json::{Value, json};
use stampede_testkit::{App, Client, Postgres, Redis, eventually, send};

use crate::access::client;
use crate::{PATIENCE, start, text};

/// Makes a key and returns its answer.
async fn make(client: &Client, key: Value) -> Value {
    client.post("/api/keys", &key).await.expect(201)
}

/// A client with the secret of a key that was made.
fn with(app: &App, issued: &Value) -> Client {
    app.client(&text(&issued["secret"]))
}

fn path(key: &Value) -> String {
    format!("/api/keys/{}", text(&key["id"]))
}

/// The names in a list of keys.
async fn names(client: &Client, query: &str) -> Vec<String> {
    let page = client.get(&format!("/api/keys{query}")).await.expect(200);
    page["keys"].as_array().unwrap().iter().map(|key| text(&key["name"])).collect()
}

#[tokio::test]
async fn a_key_is_made_shown_without_its_secret_and_revoked() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = client(&app, "organiser", "ann");
    let made = make(&ann, json!({ "name": "Box office", "role": "viewer" })).await;
    assert!(text(&made["secret"]).starts_with("stp_"), "{made}");
    assert_eq!(
        (&made["user"], &made["kind"], &made["state"]),
        (&json!("ann"), &json!("key"), &json!("active"))
    );
    with(&app, &made).get("/api/events").await.expect(200);
    let shown = ann.get(&path(&made)).await.expect(200);
    assert_eq!(shown.get("secret"), None, "{shown}");
    assert_eq!(names(&ann, "?name=Box%20office").await, ["Box office"]);
    let again = json!({ "name": "Box office", "role": "viewer" });
    assert_eq!(ann.post("/api/keys", &again).await.expect(409)["code"], "name_taken");
    for _ in 0..2 {
        ann.delete(&path(&made)).await.expect(204);
        with(&app, &made).get("/api/events").await.expect(401);
    }
    assert_eq!(ann.get(&path(&made)).await.expect(200)["state"], "revoked");
    assert_eq!(names(&ann, "?state=revoked").await, ["Box office"]);
    ann.patch(&path(&made), &json!({ "name": "x" })).await.expect(409);
    ann.post(&format!("{}/rotate", path(&made)), &json!({})).await.expect(409);
    make(&ann, again).await;
}

#[tokio::test]
async fn nobody_makes_or_takes_a_key_that_opens_more_than_their_own() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let (ann, admin) = (client(&app, "organiser", "ann"), app.admin());
    let bobs = make(&admin, json!({ "name": "b", "role": "organiser", "user": "bob" })).await;
    let annas_admin = make(&admin, json!({ "name": "a", "role": "admin", "user": "ann" })).await;
    for key in [
        json!({ "name": "x", "role": "admin" }),
        json!({ "name": "x", "role": "viewer", "user": "bob" }),
        json!({ "name": "x", "role": "viewer", "user": "*" }),
    ] {
        let problem = ann.post("/api/keys", &key).await.expect(403);
        assert_eq!(problem["needs"], json!(["admin"]), "{key}");
    }
    // Of keys of others, she is not told that they exist.
    for (key, status) in [(&bobs, 404), (&annas_admin, 403)] {
        ann.post(&format!("{}/rotate", path(key)), &json!({})).await.expect(status);
        ann.patch(&path(key), &json!({ "name": "mine" })).await.expect(status);
        ann.delete(&path(key)).await.expect(status);
    }
    ann.get(&path(&bobs)).await.expect(404);
    let viewer = client(&app, "viewer", "ann");
    viewer.get(&path(&annas_admin)).await.expect(200);
    viewer.post("/api/keys", &json!({ "name": "x", "role": "viewer" })).await.expect(403);
    // A key that ends makes no key that lives on, and gets no secret of one.
    let day = json!({ "name": "day", "role": "organiser", "expiresIn": 86_400 });
    let day = make(&ann, day).await;
    let short = with(&app, &day);
    let child = make(&short, json!({ "name": "child", "role": "scanner" })).await;
    assert_eq!(child["expiresAt"], day["expiresAt"]);
    let late = json!({ "name": "late", "role": "scanner", "expiresIn": 90_000 });
    assert_eq!(short.post("/api/keys", &late).await.expect(422)["errors"][0]["field"], "expiresAt");
    let forever = make(&ann, json!({ "name": "forever", "role": "viewer" })).await;
    short.post(&format!("{}/rotate", path(&forever)), &json!({})).await.expect(403);
    short.patch(&path(&child), &json!({ "expiresAt": "2200-01-01T00:00:00Z" })).await.expect(422);
    let event = ann.post("/api/events", &json!({ "name": "Night" })).await.expect(201);
    let devices = format!("/api/events/{}/devices", text(&event["id"]));
    let device = short.post(&devices, &json!({ "name": "Phone" })).await.expect(201);
    assert_eq!(device["device"]["expiresAt"], day["expiresAt"]);
    let foreign = json!({ "name": "x", "role": "viewer", "event": event["id"], "user": "bob" });
    let problem = admin.post("/api/keys", &foreign).await.expect(422);
    assert_eq!(problem["errors"][0]["field"], "event");
}

#[tokio::test]
async fn a_rotated_key_keeps_its_former_secret_for_its_grace_and_no_longer() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = client(&app, "organiser", "ann");
    let first = make(&ann, json!({ "name": "Shop", "role": "viewer" })).await;
    let rotate = format!("{}/rotate", path(&first));
    let second = ann.post(&rotate, &json!({ "graceSeconds": 3_600 })).await.expect(200);
    assert_eq!(second["id"], first["id"]);
    assert!(second["graceUntil"].is_string(), "{second}");
    for issued in [&first, &second] {
        with(&app, issued).get("/api/events").await.expect(200);
    }
    let third = send(ann.request(reqwest::Method::POST, &rotate)).await.expect(200);
    assert_eq!(third["graceUntil"], Value::Null);
    for issued in [&first, &second] {
        with(&app, issued).get("/api/events").await.expect(401);
    }
    with(&app, &third).get("/api/events").await.expect(200);
    ann.post(&rotate, &json!({ "graceSeconds": 604_801 })).await.expect(422);
    let fourth = ann.post(&rotate, &json!({ "graceSeconds": 1 })).await.expect(200);
    until_refused(&with(&app, &third)).await;
    with(&app, &fourth).get("/api/events").await.expect(200);
}

async fn until_refused(client: &Client) {
    eventually(PATIENCE, || async {
        match client.get("/api/events").await.status {
            401 => Ok(()),
            status => Err(format!("{status}")),
        }
    })
    .await
}

#[tokio::test]
async fn a_key_ends_when_it_expires_and_can_be_extended() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    let key = json!({ "name": "Brief", "role": "viewer", "user": "ann", "expiresIn": 1 });
    let key = make(&admin, key).await;
    until_refused(&with(&app, &key)).await;
    assert_eq!(admin.get(&path(&key)).await.expect(200)["state"], "expired");
    assert_eq!(names(&admin, "?state=expired&user=ann").await, ["Brief"]);
    let rotate = format!("{}/rotate", path(&key));
    assert_eq!(admin.post(&rotate, &json!({})).await.expect(409)["code"], "conflict");
    let longer = json!({ "expiresAt": "2200-01-01T00:00:00Z", "name": "Long" });
    let changed = admin.patch(&path(&key), &longer).await.expect(200);
    assert_eq!((&changed["name"], &changed["state"]), (&json!("Long"), &json!("active")));
    with(&app, &key).get("/api/events").await.expect(200);
    for (body, field) in [
        (json!({ "name": "x", "role": "boss" }), "role"),
        (
            json!({ "name": "x", "role": "viewer", "expiresAt": "2020-01-01T00:00:00Z" }),
            "expiresAt",
        ),
        (json!({ "name": "x", "role": "viewer", "expiresIn": 0 }), "expiresIn"),
        (json!({ "name": "x", "role": "viewer", "queues": ["mails"] }), "queues"),
        (json!({ "name": "x", "role": "admin", "queues": [] }), "queues"),
        (json!({ "name": "x", "role": "admin", "event": "y" }), "event"),
        (json!({ "role": "viewer" }), "name"),
    ] {
        let problem = admin.post("/api/keys", &body).await.expect(422);
        assert_eq!(problem["errors"][0]["field"], field, "{body}: {problem}");
    }
}

#[tokio::test]
async fn the_preset_key_and_devices_are_shown_as_what_they_are() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    let event = admin.post("/api/events", &json!({ "name": "Night" })).await.expect(201);
    let event = text(&event["id"]);
    let devices = format!("/api/events/{event}/devices");
    let device = admin.post(&devices, &json!({ "name": "Phone" })).await.expect(201);
    let page = admin.get("/api/keys?limit=1").await.expect(200);
    let shown = &page["keys"][0];
    assert_eq!((&shown["kind"], &shown["event"]), (&json!("device"), &json!(event)));
    let next = format!("/api/keys?after={}", text(&page["next"]));
    let page = admin.get(&next).await.expect(200);
    let preset = &page["keys"][0];
    assert_eq!((&preset["kind"], &page["next"]), (&json!("preset"), &Value::Null), "{page}");
    for answer in [
        admin.delete(&path(preset)).await,
        admin.patch(&path(preset), &json!({ "name": "mine" })).await,
        admin.post(&format!("{}/rotate", path(preset)), &json!({})).await,
    ] {
        assert_eq!(answer.expect(409)["code"], "preset_key");
    }
    admin.get("/api/events").await.expect(200);
    admin.delete(&path(shown)).await.expect(204);
    app.client(&text(&device["key"])).get("/api/checkin/me").await.expect(401);
    let enrol = json!({ "code": device["enrolCode"] });
    app.stranger().post("/api/checkin/enrol", &enrol).await.expect(404);
}

#[tokio::test]
async fn the_last_use_of_a_key_is_noted_in_the_background() {
    let mut app = start(&[("WORKER_MODE", "api")]).await;
    let key = make(&app.admin(), json!({ "name": "Used", "role": "viewer" })).await;
    let seen = app.admin().get(&path(&key)).await.expect(200);
    assert_eq!((&seen["lastUsedAt"], &seen["lastUsedFrom"]), (&Value::Null, &Value::Null));
    with(&app, &key).get("/api/events").await.expect(200);
    let first = eventually(Duration::from_secs(60), || async {
        let seen = app.admin().get(&path(&key)).await.expect(200);
        match seen["lastUsedAt"].as_str() {
            Some(at) => Ok((at.to_owned(), seen["lastUsedFrom"].clone())),
            None => Err(seen.to_string()),
        }
    })
    .await;
    assert_eq!(first.1, "127.0.0.1");
    with(&app, &key).get("/api/events").await.expect(200);
    // A server that stops writes what is left.
    app.stop().await;
    app.start_again(&[]).await;
    let last = text(&app.admin().get(&path(&key)).await.expect(200)["lastUsedAt"]);
    assert!(last > first.0, "{last} {}", first.0);
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once_by_every_node() {
    let (redis, postgres) = tokio::join!(Redis::start(), Postgres::start());
    let (redis_url, database) = (redis.url(), postgres.url());
    let settings = |name| {
        [
            ("WORKER_MODE", "api"),
            ("SERVER_NAME", name),
            ("REDIS_URL", redis_url.as_str()),
            ("DATABASE_URL", database.as_str()),
            ("TICKET_KEY_SECRET", "0123456789abcdef0123456789abcdef"),
        ]
    };
    let (one, two) = (start(&settings("one")).await, start(&settings("two")).await);
    for round in 0..5 {
        let name = format!("key {round}");
        let key = make(&one.admin(), json!({ "name": name, "role": "viewer" })).await;
        let secret = text(&key["secret"]);
        two.client(&secret).get("/api/events").await.expect(200);
        let rotate = format!("{}/rotate", path(&key));
        let fresh = one.admin().post(&rotate, &json!({})).await.expect(200);
        two.client(&secret).get("/api/events").await.expect(401);
        two.client(&text(&fresh["secret"])).get("/api/events").await.expect(200);
        one.admin().delete(&path(&key)).await.expect(204);
        two.client(&text(&fresh["secret"])).get("/api/events").await.expect(401);
    }
}

/// Runs `stampede token …`, which must work; returns what it printed.
fn token(app: &App, arguments: &[&str]) -> String {
    let (worked, output) = app.command(&[&["token"], arguments].concat());
    assert!(worked, "{arguments:?}: {output}");
    output.trim().to_owned()
}

#[tokio::test]
async fn a_lost_key_is_found_and_ended_by_name_on_the_command_line() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = format!("--key={}", stampede_testkit::ADMIN_KEY);
    let url = format!("--url={}", app.url());
    // In the database of this machine, and over HTTP.
    for server in [&[][..], &[url.as_str(), admin.as_str()]] {
        let run = |arguments: &[&str]| token(&app, &[arguments, server].concat());
        let create = ["create", "--name", "Till 1", "--role", "viewer", "--user", "ann"];
        let secret = run(&[&create[..], &["--expires", "30d"]].concat());
        app.client(&secret).get("/api/events").await.expect(200);
        let (made, told) = app.command(&[&["token"], &create[..], server].concat());
        assert!(!made && told.contains("has the name"), "{told}");
        let table = run(&["list", "--user", "ann"]);
        assert!(table.contains("Till 1") && table.contains("active"), "{table}");
        assert!(!table.contains(&secret), "{table}");
        let shown: Value = serde_json::from_str(&run(&["show", "Till 1", "--json"])).unwrap();
        assert_eq!((&shown["name"], &shown["role"]), (&json!("Till 1"), &json!("viewer")));
        assert!(shown["expiresAt"].is_string(), "{shown}");
        let fresh = run(&["rotate", "Till 1", "--grace", "1h"]);
        for secret in [&secret, &fresh] {
            app.client(secret).get("/api/events").await.expect(200);
        }
        let last = run(&["rotate", &text(&shown["id"])]);
        app.client(&fresh).get("/api/events").await.expect(401);
        assert_eq!(run(&["revoke", "Till 1"]), "revoked");
        app.client(&last).get("/api/events").await.expect(401);
        let (worked, told) = app.command(&[&["token", "revoke", "Till 1"], server].concat());
        assert!(!worked && told.contains("not known, or revoked already"), "{told}");
        assert!(!run(&["list", "--user", "ann"]).contains("Till 1"));
        assert!(run(&["list", "--user", "ann", "--all"]).contains("revoked"));
    }
}

#[tokio::test]
async fn the_command_line_makes_limited_keys_and_tells_names_apart_by_user() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = app.admin().post("/api/events", &json!({ "name": "Night" })).await.expect(201);
    let event = text(&event["id"]);
    let limited = ["create", "--role", "viewer", "--user", "admin", "--event", &event];
    let secret = token(&app, &limited);
    let events = app.client(&secret).get("/api/events").await.expect(200);
    assert_eq!(events["events"][0]["id"], json!(event));
    let queues = ["create", "--role", "admin", "--queue", "mails", "--queue", "slow", "--json"];
    let made: Value = serde_json::from_str(&token(&app, &queues)).unwrap();
    assert_eq!(made["queues"], json!(["mails", "slow"]));
    for user in ["ann", "bob"] {
        token(&app, &["create", "--name", "till", "--role", "viewer", "--user", user]);
    }
    let (worked, told) = app.command(&["token", "revoke", "till"]);
    assert!(!worked && told.contains("2 keys have this name"), "{told}");
    assert_eq!(token(&app, &["revoke", "till", "--user", "bob"]), "revoked");
    assert_eq!(token(&app, &["revoke", "till"]), "revoked");
    for wrong in [
        &["create", "--role", "viewer", "--event", "01890a5d-ac96-774b-bcce-b302099a8057"][..],
        &["create", "--role", "viewer", "--queue", "mails"],
        &["create", "--role", "viewer", "--expires", "soon"],
        &["rotate", "01890a5d-ac96-774b-bcce-b302099a8057"],
        &["rotate", "00000000-0000-0000-0000-000000000000"],
    ] {
        let (worked, told) = app.command(&[&["token"], wrong].concat());
        assert!(!worked, "{wrong:?}: {told}");
    }
}

#[tokio::test]
async fn a_user_has_no_more_keys_than_the_limit() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = client(&app, "organiser", "ann");
    // Hers is the first.
    for n in 1..1_000 {
        make(&ann, json!({ "name": format!("n{n}"), "role": "viewer" })).await;
    }
    let one_more = json!({ "name": "one more", "role": "viewer" });
    assert_eq!(ann.post("/api/keys", &one_more).await.expect(409)["code"], "too_many");
    let first = ann.get("/api/keys?name=n1").await.expect(200);
    ann.delete(&path(&first["keys"][0])).await.expect(204);
    make(&ann, one_more).await;
}
