//! A template that fails for one ticket fails that ticket, and nothing else.

use reqwest::Method;
use serde_json::json;
use stampede_testkit::{Redis, eventually, kill, pdf_text, temp_dir};

use crate::access::client;
use crate::{PATIENCE, batch_ended, create_event, start, text, tickets_of};

const TEMPLATE: &str = r#"
#let t = json("ticket.json")
#if t.seat == "BROKEN" { panic("no such seat") }
#t.name
"#;

/// What BullMQ's record of the job says.
fn attempts_made(redis: &Redis, job: &str) -> String {
    redis.cli(&["HGET", &format!("bull:tickets:{job}"), "atm"])
}

#[tokio::test]
async fn a_ticket_that_cannot_be_made_fails_after_three_attempts_with_its_reason() {
    let folder = temp_dir();
    let template = folder.path().join("ticket.typ");
    std::fs::write(&template, TEMPLATE).unwrap();
    let redis = Redis::start().await;
    let url = redis.url();
    let app =
        start(&[("TICKET_TEMPLATE", &template.display().to_string()), ("REDIS_URL", &url)]).await;
    let event = create_event(&app).await;
    let holders = json!([
        { "name": "Ann", "seat": "A-1" }, { "name": "Bob", "seat": "BROKEN" }, { "name": "Eve", "seat": "A-3" },
    ]);
    let started = std::time::Instant::now();
    let order = app.order(json!({ "target": event, "holders": holders })).await;
    let batch_id = text(&order["batchId"]);
    let batch = batch_ended(&app, &batch_id).await;

    assert_eq!(batch["status"], "completed_with_errors");
    assert_eq!((&batch["completed"], &batch["failed"]), (&json!(2), &json!(1)));
    assert!(
        started.elapsed().as_millis() >= 6_000,
        "back-off of 2 s and 4 s lies between three attempts"
    );
    let broken = &tickets_of(&app, &batch_id).await[1];
    assert_eq!(broken["status"], "failed");
    assert!(text(&broken["error"]).contains("no such seat"), "{broken}");
    assert_eq!(attempts_made(&redis, &text(&broken["id"])), "3");
    let answer = app.admin().get(&format!("/api/tickets/{}/pdf", text(&broken["id"]))).await;
    assert!(answer.expect(409)["error"].as_str().unwrap().contains("no such seat"));

    // Corrected, it is made after all, and the batch has no errors any more.
    let patch = json!({ "seat": "A-2" });
    app.admin().patch(&format!("/api/tickets/{}", text(&broken["id"])), &patch).await.expect(200);
    let batch = batch_ended(&app, &batch_id).await;
    assert_eq!((&batch["status"], &batch["completed"]), (&json!("completed"), &json!(3)));
}

#[tokio::test]
async fn a_template_edited_while_the_server_runs_changes_nothing_until_its_restart() {
    let folder = temp_dir();
    let template = folder.path().join("ticket.typ");
    std::fs::write(&template, "#json(\"ticket.json\").name, first edition").unwrap();
    let app = start(&[("TICKET_TEMPLATE", &template.display().to_string())]).await;
    std::fs::write(&template, "#json(\"ticket.json\").name, second edition").unwrap();
    for worker in app.workers() {
        kill(worker);
    }
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "name": "Ann" })).await;
    batch_ended(&app, &text(&order["batchId"])).await;
    let pdf = app.admin().get(&format!("/api/tickets/{}/pdf", text(&order["tickets"][0]))).await;
    assert_eq!(pdf.status, 200, "{}", pdf.body);
    assert!(pdf_text(&pdf.bytes).contains("first edition"));
}

/// A mistake whose message looks like two lines of the log, and clears the terminal.
const FORGER: &str = r#"
#let name = ticket("name")
#assert(name != "Bob", message: "no seat\n2026-01-01T00:00:00.000000Z  INFO forged line\u{1b}[2J")
#name #qr(40mm)
"#;

#[tokio::test]
async fn a_mistake_of_a_template_writes_no_line_of_its_own_into_the_log() {
    let app = start(&[("LOG_LEVEL", "debug")]).await;
    let ann = client(&app, "organiser", "ann");
    let files = |source: &str| json!({ "name": "Own", "files": { "template.typ": source } });
    let template = ann.post("/api/templates", &files("#field(\"name\") #qr(40mm)")).await;
    let template = text(&template.expect(201)["id"]);
    let event = json!({ "name": "Opening Night", "template": template });
    let event = text(&ann.post("/api/events", &event).await.expect(201)["id"]);
    let order = json!({ "target": event, "holders": [{ "name": "Ann", "seat": "A-1" }, { "name": "Bob" }] });
    let batch = text(&ann.post("/api/tickets", &order).await.expect(200)["batchId"]);
    assert_eq!(batch_ended(&app, &batch).await["completed"], 2);
    // The next revision cannot print the second ticket, which the server and a worker write into their log.
    ann.put(&format!("/api/templates/{template}"), &files(FORGER)).await.expect(200);
    let download = ann.request(Method::GET, &format!("/api/batches/{batch}/pdf")).send();
    let broken_off = download.await.unwrap().bytes().await;
    assert!(broken_off.is_err(), "{broken_off:?}");
    let ticket = text(&tickets_of(&app, &batch).await[1]["id"]);
    ann.get(&format!("/api/tickets/{ticket}/pdf")).await.expect(409);
    let log = eventually(PATIENCE, || async {
        let log = app.log();
        let is_told =
            ["a download was broken off", "is a dead letter now"].map(|t| log.contains(t));
        if is_told == [true; 2] { Ok(log) } else { Err(log) }
    })
    .await;
    assert!(log.contains("forged line"), "the mistake is told: {log}");
    let forged = log.lines().find(|line| line.starts_with("2026-01-01T00:00:00"));
    assert_eq!(forged, None, "{log}");
    assert!(!log.contains('\u{1b}'), "{log}");
    // Tables and errors of the command line show the same mistake.
    for command in [
        &["queues", "dead-letters", "tickets"][..],
        &["queues", "jobs", "tickets", "--state", "failed"],
    ] {
        let (_, told) = app.command(command);
        let forged = told.lines().any(|line| line.starts_with("2026-01-01T00:00:00"));
        assert!(!forged && !told.contains('\u{1b}'), "{told}");
    }
}
