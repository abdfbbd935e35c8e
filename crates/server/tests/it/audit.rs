//! The audit log: every change has its entry, also if the process is killed in the middle of it.

use reqwest::Method;
use serde_json::{Value, json};
use stampede_model::{AuditId, Role, Timestamp};
use stampede_store::{AuditEntry, AuditOrigin, Config, Durability, Store};
use stampede_testkit::{App, Client, Postgres, eventually, send};

use crate::access::client;
use crate::{PATIENCE, start, text};

/// The entries that match, newest first.
async fn entries(app: &App, query: &str) -> Vec<Value> {
    let page = app.admin().get(&format!("/api/audit?limit=1000&{query}")).await.expect(200);
    page["entries"].as_array().unwrap().clone()
}

async fn newest(app: &App, operation: &str) -> Value {
    let found = entries(app, &format!("operation={operation}")).await;
    found.into_iter().next().unwrap_or_else(|| panic!("no entry of {operation}"))
}

async fn changes_are_in_the_log(settings: &[(&str, &str)]) {
    let app = start(settings).await;
    let ann = client(&app, "organiser", "ann");
    let event = ann.post("/api/events", &json!({ "name": "Night" })).await.expect(201);
    let id = text(&event["id"]);
    let made = newest(&app, "createEvent").await;
    assert_eq!((&made["user"], &made["role"]), (&json!("ann"), &json!("organiser")), "{made}");
    assert_eq!((&made["kind"], &made["record"]), (&json!("event"), &event["id"]), "{made}");
    assert_eq!((&made["outcome"], &made["status"]), (&json!("done"), &json!(201)), "{made}");
    assert_eq!((&made["before"], &made["after"]), (&Value::Null, &event), "{made}");
    assert_eq!((&made["origin"], &made["address"]), (&json!("api"), &json!("127.0.0.1")), "{made}");
    assert!(made["key"].is_string() && made["keyName"].is_string(), "{made}");

    let request = ann.request(Method::PATCH, &format!("/api/events/{id}"));
    let request = request.header("X-Request-Id", "my-change-7").json(&json!({ "name": "Day" }));
    send(request).await.expect(200);
    let edited = newest(&app, "updateEvent").await;
    assert_eq!(edited["requestId"], "my-change-7");
    assert_eq!(
        (&edited["before"]["name"], &edited["after"]["name"]),
        (&json!("Night"), &json!("Day"))
    );
    let one = app.admin().get(&format!("/api/audit/{}", text(&edited["id"]))).await.expect(200);
    assert_eq!(one, edited);

    // A mistake changes nothing and leaves no entry.
    ann.patch(&format!("/api/events/{id}"), &json!({ "nmae": "x" })).await.expect(422);
    assert_eq!(entries(&app, "operation=updateEvent").await.len(), 1);

    let order = json!({ "target": id, "name": "Guest", "quantity": 3 });
    let request = || ann.request(Method::POST, "/api/tickets").header("Idempotency-Key", "once");
    let placed = send(request().json(&order)).await.expect(200);
    send(request().json(&order)).await.expect(200);
    let orders = entries(&app, "operation=orderTickets").await;
    assert_eq!(orders.len(), 1, "the same order again changes nothing: {orders:?}");
    assert_eq!(
        (&orders[0]["record"], &orders[0]["after"]["tickets"]),
        (&placed["batchId"], &json!(3))
    );
    assert_eq!(orders[0]["event"], event["id"]);

    let ticket = format!("/api/tickets/{}", text(&placed["tickets"][0]));
    ann.patch(&ticket, &json!({ "status": "void" })).await.expect(200);
    let voided = newest(&app, "updateTicket").await;
    assert_eq!(
        (&voided["before"]["status"], &voided["after"]["status"]),
        (&json!("pending"), &json!("void"))
    );
    ann.patch(&ticket, &json!({ "name": "Other" })).await.expect(409);
    assert_eq!(newest(&app, "updateTicket").await["outcome"], "failed");
    ann.delete(&ticket).await.expect(204);
    let deleted = newest(&app, "deleteTicket").await;
    assert_eq!((&deleted["before"]["status"], &deleted["after"]), (&json!("void"), &Value::Null));
    let of_event = entries(&app, &format!("event={id}")).await;
    assert!(of_event.len() >= 6, "{}", of_event.len());

    let admin = app.admin();
    admin.put("/api/limits/sms", &json!({ "max": 5, "perMs": 1000 })).await.expect(200);
    admin.put("/api/limits/sms", &json!({ "max": 6, "perMs": 1000 })).await.expect(200);
    let limit = newest(&app, "setLimit").await;
    assert_eq!((&limit["before"]["max"], &limit["after"]["max"]), (&json!(5), &json!(6)));
    let files = json!({ "template.typ": "#set page(width: 100mm, height: 60mm)\nTicket" });
    let template = json!({ "name": "Mine", "files": files });
    admin.post("/api/templates", &template).await.expect(201);
    let kept = &newest(&app, "createTemplate").await["after"]["files"];
    assert!(!kept.to_string().contains("set page"), "files are kept by hash: {kept}");
    assert!(kept.to_string().contains("sha256"), "{kept}");
}

#[tokio::test]
async fn every_change_has_an_entry_with_who_what_before_and_after_on_sqlite() {
    changes_are_in_the_log(&[("WORKER_MODE", "api")]).await;
}

#[tokio::test]
async fn every_change_has_an_entry_with_who_what_before_and_after_on_postgres() {
    let postgres = Postgres::start().await;
    let url = postgres.url();
    let secret = ("TICKET_KEY_SECRET", "the-ticket-secret-of-these-tests-.long-enough");
    changes_are_in_the_log(&[("WORKER_MODE", "api"), secret, ("DATABASE_URL", &url)]).await;
}

#[tokio::test]
async fn no_secret_is_in_the_log() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    let key = json!({ "name": "Box office", "role": "organiser", "user": "ann" });
    let key = admin.post("/api/keys", &key).await.expect(201);
    let rotated = format!("/api/keys/{}/rotate", text(&key["id"]));
    let rotated = admin.post(&rotated, &json!({})).await.expect(200);
    let event = admin.post("/api/events", &json!({ "name": "Night" })).await.expect(201);
    let devices = format!("/api/events/{}/devices", text(&event["id"]));
    let device = admin.post(&devices, &json!({ "name": "Phone" })).await.expect(201);
    let code = json!({ "code": device["enrolCode"] });
    let enrolled = app.stranger().post("/api/checkin/enrol", &code).await.expect(200);
    app.stranger().post("/api/checkin/enrol", &code).await.expect(404);
    let webhook = admin.post("/api/webhooks", &json!({ "url": "https://example.com/" })).await;
    let webhook = webhook.expect(201);
    let renewed = format!("/api/webhooks/{}/rotate", text(&webhook["id"]));
    let renewed = admin.post(&renewed, &json!({ "graceSeconds": 60 })).await.expect(200);
    let order = app.order(json!({ "target": event["id"], "name": "Guest" })).await;
    let ticket_link = format!("/api/tickets/{}/links", text(&order["tickets"][0]));
    let ticket_link = admin.post(&ticket_link, &json!({})).await.expect(201);
    let batch_link = format!("/api/batches/{}/links", text(&order["batchId"]));
    let batch_link = admin.post(&batch_link, &json!({})).await.expect(201);
    let (worked, made) = app.command(&["token", "create", "--name", "By hand", "--role", "viewer"]);
    assert!(worked, "{made}");
    let log = app.admin().get("/api/audit?limit=1000").await.expect(200);
    for operation in [
        "createKey",
        "rotateKey",
        "createDevice",
        "enrolDevice",
        "createWebhook",
        "rotateWebhook",
        "linkTicket",
        "linkBatch",
    ] {
        assert!(!entries(&app, &format!("operation={operation}")).await.is_empty(), "{operation}");
    }
    let enrolment = newest(&app, "enrolDevice").await;
    assert_eq!(enrolment["record"], device["device"]["id"]);
    assert_eq!(entries(&app, "operation=enrolDevice").await.len(), 1, "a wrong code leaves none");
    let log = log.to_string();
    for secret in [
        &key["secret"],
        &rotated["secret"],
        &device["key"],
        &device["enrolCode"],
        &enrolled["key"],
        &json!(made.trim()),
        &webhook["secret"],
        &renewed["secret"],
    ] {
        assert!(!log.contains(&text(secret)), "{secret} is in the log");
    }
    for link in [ticket_link, batch_link] {
        let url = text(&link["url"]);
        let token = url.rsplit('/').next().unwrap();
        assert!(token.len() > 40 && !log.contains(token), "{token} is in the log");
    }
}

/// The name of the event, and the newest entry of its changes.
async fn after_a_kill(hang_at: &str) -> (String, Value) {
    let mut app = start(&[("WORKER_MODE", "api"), ("STAMPEDE_HANG_AT", hang_at)]).await;
    let event = app.admin().post("/api/events", &json!({ "name": "Before" })).await.expect(201);
    let path = format!("/api/events/{}", text(&event["id"]));
    let client = app.admin();
    let edit = client.request(Method::PATCH, &path).json(&json!({ "name": "After" }));
    let request = tokio::spawn(edit.send());
    let name = if hang_at.starts_with("change-made") { "After" } else { "Before" };
    eventually(PATIENCE, || async {
        let begun = !entries(&app, "operation=updateEvent").await.is_empty();
        let shown = app.admin().get(&path).await.body["name"].clone();
        if begun && shown == name { Ok(()) } else { Err(shown.to_string()) }
    })
    .await;
    app.kill();
    request.abort();
    app.start_again(&[("STAMPEDE_HANG_AT", "")]).await;
    let shown = app.admin().get(&path).await.expect(200);
    (text(&shown["name"]), newest(&app, "updateEvent").await)
}

#[tokio::test]
async fn a_change_that_was_killed_before_it_was_made_has_an_entry_without_an_outcome() {
    let (name, entry) = after_a_kill("change-begun:updateEvent").await;
    assert_eq!(name, "Before");
    assert_eq!(
        (&entry["outcome"], &entry["before"]["name"]),
        (&json!("unknown"), &json!("Before"))
    );
}

#[tokio::test]
async fn a_change_that_was_killed_before_its_entry_was_settled_is_in_the_log_all_the_same() {
    let (name, entry) = after_a_kill("change-made:updateEvent").await;
    assert_eq!(name, "After");
    assert_eq!((&entry["outcome"], &entry["status"]), (&json!("unknown"), &Value::Null));
    assert_eq!((&entry["user"], &entry["before"]["name"]), (&json!("admin"), &json!("Before")));
}

/// Renames an event again and again until the server is gone.
async fn rename_until_it_dies(admin: Client, path: String, round: u32) {
    for n in 0.. {
        let name = json!({ "name": format!("{round}-{n}") });
        let request = admin.request(Method::PATCH, &path).json(&name);
        if request.send().await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn no_change_survives_a_kill_without_its_entry() {
    let mut app = start(&[("WORKER_MODE", "api")]).await;
    let mut paths = Vec::new();
    for _ in 0..4 {
        let event = app.admin().post("/api/events", &json!({ "name": "New" })).await.expect(201);
        paths.push(format!("/api/events/{}", text(&event["id"])));
    }
    for round in 0..5 {
        let renaming = paths.iter().map(|path| {
            tokio::spawn(rename_until_it_dies(app.admin().separate(), path.clone(), round))
        });
        let renaming: Vec<_> = renaming.collect();
        // Kills at another place of the work each time, after a few changes.
        let wanted = 10 + 7 * round as usize;
        let page = "/api/audit?operation=updateEvent&limit=1000";
        eventually(PATIENCE, || async {
            let page = app.admin().get(page).await.body;
            (page["entries"].as_array()?.len() >= wanted).then_some(())
        })
        .await;
        app.kill();
        for task in renaming {
            task.await.unwrap();
        }
        app.start_again(&[]).await;
        for path in &paths {
            let event = app.admin().get(path).await.expect(200);
            let log = entries(&app, &format!("record={}", text(&event["id"]))).await;
            let newest = &log[0];
            let is_told = newest["after"]["name"] == event["name"]
                || newest["outcome"] == "unknown"
                || newest["outcome"] == "failed";
            assert!(is_told, "{} has no entry: {newest}", event["name"]);
        }
    }
}

#[tokio::test]
async fn refusals_are_in_the_log_but_a_flood_of_them_is_not() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = app.admin().post("/api/events", &json!({ "name": "Night" })).await.expect(201);
    let path = format!("/api/events/{}", text(&event["id"]));
    let viewer = client(&app, "viewer", "mallory");
    let bob = client(&app, "organiser", "bob");
    bob.delete(&path).await.expect(403);
    for _ in 0..100 {
        viewer.patch(&path, &json!({ "name": "Mine" })).await.expect(403);
    }
    app.stranger().patch(&path, &json!({ "name": "Mine" })).await.expect(401);
    let refused = entries(&app, "user=bob").await;
    assert_eq!((&refused[0]["outcome"], &refused[0]["status"]), (&json!("refused"), &json!(403)));
    assert_eq!(
        (&refused[0]["operation"], &refused[0]["record"]),
        (&json!("deleteEvent"), &event["id"])
    );
    let flood = entries(&app, "user=mallory").await.len();
    assert!((1..=20).contains(&flood), "{flood}");
    assert_eq!(app.admin().get(&path).await.expect(200), event);
    // Who reads the log: those who read everything.
    client(&app, "viewer", "*").get("/api/audit").await.expect(200);
    bob.get("/api/audit").await.expect(403);
}

#[tokio::test]
async fn commands_on_the_database_are_in_the_log_and_the_command_line_shows_it() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let (worked, told) = app.command(&[
        "token",
        "create",
        "--name",
        "=cmd()",
        "--role",
        "organiser",
        "--user",
        "=ann",
    ]);
    assert!(worked, "{told}");
    let made = newest(&app, "createKey").await;
    assert_eq!((&made["origin"], &made["address"]), (&json!("command"), &Value::Null), "{made}");
    assert_eq!(made["after"]["name"], "=cmd()", "{made}");
    let (worked, told) = app.command(&["token", "revoke", "=cmd()"]);
    assert!(worked, "{told}");
    assert_eq!(newest(&app, "revokeKey").await["before"]["state"], "active");

    let (worked, lines) = app.command(&["audit", "--operation", "createKey", "--limit", "5"]);
    assert!(worked && lines.contains("createKey"), "{lines}");
    let (worked, lines) = app.command(&["audit", "--json", "--record", &text(&made["record"])]);
    assert!(worked, "{lines}");
    let told: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told.len(), 2, "{lines}");
    assert_eq!(told[1], made);
    let (worked, one) = app.command(&["audit", &text(&made["id"])]);
    assert!(worked && one.contains("\"createKey\""), "{one}");

    // A cell never begins like a formula.
    let evil = client(&app, "organiser", "=1+1");
    evil.post("/api/events", &json!({ "name": "Night" })).await.expect(201);
    let csv = app.admin().get("/api/audit?format=csv&operation=createEvent").await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    let csv = String::from_utf8(csv.bytes).unwrap();
    assert!(csv.starts_with("id,at,user,role,"), "{csv}");
    assert!(csv.contains(",'=1+1,organiser,"), "{csv}");
    let accept = app.admin().request(Method::GET, "/api/audit").header("Accept", "text/csv");
    assert_eq!(send(accept).await.headers["content-type"], "text/csv; charset=utf-8");
}

#[tokio::test]
async fn old_entries_are_removed_and_pages_miss_none_while_others_come() {
    let mut app = start(&[("WORKER_MODE", "api")]).await;
    let url = format!("sqlite:{}/stampede.db", app.data_dir().display());
    let store = Store::connect(&Config { url, ..Config::default() }).await.unwrap();
    let old = Timestamp::now() - std::time::Duration::from_secs(3 * 24 * 60 * 60);
    let old = AuditEntry {
        id: AuditId::earliest(old),
        user: "ann".into(),
        role: Role::Admin,
        key: None,
        key_name: None,
        origin: AuditOrigin::Api,
        address: None,
        request_id: None,
        operation: "updateEvent".into(),
        kind: None,
        record: None,
        event: None,
        before: None,
        outcome: None,
        left_out: 0,
    };
    store.append_audit(&old, Durability::Synced).await.unwrap();
    assert_eq!(entries(&app, "user=ann").await.len(), 1);
    for n in 0..7 {
        app.admin().post("/api/events", &json!({ "name": format!("Event {n}") })).await.expect(201);
    }
    let before: Vec<Value> =
        entries(&app, "operation=createEvent").await.iter().map(|e| e["id"].clone()).collect();
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/audit?operation=createEvent&limit=2&after={after}");
        let page = app.admin().get(&path).await.expect(200);
        seen.extend(page["entries"].as_array().unwrap().iter().map(|e| e["id"].clone()));
        // New entries come first, and do not move the others.
        app.admin().post("/api/events", &json!({ "name": "Meanwhile" })).await.expect(201);
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, before);

    app.kill();
    app.start_again(&[("AUDIT_DAYS", "1")]).await;
    eventually(PATIENCE, || async { entries(&app, "user=ann").await.is_empty().then_some(()) })
        .await;
    assert!(!entries(&app, "operation=createEvent").await.is_empty(), "young ones stay");
}

#[tokio::test]
async fn a_change_whose_client_hangs_up_has_its_outcome_in_the_log() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = app.admin().post("/api/events", &json!({ "name": "Before" })).await.expect(201);
    let path = format!("/api/events/{}", text(&event["id"]));
    let address = app.url().trim_start_matches("http://").to_owned();
    for n in 0..20 {
        let body = json!({ "name": format!("Name {n}") }).to_string();
        let request = format!(
            "PATCH {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Authorization: Bearer the-admin-key-of-this-test\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        // Closed without waiting for the answer.
        drop(stream);
    }
    let settled = eventually(PATIENCE, || async {
        let found = entries(&app, "operation=updateEvent").await;
        // Twenty changes of one event at once: some may find it changed at every try, and fail.
        let is_settled = |entry: &Value| entry["outcome"] == "done" || entry["outcome"] == "failed";
        match found.iter().all(is_settled) {
            true if found.iter().any(|entry| entry["outcome"] == "done") => Ok(found.len()),
            _ => Err(format!("{found:?}")),
        }
    });
    assert!(settled.await > 0);
}
