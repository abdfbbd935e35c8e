//! Looking into queues and tidying them up, over HTTP and with `stampede queues`.

use serde_json::{Value, json};
use stampede_testkit::{App, eventually, temp_dir};

use crate::{PATIENCE, batch_ended, create_event, start, text};

const TEMPLATE: &str = r#"
#let t = json("ticket.json")
#if t.seat == "BROKEN" { panic("no such seat") }
#t.name
"#;

/// A server that only takes orders, so that jobs stay where they are.
async fn without_workers() -> (App, Value) {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let holders = json!([{ "name": "Ann", "seat": "VIP" }, { "name": "Bob" }, { "name": "Eve" }]);
    let order = app.order(json!({ "target": event, "holders": holders })).await;
    let status = async || app.admin().get("/api/queues/status").await.expect(200);
    eventually(PATIENCE, || async {
        let status = status().await;
        if status["tickets"]["prioritized"] == 3 { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
    (app, order)
}

#[tokio::test]
async fn jobs_are_found_removed_paused_and_drained() {
    let (app, order) = without_workers().await;
    let admin = app.admin();
    let status = admin.get("/api/queues/status").await.expect(200);
    assert_eq!(status["tickets"]["activeJobs"], json!([]));
    assert_eq!(status["tickets"]["paused"], false);

    let path = "/api/queues/tickets/jobs?state=prioritized";
    let jobs = admin.get(path).await.expect(200);
    assert_eq!(jobs["jobs"][0]["id"], order["tickets"][0], "VIPs come first");
    let second = text(&order["tickets"][1]);
    let found = admin.get(&format!("{path}&search={second}")).await.expect(200);
    assert_eq!((&found["jobs"][0]["id"], &found["jobs"][1]), (&order["tickets"][1], &Value::Null));
    assert_eq!(found["next"], Value::Null, "everything was looked at");
    let job = admin.get(&format!("/api/queues/tickets/jobs/{second}")).await.expect(200);
    assert_eq!((&job["state"], &job["name"]), (&json!("prioritized"), &json!("generate-pdf")));

    // Nobody should have to know that jobs with a priority are kept apart.
    for path in ["/api/queues/tickets/jobs", "/api/queues/tickets/jobs?state=waiting&count=2"] {
        let jobs = admin.get(path).await.expect(200);
        assert_eq!(jobs["jobs"][0]["id"], order["tickets"][0], "{jobs}");
        assert_eq!(jobs["jobs"][1]["state"], "prioritized", "{jobs}");
    }
    let (worked, told) = app.command(&["queues", "jobs", "tickets"]);
    assert!(worked && told.contains(&second) && told.contains("prioritized"), "{told}");

    let job = format!("/api/queues/tickets/jobs/{second}");
    let told = admin.delete(&job).await.expect(200);
    assert!(text(&told["note"]).contains(&format!("PATCH /api/tickets/{second}")), "{told}");
    admin.delete(&job).await.expect(404);
    for verb in ["retry", "promote", "cancel"] {
        admin.post(&format!("{job}/{verb}"), &json!({})).await.expect(404);
    }
    let first = format!("/api/queues/tickets/jobs/{}", text(&order["tickets"][0]));
    let refused = admin.post(&format!("{first}/retry"), &json!({})).await.expect(409);
    assert!(text(&refused["error"]).contains("this one is prioritized"), "{refused}");
    let cancelled = admin.post(&format!("{first}/cancel"), &json!({})).await.expect(200);
    assert_eq!(cancelled["state"], "removed");
    assert!(text(&cancelled["note"]).contains("still ordered"), "{cancelled}");

    // What is not ordered any more does not come back, and nothing is said of it.
    let third = text(&order["tickets"][2]);
    let void = json!({ "status": "void" });
    admin.patch(&format!("/api/tickets/{third}"), &void).await.expect(200);
    let (worked, told) = app.command(&["queues", "cancel", "tickets", &third]);
    assert!(!worked && told.contains("Job not found"), "{told}");

    admin.post("/api/queues/tickets/pause", &json!({})).await.expect(200);
    let (worked, told) = app.command(&["queues", "status"]);
    assert!(worked && told.contains("tickets") && told.contains("paused"), "{told}");
    admin.post("/api/queues/tickets/resume", &json!({})).await.expect(200);
    let drained = admin.post("/api/queues/tickets/drain", &json!({})).await.expect(200);
    assert!(text(&drained["note"]).contains("get new jobs"), "{drained}");
    let status = admin.get("/api/queues/status").await.expect(200);
    assert_eq!(
        (&status["tickets"]["prioritized"], &status["tickets"]["paused"]),
        (&json!(0), &json!(false))
    );

    let refused = admin.post("/api/queues/tickets/obliterate", &json!({})).await.expect(422);
    assert!(text(&refused["error"]).contains("\"confirm\": \"tickets\""), "{refused}");
    let (worked, told) = app.command(&["queues", "obliterate", "tickets", "--confirm", "tickets"]);
    assert!(worked, "{told}");
}

#[tokio::test]
async fn queues_are_for_administrators_and_must_exist() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let (worked, key) = app.command(&["token", "create", "--role", "organiser"]);
    assert!(worked, "{key}");
    let organiser = app.client(
        key.lines().find(|line| line.contains("sk_") || !line.contains(' ')).unwrap().trim(),
    );
    organiser.get("/api/queues/status").await.expect(403);
    app.stranger().get("/api/queues/status").await.expect(401);
    app.admin().get("/api/queues/nobody/jobs").await.expect(404);
    app.admin().post("/api/queues/nobody/pause", &json!({})).await.expect(404);
    let odd = app.admin().get("/api/queues/a%3Ab/jobs").await.expect(422);
    assert!(text(&odd["error"]).contains("cannot be a queue name"), "{odd}");
    let state =
        app.admin().post("/api/queues/clean", &json!({ "state": "active" })).await.expect(422);
    assert!(text(&state["error"]).contains("failed, completed"), "{state}");
    // A queue is there once somebody has ordered.
    app.order(json!({ "target": event, "name": "Ann" })).await;
    for (path, body, field) in [
        ("/api/queues/clean", json!({ "quue": "tickets" }), "quue"),
        ("/api/queues/tickets/drain", json!({ "delayd": true }), "delayd"),
        ("/api/queues/tickets/drain", json!({ "delayed": "yes" }), "delayed"),
        ("/api/queues/tickets/pause", json!({ "for": 60 }), "for"),
        ("/api/queues/tickets/dead-letters/purge", json!({ "ids": [1], "all": true }), "ids"),
    ] {
        let refused = app.admin().post(path, &body).await.expect(422);
        assert_eq!(refused["errors"][0]["field"], field, "{refused}");
    }
}

#[tokio::test]
async fn dead_letters_are_shown_replayed_and_thrown_away() {
    let folder = temp_dir();
    let template = folder.path().join("ticket.typ");
    std::fs::write(&template, TEMPLATE).unwrap();
    let app = start(&[("TICKET_TEMPLATE", &template.display().to_string())]).await;
    let event = create_event(&app).await;
    let holders = json!([{ "name": "Ann", "seat": "A-1" }, { "name": "Bob", "seat": "BROKEN" }]);
    let order = app.order(json!({ "target": event, "holders": holders })).await;
    batch_ended(&app, &text(&order["batchId"])).await;
    let broken = text(&order["tickets"][1]);

    let letters = app.admin().get("/api/queues/tickets/dead-letters").await.expect(200);
    assert_eq!((&letters["total"], &letters["letters"][0]["jobId"]), (&json!(1), &json!(broken)));
    let letter = &letters["letters"][0];
    assert!(text(&letter["reason"]).contains("no such seat"), "{letter}");
    assert_eq!(letter["payload"]["ticketId"], json!(broken));
    assert_eq!((&letter["attemptsMade"], &letter["stacktrace"][2].is_null()), (&json!(3), &false));
    let (worked, told) = app.command(&["queues", "dead-letters", "tickets"]);
    assert!(worked && told.contains("no such seat") && told.contains("1 in all"), "{told}");

    let (worked, told) = app.command(&["queues", "replay", "tickets", &broken]);
    assert!(worked && told.contains("1 replayed"), "{told}");
    // It is still broken, and dies again after all its attempts.
    eventually(PATIENCE, || async {
        let letters = app.admin().get("/api/queues/tickets/dead-letters").await.expect(200);
        if letters["total"] == 1 { Ok(()) } else { Err(letters.to_string()) }
    })
    .await;
    let (worked, told) = app.command(&["queues", "purge", "tickets", "--all", "--json"]);
    assert!(worked && told.contains("\"count\":1"), "{told}");
    let cleaned = app.admin().post("/api/queues/clean", &json!({})).await.expect(200);
    assert_eq!(cleaned["removed"]["tickets"], 1);
}
